//! Programs that compute several batches of a model at once: inputs and outputs of the batches are stacked along their
//! first dimension.
use crate::{error::Error, values::Buffers};
use irc_npu_network::Tensors;
use irc_tensor::{Tensor, TensorType};
use std::collections::{BTreeMap, BTreeSet};

/// The types of the inputs of so many batches. Those named in `shared`, which are weights, are the same for all.
///
/// # Errors
/// An input without dimensions.
pub fn stacked_types(
    types: BTreeMap<String, TensorType>,
    shared: &BTreeSet<String>,
    batches: usize,
) -> Result<BTreeMap<String, TensorType>, Error> {
    let stacked = |(name, mut ty): (String, TensorType)| {
        if batches > 1 && !shared.contains(&name) {
            let Some(first) = ty.shape.first_mut() else { return Err(no_dimension(&name)) };
            *first *= batches as i64;
        }
        Ok((name, ty))
    };
    types.into_iter().map(stacked).collect()
}

/// The inputs of each batch.
///
/// # Errors
/// An input whose first dimension cannot be divided so.
pub fn divide(
    given: &Tensors,
    shared: &BTreeSet<String>,
    batches: usize,
) -> Result<Vec<Tensors>, Error> {
    let mut all = vec![Tensors::new(); batches];
    for (name, tensor) in given {
        let parts = match shared.contains(name) || batches == 1 {
            true => vec![tensor.clone(); batches],
            false => parts(name, tensor, batches)?,
        };
        for (batch, part) in all.iter_mut().zip(parts) {
            batch.insert(name.clone(), part);
        }
    }
    Ok(all)
}

/// The outputs of all batches.
///
/// # Errors
/// An output without dimensions.
pub fn stack(mut batches: Vec<Buffers>) -> Result<Buffers, Error> {
    if batches.len() == 1 {
        return Ok(batches.remove(0));
    }
    let names: BTreeSet<String> = batches.iter().flat_map(|batch| batch.keys().cloned()).collect();
    let mut stacked = Buffers::new();
    for name in names {
        let tensors: Vec<&Tensor> = batches.iter().filter_map(|batch| batch.get(&name)).collect();
        let tensor = joined(&name, &tensors)?;
        stacked.insert(name, tensor);
    }
    Ok(stacked)
}

/// A tensor divided along its first dimension.
///
/// # Errors
/// A tensor without dimensions, or whose first one cannot be divided so.
pub fn parts(name: &str, tensor: &Tensor, count: usize) -> Result<Vec<Tensor>, Error> {
    let mut ty = tensor.ty().clone();
    let Some(first) = ty.shape.first_mut() else { return Err(no_dimension(name)) };
    *first /= count as i64;
    let (bytes, size) = (tensor.bytes(), tensor.bytes().len() / count);
    (0..count).map(|part| made(&ty, &bytes[part * size..][..size])).collect()
}

/// Tensors joined along their first dimension.
///
/// # Errors
/// Tensors without dimensions.
pub fn joined(name: &str, tensors: &[&Tensor]) -> Result<Tensor, Error> {
    let Some(mut ty) = tensors.first().map(|tensor| tensor.ty().clone()) else {
        return Err(no_dimension(name));
    };
    let Some(first) = ty.shape.first_mut() else { return Err(no_dimension(name)) };
    *first *= tensors.len() as i64;
    let bytes: Vec<u8> = tensors.iter().flat_map(|tensor| tensor.bytes()).copied().collect();
    made(&ty, &bytes)
}

fn made(ty: &TensorType, bytes: &[u8]) -> Result<Tensor, Error> {
    Tensor::from_bytes(ty.clone(), bytes).map_err(|error| Error::problem(error.to_string()))
}

fn no_dimension(name: &str) -> Error {
    Error::problem(format!("'{name}' has no dimensions along which batches can be stacked"))
}
