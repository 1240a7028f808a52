//! Checks that bytes read from on-chip memory were written before.

use super::Machine;
use super::order::Step;
use super::report::{Report, name};
use crate::Program;
use crate::access::{Access, Space};
use crate::area::Area;

/// Units of WL0 that are tracked if its size is unknown: a GiB.
const WL0_UNITS: i64 = 1 << 24;

/// One bit for each unit of a memory.
#[derive(Default)]
struct WrittenBytes(Vec<u64>);

impl WrittenBytes {
    fn set(&mut self, from: usize, to: usize) {
        if self.0.len() * 64 < to {
            self.0.resize(to.div_ceil(64), 0);
        }
        for word in from / 64..to.div_ceil(64) {
            self.0[word] |= mask(word, from, to);
        }
    }

    fn holds(&self, from: usize, to: usize) -> bool {
        (from / 64..to.div_ceil(64)).all(|word| {
            let mask = mask(word, from, to);
            self.0.get(word).is_some_and(|bits| bits & mask == mask)
        })
    }
}

/// The bits of a word that a range covers.
fn mask(word: usize, from: usize, to: usize) -> u64 {
    let low = from.saturating_sub(word * 64);
    let high = (to - word * 64).min(64);
    (u64::MAX >> (64 - (high - low))) << low
}

/// The bytes written so far, of each core.
pub struct Defined {
    cores: Vec<[WrittenBytes; 2]>,
    /// Ends of L2 and WL0; accesses beyond are reported elsewhere.
    ends: [i64; 2],
}

impl Defined {
    /// No bytes.
    pub fn new(program: &Program, machine: &Machine) -> Self {
        let cores = program.cores.iter().map(|_| Default::default()).collect();
        Self { cores, ends: [machine.l2_bytes, machine.wl0_units.unwrap_or(WL0_UNITS)] }
    }

    /// Checks the reads of an instruction and records its writes.
    pub fn step(&mut self, step: Step<'_>, accesses: &[Access], report: &mut Report<'_>) {
        let memories = &mut self.cores[step.core];
        for access in accesses {
            let Some((memory, unit)) = memory_of(access.space) else { continue };
            if access.write || !within(&access.area, self.ends[memory]) {
                continue;
            }
            let hole =
                ranges(&access.area, unit).find(|(from, to)| !memories[memory].holds(*from, *to));
            if let Some((from, _)) = hole {
                let message = format!(
                    "reads {} of {}, which was never written",
                    from as i64 * unit,
                    name(access.space)
                );
                report.error("npu-unwritten", message, (step.core, step.index));
            }
        }
        for access in accesses.iter().filter(|access| access.write) {
            let Some((memory, unit)) = memory_of(access.space) else { continue };
            if !within(&access.area, self.ends[memory]) {
                continue;
            }
            ranges(&access.area, unit).for_each(|(from, to)| memories[memory].set(from, to));
        }
    }
}

/// The memory, and addresses per unit: pixels and weights are multiples of eight bytes.
fn memory_of(space: Space) -> Option<(usize, i64)> {
    match space {
        Space::L2 => Some((0, 8)),
        Space::Wl0 => Some((1, 1)),
        Space::Dram(_) | Space::Regions => None,
    }
}

fn within(area: &Area, end: i64) -> bool {
    area.start >= 0 && area.end() <= end
}

fn ranges(area: &Area, unit: i64) -> impl Iterator<Item = (usize, usize)> + use<> {
    let round = move |at: i64| (at / unit) as usize;
    area.runs().map(move |(start, end)| (round(start), round(end + unit - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_of_the_range() {
        let mut written = WrittenBytes::default();
        written.set(3, 130);
        assert!(written.holds(3, 130) && written.holds(64, 128) && written.holds(127, 129));
        assert!(!written.holds(2, 4) && !written.holds(100, 131) && !written.holds(1000, 1001));
    }
}
