//! Transposed convolutions as convolutions of their phases.
//!
//! With a stride of `s`, the elements of the result whose positions have one remainder by `s` are a phase: a convolution of the
//! operand with the elements of the filter that are `s` apart. One convolution computes all phases, as filters of their own,
//! which are then interleaved.

use super::window::Window;
use crate::ops::indexing::{Part, slice};
use crate::ops::pieces::{Repeat, along, repeated};
use irc_tensor::Tensor;
use irc_tl::{Binary, Builder, Built, Conv, Dim, ValueId};

/// How many times as many products the convolution may have at most: elements of the filters that phases lack are zero.
const MAX_WASTE: i64 = 2;

/// The phases of a transposed convolution.
pub(super) struct Phases {
    axes: Vec<Axis>,
    groups: i64,
}

/// The phases along an axis.
struct Axis {
    stride: i64,
    /// The phase and the tap of the convolution that each element of the filter belongs to.
    places: Vec<[i64; 2]>,
    /// The number of taps.
    taps: i64,
    /// The pads of the convolution.
    pads: [i64; 2],
    /// The first of the interleaved elements that is one of the result, and whether there are others after its last.
    start: i64,
    is_cut: bool,
}

impl Axis {
    /// The phases of a filter of so many elements, so far apart, with a pad before the result, which has `more` elements than
    /// the operand times the stride. `None` if they have many more products than elements.
    fn new(size: i64, [stride, dilation, pad, more]: [i64; 4]) -> Option<Self> {
        if size < 1 || stride / MAX_WASTE > size {
            return None;
        }
        let wide = i128::from;
        // Element `j` of the operand times element `k` of the filter is added to element `j * stride + at(k)`, and so is in the
        // phase of its remainder, where it is added to element `j + quotient(k)`.
        let at = |start: i64, k: i64| wide(k) * wide(dilation) - wide(pad) + wide(start);
        let quotient = |start: i64, k: i64| at(start, k).div_euclid(wide(stride));
        let taps = |start: &i64| quotient(*start, size - 1) - quotient(*start, 0) + 1;
        let start = (0..stride).min_by_key(taps)?;
        let narrow = |value: i128| i64::try_from(value).ok();
        let (last, taps) = (quotient(start, size - 1), taps(&start));
        let place = |k: i64| {
            Some([
                narrow(at(start, k).rem_euclid(wide(stride)))?,
                narrow(last - quotient(start, k))?,
            ])
        };
        let end = wide(more) + wide(start);
        let after = end.div_euclid(wide(stride)) + i128::from(end.rem_euclid(wide(stride)) != 0);
        Some(Self {
            stride,
            places: (0..size).map(place).collect::<Option<_>>()?,
            taps: narrow(taps)?,
            pads: [narrow(last)?, narrow(after + taps - 1 - last)?],
            start,
            is_cut: end.rem_euclid(wide(stride)) != 0,
        })
    }
}

impl Phases {
    /// The phases of a window over an operand that result in these extents. `None` if they depend on symbols in another way than
    /// these do, or have many more products.
    pub(super) fn of(window: &Window, from: &[Dim], to: &[Dim], groups: i64) -> Option<Self> {
        let mut axes = vec![];
        let (mut all, mut own) = (1_i64, 1_i64);
        for (index, (from, to)) in from.iter().zip(to).enumerate() {
            if [from, to].iter().any(|extent| extent.is(0)) {
                return None;
            }
            let size = window.kernel[index].known()?;
            let (stride, dilation) = (window.strides[index], window.dilations[index]);
            let more = (to.clone() - from.clone() * stride.into()).known()?;
            let pad = window.pads[index][0].known()?;
            let axis = Axis::new(size, [stride, dilation, pad, more])?;
            all = all.checked_mul(axis.taps.checked_mul(stride)?)?;
            own = own.checked_mul(size)?;
            axes.push(axis);
        }
        (all / MAX_WASTE <= own).then_some(Self { axes, groups })
    }

    /// The result for an operand, filters of the same type, a bias, and extents of the result.
    pub(super) fn convolution(
        &self,
        b: &mut Builder,
        x: ValueId,
        (w, bias): (&Tensor, Option<ValueId>),
        to: &[Dim],
    ) -> Built {
        let filters = b.tensor(&self.filters(w)?);
        let conv = Conv {
            strides: vec![1; self.axes.len()],
            dilations: vec![1; self.axes.len()],
            pads: self.axes.iter().map(|axis| axis.pads).collect(),
            groups: self.groups,
            outside: 0,
        };
        let mut sums = b.conv(conv, x, filters)?;
        if let Some(bias) = bias {
            let bias = repeated(b, bias, &[self.count().into()], Repeat::Each)?;
            let bias = along(b, bias, 1, to.len())?;
            sums = b.binary(Binary::Add, sums, bias)?;
        }
        let result = self.interleaved(b, sums)?;
        if !self.axes.iter().any(|axis| axis.is_cut || axis.start != 0) {
            return Ok(result);
        }
        let mut parts: Vec<Part> =
            to[..2].iter().map(|extent| Part::run(0, extent.clone())).collect();
        let parts_of_axes = self.axes.iter().zip(&to[2..]);
        parts.extend(parts_of_axes.map(|(axis, extent)| Part::run(axis.start, extent.clone())));
        slice(b, result, &parts)
    }

    /// The number of phases.
    fn count(&self) -> i64 {
        self.axes.iter().map(|axis| axis.stride).product()
    }

    /// The elements of phases, `[batch, filters * phases, ...]`, interleaved.
    fn interleaved(&self, b: &mut Builder, sums: ValueId) -> Built {
        let (dims, rank) = (b.dims(sums), self.axes.len());
        let filters = dims[1].floor_div(&self.count().into());
        let strides = || self.axes.iter().map(|axis| Dim::Known(axis.stride));
        let batch = [dims[0].clone(), filters];
        let split: Vec<Dim> =
            batch.iter().cloned().chain(strides()).chain(dims[2..].iter().cloned()).collect();
        let pair = |axis: usize| [2 + rank + axis, 2 + axis];
        let permutation: Vec<usize> = [0, 1].into_iter().chain((0..rank).flat_map(pair)).collect();
        let joined = dims[2..].iter().zip(strides()).map(|(extent, by)| extent.clone() * by);
        let joined: Vec<Dim> = batch.into_iter().chain(joined).collect();
        let phases = b.reshape(sums, &split)?;
        let phases = b.transpose(phases, &permutation)?;
        b.reshape(phases, &joined)
    }

    /// The filters of phases, `[filters * phases, channels / groups, ...]`, of `w[channels, filters / groups, ...]`.
    fn filters(&self, w: &Tensor) -> Built<Tensor> {
        let shape = w.shape();
        let (channels, each) = (shape[0] / self.groups, shape[1]);
        let (phases, taps): (i64, i64) =
            (self.count(), self.axes.iter().map(|axis| axis.taps).product());
        // Of each element of a filter, its phase and its tap.
        let mut places = vec![[0, 0]];
        for axis in &self.axes {
            let inner = |[phase, tap]: [i64; 2]| {
                let place =
                    move |at: &[i64; 2]| [phase * axis.stride + at[0], tap * axis.taps + at[1]];
                axis.places.iter().map(place)
            };
            places = places.into_iter().flat_map(inner).collect();
        }
        let size = w.dtype().size();
        let all = self.groups * each * phases * channels * taps;
        let mut bytes = vec![0; usize::try_from(all).unwrap_or(0) * size];
        let mut elements = w.bytes().chunks_exact(size);
        for channel in 0..shape[0] {
            let (group, channel) = (channel / channels, channel % channels);
            for filter in 0..each {
                for ([phase, tap], element) in places.iter().zip(&mut elements) {
                    let row = (group * each + filter) * phases + phase;
                    let at = ((row * channels + channel) * taps + tap) as usize * size;
                    bytes[at..at + size].copy_from_slice(element);
                }
            }
        }
        let shape = [self.groups * each * phases, channels].into_iter();
        let shape: Vec<i64> = shape.chain(self.axes.iter().map(|axis| axis.taps)).collect();
        let ty = irc_tensor::TensorType::new(w.dtype(), shape);
        Tensor::from_bytes(ty, &bytes).map_err(|error| error.to_string().into())
    }
}
