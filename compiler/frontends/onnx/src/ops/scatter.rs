//! Elements replaced at indices that are data.
//!
//! A loop over the result searches the updates for those of its element: the time is the size of the result
//! times the updates along the indexed axis (all updates for n-dimensional indices).

use super::gather::coordinates;
use super::indexing::{all, from_end, loops, modulo, size};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{Combine, Compute, DType, Dim, Relation, Scalar, ValueId};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("Scatter", &[9], scatter_elements).removed_in(11),
    Operator::new("ScatterElements", &[11, 13, 16, 18], scatter_elements),
    Operator::new("ScatterND", &[11, 13, 16, 18], scatter_nd),
    Operator::new("TensorScatter", &[24], tensor_scatter),
];

/// How updates are combined with the old value; `None` if they replace it.
fn reduction(cx: &Context<'_>) -> Result<Option<Combine>, LowerError> {
    Ok(Some(match cx.string_or("reduction", "none")?.as_str() {
        "none" => return Ok(None),
        "add" => Combine::Sum,
        "mul" => Combine::Product,
        "max" => Combine::Max,
        "min" => Combine::Min,
        other => {
            let words = ["none", "add", "mul", "max", "min"];
            return Err(LowerError::word("reduction", &words, other));
        }
    }))
}

fn scatter_elements(cx: &mut Context<'_>) -> Lowered {
    let (x, indices, updates) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let (own, by) = (cx.ty(x), cx.ty(indices));
    let axis = cx.axis(cx.int_or("axis", 0)?, own.rank())?;
    if by.rank() != own.rank() || cx.b.rank(updates) != own.rank() || !by.dtype.is_integer() {
        let message = format!("expected integer indices and updates like {own}, found {by}");
        return Err(LowerError::invalid(message));
    }
    for (left, right) in by.dims.iter().zip(&cx.b.dims(updates)) {
        cx.b.require(left, Relation::Equal, right, "scatter: expected an update per index")?;
    }
    for (other, (left, right)) in by.dims.iter().zip(&own.dims).enumerate() {
        if other != axis {
            let message = "scatter: expected indices within the other dimensions";
            cx.b.require(left, Relation::AtMost, right, message)?;
        }
    }
    let rank = own.rank();
    // The indexed axis runs over the updates; the others are the result's.
    let mut at = loops(0..rank);
    at[axis] = Scalar::Loop(rank);
    let others = (0..rank).filter(|other| *other != axis && by.dims[*other] != own.dims[*other]);
    let within = all(others.map(|other| Scalar::Loop(other).lt(size(&by.dims[other]))));
    let index = from_end(Scalar::load(1, at.clone()).cast(DType::I64), &own.dims[axis]);
    let meant = index.equals(Scalar::Loop(axis));
    let never = Scalar::Int(0, DType::Bool);
    let meant = within.select(meant, never);
    let over = vec![by.dims[axis].clone()];
    let old = Scalar::load(0, loops(0..rank));
    let how = reduction(cx)?;
    if let Some(how) = how {
        let update = meant.select(Scalar::load(2, at), how.neutral(own.dtype).scalar(own.dtype));
        let joined = Compute::reduce(own.dims.clone(), how, over, update);
        let joined = cx.b.compute(joined, &[x, indices, updates])?;
        let body = old.binary(how.function(), Scalar::load(1, loops(0..rank)));
        return one(cx.b.compute(Compute::map(own.dims, body), &[x, joined]));
    }
    let last = meant.select(Scalar::Loop(rank), Scalar::index(-1));
    let last = Compute::reduce(own.dims.clone(), Combine::Max, over, last);
    let last = cx.b.compute(last, &[x, indices])?;
    let found = Scalar::load(1, loops(0..rank));
    at[axis] = found.clone();
    let body = found.ge(Scalar::index(0)).select(Scalar::load(2, at), old);
    one(cx.b.compute(Compute::map(own.dims, body), &[x, last, updates]))
}

fn scatter_nd(cx: &mut Context<'_>) -> Lowered {
    let (x, indices, updates) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let (own, by, new) = (cx.ty(x), cx.ty(indices), cx.ty(updates));
    let count = coordinates(cx, indices)?;
    let outer = by.rank() - 1;
    if count > own.rank() || new.rank() != outer + own.rank() - count {
        let message = format!("the indices {by} and updates {new} do not fit {own}");
        return Err(LowerError::invalid(message));
    }
    let expected = by.dims[..outer].iter().chain(&own.dims[count..]);
    for (left, right) in expected.zip(&new.dims) {
        cx.b.require(left, Relation::Equal, right, "scatter: expected an update per index")?;
    }
    let places = Dim::product(&by.dims[..outer]);
    let mut flat = vec![places.clone()];
    let indices = cx.b.reshape(indices, &[places.clone(), Dim::Known(count as i64)])?;
    flat.extend_from_slice(&own.dims[count..]);
    let updates = cx.b.reshape(updates, &flat)?;
    let how = reduction(cx)?;
    let Some(how) = how else { return replace_nd(cx, x, indices, updates, count) };
    let rank = own.rank();
    let mut at = vec![Scalar::Loop(rank)];
    at.extend(loops(count..rank));
    let meant = meant_nd(1, &own.dims[..count], rank);
    let update = meant.select(Scalar::load(2, at), how.neutral(own.dtype).scalar(own.dtype));
    let joined = Compute::reduce(own.dims.clone(), how, [places], update);
    let joined = cx.b.compute(joined, &[x, indices, updates])?;
    let old = Scalar::load(0, loops(0..rank));
    let body = old.binary(how.function(), Scalar::load(1, loops(0..rank)));
    one(cx.b.compute(Compute::map(own.dims, body), &[x, joined]))
}

/// Whether the index that the last loop counts is that of the first loops.
fn meant_nd(operand: usize, dims: &[Dim], last: usize) -> Scalar {
    all(dims.iter().enumerate().map(|(coordinate, dim)| {
        let at = [Scalar::Loop(last), Scalar::index(coordinate as i64)];
        let index = from_end(Scalar::load(operand, at).cast(DType::I64), dim);
        index.equals(Scalar::Loop(coordinate))
    }))
}

/// First the number of the update for each position, then the elements: the search is done once per position.
fn replace_nd(
    cx: &mut Context<'_>,
    x: ValueId,
    indices: ValueId,
    updates: ValueId,
    count: usize,
) -> Lowered {
    let own = cx.ty(x);
    let places = cx.b.dims(updates)[0].clone();
    let meant = meant_nd(0, &own.dims[..count], count);
    let last = meant.select(Scalar::Loop(count), Scalar::index(-1));
    let last = Compute::reduce(&own.dims[..count], Combine::Max, [places], last);
    let last = cx.b.compute(last, &[indices])?;
    let found = Scalar::load(1, loops(0..count));
    let mut at = vec![found.clone()];
    at.extend(loops(count..own.rank()));
    let old = Scalar::load(0, loops(0..own.rank()));
    let body = found.ge(Scalar::index(0)).select(Scalar::load(2, at), old);
    one(cx.b.compute(Compute::map(own.dims, body), &[x, last, updates]))
}

/// A cache with new entries from an index on, which differs per batch element.
fn tensor_scatter(cx: &mut Context<'_>) -> Lowered {
    let (cache, update) = (cx.input(0)?, cx.input(1)?);
    let (own, new) = (cx.ty(cache), cx.ty(update));
    let axis = cx.axis(cx.int_or("axis", -2)?, own.rank())?;
    if new.rank() != own.rank() || new.dtype != own.dtype || axis == 0 {
        let message = format!("expected an update like {own}, not along its batch, found {new}");
        return Err(LowerError::invalid(message));
    }
    let circular = match cx.string_or("mode", "linear")?.as_str() {
        "linear" => false,
        "circular" => true,
        other => return Err(LowerError::word("mode", &["linear", "circular"], other)),
    };
    for (other, (left, right)) in new.dims.iter().zip(&own.dims).enumerate() {
        let relation = if other == axis { Relation::AtMost } else { Relation::Equal };
        let message = "tensor_scatter: expected an update that fits the cache";
        cx.b.require(left, relation, right, message)?;
    }
    let mut operands = vec![cache, update];
    let start = match cx.optional(2) {
        Some(indices) => {
            operands.push(indices);
            Scalar::load(2, [Scalar::Loop(0)]).cast(DType::I64)
        }
        None => Scalar::index(0),
    };
    let mut offset = Scalar::Loop(axis) - start;
    if circular {
        offset = modulo(offset, size(&own.dims[axis]));
    }
    let from = offset.clone().ge(Scalar::index(0));
    let fresh = from.and(offset.clone().lt(size(&new.dims[axis])));
    let mut at = loops(0..own.rank());
    let old = Scalar::load(0, at.clone());
    at[axis] = offset;
    let body = fresh.select(Scalar::load(1, at), old);
    one(cx.b.compute(Compute::map(own.dims, body), &operands))
}
