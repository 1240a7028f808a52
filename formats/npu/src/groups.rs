//! Rows of weights of grouped convolutions whose groups are not whole words of eight channels.
//!
//! Channels are read and written in words. So eight output channels are computed at once, from all words of the input
//! that their groups are in: a row of weights has as many input channels, and zeros for those of other groups. Which
//! places of a row are used depends on the output channel at which a core begins, up to a period; DRAM has rows of all
//! output channels for each of its phases, one phase after the other.

use crate::enums::DataFmt;
use crate::layout::{WL0_UNITS, weight_row, wl0_units};

/// Channels of a word.
const WORD: u32 = 8;

/// Maximum period: DRAM has as many copies of the weights.
const MAX_PERIOD: u32 = 64;

/// Output channels whose rows have to fit into WL0 together.
const ROWS: u32 = 64;

/// Groups that are not whole words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NarrowGroups {
    /// Output channels of a group.
    outputs: u32,
    /// Input channels of a group.
    inputs: u32,
    period: u32,
}

impl NarrowGroups {
    /// Whether groups of so many output and input channels are not whole words.
    pub fn are_narrow(outputs: u32, inputs: u32) -> bool {
        !outputs.is_multiple_of(WORD) || !inputs.is_multiple_of(WORD)
    }

    /// Groups of so many output and input channels, with kernels of `area` elements; `None` if the period or the rows
    /// are too long, so that the groups have to be computed one after another.
    pub fn new(outputs: u32, inputs: u32, area: u32) -> Option<Self> {
        let is_period = |period: &u32| {
            let groups = period / outputs.max(1);
            groups * outputs == *period
                && groups.checked_mul(inputs).is_some_and(|all| all.is_multiple_of(WORD))
        };
        let mut periods = (1..=MAX_PERIOD / WORD).map(|words| words * WORD);
        let period = periods.find(is_period)?;
        let groups = (outputs > 0 && inputs > 0).then_some(Self { outputs, inputs, period })?;
        let fits = |width| wl0_units(DataFmt::Int8, ROWS, [width, area, 1]) <= WL0_UNITS;
        (0..period).all(|phase| fits(groups.width(phase))).then_some(groups)
    }

    /// The number of phases.
    pub fn period(&self) -> u32 {
        self.period
    }

    /// The phase of a core whose first output channel is `low`.
    pub fn phase(&self, low: u32) -> u32 {
        low % self.period
    }

    /// The group of an output channel, both counted from those at which a core begins.
    fn group(&self, phase: u32, output: u32) -> u32 {
        (phase + output) / self.outputs - phase / self.outputs
    }

    /// The first input channel, counted from the first that the core reads, that the rows of the eight output channels
    /// from `start` are for.
    pub fn input(&self, phase: u32, start: u32) -> u32 {
        self.group(phase, start) * self.inputs / WORD * WORD
    }

    /// The place in its row of the first weight of an output channel, which is counted from that at which a core begins.
    pub fn place(&self, phase: u32, output: u32) -> u32 {
        let input = self.input(phase, output / WORD * WORD);
        self.group(phase, output) * self.inputs - input
    }

    /// Input channels of the rows of a phase, whole words.
    pub fn width(&self, phase: u32) -> u32 {
        let ends = (0..self.period).map(|output| self.place(phase, output) + self.inputs);
        ends.max().unwrap_or(0).next_multiple_of(WORD)
    }

    /// The end of the input channels that the rows of `count` output channels are for, counted from the first that the core
    /// reads.
    pub fn end(&self, phase: u32, count: u32) -> u32 {
        // Later words begin later.
        self.input(phase, count.saturating_sub(1) / WORD * WORD) + self.width(phase)
    }

    /// Input channels that a group has.
    pub fn inputs(&self) -> u32 {
        self.inputs
    }

    /// Bytes before the rows of a phase of `k` output channels with kernels of some rows and columns.
    pub fn start(&self, k: u32, kernel: [u32; 2], phase: u32) -> i64 {
        let row = |phase: u32| weight_row(DataFmt::Int8, [self.width(phase), kernel[0], kernel[1]]);
        (0..phase).map(|phase| i64::from(k) * row(phase)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::NarrowGroups;

    #[test]
    fn eight_groups_of_one_channel_share_a_word() {
        let groups = NarrowGroups::new(1, 1, 9).expect("a period");
        assert_eq!((groups.period(), groups.width(5)), (8, 8));
        assert_eq!((groups.input(5, 8), groups.place(5, 11)), (8, 3));
    }

    #[test]
    fn rows_reach_from_a_word_to_the_end_of_the_last_group() {
        let groups = NarrowGroups::new(6, 6, 9).expect("a period");
        assert_eq!(groups.period(), 24);
        // Outputs 0 to 7 are in groups 0 and 1, 8 to 15 in groups 1 and 2, which begin in the first two words.
        assert_eq!([0, 8, 16].map(|start| groups.input(0, start)), [0, 0, 8]);
        assert_eq!([0, 6, 12, 18].map(|output| groups.place(0, output)), [0, 6, 12, 10]);
        assert_eq!(groups.width(0), 24);
        // A core that begins within a group reads all of it.
        assert_eq!([0, 3].map(|output| groups.place(3, output)), [0, 6]);
    }

    #[test]
    fn long_periods_and_rows_are_not_shared() {
        assert!(NarrowGroups::new(513, 513, 1).is_none());
        // Eight output channels are in eight groups, whose 300 channels each are 2,400 for a row.
        assert!(NarrowGroups::new(1, 300, 1).is_some());
        assert!(NarrowGroups::new(1, 300, 9).is_none());
    }
}
