//! Ops as loops around an expression.
//!
//! Ops on operands whose sizes depend on symbols are lowered this way, as are ops for which a backend
//! has no schedule. Each op defines its own loops; this file has what they share. `tests/laws.rs`
//! checks that both ways of evaluating an op agree.

use crate::{Binary, Compute, Dim, Scalar, Type};

impl Compute {
    /// A reshape: the same elements in row-major order with other dimensions of the same number of elements.
    pub fn reshape(operand: &Type, dims: impl Into<Vec<Dim>>) -> Self {
        reshape(operand, dims.into())
    }

    /// The operand repeated along new or unit dimensions, aligned at the last dimension.
    pub fn broadcast(operand: &Type, dims: impl Into<Vec<Dim>>) -> Self {
        let dims = dims.into();
        let body = spread(0, std::slice::from_ref(operand), &dims);
        Self::map(dims, body)
    }

    /// Number of operations for these sizes, one per applied function of elements, not of indices and conditions; 0 if sizes are
    /// unknown.
    pub fn flops(&self) -> u64 {
        let functions = u64::from(self.reduction.is_some()) + functions(&self.body);
        let over = self.reduction.iter().flat_map(|reduction| &reduction.dims);
        let count = Dim::product(self.dims.iter().chain(over)).known().unwrap_or(0);
        functions.saturating_mul(count.unsigned_abs())
    }
}

/// The functions that an expression applies, without those of the indices of loads and of conditions.
fn functions(scalar: &Scalar) -> u64 {
    match scalar {
        Scalar::Unary(_, x) => 1 + functions(x),
        Scalar::Binary(_, x, y) => 1 + functions(x) + functions(y),
        Scalar::Cast(_, _, x) => functions(x),
        Scalar::Select(parts) => functions(&parts[1]) + functions(&parts[2]),
        Scalar::Compare(_, x, y) => functions(x) + functions(y),
        Scalar::Load(..)
        | Scalar::Float(..)
        | Scalar::Int(..)
        | Scalar::Loop(_)
        | Scalar::Size(_) => 0,
    }
}

/// The extents that operands broadcast to; `None` if known sizes are incompatible.
pub fn join(operands: &[Type]) -> Option<Vec<Dim>> {
    let mut joined: Vec<Dim> = vec![];
    for operand in operands {
        joined = join_dims(&joined, &operand.dims)?;
    }
    Some(joined)
}

pub(crate) fn join_dims(left: &[Dim], right: &[Dim]) -> Option<Vec<Dim>> {
    let rank = left.len().max(right.len());
    let dim = |dims: &[Dim], axis: usize| match (axis + dims.len()).checked_sub(rank) {
        Some(own) => dims[own].clone(),
        None => Dim::Known(1),
    };
    (0..rank).map(|axis| join_dim(dim(left, axis), dim(right, axis))).collect()
}

fn join_dim(left: Dim, right: Dim) -> Option<Dim> {
    if left == right || right.is(1) {
        return Some(left);
    }
    match (left.known(), right.known()) {
        (Some(1), _) => Some(right),
        (Some(_), Some(_)) => None,
        // The other is this or 1, which must be checked at run time.
        (Some(_), None) => Some(left),
        (None, Some(_)) => Some(right),
        (None, None) => Some(Dim::broadcast([left, right])),
    }
}

pub(crate) fn known(shape: &[i64]) -> Vec<Dim> {
    shape.iter().map(|size| Dim::Known(*size)).collect()
}

pub(crate) fn loops(range: std::ops::Range<usize>) -> Vec<Scalar> {
    range.map(Scalar::Loop).collect()
}

/// The element of an operand that broadcasts to the dimensions.
pub(crate) fn spread(operand: usize, operands: &[Type], dims: &[Dim]) -> Scalar {
    let own = &operands[operand].dims;
    let new = dims.len() - own.len();
    let at = |(axis, dim): (usize, &Dim)| stretch(dim, &dims[new + axis], Scalar::Loop(new + axis));
    Scalar::load(operand, own.iter().enumerate().map(at).collect::<Vec<_>>())
}

/// The index along a dimension that may have extent 1 where the loop has more iterations.
pub(crate) fn stretch(dim: &Dim, to: &Dim, index: Scalar) -> Scalar {
    match dim.known() {
        Some(1) => Scalar::index(0),
        Some(_) => index,
        None if dim == to => index,
        None => {
            let one = Scalar::Size(dim.clone()).equals(Scalar::index(1));
            one.select(Scalar::index(0), index)
        }
    }
}

fn reshape(operand: &Type, dims: Vec<Dim>) -> Compute {
    let mut linear = Scalar::index(0);
    for (axis, dim) in dims.iter().enumerate() {
        let scaled = if axis == 0 { linear } else { linear * Scalar::Size(dim.clone()) };
        linear = scaled + Scalar::Loop(axis);
    }
    let mut at = vec![Scalar::index(0); operand.rank()];
    for axis in (0..operand.rank()).rev() {
        let size = Scalar::Size(operand.dims[axis].clone());
        at[axis] = if axis == 0 {
            linear.clone()
        } else {
            linear.clone().binary(Binary::Rem, size.clone())
        };
        linear = linear / size;
    }
    Compute::map(dims, Scalar::load(0, at))
}
