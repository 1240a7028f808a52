//! Slices and splits.

use super::indexing::{Part, along, loops, size, slice};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{Builder, Compute, DType, Dim, Relation, Scalar, ValueId};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("Crop", &[1], crop).removed_in(10),
    Operator::new("Slice", &[1, 10, 11, 13], slice_axes),
    Operator::new("Split", &[1, 2, 11, 13, 18], split),
    Operator::new("Trilu", &[14], trilu),
];

fn slice_axes(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let dims = cx.b.dims(x);
    let (starts, ends, axes, steps) = if cx.version < 10 {
        let list = |name: &str| cx.ints(name)?.ok_or_else(|| cx.missing(name));
        let known = |list: Vec<i64>| list.into_iter().map(Dim::Known).collect::<Vec<_>>();
        (known(list("starts")?), known(list("ends")?), cx.ints("axes")?, None)
    } else {
        (cx.sizes(1)?, cx.sizes(2)?, cx.constant_ints(3)?, cx.constant_ints(4)?)
    };
    let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        let message = format!(
            "expected as many ends, axes and steps as starts, {}, found {}, {} and {}",
            starts.len(),
            ends.len(),
            axes.len(),
            steps.len()
        );
        return Err(LowerError::invalid(message));
    }
    cx.axes(&axes, dims.len())?;
    let mut parts: Vec<Part> = dims.iter().map(|dim| Part::run(0, dim.clone())).collect();
    for (index, axis) in axes.iter().enumerate() {
        let axis = cx.axis(*axis, dims.len())?;
        parts[axis] = part(cx.b, &dims[axis], &starts[index], &ends[index], steps[index])?;
    }
    one(slice(cx.b, x, &parts))
}

/// The indices from `start` to `end` (exclusive).
fn part(b: &Builder, dim: &Dim, start: &Dim, end: &Dim, step: i64) -> Result<Part, LowerError> {
    if step == 0 || step == i64::MIN {
        return Err(LowerError::invalid(format!("expected a step other than {step}")));
    }
    let zero = Dim::Known(0);
    let (start, span) = if step > 0 {
        let start = bound(b, start, dim, dim);
        let end = bound(b, end, dim, dim);
        (start.clone(), end - start)
    } else {
        // With a negative step, the end before the first index is -1, which counts from the end once.
        let last = dim.clone() - 1.into();
        let start = bound(b, start, dim, &last);
        let end = match end.known() {
            Some(end) if end <= -LARGE => Dim::Known(-1),
            _ => bound_above(b, end, dim, -1, &last),
        };
        (start.clone(), start - end)
    };
    let count = span.ceil_div(&step.abs().into());
    let count = if b.is_size(&count) { count } else { count.maximum(&zero) };
    Ok(Part { start, step, count })
}

/// Bounds at or above this mean the end, in models that do not know the size.
const LARGE: i64 = i32::MAX as i64;

/// A bound, which counts from the end if negative, clamped to `0 ..= most`.
fn bound(b: &Builder, at: &Dim, dim: &Dim, most: &Dim) -> Dim {
    bound_above(b, at, dim, 0, most)
}

fn bound_above(b: &Builder, at: &Dim, dim: &Dim, least: i64, most: &Dim) -> Dim {
    let least = Dim::Known(least);
    match at.known() {
        Some(at) if at >= LARGE && dim.known().is_none() => return most.clone(),
        Some(at) if at <= -LARGE && dim.known().is_none() => return least,
        Some(0) if least.is(0) && most == dim && b.is_size(dim) => return Dim::Known(0),
        Some(at) if at < 0 => {
            return (dim.clone() + at.into()).maximum(&least).minimum(most);
        }
        Some(at) => return Dim::Known(at).minimum(most),
        None => {}
    }
    if at == dim {
        return most.clone();
    }
    if b.is_size(at) {
        return at.minimum(most);
    }
    // 1 if it is negative, else 0.
    let negative = -at.maximum(&(-1).into()).minimum(&0.into());
    (at.clone() + negative * dim.clone()).maximum(&least).minimum(most)
}

fn split(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let axis = cx.axis(cx.int_or("axis", 0)?, cx.b.rank(x))?;
    let dim = cx.b.dims(x)[axis].clone();
    let given = match cx.version {
        1 if cx.optional(1).is_some() => Some(cx.sizes(1)?),
        1..13 => cx.ints("split")?.map(|sizes| sizes.into_iter().map(Dim::Known).collect()),
        _ if cx.optional(1).is_some() => Some(cx.sizes(1)?),
        _ => None,
    };
    let count = cx.output_count();
    let sizes = match given {
        Some(sizes) => sizes,
        None => equal_parts(cx, &dim, count)?,
    };
    if sizes.len() != count {
        let found = sizes.len();
        return Err(LowerError::invalid(format!("expected {count} sizes, found {found}")));
    }
    let total = sizes.iter().fold(Dim::Known(0), |sum, size| sum + size.clone());
    let message = format!("split: expected sizes that add up to that of axis {axis}");
    cx.b.require(&total, Relation::Equal, &dim, &message)?;
    let mut start = Dim::Known(0);
    let mut results = vec![];
    for size in sizes {
        cx.b.require(&0.into(), Relation::AtMost, &size, "split: expected no negative size")?;
        results.push(along(cx.b, x, axis, start.clone(), size.clone())?);
        start = start + size;
    }
    Ok(results)
}

/// Parts of equal size, except that the last is the remainder.
pub(super) fn equal_parts(
    cx: &Context<'_>,
    dim: &Dim,
    count: usize,
) -> Result<Vec<Dim>, LowerError> {
    let stated = cx.int_or("num_outputs", count as i64)?;
    if stated != count as i64 {
        let message = format!("expected `num_outputs` {stated} outputs, found {count}");
        return Err(LowerError::invalid(message));
    }
    let parts = Dim::Known(count as i64);
    if cx.version < 18 && dim.known().is_some_and(|dim| dim % count as i64 != 0) {
        return Err(LowerError::invalid(format!("expected {count} equal parts of {dim}")));
    }
    let chunk = dim.ceil_div(&parts);
    let rest = dim.clone() - chunk.clone() * (count as i64 - 1).into();
    let mut sizes = vec![chunk; count.saturating_sub(1)];
    sizes.push(rest);
    Ok(sizes)
}

fn trilu(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let ty = cx.ty(x);
    let rank = ty.rank();
    if rank < 2 {
        return Err(LowerError::invalid(format!("expected matrices, found {ty}")));
    }
    let upper = cx.int_or("upper", 1)? != 0;
    let (diagonal, operands) = diagonal(cx, x)?;
    let over = Scalar::Loop(rank - 1) - Scalar::Loop(rank - 2);
    let kept = if upper { over.ge(diagonal) } else { diagonal.ge(over) };
    let zero = Scalar::number(0, ty.dtype);
    let body = kept.select(Scalar::load(0, loops(0..rank)), zero);
    one(cx.b.compute(Compute::map(ty.dims, body), &operands))
}

/// The diagonal of a `Trilu` of `x`, with the operands of the computation. It is no size of the program: one that is known
/// only at run time is the second operand.
fn diagonal(cx: &mut Context<'_>, x: ValueId) -> Result<(Scalar, Vec<ValueId>), LowerError> {
    let Some(k) = cx.optional(1) else { return Ok((Scalar::index(0), vec![x])) };
    let is_known = cx.b.elements(k).is_some() || cx.b.constant_of(k)?.is_some();
    let ty = cx.ty(k);
    if is_known || !ty.elements().is(1) || !ty.dtype.is_integer() {
        let given = cx.sizes(1)?.into_iter().next();
        return Ok((size(&given.unwrap_or(Dim::Known(0))), vec![x]));
    }
    let k = cx.b.reshape(k, &[])?;
    Ok((Scalar::load(1, []).cast(DType::I64), vec![x, k]))
}

/// Crops the border of images, to a size if one is given.
fn crop(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let dims = cx.b.dims(x);
    let border = cx.ints("border")?.ok_or_else(|| cx.missing("border"))?;
    let ([left, top, right, bottom], 4) = (border[..].try_into().unwrap_or([0; 4]), border.len())
    else {
        let found = border.len();
        return Err(LowerError::invalid(format!("expected 4 sides of `border`, found {found}")));
    };
    if dims.len() != 4 {
        let message = format!("expected a batch of images, found {}", cx.b.ty(x));
        return Err(LowerError::invalid(message));
    }
    let (height, width) = match cx.ints("scale")?.as_deref() {
        Some([height, width]) => (Dim::Known(*height), Dim::Known(*width)),
        Some([]) | None => {
            (dims[2].clone() - (top + bottom).into(), dims[3].clone() - (left + right).into())
        }
        Some(other) => {
            let found = other.len();
            return Err(LowerError::invalid(format!("expected 2 sizes of `scale`, found {found}")));
        }
    };
    for (axis, start, count) in [(2, top, &height), (3, left, &width)] {
        let end = count.clone() + start.into();
        cx.b.require(&end, Relation::AtMost, &dims[axis], "crop: expected a part of the image")?;
    }
    let parts = [
        Part::run(0, dims[0].clone()),
        Part::run(0, dims[1].clone()),
        Part::run(top, height),
        Part::run(left, width),
    ];
    one(slice(cx.b, x, &parts))
}
