//! Types of ARK that stand for those of a graph.

use irc_ark_format::model::DataType;
use irc_tl::{DType, Graph, TensorType, ValueId};

/// Most dimensions of a tensor of ARK.
const MAX_DIMS: usize = 4;

/// The shape of a tensor of ARK that stands for one: of rank 1 at least, and of 4 at most, where leading
/// dimensions of one element go.
pub fn ark_shape(shape: &[i64]) -> Result<Vec<i64>, String> {
    if let Some(extent) = shape.iter().find(|extent| **extent < 1) {
        return Err(format!("tensors of ARK have elements, found an extent of {extent}"));
    }
    if shape.is_empty() {
        return Ok(vec![1]);
    }
    let units = shape.iter().take_while(|extent| **extent == 1).count();
    let dropped = shape.len().saturating_sub(MAX_DIMS).min(units);
    match shape.len() - dropped {
        0..=MAX_DIMS => Ok(shape[dropped..].to_vec()),
        rank => Err(format!("tensors of ARK have at most {MAX_DIMS} dimensions, found {rank}")),
    }
}

/// The shape of a value whose dimensions an op names by number.
pub fn exact_shape(shape: &[i64]) -> Result<Vec<i64>, String> {
    match shape.len() {
        0..=MAX_DIMS => ark_shape(shape),
        rank => Err(format!("tensors of ARK have at most {MAX_DIMS} dimensions, found {rank}")),
    }
}

/// The element type that stands for one. Integers of 64 bits are of 32 in ARK: where they are only moved,
/// converted to floats or used as indices, which is all that is written, that changes nothing.
pub fn data_type(dtype: DType) -> Result<DataType, String> {
    Ok(match dtype {
        DType::F32 => DataType::Fp32,
        DType::F16 => DataType::Fp16,
        DType::BF16 => DataType::Bf16,
        DType::I32 | DType::I64 => DataType::Int32,
        DType::U32 => DataType::Uint32,
        DType::I8 => DataType::Int8,
        DType::U8 => DataType::Uint8,
        other => return Err(format!("ARK has no elements of {other}")),
    })
}

/// The type of a value, whose sizes must be known.
pub fn known(graph: &Graph, value: ValueId) -> Result<TensorType, String> {
    let ty = graph.ty(value);
    ty.known().ok_or_else(|| format!("shapes of ARK are numbers, found {ty}"))
}
