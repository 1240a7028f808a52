//! Groups of channels that have filters of their own.
//!
//! Channels are read and written in whole words. Groups of constant weights that are not whole words share rows of weights
//! ([`NarrowGroups`]), unless the rows are too long. Other groups, and those whose weights are results, such as the heads
//! of attention, are computed one after another: one that does not begin with a word is read from a tensor of its own, and
//! written to one.

use irc_gemini_format::schedule::Place;
use irc_npu::groups::NarrowGroups;

use super::Mesh;
use super::compute::few;
use super::layer::{LayerWeights, Work};
use super::parts::{WORD, padded};
use crate::diagnostic::{Result, error, word};
use crate::tensors::{Tensor, TensorOffset, lengths};

/// Output channels of a convolution that read the same input channels.
pub(super) struct Group {
    /// First channel, among those of the workload.
    pub start: i64,
    pub count: i64,
    /// First input channel, among those that the workload reads.
    pub input: i64,
}

impl Mesh<'_> {
    /// The groups of output channels that a workload computes.
    pub(super) fn groups(&self, place: Place, weights: &LayerWeights) -> Result<Vec<Group>> {
        let path = self.path(place);
        let (low, high) = self.workload(place).extent.axis(1);
        let read = self.reads_of(place)?;
        if let Some(groups) = &weights.narrow {
            return self.narrow_groups(place, groups, weights.group);
        }
        let channels = i64::from(weights.size[0]);
        let (first, count) = (read.first[1], read.operands.first().map_or(0, |all| all.size[1]));
        few(high / weights.group - low / weights.group, &path)?;
        let mut all = vec![];
        for group in low / weights.group..=high / weights.group {
            let (from, end) = (low.max(group * weights.group), (group + 1) * weights.group);
            let input = group * channels - first;
            if input < 0 || input + channels > count {
                let message = format!(
                    "output channel {from} needs input channels {} to {}, which are not read",
                    group * channels,
                    (group + 1) * channels - 1
                );
                return Err(error("emit-input", &path, message));
            }
            all.push(Group { start: from - low, count: end.min(high + 1) - from, input });
        }
        Ok(all)
    }

    /// The words of output channels that a workload computes, if groups are not whole words.
    fn narrow_groups(
        &self,
        place: Place,
        groups: &NarrowGroups,
        outputs: i64,
    ) -> Result<Vec<Group>> {
        let path = self.path(place);
        let (low, high) = self.workload(place).extent.axis(1);
        few((high - low) / WORD, &path)?;
        let phase = groups.phase(word(low, &path)?);
        if self.reads_of(place)?.first[1] != low / outputs * i64::from(groups.inputs()) {
            let message = "the workload does not read the input channels of its groups only";
            return Err(error("emit-groups", &path, message));
        }
        let mut all = vec![];
        for start in (0..high - low + 1).step_by(WORD as usize) {
            let input = i64::from(groups.input(phase, word(start, &path)?));
            all.push(Group { start, count: WORD.min(high - low + 1 - start), input });
        }
        Ok(all)
    }

    /// The weights of a workload that has several groups, which are computed one after another.
    fn separate_groups(&self, place: Place) -> Result<Option<LayerWeights>> {
        let is_separate = |weights: &LayerWeights| {
            weights.narrow.is_none()
                && !weights.are_factors
                && i64::from(weights.k) != weights.group
        };
        let Some(weights) = self.layer(place)?.weights.filter(is_separate) else { return Ok(None) };
        let work = Work::of(self.workload(place), &self.path(place))?;
        Ok(Some(weights).filter(|_| work == Work::Convolution))
    }

    /// Channels of room after the result of a workload, for the words of groups that do not begin with one.
    pub(super) fn group_slack(&self, place: Place) -> Result<i64> {
        let Some(weights) = self.separate_groups(place)? else { return Ok(0) };
        let groups = self.groups(place, &weights)?;
        let is_odd = groups.last().is_some_and(|group| group.start % WORD != 0);
        Ok(if is_odd { WORD } else { 0 })
    }

    /// Whether a group is read past the last channel of its operand: by words that start within one.
    pub(super) fn reads_past_groups(&self, place: Place) -> Result<bool> {
        let Some(weights) = self.separate_groups(place)? else { return Ok(false) };
        Ok(self.groups(place, &weights)?.iter().any(|group| group.input % WORD != 0))
    }

    /// Fills the words that follow the channels of an operand of these lengths with copies of its first ones; nothing
    /// depends on the values.
    pub(super) fn fill_after(
        &mut self,
        place: Place,
        tensor: &Tensor,
        [n, c, h, w]: [i64; 4],
    ) -> Result<()> {
        let all = as_words(tensor);
        let from = TensorOffset { tensor: all, at: [0; 4] };
        let (own, end) = (padded(c), i64::from(all.shape[0]));
        if own == end {
            // Each pixel is followed by the next one.
            let base = tensor.address([n, 0, 0, 0]);
            let tensor = Tensor { base, shape: [WORD as u32, 1, 1], ..*tensor };
            return self.copy(place, [1, WORD, 1, 1], from, TensorOffset { tensor, at: [0; 4] });
        }
        for at in (own..end).step_by(own as usize) {
            let to = TensorOffset { tensor: all, at: [0, at, 0, 0] };
            self.copy(place, [n, own.min(end - at), h, w], from, to)?;
        }
        Ok(())
    }

    /// The input channels of a group, copied to a tensor of its own.
    pub(super) fn group_operand(
        &mut self,
        place: Place,
        input: &Tensor,
        group: &Group,
        channels: u32,
    ) -> Result<Tensor> {
        let [n, _, h, w] = self.operand_of(place, 0)?.size;
        let size = [n, channels.into(), h, w];
        let own = self.room(place, size)?;
        let from = TensorOffset { tensor: *input, at: [0, group.input, 0, 0] };
        self.copy(place, size, from, TensorOffset { tensor: own, at: [0; 4] })?;
        Ok(own)
    }

    /// A tensor for the output channels of a group.
    pub(super) fn group_result(&mut self, place: Place, group: &Group) -> Result<Tensor> {
        let [n, _, h, w] = lengths(&self.workload(place).extent);
        self.room(place, [n, group.count, h, w])
    }

    /// Copies the output channels of a group from a tensor of its own to the result. Groups are copied in ascending order,
    /// as the last word of one may overwrite channels of the next.
    pub(super) fn place_group(
        &mut self,
        place: Place,
        group: &Group,
        own: &Tensor,
        output: &Tensor,
    ) -> Result<()> {
        let [n, k, h, w] = lengths(&self.workload(place).extent);
        let from = TensorOffset { tensor: as_words(own), at: [0; 4] };
        if group.start + group.count == k {
            // Words that begin within one are read from the result up to here.
            let after = TensorOffset { tensor: as_words(output), at: [0, k, 0, 0] };
            self.copy(place, [n, WORD, h, w], from, after)?;
        }
        let to = TensorOffset { tensor: *output, at: [0, group.start, 0, 0] };
        self.copy(place, [n, group.count, h, w], from, to)
    }
}

/// The tensor with all channels of its words.
fn as_words(tensor: &Tensor) -> Tensor {
    let [channels, height, width] = tensor.shape;
    Tensor { shape: [channels.next_multiple_of(WORD as u32), height, width], ..*tensor }
}
