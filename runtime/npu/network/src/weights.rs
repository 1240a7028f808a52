//! Weights in DRAM.

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
    /// The range of real results of the layer around zero, to which generated weights are scaled.
    pub spread: f64,
}

impl Weights {
    /// Output channels, input channels, elements of the kernel.
    pub fn shape(&self) -> [usize; 3] {
        let size = |axis: usize| self.ty.shape.get(axis).map_or(1, |size| *size as usize);
        [size(0), size(1), size(2) * size(3)]
    }

    /// Bytes of an output channel.
    pub fn row(&self) -> usize {
        let [_, channels, kernel] = self.shape();
        (channels * self.ty.dtype.size()).next_multiple_of(8) * kernel + WEIGHT_EXTRA as usize
    }

    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        self.shape()[0] * self.row()
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
        let ([_, channels, kernel], size) = (self.shape(), self.ty.dtype.size());
        let pitch = (channels * size).next_multiple_of(8);
        let mut dram = vec![0; self.bytes()];
        for (k, row) in dram.chunks_exact_mut(self.row()).enumerate() {
            for (c, place) in (0..channels).flat_map(|c| (0..kernel).map(move |place| (c, place))) {
                let (there, here) = (place * pitch + c * size, (k * channels + c) * kernel + place);
                row[there..there + size].copy_from_slice(&weights.bytes()[here * size..][..size]);
            }
            let constants = &mut row[pitch * kernel..];
            constants[..4].copy_from_slice(&scales.bytes()[4 * k..][..4]);
            constants[4..8].copy_from_slice(&biases.bytes()[4 * k..][..4]);
            if let Some(offsets) = offsets {
                constants[8..12].copy_from_slice(&offsets.bytes()[4 * k..][..4]);
            }
        }
        dram
    }
}
