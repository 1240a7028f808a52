//! Traversal of a tensor in another element order.

use irc_tensor::{Tensor, TensorError, TensorType};

/// Elements to skip per step along each dimension of a dense row-major tensor.
pub(crate) fn strides(shape: &[i64]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as usize;
    }
    strides
}

/// Strides that read `from` as if it had the shape `to` (NumPy broadcasting): zero along
/// repeated dimensions. The shapes must be compatible.
pub(crate) fn broadcast_strides(from: &[i64], to: &[i64]) -> Vec<usize> {
    let new = to.len() - from.len();
    let own = strides(from);
    let stride = |axis: usize| match axis.checked_sub(new) {
        Some(old) if from[old] == to[axis] => own[old],
        _ => 0,
    };
    (0..to.len()).map(stride).collect()
}

/// The linear positions of all indices of `shape`: `start` plus the strides times the
/// index, last dimension fastest.
pub(crate) fn positions(
    shape: &[i64],
    strides: &[usize],
    start: usize,
) -> impl Iterator<Item = usize> + use<> {
    let shape: Vec<usize> = shape.iter().map(|&dim| dim as usize).collect();
    let strides = strides.to_vec();
    let mut index = vec![0; shape.len()];
    let mut next = (!shape.contains(&0)).then_some(start);
    std::iter::from_fn(move || {
        let current = next?;
        next = step(&mut index, &shape, &strides, current);
        Some(current)
    })
}

fn step(index: &mut [usize], shape: &[usize], strides: &[usize], at: usize) -> Option<usize> {
    let mut position = at;
    for axis in (0..shape.len()).rev() {
        index[axis] += 1;
        position += strides[axis];
        if index[axis] < shape[axis] {
            return Some(position);
        }
        position -= strides[axis] * shape[axis];
        index[axis] = 0;
    }
    None
}

/// A tensor of type `ty` whose elements are those of `source` at `positions`, bit for bit.
pub(crate) fn pick(
    source: &Tensor,
    ty: TensorType,
    positions: impl Iterator<Item = usize>,
) -> Result<Tensor, TensorError> {
    let size = ty.dtype.size();
    let mut result = Tensor::zeros(ty)?;
    for (target, position) in result.bytes_mut().chunks_exact_mut(size).zip(positions) {
        target.copy_from_slice(&source.bytes()[position * size..][..size]);
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odometer_visits_in_order() {
        let visited: Vec<_> = positions(&[2, 3], &[1, 2], 10).collect();
        assert_eq!(visited, [10, 12, 14, 11, 13, 15]);
        assert_eq!(positions(&[], &[], 4).collect::<Vec<_>>(), [4]);
        assert_eq!(positions(&[2, 0], &[0, 1], 0).count(), 0);
    }

    #[test]
    fn repeated_dimensions_have_stride_zero() {
        assert_eq!(broadcast_strides(&[3, 1], &[2, 3, 4]), [0, 1, 0]);
        assert_eq!(broadcast_strides(&[], &[2]), [0]);
    }
}
