//! The mesh between cores and the DRAM, as shared resources.

use std::collections::BTreeMap;

/// A mesh of cores and the bandwidths of its links and DRAM.
///
/// Cores are numbered as in the schedules of SET and Gemini: `y (xlen + 2) + x + 1`, where the
/// columns left and right of the mesh are DRAM ports. A transfer is routed along x, then along y;
/// movements from and to DRAM are divided evenly among all ports, as in SET (`noc.cpp`).
#[derive(Clone, Debug)]
pub struct Mesh {
    /// Number of cores in a row.
    pub xlen: u32,
    /// Bytes per cycle over a link.
    pub link: f64,
    /// Bytes per cycle over all DRAM ports together.
    pub dram: f64,
    /// Cycles from one core to its neighbour.
    pub hop: u64,
    /// Coordinates (x, y) of the DRAM ports; without ports, the routes from and to DRAM are not modelled.
    pub ports: Vec<(u32, u32)>,
}

/// Maximum side of a mesh: every movement from and to DRAM uses the route to every port.
pub const MAX_SIDE: u32 = 256;

impl Mesh {
    /// Whether a core is on a mesh that is not too large.
    pub fn has(&self, core: u32) -> bool {
        let width = self.xlen.saturating_add(2);
        let is_small = |(x, y): &(u32, u32)| *x < width && *y < MAX_SIDE;
        self.xlen <= MAX_SIDE && core / width < MAX_SIDE && self.ports.iter().all(is_small)
    }

    /// A mesh with a DRAM port at each end of every row, as in SET; a hop takes one cycle.
    pub fn with_ports_at_sides(xlen: u32, ylen: u32, link: f64, dram: f64) -> Self {
        let right = xlen.saturating_add(1);
        let ports = (0..ylen).flat_map(|y| [(0, y), (right, y)]).collect();
        Self { xlen, link, dram, hop: 1, ports }
    }
}

/// A link from a node of the mesh (x, y) to a neighbour.
pub type Link = ((u32, u32), (u32, u32));

/// Traffic over links and DRAM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrafficTotals {
    /// Bytes over each link with traffic.
    pub links: BTreeMap<Link, u64>,
    /// Bytes from and to DRAM.
    pub dram: u64,
}

impl TrafficTotals {
    /// The link with the most traffic, the first of several, and its number of bytes.
    pub fn busiest(&self) -> Option<(Link, u64)> {
        let most = self.links.values().max()?;
        self.links.iter().find(|(_, bytes)| *bytes == most).map(|(link, bytes)| (*link, *bytes))
    }

    /// A lower bound for the cycles of any program: those of DRAM, or of the busiest link. SET has the
    /// same bound for every stage of a schedule.
    pub fn bound(&self, mesh: &Mesh) -> u64 {
        let link = self.busiest().map_or(0, |(_, bytes)| cycles(bytes, mesh.link));
        link.max(cycles(self.dram, mesh.dram))
    }
}

/// The reservations of links and DRAM.
///
/// Transfers are added in the order of their starts; a later one waits for an earlier one that uses a
/// link of its route, so that no link exceeds its bandwidth.
#[derive(Debug)]
pub struct Traffic {
    mesh: Mesh,
    /// Links by position and direction: until when each is occupied, and its traffic.
    links: Vec<(u64, u64)>,
    dram: u64,
    /// Links that have carried a transfer, by sender and transfer: it continues from there to further
    /// receivers. In ascending order: few for each of many transfers.
    multicasts: BTreeMap<(u32, u32), Vec<u32>>,
    carried_dram: u64,
}

impl Traffic {
    /// A mesh without traffic.
    pub fn new(mesh: Mesh) -> Self {
        Self { mesh, links: vec![], dram: 0, multicasts: BTreeMap::new(), carried_dram: 0 }
    }

    /// The traffic so far.
    pub fn into_carried(self) -> TrafficTotals {
        let link = |number| self.link(number);
        let links = self.links.iter().enumerate().filter(|(_, (_, bytes))| *bytes > 0);
        let links = links.map(|(number, (_, bytes))| (link(number), *bytes)).collect();
        TrafficTotals { links, dram: self.carried_dram }
    }

    /// The cycle at which a transfer that could begin at `start` has arrived.
    ///
    /// The same transfer to several receivers is a multicast: links that have carried it once do not
    /// carry it again.
    pub fn transfer(
        &mut self,
        (from, to): (u32, u32),
        transfer: u32,
        bytes: u64,
        start: u64,
    ) -> u64 {
        let way = self.way(self.place(from), self.place(to));
        if bytes == 0 {
            return self.send(way, 0, start);
        }
        let known = self.multicasts.entry((from, transfer)).or_default();
        let mut is_new = |link: &usize| match known.binary_search(&(*link as u32)) {
            Ok(_) => false,
            Err(at) => {
                known.insert(at, *link as u32);
                true
            }
        };
        let new: Vec<usize> = way.filter(&mut is_new).collect();
        self.send(new.into_iter(), bytes, start)
    }

    /// The earliest cycle at which a movement between a core and DRAM that could begin at `start` has ended.
    pub fn dram(&mut self, core: u32, bytes: u64, stores: bool, start: u64) -> u64 {
        self.dram = self.dram.max(start).saturating_add(cycles(bytes, self.mesh.dram));
        self.carried_dram = self.carried_dram.saturating_add(bytes);
        let (core, count) = (self.place(core), self.mesh.ports.len());
        let (each, over) = (bytes / count.max(1) as u64, bytes % count.max(1) as u64);
        let mut end = self.dram;
        for i in 0..count {
            let port = self.mesh.ports[i];
            let (from, to) = if stores { (core, port) } else { (port, core) };
            let share = each + u64::from((i as u64) < over);
            end = end.max(self.send(self.way(from, to), share, start));
        }
        end
    }

    fn send(&mut self, way: impl Iterator<Item = usize> + Clone, bytes: u64, start: u64) -> u64 {
        let (mut begin, mut hops, mut last) = (start, 0u64, 0);
        for link in way.clone() {
            begin = begin.max(self.links.get(link).map_or(0, |(until, _)| *until));
            (hops, last) = (hops + 1, last.max(link));
        }
        let end = begin.saturating_add(cycles(bytes, self.mesh.link));
        if self.links.len() <= last {
            self.links.resize(last + 1, (0, 0));
        }
        for link in way {
            let (until, carried) = &mut self.links[link];
            (*until, *carried) = (end, carried.saturating_add(bytes));
        }
        end.saturating_add(hops.saturating_mul(self.mesh.hop))
    }

    fn width(&self) -> u32 {
        self.mesh.xlen.saturating_add(2)
    }

    fn place(&self, core: u32) -> (u32, u32) {
        (core % self.width(), core / self.width())
    }

    /// The links from one node to another, along x, then along y.
    fn way(
        &self,
        (mut x, mut y): (u32, u32),
        to: (u32, u32),
    ) -> impl Iterator<Item = usize> + Clone + use<> {
        let width = self.width() as usize;
        std::iter::from_fn(move || {
            let number = |x: u32, y: u32, direction| {
                (y as usize * width + x as usize) * DIRECTIONS.len() + direction
            };
            if (x, y) == to {
                return None;
            }
            let direction = match (x != to.0, to.0 > x, to.1 > y) {
                (true, true, _) => 0,
                (true, false, _) => 1,
                (false, _, true) => 2,
                (false, _, false) => 3,
            };
            let link = number(x, y, direction);
            (x, y) = next((x, y), direction);
            Some(link)
        })
    }

    /// The link with a number.
    fn link(&self, number: usize) -> Link {
        let (place, direction) = (number / DIRECTIONS.len(), number % DIRECTIONS.len());
        let width = self.width() as usize;
        // Coordinates are derived from 32-bit numbers.
        let from = ((place % width) as u32, (place / width) as u32);
        (from, next(from, direction))
    }
}

/// Steps along x and y: right, left, down, up.
const DIRECTIONS: [(i32, i32); 4] = [(1, 0), (-1, 0), (0, 1), (0, -1)];

fn next((x, y): (u32, u32), direction: usize) -> (u32, u32) {
    let (right, down) = DIRECTIONS[direction];
    (x.wrapping_add_signed(right), y.wrapping_add_signed(down))
}

/// Cycles for moving bytes at a rate; zero if there are none.
pub fn cycles(bytes: u64, rate: f64) -> u64 {
    (bytes as f64 / rate).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mesh(ports: &[(u32, u32)]) -> Mesh {
        Mesh { xlen: 2, link: 8.0, dram: 16.0, hop: 1, ports: ports.to_vec() }
    }

    #[test]
    fn transfers_that_share_a_link_follow_one_another() {
        let mut traffic = Traffic::new(mesh(&[]));
        // Cores of a 2 by 2 mesh: 1 2, 5 6.
        assert_eq!(traffic.transfer((1, 2), 0, 80, 100), 111);
        assert_eq!(traffic.transfer((1, 6), 1, 80, 100), 122);
        assert_eq!(traffic.transfer((5, 6), 2, 80, 100), 111);
        assert_eq!(traffic.transfer((2, 1), 3, 80, 100), 111);
    }

    #[test]
    fn a_multicast_takes_shared_links_once() {
        let mut traffic = Traffic::new(mesh(&[]));
        assert_eq!(traffic.transfer((1, 2), 7, 80, 100), 111);
        // From core 2, over a free link.
        assert_eq!(traffic.transfer((1, 6), 7, 80, 100), 111);
        // A transfer of core 2 itself with that number is a different one.
        assert_eq!(traffic.transfer((2, 6), 7, 80, 100), 121);
        let carried = traffic.into_carried();
        let links = [(((1, 0), (2, 0)), 80), (((2, 0), (2, 1)), 160)];
        assert_eq!(carried.links, links.into());
        assert_eq!(carried.busiest(), Some((links[1].0, 160)));
        assert_eq!(carried.bound(&mesh(&[])), 20);
    }

    #[test]
    fn dram_is_shared_by_all() {
        let mut traffic = Traffic::new(mesh(&[]));
        let mut load = |core, bytes, start| traffic.dram(core, bytes, false, start);
        assert_eq!((load(1, 160, 0), load(6, 160, 5), load(1, 16, 50)), (10, 20, 51));
    }

    #[test]
    fn every_port_brings_its_share() {
        // 80 bytes from each side to core 1, at (1, 0): one link, and two.
        let mut traffic = Traffic::new(mesh(&[(0, 0), (3, 0)]));
        assert_eq!(traffic.dram(1, 160, false, 0), 12);
        // The link from the left is occupied until 10; the one in the opposite direction is free.
        assert_eq!(traffic.transfer((2, 1), 0, 8, 0), 12);
        assert_eq!(traffic.transfer((1, 2), 1, 8, 0), 2);
        assert_eq!(traffic.into_carried().dram, 160);
    }
}
