//! Data movements of a layer's parts.

use crate::layout::{ProducedParts, Shares};
use crate::machine::Machine;
use crate::mesh::{Mesh, Place};
use crate::shape::{Region, Span};
use crate::traffic::{Dram, Flow, Traffic};

/// Data for the same parts, which are named by their numbers.
struct Group<'s> {
    to: &'s [usize],
    /// Each load from DRAM: the controller, if they are distinguished, and bytes.
    loads: Vec<(Option<Dram>, u64)>,
    /// Origin and bytes of each transfer between cores, and the transfers with which it is counted.
    sends: Vec<(Place, u64, Option<usize>)>,
}

/// The movements of a layer for one batch, independent of the placement of its parts.
#[derive(Default)]
pub struct Moves<'s> {
    /// Weights; constant ones are loaded once for several batches.
    weights: Vec<Group<'s>>,
    /// The number of those batches.
    times: u64,
    /// How often weights are fetched for a batch, if that is not once.
    fetches: Option<u64>,
    others: Vec<Group<'s>>,
    /// By which number the bytes times links of transfers are divided, for those whose bytes are not: as in Gemini's
    /// program, links carry all bytes of a result of more images, whichever of its readers' batches runs.
    divided: Vec<u64>,
    /// Bytes of each part that are stored to DRAM; empty if the result is not.
    stores: Vec<u64>,
    /// The DRAM that they are stored to.
    stored: Option<Dram>,
}

/// The movements of an operand.
pub struct Operand<'m, 's> {
    groups: &'m mut [Group<'s>],
    divided: &'m mut Vec<u64>,
    needed: &'s Shares,
}

impl<'s> Group<'s> {
    fn new(to: &'s [usize], loads: Vec<(Option<Dram>, u64)>) -> Self {
        Self { to, loads, sends: vec![] }
    }
}

impl<'s> Moves<'s> {
    /// Loads constant weights from DRAM, once for `times` batches.
    pub fn load_constants(&mut self, weights: &'s Shares, times: u64, dram: Option<Dram>) {
        self.times = times;
        let all = weights.regions.iter().filter(|(region, _)| region.volume() > 0);
        self.weights.extend(all.map(|(region, to)| Group::new(to, vec![(dram, region.volume())])));
    }

    /// Fetches weights so many times for each batch.
    pub fn fetch(&mut self, times: u64) {
        self.fetches = Some(times);
    }

    /// Begins the movements of weights that are activations.
    pub fn made_weights(&mut self, needed: &'s Shares) -> Operand<'_, 's> {
        self.times = 1;
        self.weights.extend(needed.regions.iter().map(|(_, to)| Group::new(to, vec![])));
        Operand { groups: &mut self.weights, divided: &mut self.divided, needed }
    }

    /// Begins the movements of an operand.
    pub fn operand(&mut self, needed: &'s Shares) -> Operand<'_, 's> {
        let first = self.others.len();
        self.others.extend(needed.regions.iter().map(|(_, to)| Group::new(to, vec![])));
        Operand { groups: &mut self.others[first..], divided: &mut self.divided, needed }
    }

    /// Stores the result to DRAM.
    pub fn store(&mut self, parts: &[Region], dram: Option<Dram>) {
        self.stores = parts.iter().map(|part| part.volume()).collect();
        self.stored = dram;
    }

    /// Bytes times links, and those of links between dies, for parts at `places`.
    pub fn hops(&self, places: &[Place], machine: &Machine) -> (u64, u64) {
        if machine.package.is_some() {
            let traffic = self.carry(places, machine);
            return (traffic.hops, traffic.crossings);
        }
        let mesh = machine.mesh;
        let mut spread = Spread::new(mesh);
        let mut of = |groups: &[Group<'_>]| {
            let mut hops = 0;
            for group in groups {
                spread.set(group.to.iter().map(|part| places[*part]));
                let loads = group.loads.iter();
                hops += loads.map(|(_, bytes)| spread.hops_from_ports(*bytes)).sum::<u64>();
                let sends = group.sends.iter();
                hops += sends.map(|(from, bytes, _)| spread.hops(*from) * bytes).sum::<u64>();
            }
            hops
        };
        let mut hops = of(&self.weights) / self.times.max(1) + of(&self.others);
        for (part, bytes) in self.stores.iter().enumerate() {
            spread.set([places[part]].into_iter());
            hops += spread.hops_from_ports(*bytes);
        }
        (hops, 0)
    }

    /// The traffic on links for parts at `places`.
    pub fn carry(&self, places: &[Place], machine: &Machine) -> Traffic {
        let (mut to, mut weights, mut others) = (vec![], Flow::of(machine), Flow::of(machine));
        let mut together = vec![0; self.divided.len()];
        let mut carry = |groups: &[Group<'_>], flow: &mut Flow| {
            for group in groups {
                to.clear();
                to.extend(group.to.iter().map(|part| places[*part]));
                to.sort_unstable();
                group.loads.iter().for_each(|(dram, bytes)| match dram {
                    Some(dram) => flow.exchange_with(*dram, &to, *bytes, true),
                    None => flow.load(&to, *bytes),
                });
                for (from, bytes, divided) in &group.sends {
                    let hops = flow.send(*from, &to, *bytes);
                    if let Some(with) = divided {
                        together[*with] += hops;
                        flow.add_hops(0_u64.wrapping_sub(hops));
                    }
                }
            }
        };
        carry(&self.weights, &mut weights);
        carry(&self.others, &mut others);
        for (part, bytes) in self.stores.iter().enumerate() {
            match self.stored {
                Some(dram) => others.exchange_with(dram, &[places[part]], *bytes, false),
                None => others.store(places[part], *bytes),
            }
        }
        for (hops, by) in together.iter().zip(&self.divided) {
            others.add_hops(hops / by);
        }
        let (mut traffic, mut others) = (weights.traffic(), others.traffic());
        traffic.divide(self.times.max(1));
        if let Some(fetches) = self.fetches {
            traffic.multiply(fetches);
            // As in Gemini's program.
            others.multiply_links(fetches);
        }
        traffic.add(&others);
        traffic
    }
}

impl Operand<'_, '_> {
    /// Loads channels from DRAM.
    pub fn load(&mut self, channels: Span, dram: Option<Dram>) {
        for ((region, _), group) in self.needed.regions.iter().zip(&mut *self.groups) {
            let region = Region { channels: region.channels.overlap(channels), ..*region };
            let bytes = region.volume();
            if bytes > 0 {
                group.loads.push((dram, bytes));
            }
        }
    }

    /// Sends a result from the cores that computed it, as the channels of an operand of `batch` images
    /// from `first` on.
    ///
    /// A region that begins before `first` receives nothing: the published code loses the data after
    /// the first of several results that a part reads.
    pub fn send(&mut self, made: &ProducedParts, first: u64, batch: u64, on_dies: bool) {
        let with = (on_dies && made.batch > batch).then(|| {
            self.divided.push(made.batch / batch);
            self.divided.len() - 1
        });
        for ((region, _), group) in self.needed.regions.iter().zip(&mut *self.groups) {
            let Span { from, to: end } = region.channels;
            if from < first {
                continue;
            }
            let channels = Span { from: from - first, to: end - first };
            let region = Region { channels, ..*region };
            made.parts.meeting(region, made.batch != batch, |part, there| {
                let mut bytes = common(there, region, made.batch, batch);
                if with.is_none() && made.batch > batch {
                    bytes /= made.batch / batch;
                }
                if bytes > 0 {
                    group.sends.push((made.places[part], bytes, with));
                }
            });
        }
    }
}

/// Where data go, and the links of trees from anywhere to there.
struct Spread {
    mesh: Mesh,
    /// Column, first and last row.
    columns: Vec<[u64; 3]>,
    /// Links along columns, by the row of the origin.
    vertical: Vec<u64>,
    /// First and last column.
    across: [u64; 2],
}

impl Spread {
    fn new(mesh: Mesh) -> Self {
        Self { mesh, columns: vec![], vertical: vec![0; mesh.height as usize], across: [0; 2] }
    }

    fn set(&mut self, places: impl Iterator<Item = Place>) {
        self.columns.clear();
        for Place { x, y } in places {
            // Places follow each other along columns or rows.
            match self.columns.iter_mut().rev().find(|column| column[0] == x) {
                Some([_, first, last]) => (*first, *last) = ((*first).min(y), (*last).max(y)),
                None => self.columns.push([x, y, y]),
            }
        }
        for (y, links) in (0..).zip(&mut self.vertical) {
            let each = self.columns.iter().map(|[_, first, last]| y.max(*last) - y.min(*first));
            *links = each.sum();
        }
        let columns = || self.columns.iter().map(|column| column[0]);
        self.across = [columns().min().unwrap_or(0), columns().max().unwrap_or(0)];
    }

    /// Bytes times links, if all ports send equal shares, as far as bytes are not divided.
    fn hops_from_ports(&self, bytes: u64) -> u64 {
        let Mesh { width, height, .. } = self.mesh;
        let (count, [first, last]) = (2 * height, self.across);
        let (each, rest) = (bytes / count, bytes % count);
        let along = self.vertical.iter().sum::<u64>() * 2;
        let across = height * (last + (width - 1 - first));
        // The ports at which another whole byte is complete.
        let more = (1..=rest).map(|byte| {
            let port = (byte * count).div_ceil(rest) - 1;
            let x = if port < height { 0 } else { width - 1 };
            self.hops(Place { x, y: port % height })
        });
        each * (along + across) + more.sum::<u64>()
    }

    /// Links of the tree from a place to all.
    fn hops(&self, from: Place) -> u64 {
        let [first, last] = self.across;
        self.vertical[from.y as usize] + from.x.max(last) - from.x.min(first)
    }
}

/// Bytes of a part `there`, of a result of `made` images, that a region of `batch` images needs.
///
/// The smaller batch represents all repetitions that the larger consists of: of a larger result, the bytes are those that
/// all of them need.
fn common(there: Region, region: Region, made: u64, batch: u64) -> u64 {
    let overlap = there.overlap(region);
    if made == batch {
        return overlap.volume();
    }
    let (small, step, large) = match made > batch {
        true => (region.images, batch, there.images),
        false => (there.images, made, region.images),
    };
    let shifted = (0..).map(|i| Span { from: small.from + i * step, to: small.to + i * step });
    let all = shifted.take_while(|span| span.from < large.to);
    let images = all.map(|span| span.overlap(large).len()).sum();
    Region { images: Span::upto(images), ..overlap }.volume()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images(from: u64, to: u64) -> Region {
        let one = Span::upto(1);
        Region { channels: Span::upto(10), images: Span { from, to }, rows: one, columns: one }
    }

    #[test]
    fn equal_batches_share_what_lies_in_both() {
        assert_eq!(common(images(0, 2), images(1, 4), 4, 4), 10);
    }

    #[test]
    fn of_a_larger_result_all_batches_read_what_lies_in_any() {
        // Images 2 and 3 of 4; a batch of 2 reads its second: every second image of the result.
        assert_eq!(common(images(2, 4), images(1, 2), 4, 2), 10);
        assert_eq!(common(images(0, 4), images(0, 2), 4, 2), 40);
    }

    #[test]
    fn a_larger_batch_reads_several_results() {
        assert_eq!(common(images(0, 1), images(0, 4), 2, 4), 20);
    }
}
