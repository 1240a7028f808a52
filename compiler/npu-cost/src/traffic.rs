//! The traffic of the network on chip and of DRAM.

use crate::machine::Machine;
use crate::mesh::{Mesh, Place};

/// Bytes on links, and to and from DRAM.
///
/// Data travel along rows first, then along columns. A multicast is a tree: along the
/// sender's row as far as any destination requires, and from there along each column.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Bytes times links.
    pub hops: u64,
    /// Bytes to and from DRAM.
    pub dram: u64,
    /// Bytes on each link; empty if links are not distinguished. For each core, in the order of
    /// columns, the links to the right, up, left and down.
    links: Vec<u64>,
}

/// Data movements whose traffic is being added up: for each direction, the bytes by which a link along a
/// row or a column carries more than the link before it.
pub struct Flow {
    mesh: Mesh,
    hops: u64,
    dram: u64,
    /// Right, up, left, down; a row or a column has one entry more than cores.
    changes: [Vec<u64>; 4],
}

/// A link's direction.
#[derive(Clone, Copy)]
enum Direction {
    Right,
    Up,
    Left,
    Down,
}

impl Traffic {
    /// Adds the traffic of another.
    pub fn add(&mut self, other: &Self) {
        self.hops += other.hops;
        self.dram += other.dram;
        if self.links.is_empty() {
            self.links.clone_from(&other.links);
        } else {
            self.links.iter_mut().zip(&other.links).for_each(|(sum, bytes)| *sum += bytes);
        }
    }

    /// Repeats the traffic.
    pub fn multiply(&mut self, times: u64) {
        self.change(|bytes| bytes * times);
    }

    /// Divides the traffic of several repetitions; each link rounds down.
    pub fn divide(&mut self, times: u64) {
        self.change(|bytes| bytes / times);
    }

    /// Cycles of DRAM and, if links are distinguished, of the busiest link.
    pub fn time(&self, machine: &Machine) -> u64 {
        let links = self.busiest().div_ceil(machine.link_bandwidth);
        self.dram.div_ceil(machine.dram_bandwidth).max(links)
    }

    /// Bytes on the busiest link.
    pub fn busiest(&self) -> u64 {
        self.links.iter().copied().max().unwrap_or(0)
    }

    /// Energy of links in pJ.
    pub fn link_energy(&self, machine: &Machine) -> f64 {
        self.hops as f64 * machine.hop
    }

    /// Energy of DRAM in pJ.
    pub fn dram_energy(&self, machine: &Machine) -> f64 {
        self.dram as f64 * machine.dram
    }

    fn change(&mut self, of: impl Fn(u64) -> u64) {
        self.hops = of(self.hops);
        self.dram = of(self.dram);
        self.links.iter_mut().for_each(|bytes| *bytes = of(*bytes));
    }
}

impl Flow {
    /// No movements.
    pub fn new(mesh: Mesh) -> Self {
        let rows = (mesh.height * (mesh.width + 1)) as usize;
        let columns = (mesh.width * (mesh.height + 1)) as usize;
        let changes = [vec![0; rows], vec![0; columns], vec![0; rows], vec![0; columns]];
        Self { mesh, hops: 0, dram: 0, changes }
    }

    /// Sends bytes from one place to others, which are in ascending order.
    pub fn send(&mut self, from: Place, to: &[Place], bytes: u64) {
        let (Some(first), Some(last)) = (to.first(), to.last()) else { return };
        self.run_row(from, first.x..last.x, bytes);
        for column in to.chunk_by(|a, b| a.x == b.x) {
            let top = column.first().map_or(from.y, |place| place.y);
            let bottom = column.last().map_or(from.y, |place| place.y);
            self.run_column(Place { x: column[0].x, y: from.y }, top..bottom, bytes);
        }
    }

    /// Loads bytes from DRAM to places, which are in ascending order: each port sends an equal share.
    pub fn load(&mut self, to: &[Place], bytes: u64) {
        for (port, share) in shares(self.mesh, bytes) {
            self.send(port, to, share);
        }
        self.dram += bytes;
    }

    /// Stores bytes from a place to DRAM: each port takes an equal share.
    pub fn store(&mut self, from: Place, bytes: u64) {
        for (port, share) in shares(self.mesh, bytes) {
            self.send(from, &[port], share);
        }
        self.dram += bytes;
    }

    /// The traffic of all movements.
    pub fn traffic(&self) -> Traffic {
        let Mesh { width, height, .. } = self.mesh;
        let mut links = vec![0; 4 * self.mesh.cores() as usize];
        for way in [Direction::Right, Direction::Up, Direction::Left, Direction::Down] {
            let along_rows = matches!(way, Direction::Right | Direction::Left);
            let (lines, length) = if along_rows { (height, width) } else { (width, height) };
            for line in 0..lines {
                let mut bytes = 0_u64;
                for at in 0..length {
                    let change = self.changes[way as usize][(line * (length + 1) + at) as usize];
                    bytes = bytes.wrapping_add(change);
                    let (x, y) = if along_rows { (at, line) } else { (line, at) };
                    links[4 * self.mesh.index(Place { x, y }) + way as usize] = bytes;
                }
            }
        }
        Traffic { hops: self.hops, dram: self.dram, links }
    }

    fn run_row(&mut self, from: Place, to: std::ops::Range<u64>, bytes: u64) {
        self.hops += (from.x.max(to.end) - from.x.min(to.start)) * bytes;
        self.links(Direction::Left, from.y, to.start + 1..from.x + 1, bytes);
        self.links(Direction::Right, from.y, from.x..to.end, bytes);
    }

    fn run_column(&mut self, from: Place, to: std::ops::Range<u64>, bytes: u64) {
        self.hops += (from.y.max(to.end) - from.y.min(to.start)) * bytes;
        self.links(Direction::Up, from.x, to.start + 1..from.y + 1, bytes);
        self.links(Direction::Down, from.x, from.y..to.end, bytes);
    }

    /// Adds bytes on the links at `range` of a row or a column.
    fn links(&mut self, way: Direction, line: u64, range: std::ops::Range<u64>, bytes: u64) {
        if range.is_empty() {
            return;
        }
        let length = match way {
            Direction::Right | Direction::Left => self.mesh.width,
            Direction::Up | Direction::Down => self.mesh.height,
        };
        let changes = &mut self.changes[way as usize];
        let (from, to) = (line * (length + 1) + range.start, line * (length + 1) + range.end);
        changes[from as usize] = changes[from as usize].wrapping_add(bytes);
        changes[to as usize] = changes[to as usize].wrapping_sub(bytes);
    }
}

/// The share of `bytes` of each port.
fn shares(mesh: Mesh, bytes: u64) -> impl Iterator<Item = (Place, u64)> {
    let ports = mesh.ports();
    let count = ports.len() as u64;
    let upto = move |port: u64| bytes * port / count;
    (0..).zip(ports).map(move |(port, place)| (place, upto(port + 1) - upto(port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESH: Mesh = Mesh { width: 4, height: 4, stride: 4 };

    fn at(x: u64, y: u64) -> Place {
        Place { x, y }
    }

    fn sent(from: Place, to: &[Place]) -> Traffic {
        let mut flow = Flow::new(MESH);
        flow.send(from, to, 10);
        flow.traffic()
    }

    #[test]
    fn data_for_several_places_take_shared_links_once() {
        // Three links along the row, one up and two down from it.
        let traffic = sent(at(0, 1), &[at(3, 0), at(3, 3)]);
        assert_eq!((traffic.hops, traffic.busiest()), (60, 10));
        assert_eq!(traffic.links.iter().filter(|bytes| **bytes > 0).count(), 6);
    }

    #[test]
    fn hops_are_the_bytes_of_all_links() {
        let to = [at(0, 2), at(1, 0), at(1, 3), at(3, 1)];
        for from in (0..16).map(|core| MESH.place(core)) {
            let traffic = sent(from, &to);
            assert_eq!(traffic.hops, traffic.links.iter().sum::<u64>());
        }
    }

    #[test]
    fn every_port_brings_its_share() {
        let mut flow = Flow::new(MESH);
        flow.load(&[at(0, 0)], 20);
        let traffic = flow.traffic();
        // 2, 3, 2, 3 bytes from either side, 0 to 3 rows away, the right ones 3 columns further.
        assert_eq!((traffic.dram, traffic.hops), (20, 2 * (3 + 4 + 9) + 3 * 10));
        assert_eq!(traffic.busiest(), 16);
    }

    #[test]
    fn the_slower_of_links_and_dram_is_the_time() {
        let machine = Machine::polar(MESH);
        let mut traffic = sent(at(0, 0), &[at(0, 1)]);
        traffic.multiply(12);
        assert_eq!(traffic.time(&machine), 5);
        traffic.dram = 16 * 7 + 1;
        assert_eq!(traffic.time(&machine), 8);
    }
}
