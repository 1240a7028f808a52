//! Max unpooling.

use super::pool::linear;
use super::window::{Window, given_pads, kernel_shape, spatial_rank, steps};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::pieces::{all, guarded, loops, size, with_extent};
use irc_tl::{Combine, Compute, Dim, Scalar, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] =
    &[Operator::new("MaxUnpool", &[9, 11, 22], max_unpool)];

fn max_unpool(cx: &mut Context<'_>) -> Lowered {
    let (x, places) = (cx.input(0)?, cx.input(1)?);
    let rank = spatial_rank(cx, x)?;
    let own = cx.b.dims(x);
    let window = Window {
        kernel: kernel_shape(cx, rank)?,
        strides: steps(cx, "strides", rank)?,
        dilations: vec![1; rank],
        pads: given_pads(cx, rank)?,
    };
    let mut meant = own[..2].to_vec();
    for axis in 0..rank {
        let starts = (own[2 + axis].clone() - 1.into()) * window.strides[axis].into();
        let [before, after] = window.pads[axis].clone();
        meant.push(starts + window.reach(axis) - before - after);
    }
    let dims = match cx.optional(2) {
        Some(shape) => {
            let message = format!("expected an output shape of {} sizes", meant.len());
            if cx.b.rank(shape) != 1 {
                return Err(LowerError::invalid(message));
            }
            let count = Dim::Known(meant.len() as i64);
            let shape = with_extent(cx.b, shape, 0, &count, &message)?;
            cx.b.elements_or_symbols(shape)?
        }
        None => meant.clone(),
    };
    one(scatter(cx, [x, places], &meant, dims))
}

/// Scatters the elements of each channel to `places`, linear indices in a value of the extents `meant`; a
/// result of other extents has them at the same coordinates.
fn scatter(
    cx: &mut Context<'_>,
    [x, places]: [ValueId; 2],
    meant: &[Dim],
    dims: Vec<Dim>,
) -> irc_tl::Built {
    let rank = dims.len();
    let mut from = loops(0..2);
    from.extend(loops(rank..2 * rank - 2));
    let here = linear(&loops(0..rank), meant);
    let inside = (2..rank)
        .filter(|axis| dims[*axis] != meant[*axis])
        .map(|axis| Scalar::Loop(axis).lt(size(&meant[axis])));
    let inside = all(inside.collect::<Vec<_>>());
    let hit = Scalar::load(1, from.clone()).equals(here);
    let hit = match inside {
        Some(inside) => inside.and(hit),
        None => hit,
    };
    let zero = Scalar::number(0, cx.dtype(x));
    let body = guarded(Some(hit), Scalar::load(0, from), zero);
    let over = cx.b.dims(x)[2..].to_vec();
    cx.b.compute(Compute::reduce(dims, Combine::Sum, over, body), &[x, places])
}
