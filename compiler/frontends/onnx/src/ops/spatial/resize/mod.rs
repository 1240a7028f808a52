//! Resizing: each axis is a weighted sum by small tables of positions and weights.

mod attributes;
mod extents;
mod table;

use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use crate::ops::pieces::{Repeat, loops, repeated, wide};
use attributes::{Mode, Options};
use extents::Resized;
use irc_tl::{Built, Combine, Compute, DType, Dim, Scalar, ValueId};
use table::{Table, Tables};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("Resize", &[10, 11, 13, 18, 19], resize),
    Operator::new("Upsample", &[1, 7, 9], upsample).removed_in(10),
];

/// Weighted sums of at most this many elements are unrolled.
const WRITTEN_OUT: i64 = 4;

fn resize(cx: &mut Context<'_>) -> Lowered {
    let options = if cx.version == 10 { Options::early(cx, true)? } else { Options::of(cx)? };
    let resized =
        if cx.version == 10 { Resized::by_input(cx, 1)? } else { Resized::of(cx, &options)? };
    apply(cx, &options, &resized)
}

fn upsample(cx: &mut Context<'_>) -> Lowered {
    let options = Options::early(cx, false)?;
    let resized = match cx.version {
        9.. => Resized::by_input(cx, 1)?,
        7.. => {
            let scales = cx.floats("scales")?.ok_or_else(|| cx.missing("scales"))?;
            Resized::by_numbers(cx, &scales)?
        }
        _ => {
            let scale = |name: &str| -> Result<f32, LowerError> {
                cx.float(name)?.ok_or_else(|| cx.missing(name))
            };
            let scales = [1.0, 1.0, scale("height_scale")?, scale("width_scale")?];
            Resized::by_numbers(cx, &scales)?
        }
    };
    apply(cx, &options, &resized)
}

fn apply(cx: &mut Context<'_>, options: &Options, resized: &Resized) -> Lowered {
    let x = cx.input(0)?;
    if options.mode == Mode::Nearest {
        return Ok(vec![nearest(cx, x, options, resized)?]);
    }
    let dtype = cx.dtype(x);
    let computed = if dtype.is_float() { wide(dtype) } else { DType::F32 };
    let mut value = cx.b.cast(x, computed)?;
    for position in 0..resized.axes.len() {
        let tables = Tables { options, resized, position };
        if tables.is_identity(cx.b)? {
            continue;
        }
        let table = tables.weighted(cx, computed)?;
        value = along(cx, value, resized, position, &table)?;
    }
    Ok(vec![cx.b.cast(value, dtype)?])
}

/// Resizes one axis.
fn along(
    cx: &mut Context<'_>,
    x: ValueId,
    resized: &Resized,
    position: usize,
    table: &Table,
) -> Built {
    let axis = resized.axes[position];
    let mut dims = cx.b.dims(x);
    dims[axis] = resized.extents[position].clone();
    let rank = dims.len();
    let term = |tap: Scalar| {
        let at = |operand: usize| Scalar::load(operand, [Scalar::Loop(axis), tap.clone()]);
        let mut from = loops(0..rank);
        from[axis] = at(1);
        Scalar::load(0, from) * at(2)
    };
    let mut operands = vec![x, table.places, table.weights];
    let taps = table.taps.known().filter(|taps| (1..=WRITTEN_OUT).contains(taps));
    let sum = match taps {
        Some(taps) => {
            let first = term(Scalar::index(0));
            let mut body = (1..taps).fold(first, |sum, tap| sum + term(Scalar::index(tap)));
            if let Some(outside) = table.outside {
                operands.push(outside);
                body = body + Scalar::load(3, [Scalar::Loop(axis)]);
            }
            return cx.b.compute(Compute::map(dims, body), &operands);
        }
        None => {
            let over = [table.taps.clone()];
            let sum = Compute::reduce(dims.clone(), Combine::Sum, over, term(Scalar::Loop(rank)));
            cx.b.compute(sum, &operands)?
        }
    };
    let Some(outside) = table.outside else { return Ok(sum) };
    let body = Scalar::load(0, loops(0..rank)) + Scalar::load(1, [Scalar::Loop(axis)]);
    cx.b.compute(Compute::map(dims, body), &[sum, outside])
}

/// Resizes all axes at once, where each element is one of the operand.
fn nearest(
    cx: &mut Context<'_>,
    x: ValueId,
    options: &Options,
    resized: &Resized,
) -> Result<ValueId, LowerError> {
    let dtype = cx.dtype(x);
    let mut dims = cx.b.dims(x);
    let mut from = loops(0..dims.len());
    let mut operands = vec![x];
    let mut outside: Option<Scalar> = None;
    let mut times = vec![Dim::Known(1); dims.len()];
    for (position, axis) in resized.axes.iter().copied().enumerate() {
        let tables = Tables { options, resized, position };
        if tables.is_identity(cx.b)? {
            continue;
        }
        if let Some(repeats) = tables.repeats(cx.b)? {
            times[axis] = repeats.into();
            continue;
        }
        dims[axis] = resized.extents[position].clone();
        from[axis] = Scalar::load(operands.len(), [Scalar::Loop(axis)]);
        operands.push(tables.nearest(cx)?);
        if let Some(table) = tables.outside(cx)? {
            let here = Scalar::load(operands.len(), [Scalar::Loop(axis)]);
            operands.push(table);
            outside = Some(match outside {
                None => here,
                Some(before) => crate::ops::pieces::either(before, here),
            });
        }
    }
    let value = Scalar::load(0, from);
    let body = match outside {
        None => value,
        Some(outside) => {
            let instead = Scalar::float(options.extrapolation, DType::F64).cast(dtype);
            outside.select(instead, value)
        }
    };
    let x = match operands.len() {
        1 => x,
        _ => cx.b.compute(Compute::map(dims, body), &operands)?,
    };
    Ok(repeated(cx.b, x, &times, Repeat::Each)?)
}
