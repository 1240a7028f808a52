//! Left operands of products as matrices.

use irc_tl::{Builder, Built, Dim, ValueId};

/// A stack of matrices times one matrix of so many columns is one product of a taller matrix, by a function that multiplies
/// it.
pub(super) fn flattened(
    b: &mut Builder,
    x: ValueId,
    columns: Dim,
    multiply: impl FnOnce(&mut Builder, ValueId) -> Built,
) -> Built {
    let mut dims = b.dims(x);
    if dims.len() == 2 || b.ty(x).known().is_none() {
        return multiply(b, x);
    }
    let (rows, depth) = (Dim::product(&dims[..dims.len() - 1]), dims[dims.len() - 1].clone());
    let tall = b.reshape(x, &[rows, depth])?;
    let result = multiply(b, tall)?;
    dims.pop();
    dims.push(columns);
    b.reshape(result, &dims)
}

/// With a dimension of extent 1.
pub(super) fn with_unit(b: &mut Builder, x: ValueId, axis: usize) -> Built {
    let mut dims = b.dims(x);
    dims.insert(axis, 1.into());
    b.reshape(x, &dims)
}
