//! `Col2Im`: sums overlapping windows into an image.

use super::window::{Window, given_pads, steps, times};
use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use crate::ops::pieces::{all, guarded, size, within};
use irc_tl::{Binary, Builder, Built, Combine, Compute, Dim, Relation, Scalar, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[Operator::new("Col2Im", &[18], col2im)];

fn col2im(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let (image, kernel) = (cx.sizes(1)?, cx.sizes(2)?);
    let rank = image.len();
    let ty = cx.ty(x);
    if ty.rank() != 3 || kernel.len() != rank {
        let message = format!(
            "expected columns of rank 3 and as many sizes of the image as of the block, found {ty}, {rank} and {}",
            kernel.len()
        );
        return Err(LowerError::invalid(message));
    }
    let window = Window {
        kernel,
        strides: steps(cx, "strides", rank)?,
        dilations: steps(cx, "dilations", rank)?,
        pads: given_pads(cx, rank)?,
    };
    let counts = window.counts(&image, false);
    let message = "expected as many columns as there are blocks";
    cx.b.require(&ty.dims[2], Relation::Equal, &Dim::product(&counts), message)?;
    let channels = ty.dims[1].floor_div(&window.elements());
    let message = "expected channels in blocks";
    let whole = channels.clone() * window.elements();
    cx.b.require(&ty.dims[1], Relation::Equal, &whole, message)?;
    let mut dims = vec![ty.dims[0].clone(), channels];
    dims.extend(image);
    Ok(vec![overlap(cx.b, x, &window, &counts, dims)?])
}

/// Sums windows, the last dimension of `x[batch, channels * elements, windows]`, at their positions
/// in a result of these extents. There are `counts` windows.
pub(in crate::ops) fn overlap(
    b: &mut Builder,
    x: ValueId,
    window: &Window,
    counts: &[Dim],
    dims: Vec<Dim>,
) -> Built {
    let first = dims.len();
    let (mut element, mut column) = (Scalar::Loop(1), Scalar::index(0));
    let mut conditions = vec![];
    for (axis, count) in counts.iter().enumerate() {
        let tap = Scalar::Loop(first + axis);
        let from = Scalar::Loop(2 + axis) + size(&window.pads[axis][0])
            - times(tap.clone(), window.dilations[axis]);
        let stride = Scalar::index(window.strides[axis]);
        let start = from.clone() / stride.clone();
        let end = size(&(count.clone() * window.strides[axis].into()));
        conditions.push(within(&from, Scalar::index(0), end));
        if window.strides[axis] > 1 {
            conditions.push(from.binary(Binary::Rem, stride).equals(Scalar::index(0)));
        }
        element = element * size(&window.kernel[axis]) + tap;
        column = column * size(count) + start;
    }
    let zero = Scalar::number(0, b.dtype(x));
    let load = Scalar::load(0, [Scalar::Loop(0), element, column]);
    let body = guarded(all(conditions), load, zero);
    b.compute(Compute::reduce(dims, Combine::Sum, window.kernel.clone(), body), &[x])
}
