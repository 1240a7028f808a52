//! Data movements of a layer's parts.

use crate::layout::{ProducedParts, Shares};
use crate::machine::Machine;
use crate::mesh::Place;
use crate::shape::{Region, Span};
use crate::traffic::Traffic;

/// One movement; parts are named by their numbers.
enum Move {
    Load { to: Vec<usize>, bytes: u64 },
    Send { from: Place, to: Vec<usize>, bytes: u64 },
    Store { from: usize, bytes: u64 },
}

/// The movements of a layer for one batch, independent of the placement of its parts.
#[derive(Default)]
pub struct Moves {
    /// Constant weights, loaded once for several batches.
    constants: Vec<Move>,
    /// The number of those batches.
    times: u64,
    others: Vec<Move>,
}

impl Moves {
    /// Loads constant weights from DRAM, once for `times` batches.
    pub fn load_constants(&mut self, weights: &Shares, times: u64) {
        self.times = times;
        let all = weights.regions.iter().map(|(region, to)| (region.volume(), to));
        self.constants.extend(all.map(|(bytes, to)| Move::Load { to: to.clone(), bytes }));
    }

    /// Loads channels of an operand from DRAM.
    pub fn load(&mut self, needed: &Shares, channels: Span) {
        for (region, to) in &needed.regions {
            let region = Region { channels: region.channels.overlap(channels), ..*region };
            self.others.push(Move::Load { to: to.clone(), bytes: region.volume() });
        }
    }

    /// Sends a result from the cores that computed it, as the channels of an operand of `batch` images
    /// from `first` on.
    ///
    /// A region that begins before `first` receives nothing: the published code loses the data after
    /// the first of several results that a part reads.
    pub fn send(&mut self, made: &ProducedParts, needed: &Shares, first: u64, batch: u64) {
        for (region, to) in &needed.regions {
            let Span { from, to: end } = region.channels;
            if from < first {
                continue;
            }
            let channels = Span { from: from - first, to: end - first };
            let region = Region { channels, ..*region };
            for (part, there) in made.parts.meeting(region, made.batch != batch) {
                let bytes = common(there, region, made.batch, batch);
                let from = made.places[part];
                self.others.push(Move::Send { from, to: to.clone(), bytes });
            }
        }
    }

    /// Stores the result to DRAM.
    pub fn store(&mut self, parts: &[Region]) {
        let all = parts.iter().enumerate();
        self.others.extend(all.map(|(from, part)| Move::Store { from, bytes: part.volume() }));
    }

    /// The traffic for parts at `places`, added to `traffic`, which is empty.
    pub fn carry(&self, places: &[Place], machine: &Machine, mut traffic: Traffic) -> Traffic {
        self.constants.iter().for_each(|each| each.carry(places, machine, &mut traffic));
        traffic.divide(self.times.max(1));
        self.others.iter().for_each(|each| each.carry(places, machine, &mut traffic));
        traffic
    }
}

impl Move {
    fn carry(&self, places: &[Place], machine: &Machine, traffic: &mut Traffic) {
        let sorted = |parts: &[usize]| {
            let mut all: Vec<Place> = parts.iter().map(|part| places[*part]).collect();
            all.sort_unstable();
            all
        };
        match self {
            Self::Load { bytes: 0, .. } | Self::Send { bytes: 0, .. } => {}
            Self::Load { to, bytes } => traffic.load(machine.mesh, &sorted(to), *bytes),
            Self::Send { from, to, bytes } => {
                traffic.send(machine.mesh, *from, &sorted(to), *bytes);
            }
            Self::Store { from, bytes } => traffic.store(machine.mesh, places[*from], *bytes),
        }
    }
}

/// Bytes of a part `there`, of a result of `made` images, that a region of `batch` images needs.
///
/// The smaller batch represents all repetitions that the larger consists of. A batch gets its share of a
/// larger result.
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
    let bytes = Region { images: Span::upto(images), ..overlap }.volume();
    if made > batch { bytes / (made / batch) } else { bytes }
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
    fn of_a_larger_result_a_batch_gets_its_share() {
        // Images 2 and 3 of 4; a batch of 2 reads its second: every second image of the result.
        assert_eq!(common(images(2, 4), images(1, 2), 4, 2), 5);
        assert_eq!(common(images(0, 4), images(0, 2), 4, 2), 20);
    }

    #[test]
    fn a_larger_batch_reads_several_results() {
        assert_eq!(common(images(0, 1), images(0, 4), 2, 4), 20);
    }
}
