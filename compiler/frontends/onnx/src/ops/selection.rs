//! Elements selected by their values.

use super::indexing::{along, counted, inside, loops, size};
use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use irc_tl::{Algorithm, Combine, Comparison, Compute, DType, Dim, Relation, Scalar, ValueId};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("Compress", &[9, 11], compress),
    Operator::new("NonMaxSuppression", &[10, 11], non_max_suppression),
    Operator::new("NonZero", &[9, 13], |cx| {
        let x = cx.input(0)?;
        let x = if cx.b.rank(x) == 0 { cx.b.reshape(x, &[Dim::Known(1)])? } else { x };
        Ok(vec![non_zero(cx, x)?])
    }),
    Operator::new("TopK", &[1, 10, 11, 24], top_k),
    Operator::new("Unique", &[11], |cx| {
        let x = cx.input(0)?;
        let axis = cx.int("axis")?.map(|axis| cx.axis(axis, cx.b.rank(x))).transpose()?;
        let sorted = cx.int_or("sorted", 1)? != 0;
        Ok(unique(cx, axis, sorted)?.to_vec())
    }),
];

fn top_k(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let axis = cx.axis(cx.int_or("axis", -1)?, cx.b.rank(x))?;
    let k = if cx.version < 10 {
        Dim::Known(cx.int("k")?.ok_or_else(|| cx.missing("k"))?)
    } else {
        let k = cx.input(1)?;
        counted(cx.b, k)?
    };
    let dim = cx.b.dims(x)[axis].clone();
    cx.b.require(&k, Relation::AtMost, &dim, "top_k: expected as many elements along the axis")?;
    let largest = cx.int_or("largest", 1)? != 0;
    Ok(cx.b.algorithm(Algorithm::TopK { axis, k, largest }, &[x])?)
}

/// The indices of elements that are not zero: `i64[rank, count]`.
fn non_zero(cx: &mut Context<'_>, x: ValueId) -> Result<ValueId, LowerError> {
    let found = cx.b.algorithm(Algorithm::NonZero, &[x])?;
    let count = counted(cx.b, found[1])?;
    Ok(along(cx.b, found[0], 1, 0, count)?)
}

fn compress(cx: &mut Context<'_>) -> Lowered {
    let (mut x, condition) = (cx.input(0)?, cx.input(1)?);
    let axis = match cx.int("axis")? {
        Some(axis) => cx.axis(axis, cx.b.rank(x))?,
        None => {
            let count = Dim::product(&cx.b.dims(x));
            x = cx.b.reshape(x, &[count])?;
            0
        }
    };
    let mut dims = cx.b.dims(x);
    let found = cx.b.dims(condition);
    if found.len() != 1 {
        let message = format!("expected conditions of rank 1, found {}", cx.b.ty(condition));
        return Err(LowerError::invalid(message));
    }
    let message = "compress: expected at most as many conditions as elements";
    cx.b.require(&found[0], Relation::AtMost, &dims[axis], message)?;
    let places = non_zero(cx, condition)?;
    let extent = std::mem::replace(&mut dims[axis], cx.b.dims(places)[1].clone());
    let mut at = loops(0..dims.len());
    let place = Scalar::load(1, [Scalar::index(0), Scalar::Loop(axis)]);
    at[axis] = inside(place, &extent);
    let body = Scalar::load(0, at);
    Ok(vec![cx.b.compute(Compute::map(dims, body), &[x, places])?])
}

/// Unique slices along an axis, or unique elements. All pairs are compared: intended for few.
/// The results are those of ONNX's operator: values, first indices, places among the values, and counts.
pub(super) fn unique(
    cx: &mut Context<'_>,
    axis: Option<usize>,
    sorted: bool,
) -> Result<[ValueId; 4], LowerError> {
    let x = cx.input(0)?;
    // The slices as rows.
    let dims = cx.b.dims(x);
    let (front, sizes) = match axis {
        Some(axis) => {
            let mut order: Vec<usize> = (0..dims.len()).collect();
            order.remove(axis);
            order.insert(0, axis);
            let front = cx.b.transpose(x, &order)?;
            (front, order.iter().map(|axis| dims[*axis].clone()).collect::<Vec<_>>())
        }
        None => (x, vec![Dim::product(&dims)]),
    };
    let (count, width) = (sizes[0].clone(), Dim::product(&sizes[1..]));
    let rows = cx.b.reshape(front, &[count.clone(), width.clone()])?;
    let first = first_equals(cx, rows)?;
    let places = places_of_first(cx, rows, first, sorted)?;
    // For each unique slice, its first occurrence.
    let kept = Scalar::load(0, [Scalar::Loop(0)]).equals(Scalar::Loop(0));
    let number = Compute::reduce([], Combine::Sum, [count.clone()], kept.cast(DType::I64));
    let number = cx.b.compute(number, &[first])?;
    let number = counted(cx.b, number)?;
    let own = Scalar::load(0, [Scalar::Loop(1)]).equals(Scalar::Loop(1));
    let here = Scalar::load(1, [Scalar::Loop(1)]).equals(Scalar::Loop(0));
    let index = own.and(here).select(Scalar::Loop(1), Scalar::index(0));
    let index = Compute::reduce([number.clone()], Combine::Max, [count.clone()], index);
    let index = cx.b.compute(index, &[first, places])?;
    // The slices moved back to their axis.
    let mut kept_sizes = sizes;
    let extent = std::mem::replace(&mut kept_sizes[0], number.clone());
    let mut at = loops(0..kept_sizes.len());
    at[0] = inside(Scalar::load(1, [Scalar::Loop(0)]), &extent);
    let source =
        if axis.is_some() { front } else { cx.b.reshape(front, std::slice::from_ref(&count))? };
    let picked = cx.b.compute(Compute::map(kept_sizes, Scalar::load(0, at)), &[source, index])?;
    let picked = match axis {
        Some(axis) => {
            let mut order: Vec<usize> = (1..dims.len()).collect();
            order.insert(axis, 0);
            cx.b.transpose(picked, &order)?
        }
        None => picked,
    };
    let same = Scalar::load(0, [Scalar::Loop(1)]).equals(Scalar::Loop(0));
    let counts = Compute::reduce([number], Combine::Sum, [count], same.cast(DType::I64));
    let counts = cx.b.compute(counts, &[places])?;
    Ok([picked, index, places, counts])
}

/// For each row the first that is equal to it.
fn first_equals(cx: &mut Context<'_>, rows: ValueId) -> Result<ValueId, LowerError> {
    let [count, width] = [cx.b.dims(rows)[0].clone(), cx.b.dims(rows)[1].clone()];
    let row = |row: usize| Scalar::load(0, [Scalar::Loop(row), Scalar::Loop(2)]);
    let differs = row(0).compare(Comparison::Ne, row(1)).cast(DType::I64);
    let pairs = [count.clone(), count.clone()];
    let differing = Compute::reduce(pairs, Combine::Sum, [width], differs);
    let differing = cx.b.compute(differing, &[rows])?;
    let equal = Scalar::load(0, loops(0..2)).equals(Scalar::index(0));
    let own = Scalar::Loop(1).equals(Scalar::Loop(0));
    // A row with NaN equals none, and represents itself.
    let other = equal.select(Scalar::Loop(1), size(&count));
    let body = own.select(Scalar::Loop(0), other);
    let first = Compute::reduce([count.clone()], Combine::Min, [count], body);
    Ok(cx.b.compute(first, &[differing])?)
}

/// For each row the index of its equal among the unique rows.
fn places_of_first(
    cx: &mut Context<'_>,
    rows: ValueId,
    first: ValueId,
    sorted: bool,
) -> Result<ValueId, LowerError> {
    let [count, width] = [cx.b.dims(rows)[0].clone(), cx.b.dims(rows)[1].clone()];
    let kept = Scalar::load(0, [Scalar::Loop(1)]).equals(Scalar::Loop(1));
    let row = Scalar::load(0, [Scalar::Loop(0)]);
    if !sorted {
        let before = kept.and(Scalar::Loop(1).lt(row));
        let body = before.cast(DType::I64);
        let places = Compute::reduce([count.clone()], Combine::Sum, [count], body);
        return Ok(cx.b.compute(places, &[first])?);
    }
    // Rows are ordered by the first element in which they differ.
    let element = |row: usize, column: Scalar| Scalar::load(0, [Scalar::Loop(row), column]);
    let differs = element(0, Scalar::Loop(2)).compare(Comparison::Ne, element(1, Scalar::Loop(2)));
    let body = differs.select(Scalar::Loop(2), size(&width));
    let pairs = [count.clone(), count.clone()];
    let column = Compute::reduce(pairs, Combine::Min, [width.clone()], body);
    let column = cx.b.compute(column, &[rows])?;
    let at = Scalar::load(2, loops(0..2));
    let value = |row: usize| Scalar::load(1, [Scalar::Loop(row), at.clone()]);
    let smaller = value(1).lt(value(0));
    let smaller = at.clone().lt(size(&width)).select(smaller, Scalar::Int(0, DType::Bool));
    let before = kept.select(smaller, Scalar::Int(0, DType::Bool)).cast(DType::I64);
    let places = Compute::reduce([count.clone()], Combine::Sum, [count], before);
    Ok(cx.b.compute(places, &[first, rows, column])?)
}

fn non_max_suppression(cx: &mut Context<'_>) -> Lowered {
    let (boxes, scores) = (cx.input(0)?, cx.input(1)?);
    let limit = match cx.optional(2) {
        Some(limit) => cx.b.reshape(limit, &[])?,
        None => cx.b.scalar(0.0, DType::I64)?,
    };
    let mut operands = vec![boxes, scores, limit];
    for (input, default) in [(3, 0.0), (4, f64::NEG_INFINITY)] {
        operands.push(match cx.optional(input) {
            Some(threshold) => cx.b.reshape(threshold, &[])?,
            None => cx.b.scalar(default, DType::F32)?,
        });
    }
    let by_center = cx.int_or("center_point_box", 0)? != 0;
    let found = cx.b.algorithm(Algorithm::NonMaxSuppression { by_center }, &operands)?;
    let count = counted(cx.b, found[1])?;
    Ok(vec![along(cx.b, found[0], 0, 0, count)?])
}
