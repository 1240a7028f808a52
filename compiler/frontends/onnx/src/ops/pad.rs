//! Padding.

use super::indexing::{all, loops, modulo, size};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{Comparison, Compute, DType, Dim, Relation, Scalar, ValueId};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("CenterCropPad", &[18], center_crop_pad),
    Operator::new("Pad", &[1, 2, 11, 13, 18, 19, 21, 23, 24, 25], pad),
];

/// The kind of padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Constant,
    Edge,
    Reflect,
    Wrap,
}

fn pad(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let (ty, rank) = (cx.ty(x), cx.b.rank(x));
    let mode = match cx.string_or("mode", "constant")?.as_str() {
        "constant" => Mode::Constant,
        "edge" => Mode::Edge,
        "reflect" => Mode::Reflect,
        "wrap" if cx.version >= 19 => Mode::Wrap,
        other => {
            let words = ["constant", "edge", "reflect", "wrap"];
            let known = if cx.version >= 19 { &words[..] } else { &words[..3] };
            return Err(LowerError::word("mode", known, other));
        }
    };
    let listed = |cx: &Context<'_>, name: &str| -> Result<Vec<Dim>, LowerError> {
        let pads = cx.ints(name)?.ok_or_else(|| cx.missing(name))?;
        Ok(pads.into_iter().map(Dim::Known).collect())
    };
    let pads = match cx.version {
        1 => listed(cx, "paddings")?,
        2..11 => listed(cx, "pads")?,
        _ => cx.sizes(1)?,
    };
    let axes = if cx.version >= 18 { cx.constant_ints(3)? } else { None };
    let axes = axes.unwrap_or_else(|| (0..rank as i64).collect());
    cx.axes(&axes, rank)?;
    if pads.len() != 2 * axes.len() {
        let (expected, found) = (2 * axes.len(), pads.len());
        return Err(LowerError::invalid(format!("expected {expected} pads, found {found}")));
    }
    let mut around = vec![(Dim::Known(0), Dim::Known(0)); rank];
    for (index, axis) in axes.iter().enumerate() {
        let pair = (pads[index].clone(), pads[index + axes.len()].clone());
        around[cx.axis(*axis, rank)?] = pair;
    }
    let value = match cx.version {
        1..11 => Some(cx.b.scalar(f64::from(cx.float_or("value", 0.0)?), ty.dtype)?),
        _ => cx.optional(2),
    };
    one(padded(cx, x, &around, mode, value))
}

/// `value` has one element; 0, or an empty string, if it is omitted.
fn padded(
    cx: &mut Context<'_>,
    x: ValueId,
    around: &[(Dim, Dim)],
    mode: Mode,
    value: Option<ValueId>,
) -> irc_tl::Built {
    let ty = cx.ty(x);
    let mut dims = vec![];
    for ((before, after), dim) in around.iter().zip(&ty.dims) {
        let padded = dim.clone() + before.clone() + after.clone();
        let message = "pad: expected pads that leave no negative size";
        cx.b.require(&0.into(), Relation::AtMost, &padded, message)?;
        dims.push(padded);
    }
    let mut at = loops(0..dims.len());
    let (mut guards, mut tables) = (vec![], vec![x]);
    for (axis, (before, after)) in around.iter().enumerate() {
        if before.is(0) && after.is(0) {
            continue;
        }
        // Elements that have one index along the axis share its remainders, in a table.
        let repeats = matches!(mode, Mode::Wrap | Mode::Reflect);
        let index = Scalar::Loop(if repeats { 0 } else { axis });
        let (own, dim) = (index - size(before), size(&ty.dims[axis]));
        at[axis] = match mode {
            Mode::Constant => {
                guards.push(own.clone().ge(Scalar::index(0)));
                guards.push(own.clone().lt(dim));
                own
            }
            Mode::Edge => own.min(dim - Scalar::index(1)).max(Scalar::index(0)),
            Mode::Wrap => modulo(own, dim),
            Mode::Reflect => reflected(own, dim),
        };
        if repeats {
            let table = Compute::map([dims[axis].clone()], at[axis].clone());
            at[axis] = Scalar::load(tables.len(), [Scalar::Loop(axis)]);
            tables.push(cx.b.compute(table, &[])?);
        }
    }
    let load = Scalar::load(0, at);
    if guards.is_empty() {
        return cx.b.compute(Compute::map(dims, load), &tables);
    }
    let (other, operands) = match value {
        Some(value) => {
            let value = cx.b.reshape(value, &[])?;
            (Scalar::load(1, []), vec![x, value])
        }
        None => (blank(cx, ty.dtype), vec![x]),
    };
    cx.b.compute(Compute::map(dims, all(guards).select(load, other)), &operands)
}

/// The default of padding: 0, or an empty string.
fn blank(cx: &Context<'_>, dtype: DType) -> Scalar {
    let value = if dtype == DType::String { cx.b.handle("") } else { 0 };
    Scalar::number(value, dtype)
}

/// Reflection without repeating the elements at both ends: its period is twice the extent less 2.
fn reflected(index: Scalar, dim: Scalar) -> Scalar {
    let period = (dim.clone() - Scalar::index(1)) * Scalar::index(2);
    let index = modulo(index, period.clone());
    index.clone().lt(dim).select(index.clone(), period - index)
}

/// The centre of each axis, or zeros on both sides.
fn center_crop_pad(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let (ty, wanted) = (cx.ty(x), cx.sizes(1)?);
    let axes = cx.ints("axes")?.unwrap_or_else(|| (0..ty.rank() as i64).collect());
    if axes.len() != wanted.len() {
        let (expected, found) = (axes.len(), wanted.len());
        return Err(LowerError::invalid(format!("expected {expected} sizes, found {found}")));
    }
    cx.axes(&axes, ty.rank())?;
    let mut dims = ty.dims.clone();
    let mut at = loops(0..ty.rank());
    let mut guards = vec![];
    for (axis, size_wanted) in axes.iter().zip(&wanted) {
        let axis = cx.axis(*axis, ty.rank())?;
        let more = dims[axis].clone() - size_wanted.clone();
        let half = |dim: &Dim| dim.maximum(&0.into()).floor_div(&2.into());
        let skipped = half(&more) - half(&-more.clone());
        let own = Scalar::Loop(axis) + size(&skipped);
        if more.known().is_none_or(|more| more < 0) {
            guards.push(own.clone().compare(Comparison::Ge, Scalar::index(0)));
            guards.push(own.clone().lt(size(&dims[axis])));
        }
        at[axis] = own;
        dims[axis] = size_wanted.clone();
    }
    let load = Scalar::load(0, at);
    let body = match guards.is_empty() {
        true => load,
        false => all(guards).select(load, blank(cx, ty.dtype)),
    };
    one(cx.b.compute(Compute::map(dims, body), &[x]))
}
