//! Operators that reshape or permute elements.

use super::indexing::{concat, unsqueeze};
use super::pieces::{Repeat, repeated};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{Dim, Type, join};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("Concat", &[1, 4, 11, 13], |cx| {
        let inputs = cx.all_inputs()?;
        let first = cx.input(0)?;
        // Before version 4 the axis may be omitted.
        let default = if cx.version < 4 { Some(1) } else { None };
        let axis = cx.int("axis")?.or(default).ok_or_else(|| cx.missing("axis"))?;
        let axis = cx.axis(axis, cx.b.rank(first))?;
        Ok(vec![concat(cx.b, &inputs, axis)?])
    }),
    Operator::new("Expand", &[8, 13], expand),
    Operator::new("Flatten", &[1, 9, 11, 13, 21, 23, 24, 25], flatten),
    Operator::new("Squeeze", &[1, 11, 13, 21, 23, 24, 25], squeeze),
    Operator::new("Tile", &[1, 6, 13], tile),
    Operator::new("Transpose", &[1, 13, 21, 23, 24, 25], transpose),
    Operator::new("Unsqueeze", &[1, 11, 13, 21, 23, 24, 25], unsqueeze_axes),
];

fn transpose(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let rank = cx.b.rank(x);
    let Some(given) = cx.ints("perm")? else {
        let reversed: Vec<usize> = (0..rank).rev().collect();
        return one(cx.b.transpose(x, &reversed));
    };
    let permutation: Result<Vec<usize>, _> =
        given.iter().map(|axis| cx.axis(*axis, rank)).collect();
    let permutation = permutation?;
    if cx.axes(&given, rank)?.len() != rank {
        let message = format!("expected a permutation of {rank} axes, found {given:?}");
        return Err(LowerError::invalid(message));
    }
    one(cx.b.transpose(x, &permutation))
}

/// The axes of an attribute, or of an input from some version on.
fn axes_of(cx: &Context<'_>, input_from: i64) -> Result<Option<Vec<i64>>, LowerError> {
    if cx.version >= input_from { cx.constant_ints(1) } else { cx.ints("axes") }
}

fn squeeze(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let dims = cx.b.dims(x);
    let axes = match axes_of(cx, 13)? {
        Some(axes) => cx.axes(&axes, dims.len())?,
        None => {
            if let Some(dim) = dims.iter().find(|dim| dim.known().is_none()) {
                return Err(LowerError::NeedsSize(dim.clone()));
            }
            (0..dims.len()).filter(|axis| dims[*axis].is(1)).collect()
        }
    };
    if let Some(axis) = axes.iter().find(|axis| dims[**axis].known().is_some_and(|dim| dim != 1)) {
        let message = format!("expected one element along axis {axis}, found {}", dims[*axis]);
        return Err(LowerError::invalid(message));
    }
    let kept = dims.iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
    let kept: Vec<Dim> = kept.map(|(_, dim)| dim.clone()).collect();
    one(cx.b.reshape(x, &kept))
}

fn unsqueeze_axes(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let axes = axes_of(cx, 13)?.ok_or_else(|| cx.missing("axes"))?;
    let places = cx.axes(&axes, cx.b.rank(x) + axes.len())?;
    one(unsqueeze(cx.b, x, &places))
}

fn flatten(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let dims = cx.b.dims(x);
    let (axis, rank) = (cx.int_or("axis", 1)?, dims.len() as i64);
    if !(-rank..=rank).contains(&axis) {
        let message = format!("expected an axis from {} to {rank}, found {axis}", -rank);
        return Err(LowerError::invalid(message));
    }
    let axis = if axis < 0 { axis + rank } else { axis } as usize;
    let (rows, columns) = dims.split_at(axis);
    one(cx.b.reshape(x, &[Dim::product(rows), Dim::product(columns)]))
}

fn expand(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let (ty, wanted) = (cx.ty(x), cx.sizes(1)?);
    let joined = join(&[ty.clone(), Type::new(ty.dtype, wanted.clone())]);
    let message = || format!("{ty} does not broadcast to {}", Type::new(ty.dtype, wanted.clone()));
    let joined = joined.ok_or_else(|| LowerError::invalid(message()))?;
    one(cx.b.broadcast(x, &joined))
}

fn tile(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let dims = cx.b.dims(x);
    let mut repeats = vec![Dim::Known(1); dims.len()];
    if cx.version < 6 {
        let axis = cx.constant_ints(2)?.and_then(|axes| axes.first().copied());
        let axis = axis.ok_or_else(|| LowerError::invalid("expected an axis, found none"))?;
        let times = cx.sizes(1)?.into_iter().next();
        repeats[cx.axis(axis, dims.len())?] =
            times.ok_or_else(|| LowerError::invalid("expected a number of tiles, found none"))?;
    } else {
        repeats = cx.sizes(1)?;
        if repeats.len() != dims.len() {
            let (expected, found) = (dims.len(), repeats.len());
            return Err(LowerError::invalid(format!("expected {expected} repeats, found {found}")));
        }
    }
    one(repeated(cx.b, x, &repeats, Repeat::Tile))
}
