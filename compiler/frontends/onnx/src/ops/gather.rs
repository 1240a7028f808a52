//! Elements selected by indices that are data.

use super::indexing::{from_end, inside, loops, size};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{Compute, DType, Dim, Relation, Scalar, ValueId};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("ArrayFeatureExtractor", &[1], array_feature_extractor).in_domain("ai.onnx.ml"),
    Operator::new("Gather", &[1, 11, 13], gather),
    Operator::new("GatherElements", &[11, 13], gather_elements),
    Operator::new("GatherND", &[11, 12, 13], gather_nd),
    Operator::new("ReverseSequence", &[10], reverse_sequence),
];

/// An index that is data, which counts from the end if negative. Known indices are checked
/// at compile time; others are clamped, so that no model reads out of bounds.
pub(super) fn data_index(
    cx: &Context<'_>,
    index: Scalar,
    from: ValueId,
    extent: &Dim,
) -> Result<Scalar, LowerError> {
    let index = index.cast(DType::I64);
    let (Some(extent_known), Some(indices)) = (extent.known(), cx.b.constant_of(from)?) else {
        return Ok(inside(from_end(index, extent), extent));
    };
    let indices = indices.to_i128();
    let indices = indices.ok_or_else(|| LowerError::invalid("expected integer indices"))?;
    let extent_wide = i128::from(extent_known);
    if let Some(found) = indices.iter().find(|at| !(-extent_wide..extent_wide).contains(*at)) {
        let (least, most) = (-extent_known, extent_known - 1);
        let message = format!("expected indices from {least} to {most}, found {found}");
        return Err(LowerError::invalid(message));
    }
    let negative = indices.iter().any(|at| *at < 0);
    Ok(if negative { from_end(index, extent) } else { index })
}

fn integers(cx: &Context<'_>, indices: ValueId) -> Result<(), LowerError> {
    let ty = cx.b.ty(indices);
    if ty.dtype.is_integer() {
        return Ok(());
    }
    Err(LowerError::invalid(format!("expected integer indices, found {ty}")))
}

fn gather(cx: &mut Context<'_>) -> Lowered {
    let (x, indices) = (cx.input(0)?, cx.input(1)?);
    integers(cx, indices)?;
    let (own, by) = (cx.b.dims(x), cx.b.dims(indices));
    let axis = cx.axis(cx.int_or("axis", 0)?, own.len())?;
    let mut dims = own[..axis].to_vec();
    dims.extend(by.iter().cloned());
    dims.extend_from_slice(&own[axis + 1..]);
    let index = Scalar::load(1, loops(axis..axis + by.len()));
    let mut at = loops(0..axis);
    at.push(data_index(cx, index, indices, &own[axis])?);
    at.extend(loops(axis + by.len()..dims.len()));
    one(cx.b.compute(Compute::map(dims, Scalar::load(0, at)), &[x, indices]))
}

fn gather_elements(cx: &mut Context<'_>) -> Lowered {
    let (x, indices) = (cx.input(0)?, cx.input(1)?);
    integers(cx, indices)?;
    let (own, dims) = (cx.b.dims(x), cx.b.dims(indices));
    let axis = cx.axis(cx.int_or("axis", 0)?, own.len())?;
    if dims.len() != own.len() {
        let (x, indices) = (cx.b.ty(x), cx.b.ty(indices));
        return Err(LowerError::invalid(format!("expected one rank, found {x} and {indices}")));
    }
    for (other, (dim, own)) in dims.iter().zip(&own).enumerate() {
        if other != axis {
            let message = "gather_elements: expected indices within the other dimensions";
            cx.b.require(dim, Relation::AtMost, own, message)?;
        }
    }
    let mut at = loops(0..dims.len());
    let index = Scalar::load(1, at.clone());
    at[axis] = data_index(cx, index, indices, &own[axis])?;
    one(cx.b.compute(Compute::map(dims, Scalar::load(0, at)), &[x, indices]))
}

/// The number of coordinates of an n-dimensional index, which must be known.
pub(super) fn coordinates(cx: &Context<'_>, indices: ValueId) -> Result<usize, LowerError> {
    integers(cx, indices)?;
    let ty = cx.b.ty(indices);
    let last = ty.dims.last();
    let last = last
        .ok_or_else(|| LowerError::invalid("expected indices of rank 1 or more, found a scalar"))?;
    let known = last.known().ok_or_else(|| LowerError::NeedsSize(last.clone()))?;
    usize::try_from(known).map_err(|_| LowerError::invalid(format!("expected indices, found {ty}")))
}

fn gather_nd(cx: &mut Context<'_>) -> Lowered {
    let (x, indices) = (cx.input(0)?, cx.input(1)?);
    let (own, by) = (cx.b.dims(x), cx.b.dims(indices));
    let batch = cx.int_or("batch_dims", 0)?;
    let count = coordinates(cx, indices)?;
    let batch = usize::try_from(batch).ok().filter(|batch| *batch < by.len());
    let batch = batch.filter(|batch| batch + count <= own.len());
    let batch = batch.ok_or_else(|| {
        let (x, indices) = (cx.b.ty(x), cx.b.ty(indices));
        LowerError::invalid(format!("the indices {indices} do not fit {x}"))
    })?;
    for (left, right) in own[..batch].iter().zip(&by) {
        cx.b.require(left, Relation::Equal, right, "gather_nd: expected one batch size")?;
    }
    let outer = by.len() - 1;
    let mut dims = by[..outer].to_vec();
    dims.extend_from_slice(&own[batch + count..]);
    let mut at = loops(0..batch);
    for coordinate in 0..count {
        let mut index = loops(0..outer);
        index.push(Scalar::index(coordinate as i64));
        let index = Scalar::load(1, index).cast(DType::I64);
        let extent = &own[batch + coordinate];
        at.push(inside(from_end(index, extent), extent));
    }
    at.extend(loops(outer..dims.len()));
    one(cx.b.compute(Compute::map(dims, Scalar::load(0, at)), &[x, indices]))
}

fn reverse_sequence(cx: &mut Context<'_>) -> Lowered {
    let (x, lengths) = (cx.input(0)?, cx.input(1)?);
    let dims = cx.b.dims(x);
    let batch = cx.axis(cx.int_or("batch_axis", 1)?, dims.len())?;
    let time = cx.axis(cx.int_or("time_axis", 0)?, dims.len())?;
    let count = cx.b.dims(lengths);
    if batch == time || count.len() != 1 {
        let message = "expected a batch axis other than the time axis, and lengths of rank 1";
        return Err(LowerError::invalid(message));
    }
    cx.b.require(&count[0], Relation::Equal, &dims[batch], "expected a length per batch element")?;
    let mut at = loops(0..dims.len());
    let length = Scalar::load(1, [Scalar::Loop(batch)]).cast(DType::I64).min(size(&dims[time]));
    let back = length.clone() - Scalar::index(1) - Scalar::Loop(time);
    at[time] = Scalar::Loop(time).lt(length).select(back, Scalar::Loop(time));
    one(cx.b.compute(Compute::map(dims, Scalar::load(0, at)), &[x, lengths]))
}

/// Selects columns of the last dimension.
fn array_feature_extractor(cx: &mut Context<'_>) -> Lowered {
    let (x, indices) = (cx.input(0)?, cx.input(1)?);
    integers(cx, indices)?;
    let (own, by) = (cx.b.dims(x), cx.b.dims(indices));
    let Some((last, rows)) = own.split_last() else {
        return Err(LowerError::invalid("expected values in a row, found a scalar"));
    };
    let flat = cx.b.reshape(indices, &[Dim::product(&by)])?;
    let rows = if rows.is_empty() { vec![Dim::Known(1)] } else { rows.to_vec() };
    let mut at = if own.len() == 1 { vec![] } else { loops(0..rows.len()) };
    let index = Scalar::load(1, [Scalar::Loop(rows.len())]);
    at.push(data_index(cx, index, flat, last)?);
    let mut dims = rows;
    dims.push(Dim::product(&by));
    one(cx.b.compute(Compute::map(dims, Scalar::load(0, at)), &[x, flat]))
}
