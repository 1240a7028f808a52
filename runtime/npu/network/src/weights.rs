//! Weights in DRAM.

use irc_npu::groups::NarrowGroups;
use irc_npu::layout::WEIGHT_EXTRA;
use irc_tensor::{DType, Tensor, TensorType};

/// The weights of a layer in DRAM: for each output channel a row `[R, S, C]` with channels padded to
/// eight bytes, scale and bias as `f32`, offset as `i32`, and 20 unused bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// Name of the layer.
    pub layer: String,
    /// Type; the shape is `[K, C, R, S]`, or `[K, C, R S]` if no frontend file defines the kernel.
    pub ty: TensorType,
    /// Offset from the base of weights.
    pub address: usize,
    /// The groups, if they are not whole words of channels: then DRAM has rows for each of their phases.
    pub groups: Option<NarrowGroups>,
    /// The range of real results of the layer around zero, to which generated weights are scaled.
    pub spread: f64,
}

impl Weights {
    /// Output channels, input channels, elements of the kernel.
    pub fn shape(&self) -> [usize; 3] {
        let size = |axis: usize| self.ty.shape.get(axis).map_or(1, |size| *size as usize);
        [size(0), size(1), size(2) * size(3)]
    }

    /// The rows of all output channels in DRAM, one list after the other: input channels of a row, and the phase of
    /// narrow groups.
    fn lists(&self) -> Vec<(usize, u32)> {
        match &self.groups {
            None => vec![(self.shape()[1], 0)],
            Some(groups) => {
                (0..groups.period()).map(|phase| (groups.width(phase) as usize, phase)).collect()
            }
        }
    }

    /// Bytes of an output channel with so many input channels.
    fn row(&self, channels: usize) -> usize {
        let kernel = self.shape()[2];
        (channels * self.ty.dtype.size()).next_multiple_of(8) * kernel + WEIGHT_EXTRA as usize
    }

    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        let rows = self.lists().into_iter().map(|(channels, _)| self.row(channels));
        self.shape()[0] * rows.sum::<usize>()
    }

    /// Whether a list of rows with so many input channels has a row at an address.
    pub(crate) fn has(&self, address: usize, channels: usize) -> bool {
        let mut start = self.address;
        self.lists().into_iter().any(|(own, _)| {
            let range = start..start + self.shape()[0] * self.row(own);
            start = range.end;
            own == channels && range.contains(&address)
        })
    }

    /// Keys and types of weights, scales, biases and offsets.
    pub(crate) fn keys(&self) -> [(String, TensorType); 4] {
        let of_channel = |dtype| TensorType::new(dtype, [self.ty.shape[0]]);
        [
            (format!("{}.weight", self.layer), self.ty.clone()),
            (format!("{}.scale", self.layer), of_channel(DType::F32)),
            (format!("{}.bias", self.layer), of_channel(DType::F32)),
            (format!("{}.offset", self.layer), of_channel(DType::I32)),
        ]
    }

    /// The bytes of weights, scales, biases and offsets in DRAM order; offsets are 0 if they are not given.
    pub(crate) fn to_dram(
        &self,
        [weights, scales, biases]: [&Tensor; 3],
        offsets: Option<&Tensor>,
    ) -> Vec<u8> {
        let ([count, channels, kernel], size) = (self.shape(), self.ty.dtype.size());
        let mut dram = Vec::with_capacity(self.bytes());
        for (own, phase) in self.lists() {
            let pitch = (own * size).next_multiple_of(8);
            for k in 0..count {
                // The place of the first weight, by the output channel from the first of a core in this phase.
                let first = self.groups.as_ref().map_or(0, |groups| {
                    let period = groups.period();
                    groups.place(phase, (k as u32 % period + period - phase) % period) as usize
                });
                let mut row = vec![0; self.row(own)];
                let places = (0..channels).flat_map(|c| (0..kernel).map(move |at| (c, at)));
                for (c, place) in places {
                    let there = place * pitch + (first + c) * size;
                    let here = (k * channels + c) * kernel + place;
                    row[there..there + size]
                        .copy_from_slice(&weights.bytes()[here * size..][..size]);
                }
                let constants = &mut row[pitch * kernel..];
                constants[..4].copy_from_slice(&scales.bytes()[4 * k..][..4]);
                constants[4..8].copy_from_slice(&biases.bytes()[4 * k..][..4]);
                if let Some(offsets) = offsets {
                    constants[8..12].copy_from_slice(&offsets.bytes()[4 * k..][..4]);
                }
                dram.extend(row);
            }
        }
        dram
    }
}
