//! Activations in DRAM.

use irc_tensor::{Tensor, TensorError, TensorType};

/// A tensor of activations in DRAM: dense `[N, H, W, C]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activations {
    /// Name of the input, or of the layer that computes it.
    pub name: String,
    /// Type; the shape is `[N, C, H, W]`, possibly without trailing extents of 1.
    pub ty: TensorType,
    /// Offset from the base of activations.
    pub address: usize,
    /// Its role in the network.
    pub role: Role,
}

/// The role of activations in DRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An input.
    Input,
    /// A result.
    Output,
    /// A layer's result that is partly stored and loaded again.
    Stored,
    /// Unused memory.
    Unused,
}

impl Activations {
    /// The shape along all four axes.
    pub fn shape(&self) -> [usize; 4] {
        [0, 1, 2, 3].map(|axis| self.ty.shape.get(axis).map_or(1, |size| *size as usize))
    }

    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        self.shape().iter().product::<usize>() * self.ty.dtype.size()
    }

    /// A tensor's bytes in DRAM order.
    pub(crate) fn to_dram(&self, tensor: &Tensor) -> Vec<u8> {
        let mut dram = vec![0; self.bytes()];
        for (there, here) in self.places() {
            dram[there].copy_from_slice(&tensor.bytes()[here]);
        }
        dram
    }

    /// The tensor with these bytes of DRAM.
    pub(crate) fn to_tensor(&self, dram: &[u8]) -> Result<Tensor, TensorError> {
        let mut tensor = Tensor::zeros(self.ty.clone())?;
        for (there, here) in self.places() {
            tensor.bytes_mut()[here].copy_from_slice(&dram[there]);
        }
        Ok(tensor)
    }

    /// The byte ranges of each element, in DRAM and in the tensor.
    fn places(&self) -> impl Iterator<Item = (std::ops::Range<usize>, std::ops::Range<usize>)> {
        let ([_, channels, height, width], size) = (self.shape(), self.ty.dtype.size());
        let image = channels * height * width;
        let element = move |index: usize| index * size..(index + 1) * size;
        (0..self.bytes() / size).map(move |there| {
            let (n, rest) = (there / image, there % image);
            let (pixel, c) = (rest / channels, rest % channels);
            (element(there), element(n * image + c * height * width + pixel))
        })
    }
}
