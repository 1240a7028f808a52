//! Ops as loops around an expression.
//!
//! This is how an op works on operands whose sizes depend on symbols, and what a backend does that
//! has no schedule for it. `tests/laws.rs` holds that both ways of evaluating an op agree.

use crate::compute::{Combine, Compute};
use crate::function::{Binary, Comparison};
use crate::scalar::Scalar;
use crate::{DType, Dim, InferError, Op, Reduction, Rounding, TensorType, Type};
use std::sync::Arc;

impl Op {
    /// The op as loops around an expression; `None` for ops whose order is part of their meaning,
    /// for bit casts, and where operands have other ranks or types than the op takes.
    ///
    /// Where two sizes must agree and it is not known whether they do, the result takes it that they
    /// do; a caller that may be given others checks them when the program runs.
    pub fn as_compute(&self, operands: &[Type]) -> Option<Compute> {
        if self.arity().is_some_and(|arity| arity != operands.len()) {
            return None;
        }
        let identity = |ty: &Type| loops(0..ty.rank());
        match self {
            Self::Compute(compute) => Some((**compute).clone()),
            Self::Conv(conv) => conv.compute(operands).ok(),
            Self::Unary(function) => {
                let body = Scalar::load(0, identity(&operands[0])).unary(*function);
                Some(Compute::map(operands[0].dims.clone(), body))
            }
            Self::Cast { to, rounding } => {
                let load = Scalar::load(0, identity(&operands[0]));
                let body = Scalar::Cast(*to, *rounding, Arc::new(load));
                Some(Compute::map(operands[0].dims.clone(), body))
            }
            Self::Binary(function) => {
                let dims = join(operands)?;
                let body = spread(0, operands, &dims).binary(*function, spread(1, operands, &dims));
                Some(Compute::map(dims, body))
            }
            Self::Compare(comparison) => {
                let dims = join(operands)?;
                let (x, y) = (spread(0, operands, &dims), spread(1, operands, &dims));
                Some(Compute::map(dims, x.compare(*comparison, y)))
            }
            Self::Select => {
                let dims = join(operands)?;
                let [condition, yes, no] = [0, 1, 2].map(|index| spread(index, operands, &dims));
                Some(Compute::map(dims, condition.select(yes, no)))
            }
            Self::Fill { value, shape, dtype } => {
                let value = Scalar::Float(*value, DType::F64);
                let body = Scalar::Cast(*dtype, Rounding::TowardZero, Arc::new(value));
                Some(Compute::map(known(shape), body))
            }
            Self::Broadcast { shape } => {
                let dims = known(shape);
                let body = spread(0, operands, &dims);
                Some(Compute::map(dims, body))
            }
            Self::Reduce { kind, axes, keep_dims } => reduce(*kind, axes, *keep_dims, &operands[0]),
            Self::Matmul { transpose_lhs, transpose_rhs } => {
                matmul([&operands[0], &operands[1]], [*transpose_lhs, *transpose_rhs])
            }
            Self::Transpose { permutation } => transpose(permutation, &operands[0]),
            Self::Reshape { shape } => Some(reshape(&operands[0], known(shape))),
            Self::Slice { offsets, sizes } => {
                let at =
                    |(axis, offset): (usize, &i64)| Scalar::Loop(axis) + Scalar::index(*offset);
                let at: Vec<_> = offsets.iter().enumerate().map(at).collect();
                Some(Compute::map(known(sizes), Scalar::load(0, at)))
            }
            Self::Update { offsets } => update(offsets, operands),
            Self::Gather => gather(operands),
            Self::Rope
            | Self::Bitcast { .. }
            | Self::SequentialSum { .. }
            | Self::SteppedMatmul => None,
        }
    }

    /// The type of the result, of operands whose sizes may depend on symbols.
    ///
    /// # Errors
    /// As [`Op::infer`]; an op that does not work on such operands.
    pub fn infer_symbolic(&self, operands: &[Type]) -> Result<Type, InferError> {
        let result = match self {
            Self::Compute(compute) => compute.infer(operands),
            Self::Conv(conv) => conv.compute(operands).and_then(|compute| compute.infer(operands)),
            _ => {
                let known: Option<Vec<TensorType>> = operands.iter().map(Type::known).collect();
                if let Some(known) = known {
                    return self.infer(&known).map(Type::from);
                }
                let compute = self.as_compute(operands);
                let compute = compute.ok_or_else(|| "expected operands of known sizes".to_owned());
                compute.and_then(|compute| compute.infer(operands))
            }
        };
        result.map_err(|message| InferError { op: self.name(), message })
    }
}

impl Compute {
    /// A reshape: the same elements in row-major order under other dimensions, which have as many.
    pub fn reshape(operand: &Type, dims: impl Into<Vec<Dim>>) -> Self {
        reshape(operand, dims.into())
    }

    /// The operand repeated along new or unit dimensions, aligned at the last one.
    pub fn broadcast(operand: &Type, dims: impl Into<Vec<Dim>>) -> Self {
        let dims = dims.into();
        let body = spread(0, std::slice::from_ref(operand), &dims);
        Self::map(dims, body)
    }

    /// Operations on these sizes, one per function applied; 0 where sizes are unknown.
    pub fn flops(&self) -> u64 {
        let mut functions = u64::from(self.reduction.is_some());
        self.body.walk(&mut |scalar| {
            let counts = matches!(scalar, Scalar::Unary(..) | Scalar::Binary(..));
            functions += u64::from(counts);
        });
        let over = self.reduction.iter().flat_map(|reduction| &reduction.dims);
        let count = Dim::product(self.dims.iter().chain(over)).known().unwrap_or(0);
        functions.saturating_mul(count.unsigned_abs())
    }
}

/// The extents that operands broadcast to; `None` where known sizes do not fit.
pub fn join(operands: &[Type]) -> Option<Vec<Dim>> {
    let mut joined: Vec<Dim> = vec![];
    for operand in operands {
        joined = join_dims(&joined, &operand.dims)?;
    }
    Some(joined)
}

fn join_dims(left: &[Dim], right: &[Dim]) -> Option<Vec<Dim>> {
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
        // The other is this or 1, which must be checked when the program runs.
        (Some(_), None) => Some(left),
        (None, Some(_)) => Some(right),
        (None, None) => Some(Dim::if_equal(&left, &1.into(), &right, &left)),
    }
}

fn known(shape: &[i64]) -> Vec<Dim> {
    shape.iter().map(|size| Dim::Known(*size)).collect()
}

fn loops(range: std::ops::Range<usize>) -> Vec<Scalar> {
    range.map(Scalar::Loop).collect()
}

/// The element of an operand that broadcasts to the dimensions.
fn spread(operand: usize, operands: &[Type], dims: &[Dim]) -> Scalar {
    let own = &operands[operand].dims;
    let new = dims.len() - own.len();
    let at = |(axis, dim): (usize, &Dim)| stretch(dim, &dims[new + axis], Scalar::Loop(new + axis));
    Scalar::load(operand, own.iter().enumerate().map(at).collect::<Vec<_>>())
}

/// The index along a dimension that may have one element where the loop has more.
fn stretch(dim: &Dim, to: &Dim, index: Scalar) -> Scalar {
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

fn reduce(kind: Reduction, axes: &[usize], keep_dims: bool, operand: &Type) -> Option<Compute> {
    if axes.iter().any(|axis| *axis >= operand.rank()) {
        return None;
    }
    let mut dims = vec![];
    let mut at = vec![Scalar::index(0); operand.rank()];
    for (axis, dim) in operand.dims.iter().enumerate() {
        if !axes.contains(&axis) {
            at[axis] = Scalar::Loop(dims.len());
            dims.push(dim.clone());
        } else if keep_dims {
            dims.push(1.into());
        }
    }
    for (position, axis) in axes.iter().enumerate() {
        at[*axis] = Scalar::Loop(dims.len() + position);
    }
    let over: Vec<_> = axes.iter().map(|axis| operand.dims[*axis].clone()).collect();
    let load = Scalar::load(0, at);
    let combine = match kind {
        Reduction::Sum => Combine::Sum,
        Reduction::Product => Combine::Product,
        Reduction::Max => Combine::Max,
        Reduction::Min => Combine::Min,
        // A mean rounds once, after the division, which one reduction cannot say.
        Reduction::Mean => return None,
    };
    Some(Compute::reduce(dims, combine, over, load))
}

fn matmul(operands: [&Type; 2], transposed: [bool; 2]) -> Option<Compute> {
    let [lhs, rhs] = operands;
    if lhs.rank() < 2 || rhs.rank() < 2 {
        return None;
    }
    let batch = |ty: &Type| ty.dims[..ty.rank() - 2].to_vec();
    let mut dims = join_dims(&batch(lhs), &batch(rhs))?;
    let outer = dims.len();
    let matrix = |ty: &Type, transposed: bool| {
        let [rows, columns] = [ty.dims[ty.rank() - 2].clone(), ty.dims[ty.rank() - 1].clone()];
        if transposed { [columns, rows] } else { [rows, columns] }
    };
    let ([rows, depth], [_, columns]) = (matrix(lhs, transposed[0]), matrix(rhs, transposed[1]));
    dims.extend([rows, columns]);
    let side = |index: usize, ty: &Type, pair: [usize; 2]| {
        let own = ty.rank() - 2;
        let at = |axis: usize| {
            let to = outer - own + axis;
            stretch(&ty.dims[axis], &dims[to], Scalar::Loop(to))
        };
        let pair = if transposed[index] { [pair[1], pair[0]] } else { pair };
        let at: Vec<_> = (0..own).map(at).chain(pair.map(Scalar::Loop)).collect();
        Scalar::load(index, at)
    };
    let inner = outer + 2;
    let body = side(0, lhs, [outer, inner]) * side(1, rhs, [inner, outer + 1]);
    Some(Compute::reduce(dims, Combine::Sum, [depth], body))
}

fn transpose(permutation: &[usize], operand: &Type) -> Option<Compute> {
    let dims: Option<Vec<_>> =
        permutation.iter().map(|axis| operand.dims.get(*axis).cloned()).collect();
    let at: Option<Vec<_>> = (0..operand.rank())
        .map(|axis| permutation.iter().position(|from| *from == axis).map(Scalar::Loop))
        .collect();
    Some(Compute::map(dims?, Scalar::load(0, at?)))
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

fn update(offsets: &[i64], operands: &[Type]) -> Option<Compute> {
    let [dest, source] = operands else { return None };
    if offsets.len() != dest.rank() || source.rank() != dest.rank() {
        return None;
    }
    let shifted = |axis: usize| Scalar::Loop(axis) - Scalar::index(offsets[axis]);
    let old = Scalar::load(0, loops(0..dest.rank()));
    let new = Scalar::load(1, (0..dest.rank()).map(shifted).collect::<Vec<_>>());
    let inside = (0..dest.rank()).map(|axis| {
        let size = Scalar::Size(source.dims[axis].clone());
        shifted(axis).ge(Scalar::index(0)).and(shifted(axis).lt(size))
    });
    let body = match inside.reduce(Scalar::and) {
        Some(inside) => inside.select(new, old),
        None => new,
    };
    Some(Compute::map(dest.dims.clone(), body))
}

fn gather(operands: &[Type]) -> Option<Compute> {
    let [table, index] = operands else { return None };
    if table.rank() != 2 {
        return None;
    }
    let row = Scalar::load(1, loops(0..index.rank())).cast(DType::I64);
    let end = row.clone() + Scalar::Size(table.dims[0].clone());
    let wrapped = row.clone().compare(Comparison::Lt, Scalar::index(0)).select(end, row);
    let mut dims = index.dims.clone();
    dims.push(table.dims[1].clone());
    Some(Compute::map(dims, Scalar::load(0, [wrapped, Scalar::Loop(index.rank())])))
}
