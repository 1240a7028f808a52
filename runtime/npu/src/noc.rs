//! The mesh between cores, and DRAM, as shared resources.

use std::collections::BTreeMap;

/// A mesh of cores and what its links and DRAM carry.
///
/// Cores are numbered as the schedules of SET and Gemini number them: `y (xlen + 2) + x + 1`, the
/// columns left and right of the mesh being DRAM ports. A transfer goes along x, then along y; what
/// moves from or to DRAM is shared evenly by all ports, as in SET (`noc.cpp`).
#[derive(Clone, Debug)]
pub struct Mesh {
    /// Cores in a row.
    pub xlen: u32,
    /// Bytes a link carries in a cycle.
    pub link: f64,
    /// Bytes all DRAM ports together carry in a cycle.
    pub dram: f64,
    /// Cycles from one core to the next.
    pub hop: u64,
    /// Places (x, y) of the DRAM ports; none leaves the ways from and to DRAM out of the count.
    pub ports: Vec<(u32, u32)>,
}

/// A link from one place of the mesh to a neighbour.
type Link = ((u32, u32), (u32, u32));

/// Until when links and DRAM are taken.
///
/// Transfers come in the order of their starts; a later one waits for an earlier one that uses a
/// link of its way, so that no link carries more than it can.
#[derive(Debug)]
pub struct Traffic {
    mesh: Mesh,
    links: BTreeMap<Link, u64>,
    dram: u64,
}

impl Traffic {
    /// Nothing on its way.
    pub fn new(mesh: Mesh) -> Self {
        Self { mesh, links: BTreeMap::new(), dram: 0 }
    }

    /// When a transfer that could begin at `start` has arrived.
    pub fn transfer(&mut self, from: u32, to: u32, bytes: u64, start: u64) -> u64 {
        self.send(self.place(from), self.place(to), bytes, start)
    }

    /// When a movement between a core and DRAM that could begin at `start` can have ended.
    pub fn dram(&mut self, core: u32, bytes: u64, stores: bool, start: u64) -> u64 {
        self.dram = self.dram.max(start).saturating_add(cycles(bytes, self.mesh.dram));
        let (core, ports) = (self.place(core), self.mesh.ports.clone());
        let count = ports.len() as u64;
        let share = |i: u64| (u128::from(bytes) * u128::from(i) / u128::from(count)) as u64;
        let mut end = self.dram;
        for (i, port) in (0..).zip(ports) {
            let (from, to) = if stores { (core, port) } else { (port, core) };
            end = end.max(self.send(from, to, share(i + 1) - share(i), start));
        }
        end
    }

    fn send(&mut self, from: (u32, u32), to: (u32, u32), bytes: u64, start: u64) -> u64 {
        let way = self.way(from, to);
        let taken = way.iter().filter_map(|link| self.links.get(link));
        let begin = taken.fold(start, |begin, until| begin.max(*until));
        let end = begin.saturating_add(cycles(bytes, self.mesh.link));
        let hops = way.len() as u64;
        self.links.extend(way.into_iter().map(|link| (link, end)));
        end.saturating_add(hops.saturating_mul(self.mesh.hop))
    }

    fn place(&self, core: u32) -> (u32, u32) {
        let width = self.mesh.xlen.saturating_add(2);
        (core % width, core / width)
    }

    fn way(&self, from: (u32, u32), to: (u32, u32)) -> Vec<Link> {
        let step = |from: u32, to: u32| if to > from { from + 1 } else { from - 1 };
        let (mut at, mut way) = (from, vec![]);
        while at != to {
            let next =
                if at.0 != to.0 { (step(at.0, to.0), at.1) } else { (at.0, step(at.1, to.1)) };
            way.push((at, next));
            at = next;
        }
        way
    }
}

/// Cycles that bytes take at a rate; no time at all when there are none.
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
        assert_eq!(traffic.transfer(1, 2, 80, 100), 111);
        assert_eq!(traffic.transfer(1, 6, 80, 100), 122);
        assert_eq!(traffic.transfer(5, 6, 80, 100), 111);
        assert_eq!(traffic.transfer(2, 1, 80, 100), 111);
    }

    #[test]
    fn dram_is_shared_by_all() {
        let mut traffic = Traffic::new(mesh(&[]));
        let mut load = |core, bytes, start| traffic.dram(core, bytes, false, start);
        assert_eq!((load(1, 160, 0), load(6, 160, 5), load(1, 16, 50)), (10, 20, 51));
    }

    #[test]
    fn every_port_brings_its_share() {
        // 80 bytes from either side to core 1, at (1, 0): one link, and two.
        let mut traffic = Traffic::new(mesh(&[(0, 0), (3, 0)]));
        assert_eq!(traffic.dram(1, 160, false, 0), 12);
        // The link from the left is taken until 10; the way back is free.
        assert_eq!(traffic.transfer(2, 1, 8, 0), 12);
        assert_eq!(traffic.transfer(1, 2, 8, 0), 2);
    }
}
