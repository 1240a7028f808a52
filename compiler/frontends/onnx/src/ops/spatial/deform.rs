//! Deformable convolutions.

use super::conv::per_channel;
use super::window::{Window, groups, spatial_rank};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::pieces::{all, size, wide, within};
use irc_tl::{
    Binary, Builder, Built, Combine, Compute, DType, Dim, Relation, Scalar, Unary, ValueId,
};

pub(in crate::ops) const OPERATORS: &[Operator] =
    &[Operator::new("DeformConv", &[19, 22], deform_conv)];

fn deform_conv(cx: &mut Context<'_>) -> Lowered {
    let [x, w, offsets] = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let rank = spatial_rank(cx, x)?;
    let (dims, filters, moved) = (cx.b.dims(x), cx.b.dims(w), cx.b.dims(offsets));
    if filters.len() != dims.len() || moved.len() != dims.len() {
        let (w, offsets) = (cx.ty(w), cx.ty(offsets));
        let message =
            format!("expected filters and offsets of rank {}, found {w} and {offsets}", rank + 2);
        return Err(LowerError::invalid(message));
    }
    let window = Window::of(cx, filters[2..].to_vec(), &dims[2..])?;
    let (groups, parts) = (groups(cx, "group")?, groups(cx, "offset_group")?);
    let counts = window.counts(&dims[2..], false);
    for (count, found) in counts.iter().zip(&moved[2..]) {
        cx.b.require(found, Relation::Equal, count, "expected offsets for every window")?;
    }
    let message = "expected as many channels as the filters have";
    let channels = filters[1].clone() * groups.into();
    cx.b.require(&dims[1], Relation::Equal, &channels, message)?;
    let sampling = Sampling { window, counts, channels: dims[1].clone(), parts };
    let places = sampling.places(cx.b, offsets)?;
    let columns = sampling.columns(cx, x, places)?;
    let result = sampling.product(cx.b, columns, w, groups)?;
    let result = cx.b.cast(result, cx.dtype(x))?;
    let Some(bias) = cx.optional(3) else { return Ok(vec![result]) };
    let bias = per_channel(cx, bias, result)?;
    one(cx.b.binary(Binary::Add, result, bias))
}

struct Sampling {
    window: Window,
    /// The number of windows along each axis.
    counts: Vec<Dim>,
    channels: Dim,
    /// Groups of channels that share offsets.
    parts: i64,
}

impl Sampling {
    /// The sampling position of each element of each window, by group of offsets:
    /// `[batch, groups * elements * axes, windows...]`.
    fn places(&self, b: &mut Builder, offsets: ValueId) -> Built {
        let rank = self.counts.len();
        let dims = b.dims(offsets);
        let dtype = wide(b.dtype(offsets));
        let axes = || Scalar::index(rank as i64);
        let channel = || Scalar::Loop(1);
        let mut element = (channel() / axes()).binary(Binary::Rem, size(&self.window.elements()));
        let mut base: Option<Scalar> = None;
        for axis in (0..rank).rev() {
            let kernel = size(&self.window.kernel[axis]);
            let tap = element.clone().binary(Binary::Rem, kernel.clone());
            element = element / kernel;
            let place = self.window.position(axis, Scalar::Loop(2 + axis), tap);
            base = Some(match base {
                None => place,
                Some(later) => {
                    let here =
                        channel().binary(Binary::Rem, axes()).equals(Scalar::index(axis as i64));
                    here.select(place, later)
                }
            });
        }
        let load = Scalar::load(0, crate::ops::pieces::loops(0..dims.len())).cast(dtype);
        let body = match base {
            Some(base) => base.cast(dtype) + load,
            None => load,
        };
        b.compute(Compute::map(dims, body), &[offsets])
    }

    /// The elements of every window: `[batch, channels, elements, windows...]`.
    fn columns(
        &self,
        cx: &mut Context<'_>,
        x: ValueId,
        places: ValueId,
    ) -> Result<ValueId, LowerError> {
        let rank = self.counts.len();
        let own = cx.b.dims(x);
        let dtype = wide(cx.dtype(x));
        let first = rank + 3;
        let elements = self.window.elements();
        let each = self.channels.floor_div(&self.parts.into());
        let part = Scalar::Loop(1) / size(&each);
        let element = part * size(&elements) + Scalar::Loop(2);
        let windows = crate::ops::pieces::loops(3..first);
        let read = |operand: usize, channel: Scalar| {
            let mut at = vec![Scalar::Loop(0), channel];
            at.extend(windows.clone());
            Scalar::load(operand, at)
        };
        let mut from = vec![Scalar::Loop(0), Scalar::Loop(1)];
        let mut inside = vec![];
        let mut weight: Option<Scalar> = None;
        for axis in 0..rank {
            let channel = element.clone() * Scalar::index(rank as i64) + Scalar::index(axis as i64);
            let place = read(1, channel).cast(dtype);
            let start = place.clone().unary(Unary::Floor);
            let tap = Scalar::Loop(first + axis);
            let rest = (place - start.clone() - tap.clone().cast(dtype)).unary(Unary::Abs);
            let own_weight = Scalar::float(1.0, dtype) - rest;
            weight = Some(match weight {
                None => own_weight,
                Some(before) => before * own_weight,
            });
            let at = start.cast(DType::I64) + tap;
            inside.push(within(&at, Scalar::index(0), size(&own[2 + axis])));
            from.push(at);
        }
        let mut operands = vec![x, places];
        let mut value = Scalar::load(0, from).cast(dtype);
        if let Some(weight) = weight {
            value = value * weight;
        }
        if let Some(mask) = cx.optional(4) {
            operands.push(mask);
            value = value * read(2, element).cast(dtype);
        }
        let body = match all(inside) {
            Some(inside) => inside.select(value, Scalar::float(0.0, dtype)),
            None => value,
        };
        let mut dims = vec![own[0].clone(), self.channels.clone(), elements];
        dims.extend(self.counts.iter().cloned());
        let over = vec![Dim::Known(2); rank];
        Ok(cx.b.compute(Compute::reduce(dims, Combine::Sum, over, body), &operands)?)
    }

    /// The product of filters and columns: `[batch, filters, windows...]`.
    fn product(&self, b: &mut Builder, columns: ValueId, w: ValueId, groups: i64) -> Built {
        let (dims, filters) = (b.dims(columns), b.dims(w));
        let depth = filters[1].clone() * self.window.elements();
        let windows = Dim::product(&self.counts);
        let each = filters[0].floor_div(&groups.into());
        let w = b.cast(w, b.dtype(columns))?;
        let w = b.reshape(w, &[groups.into(), each, depth.clone()])?;
        let columns = b.reshape(columns, &[dims[0].clone(), groups.into(), depth, windows])?;
        let result = b.matmul(w, columns)?;
        let mut to = vec![dims[0].clone(), filters[0].clone()];
        to.extend(self.counts.iter().cloned());
        b.reshape(result, &to)
    }
}
