//! The types in ARK that represent those of a graph.

use irc_ark_format::model::DataType;
use irc_tl::{DType, Graph, TensorType, ValueId};

/// Maximum number of dimensions of a tensor in ARK.
const MAX_DIMS: usize = 4;

/// The shape in ARK that represents a shape: its rank is from 1 to 4, for which leading dimensions of
/// extent 1 are dropped.
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

/// The shape of a value whose dimensions an op refers to by index.
pub fn exact_shape(shape: &[i64]) -> Result<Vec<i64>, String> {
    match shape.len() {
        0..=MAX_DIMS => ark_shape(shape),
        rank => Err(format!("tensors of ARK have at most {MAX_DIMS} dimensions, found {rank}")),
    }
}

/// The element type in ARK that represents a type. 64-bit integers become 32-bit ones: only moves,
/// conversions to floats and uses as indices are exported, which have the same results.
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

/// The type of a value, which must have static sizes.
pub fn known(graph: &Graph, value: ValueId) -> Result<TensorType, String> {
    let ty = graph.ty(value);
    ty.known().ok_or_else(|| format!("shapes of ARK are numbers, found {ty}"))
}
