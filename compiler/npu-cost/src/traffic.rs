//! The traffic of the network on chip and of DRAM.

use crate::machine::{Machine, Package};
use crate::mesh::{Mesh, Place};

/// Bytes on links, and to and from DRAM.
///
/// Data travel along rows first, then along columns. A multicast is a tree: along the
/// sender's row as far as any destination requires, and from there along each column.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Bytes times links; in a package, without those that [`Traffic::crossings`] counts instead.
    pub hops: u64,
    /// Bytes times links between dies, as Gemini's model counts them.
    pub crossings: u64,
    /// Bytes to and from DRAM.
    pub dram: u64,
    /// Bytes to and from each controller; 0 for all if DRAM is not distinguished.
    controllers: [u64; Package::CONTROLLERS as usize],
    /// Bytes on each link; empty if links are not distinguished. For each core, in the order of
    /// columns, the links to the right, up, left and down. In a package, there is a column more on either side, for the
    /// dies of DRAM.
    links: Vec<u64>,
}

/// The DRAM that data come from or go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dram {
    /// A controller, by its number.
    Controller(u64),
    /// All controllers, in equal shares.
    Interleaved,
}

/// Data movements whose traffic is being added up: for each direction, the bytes by which a link along a
/// row or a column carries more than the link before it.
pub struct Flow {
    /// The cores, and the dies of DRAM on either side.
    grid: Mesh,
    /// Columns on either side for dies of DRAM.
    margin: u64,
    package: Option<Package>,
    hops: u64,
    crossings: u64,
    dram: u64,
    controllers: [u64; Package::CONTROLLERS as usize],
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
        self.crossings += other.crossings;
        self.dram += other.dram;
        for (sum, bytes) in self.controllers.iter_mut().zip(other.controllers) {
            *sum += bytes;
        }
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

    /// Repeats the traffic of links alone.
    pub fn multiply_links(&mut self, times: u64) {
        self.links.iter_mut().for_each(|bytes| *bytes *= times);
    }

    /// Cycles of DRAM and, if links are distinguished, of the busiest link.
    pub fn time(&self, machine: &Machine) -> u64 {
        self.dram_time(machine).max(self.link_time(machine))
    }

    /// Cycles of DRAM: of the busiest controller.
    pub fn dram_time(&self, machine: &Machine) -> u64 {
        let busiest = self.controllers.iter().max().copied().unwrap_or(0);
        match busiest {
            0 => self.dram.div_ceil(machine.dram_bandwidth),
            _ => busiest.div_ceil(machine.dram_bandwidth / Package::CONTROLLERS),
        }
    }

    /// Cycles of the busiest link, if links are distinguished.
    pub fn link_time(&self, machine: &Machine) -> u64 {
        let Some(package) = machine.package.filter(|package| !package.is_single()) else {
            return self.busiest().div_ceil(machine.link_bandwidth);
        };
        let (mut inside, mut between) = (0, 0);
        for (at, &bytes) in self.links.iter().enumerate() {
            let most =
                if is_between(machine.mesh, package, at) { &mut between } else { &mut inside };
            *most = bytes.max(*most);
        }
        between.div_ceil(package.link_bandwidth).max(inside.div_ceil(machine.link_bandwidth))
    }

    /// Bytes on the busiest link.
    pub fn busiest(&self) -> u64 {
        self.links.iter().copied().max().unwrap_or(0)
    }

    /// Energy of links in pJ.
    pub fn link_energy(&self, machine: &Machine) -> f64 {
        link_energy(self.hops, self.crossings, machine)
    }

    /// Energy of DRAM in pJ.
    pub fn dram_energy(&self, machine: &Machine) -> f64 {
        self.dram as f64 * machine.dram
    }

    fn change(&mut self, of: impl Fn(u64) -> u64) {
        self.hops = of(self.hops);
        self.crossings = of(self.crossings);
        self.dram = of(self.dram);
        self.controllers.iter_mut().for_each(|bytes| *bytes = of(*bytes));
        self.links.iter_mut().for_each(|bytes| *bytes = of(*bytes));
    }
}

/// Energy in pJ of bytes times links.
pub fn link_energy(hops: u64, crossings: u64, machine: &Machine) -> f64 {
    let between = machine.package.map_or(0.0, |package| package.hop);
    hops as f64 * machine.hop + crossings as f64 * between
}

/// Whether a link leads from one die of a package to another; `at` is its index in [`Traffic`].
fn is_between(mesh: Mesh, package: Package, at: usize) -> bool {
    let (at, way) = (at as u64 / 4, at as u64 % 4);
    // Columns count from that of the DRAM on the left.
    let (x, y) = (at / mesh.height, at % mesh.height);
    let [columns, rows] = [mesh.width / package.dies[0], mesh.height / package.dies[1]];
    let is_core = (1..=mesh.width).contains(&x);
    match [Direction::Right, Direction::Up, Direction::Left, Direction::Down][way as usize] {
        Direction::Right => x <= mesh.width && x.is_multiple_of(columns),
        Direction::Left => x > 0 && (x - 1).is_multiple_of(columns),
        Direction::Up => is_core && y > 0 && y.is_multiple_of(rows),
        Direction::Down => is_core && y + 1 < mesh.height && (y + 1).is_multiple_of(rows),
    }
}

/// The borders of dies between two places of an axis, of which `size` are on a die; those of DRAM are at -1 and the end.
pub fn borders(a: i64, b: i64, size: i64) -> u64 {
    let (least, most) = (a.min(b), a.max(b));
    let last = most - most.rem_euclid(size);
    if most < size || last <= least { 0 } else { (1 + (last - 1 - least) / size) as u64 }
}

/// The borders of dies on the way of data that go to one place.
///
/// As in Gemini's program, none if both places are in the upper row of dies.
pub fn borders_to(package: Package, mesh: Mesh, from: [i64; 2], to: [i64; 2]) -> u64 {
    let [columns, rows] = [mesh.width / package.dies[0], mesh.height / package.dies[1]];
    if from[1].max(to[1]) < rows as i64 {
        return 0;
    }
    borders(from[0], to[0], columns as i64) + borders(from[1], to[1], rows as i64)
}

impl Flow {
    /// No movements on a mesh without a package.
    pub fn new(mesh: Mesh) -> Self {
        Self::on(mesh, None)
    }

    /// No movements on a machine.
    pub fn of(machine: &Machine) -> Self {
        Self::on(machine.mesh, machine.package)
    }

    fn on(mesh: Mesh, package: Option<Package>) -> Self {
        let margin = u64::from(package.is_some());
        let grid = Mesh { width: mesh.width + 2 * margin, ..mesh };
        let rows = (grid.height * (grid.width + 1)) as usize;
        let columns = (grid.width * (grid.height + 1)) as usize;
        let changes = [vec![0; rows], vec![0; columns], vec![0; rows], vec![0; columns]];
        let controllers = Default::default();
        Self { grid, margin, package, hops: 0, crossings: 0, dram: 0, controllers, changes }
    }

    /// Sends bytes from one place to others, which are in ascending order.
    ///
    /// As in Gemini's program, the links between dies of data for a single core are not counted, and rows of cores are
    /// divided among dies as columns are.
    ///
    /// Returns the bytes times links.
    pub fn send(&mut self, from: Place, to: &[Place], bytes: u64) -> u64 {
        let before = self.hops;
        let to: Vec<Place> = to.iter().map(|place| self.inside(*place)).collect();
        self.carry(self.inside(from), &to, bytes);
        self.hops - before
    }

    /// Adds bytes times links, modulo the range of the sum.
    pub(crate) fn add_hops(&mut self, hops: u64) {
        self.hops = self.hops.wrapping_add(hops);
    }

    /// Loads bytes from DRAM to places, which are in ascending order: each port sends an equal share.
    pub fn load(&mut self, to: &[Place], bytes: u64) {
        let to: Vec<Place> = to.iter().map(|place| self.inside(*place)).collect();
        for (port, share) in shares(&self.ports(), bytes) {
            self.exchange(port, &to, share, true);
        }
        self.dram += bytes;
    }

    /// Stores bytes from a place to DRAM: each port takes an equal share.
    pub fn store(&mut self, from: Place, bytes: u64) {
        let from = [self.inside(from)];
        for (port, share) in shares(&self.ports(), bytes) {
            self.exchange(port, &from, share, false);
        }
        self.dram += bytes;
    }

    /// Loads bytes from some DRAM to places, which are in ascending order, or stores those of a place.
    pub fn exchange_with(&mut self, dram: Dram, places: &[Place], bytes: u64, loads: bool) {
        let places: Vec<Place> = places.iter().map(|place| self.inside(*place)).collect();
        let ports = self.ports();
        let (half, height) = (self.grid.height / 2, self.grid.height as usize);
        let (each, controllers) = match dram {
            Dram::Controller(number) => (bytes, number..number + 1),
            Dram::Interleaved => (bytes / Package::CONTROLLERS, 0..Package::CONTROLLERS),
        };
        for controller in controllers {
            // Two at each edge, each with half of its rows.
            let first =
                (controller / 2) as usize * height + (controller % 2) as usize * half as usize;
            for (port, share) in shares(&ports[first..first + half as usize], each) {
                self.exchange(port, &places, share, loads);
            }
            self.dram += each;
            self.controllers[controller as usize] += each;
        }
    }

    /// A place in the grid.
    fn inside(&self, place: Place) -> Place {
        Place { x: place.x + self.margin, ..place }
    }

    fn ports(&self) -> Vec<Place> {
        self.grid.ports().collect()
    }

    /// Data from a port to cores, or from a core to a port.
    fn exchange(&mut self, port: Place, cores: &[Place], bytes: u64, loads: bool) {
        let [core] = cores else { return self.carry(port, cores, bytes) };
        let (from, to) = if loads { (port, *core) } else { (*core, port) };
        self.carry(from, &[to], bytes);
        if let Some(package) = self.package {
            let mesh = Mesh { width: self.grid.width - 2, ..self.grid };
            let at = |place: Place| [place.x as i64 - 1, place.y as i64];
            let between = borders_to(package, mesh, at(from), at(to)) * bytes;
            self.hops -= between;
            self.crossings += between;
        }
    }

    fn carry(&mut self, from: Place, to: &[Place], bytes: u64) {
        let (Some(first), Some(last)) = (to.first(), to.last()) else { return };
        self.run_row(from, first.x..last.x, bytes);
        let size = self.package.filter(|package| to.len() > 1 && !package.is_single());
        let size = size.map(|package| ((self.grid.width - 2) / package.dies[0]) as i64);
        let mut between = size.map_or(0, |size| {
            borders(from.x.max(last.x) as i64 - 1, from.x.min(first.x) as i64 - 1, size)
        });
        for column in to.chunk_by(|a, b| a.x == b.x) {
            let top = column.first().map_or(from.y, |place| place.y);
            let bottom = column.last().map_or(from.y, |place| place.y);
            self.run_column(Place { x: column[0].x, y: from.y }, top..bottom, bytes);
            let (lower, upper) = (from.y.max(bottom) as i64, from.y.min(top) as i64);
            between += size.map_or(0, |size| borders(lower, upper, size));
        }
        self.crossings += between * bytes;
    }

    /// The traffic of all movements.
    pub fn traffic(&self) -> Traffic {
        let Mesh { width, height, .. } = self.grid;
        let mut links = vec![0; 4 * self.grid.cores() as usize];
        for way in [Direction::Right, Direction::Up, Direction::Left, Direction::Down] {
            let along_rows = matches!(way, Direction::Right | Direction::Left);
            let (lines, length) = if along_rows { (height, width) } else { (width, height) };
            for line in 0..lines {
                let mut bytes = 0_u64;
                for at in 0..length {
                    let change = self.changes[way as usize][(line * (length + 1) + at) as usize];
                    bytes = bytes.wrapping_add(change);
                    let (x, y) = if along_rows { (at, line) } else { (line, at) };
                    links[4 * self.grid.index(Place { x, y }) + way as usize] = bytes;
                }
            }
        }
        let Self { hops, crossings, dram, controllers, .. } = *self;
        Traffic { hops, crossings, dram, controllers, links }
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
            Direction::Right | Direction::Left => self.grid.width,
            Direction::Up | Direction::Down => self.grid.height,
        };
        let changes = &mut self.changes[way as usize];
        let (from, to) = (line * (length + 1) + range.start, line * (length + 1) + range.end);
        changes[from as usize] = changes[from as usize].wrapping_add(bytes);
        changes[to as usize] = changes[to as usize].wrapping_sub(bytes);
    }
}

/// The share of `bytes` of each port.
fn shares(ports: &[Place], bytes: u64) -> impl Iterator<Item = (Place, u64)> {
    let count = ports.len() as u64;
    let upto = move |port: u64| bytes * port / count;
    (0..).zip(ports).map(move |(port, place)| (*place, upto(port + 1) - upto(port)))
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
