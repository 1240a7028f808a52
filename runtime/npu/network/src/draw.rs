//! Generated values for missing inputs and weights.

use std::collections::btree_map::Entry;

use irc_tensor::{DType, Tensor, TensorError, TensorType, seed_for};

use crate::{Error, Layout, Role, Tensors, Weights};

/// Generates values for all missing inputs and weights, which depend only on the seed and the key.
///
/// With `n` from the stream of [`seed_for`] the key, about normally distributed as in [`Tensor::random`]:
///
/// * inputs: as in [`Tensor::random`];
/// * weights: `round(32 n)`, clamped to `-127..=127`;
/// * scales: `(1 + n / 8) s / (2048 sqrt(C R S))`, biases: `s n / 4`, where `s` is 60 steps of the
///   result's quantisation, or 1.5 if the result is not quantised, so that results use their range.
///
/// # Errors
/// If there is not enough memory for them.
pub fn fill(layout: &Layout, given: &mut Tensors, seed: u64) -> Result<(), Error> {
    for tensor in layout.activations.iter().filter(|tensor| tensor.role == Role::Input) {
        if let Entry::Vacant(vacant) = given.entry(tensor.name.clone()) {
            vacant.insert(Tensor::random(tensor.ty.clone(), seed_for(seed, &tensor.name))?);
        }
    }
    for weights in &layout.weights {
        // Offsets stay 0.
        for ((key, ty), how) in weights.keys().into_iter().zip(of_weights(weights)) {
            let own = seed_for(seed, &key);
            if let Entry::Vacant(vacant) = given.entry(key) {
                vacant.insert(draw(ty, own, how)?);
            }
        }
    }
    Ok(())
}

/// A function of `n`: `round(offset + factor n)` for bytes, the same without rounding for floats.
type Affine = (f64, f64);

fn of_weights(weights: &Weights) -> [Affine; 3] {
    let [_, channels, kernel] = weights.shape();
    let scale = weights.spread / (2048.0 * ((channels * kernel) as f64).sqrt());
    [(0.0, 32.0), (scale, scale / 8.0), (0.0, weights.spread / 4.0)]
}

fn draw(ty: TensorType, seed: u64, (offset, factor): Affine) -> Result<Tensor, TensorError> {
    let normal = Tensor::random(TensorType::new(DType::F32, ty.shape.as_slice()), seed)?;
    let is_byte = ty.dtype == DType::I8;
    let mut tensor = Tensor::zeros(ty)?;
    for index in 0..tensor.elements() {
        let value = offset + factor * normal.get_f64(index);
        let byte = value.round_ties_even().clamp(-127.0, 127.0);
        tensor.set_f64(index, if is_byte { byte } else { value });
    }
    Ok(tensor)
}
