//! The ops.

use crate::{
    Binary, Comparison, Compute, Conv, DType, EvalError, InferError, Reduction, Rounding, Tensor,
    TensorType, Type, Unary, binary, bitcast, broadcast, cast, conv, fill, gather, matmul, reduce,
    reshape, rope, select, sequential_sum, slice, stepped_matmul, transpose, unary, update,
};
use std::sync::Arc;

/// One op of the tensor level: a pure function of tensors with a single result.
///
/// Operands are positional; any rank is accepted. Sizes are known, but in [`Op::Compute`], whose sizes
/// may depend on symbols: an op of symbolic operands is written as one, see [`Op::as_compute`]. Ops
/// without sizes of their own work on symbolic operands as they are, see [`Op::infer_symbolic`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// A function of every element.
    Unary(Unary),
    /// A function of every pair of elements, broadcast as NumPy does, as are the two below; one
    /// element type.
    Binary(Binary),
    /// A comparison of every pair of elements; the result is `bool`.
    Compare(Comparison),
    /// Operands `condition, yes, no`: `yes` where the `bool` condition holds, else `no`.
    Select,
    /// Conversion of every element by value; see [`Rounding`] and the table in `cast.rs`.
    Cast {
        /// Element type of the result.
        to: DType,
        /// How a float becomes an integer.
        rounding: Rounding,
    },
    /// No operand: a tensor with one value everywhere. Make it with [`Op::fill`].
    Fill {
        /// Bits of the `f64` value, before it is rounded to `dtype`; NaN is canonical.
        value: u64,
        /// Shape of the result.
        shape: Vec<i64>,
        /// Element type of the result.
        dtype: DType,
    },
    /// The operand repeated along new or unit dimensions, aligned at the last one (NumPy).
    Broadcast {
        /// Shape of the result.
        shape: Vec<i64>,
    },
    /// What some axes are reduced to.
    Reduce {
        /// How.
        kind: Reduction,
        /// The axes, strictly increasing.
        axes: Vec<usize>,
        /// Whether they stay, with one element.
        keep_dims: bool,
    },
    /// Sum along an axis, which goes: from zero, in order, each addition rounded to the element
    /// type; floats.
    SequentialSum {
        /// The axis.
        axis: usize,
    },
    /// Matrix product of `f16` matrices, batched as `Matmul` is, with an `f16` accumulator: the
    /// products of every [`STEP`](crate::STEP) terms are summed in `f32`, from zero and in order,
    /// and added to the accumulator in `f32`, which is then rounded.
    SteppedMatmul,
    /// Matrix product over the last two dimensions; the dimensions before them broadcast (NumPy's
    /// `matmul`, of ranks from 2).
    Matmul {
        /// The last two dimensions of the first operand are `[k, m]`, not `[m, k]`.
        transpose_lhs: bool,
        /// The last two dimensions of the second operand are `[n, k]`, not `[k, n]`.
        transpose_rhs: bool,
    },
    /// Reordered dimensions: dimension `i` of the result is dimension `permutation[i]` of the
    /// operand (NumPy).
    Transpose {
        /// A permutation of the axes.
        permutation: Vec<usize>,
    },
    /// The same elements in row-major order under another shape.
    Reshape {
        /// Shape of the result.
        shape: Vec<i64>,
    },
    /// A box of the operand.
    Slice {
        /// First index along each dimension.
        offsets: Vec<i64>,
        /// Elements along each dimension.
        sizes: Vec<i64>,
    },
    /// Operands `dest, source`: `dest` with the box of `source`'s shape at `offsets` replaced.
    Update {
        /// First index along each dimension.
        offsets: Vec<i64>,
    },
    /// Operands `table, index`: rows of the 2-D table by an `i32` index tensor of any rank; an
    /// index below zero counts from the end. The result has the shape `index.shape ++ [columns]`.
    Gather,
    /// Operands `input, other`: rotary embedding of adjacent pairs. `other` holds `(cos, sin)`
    /// pairs in its last dimension and broadcasts to `input`:
    /// `out[2i] = x[2i] c - x[2i+1] s`, `out[2i+1] = x[2i] s + x[2i+1] c`; floats.
    Rope,
    /// The same bytes as another type of the same size in bytes.
    Bitcast {
        /// Element type of the result.
        to: DType,
        /// Shape of the result.
        shape: Vec<i64>,
    },
    /// Operands `x, w`: correlation of `x[batch, channels, ...]` with the filters
    /// `w[filters, channels / groups, ...]`; see [`Conv`].
    Conv(Conv),
    /// Loops around an expression: everything without an op of its own.
    Compute(Arc<Compute>),
}

impl Op {
    /// Loops around an expression.
    pub fn compute(compute: Compute) -> Self {
        Self::Compute(Arc::new(compute))
    }

    /// A tensor of `value` everywhere.
    pub fn fill(value: f64, shape: impl Into<Vec<i64>>, dtype: DType) -> Self {
        let value = if value.is_nan() { f64::NAN } else { value };
        Self::Fill { value: value.to_bits(), shape: shape.into(), dtype }
    }

    /// The op's name in the IR, without its dialect.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unary(function) => function.name(),
            Self::Binary(function) => function.name(),
            Self::Compare(comparison) => comparison.name(),
            Self::Select => "select",
            Self::Cast { .. } => "cast",
            Self::Fill { .. } => "fill",
            Self::Broadcast { .. } => "broadcast",
            Self::Reduce { kind, .. } => kind.name(),
            Self::SequentialSum { .. } => "sequential_sum",
            Self::SteppedMatmul => "stepped_matmul",
            Self::Matmul { .. } => "matmul",
            Self::Transpose { .. } => "transpose",
            Self::Reshape { .. } => "reshape",
            Self::Slice { .. } => "slice",
            Self::Update { .. } => "update",
            Self::Gather => "gather",
            Self::Rope => "rope",
            Self::Bitcast { .. } => "bitcast",
            Self::Conv(_) => "conv",
            Self::Compute(_) => "compute",
        }
    }

    /// Number of operands; `None` when it may be any, which is so of [`Op::Compute`].
    pub const fn arity(&self) -> Option<usize> {
        Some(match self {
            Self::Compute(_) => return None,
            Self::Fill { .. } => 0,
            Self::Binary(_) | Self::Compare(_) | Self::Conv(_) => 2,
            Self::Matmul { .. } | Self::SteppedMatmul => 2,
            Self::Update { .. } | Self::Gather | Self::Rope => 2,
            Self::Select => 3,
            _ => 1,
        })
    }

    /// Whether each element of the result depends on at most one element of each operand, at the
    /// same place after broadcasting.
    pub const fn is_elementwise(&self) -> bool {
        matches!(
            self,
            Self::Unary(_)
                | Self::Binary(_)
                | Self::Compare(_)
                | Self::Select
                | Self::Cast { .. }
                | Self::Fill { .. }
                | Self::Broadcast { .. }
        )
    }

    /// The type of the result.
    ///
    /// # Errors
    /// What was expected of the operands and what was found.
    pub fn infer(&self, operands: &[TensorType]) -> Result<TensorType, InferError> {
        let result = self.check_arity(operands.len()).and_then(|()| self.infer_message(operands));
        result.map_err(|message| InferError { op: self.name(), message })
    }

    /// The value of the result: the meaning of the op.
    ///
    /// # Errors
    /// As [`Op::infer`]; a result that cannot be allocated; a gather
    /// index out of range.
    pub fn eval(&self, operands: &[&Tensor]) -> Result<Tensor, EvalError> {
        let types: Vec<_> = operands.iter().map(|operand| operand.ty().clone()).collect();
        let ty = self.infer(&types)?;
        match self {
            Self::Unary(function) => unary::eval(*function, operands[0], ty),
            Self::Binary(function) => binary::eval(*function, operands[0], operands[1], ty),
            Self::Compare(comparison) => binary::compare(*comparison, operands[0], operands[1], ty),
            Self::Select => select::eval([operands[0], operands[1], operands[2]], ty),
            Self::Reduce { kind, axes, .. } => reduce::eval(*kind, axes, operands[0], ty),
            Self::Cast { rounding, .. } => cast::eval(*rounding, operands[0], ty),
            Self::Fill { value, .. } => fill::eval(f64::from_bits(*value), ty),
            Self::Broadcast { .. } => broadcast::eval(operands[0], ty),
            Self::Matmul { transpose_lhs, transpose_rhs } => {
                let transposed = [*transpose_lhs, *transpose_rhs];
                matmul::eval([operands[0], operands[1]], transposed, ty)
            }
            Self::SequentialSum { axis } => sequential_sum::eval(*axis, operands[0], ty),
            Self::SteppedMatmul => stepped_matmul::eval([operands[0], operands[1]], ty),
            Self::Transpose { permutation } => transpose::eval(permutation, operands[0], ty),
            Self::Slice { offsets, .. } => slice::eval(offsets, operands[0], ty),
            Self::Update { offsets } => update::eval(offsets, operands[0], operands[1]),
            Self::Gather => gather::eval(operands[0], operands[1], ty),
            Self::Rope => rope::eval(operands[0], operands[1], ty),
            Self::Reshape { .. } | Self::Bitcast { .. } => {
                Ok(Tensor::from_bytes(ty, operands[0].bytes())?)
            }
            Self::Conv(conv) => conv::eval(conv, operands),
            Self::Compute(compute) => compute.eval(operands),
        }
    }

    /// Arithmetic operations on these operands: one per element of an elementwise result, of a
    /// reduced operand, and two per multiply-accumulate; six per rotated pair; none for data
    /// movement.
    ///
    /// # Errors
    /// As [`Op::infer`].
    pub fn flops(&self, operands: &[TensorType]) -> Result<u64, InferError> {
        let result = self.infer(operands)?;
        Ok(match self {
            Self::Matmul { transpose_lhs, .. } => {
                let contracted = matmul::contracted(&operands[0], *transpose_lhs);
                count(&result).saturating_mul(contracted.unsigned_abs()).saturating_mul(2)
            }
            Self::SteppedMatmul => {
                let contracted = matmul::contracted(&operands[0], false);
                count(&result).saturating_mul(contracted.unsigned_abs()).saturating_mul(2)
            }
            Self::Reduce { .. } | Self::SequentialSum { .. } => count(&operands[0]),
            Self::Conv(_) => {
                let taps = count(&operands[1]) / operands[1].shape[0].unsigned_abs().max(1);
                count(&result).saturating_mul(taps).saturating_mul(2)
            }
            Self::Compute(compute) => compute.flops(),
            Self::Rope => count(&result).saturating_mul(3),
            Self::Unary(_) | Self::Binary(_) | Self::Compare(_) | Self::Select => count(&result),
            Self::Cast { .. } => count(&result),
            _ => 0,
        })
    }

    fn check_arity(&self, found: usize) -> Result<(), String> {
        let Some(expected) = self.arity().filter(|expected| *expected != found) else {
            return Ok(());
        };
        Err(format!("expected {expected} operands, found {found}"))
    }

    fn infer_message(&self, operands: &[TensorType]) -> Result<TensorType, String> {
        match self {
            Self::Unary(function) => unary::infer(*function, &operands[0]),
            Self::Binary(function) => binary::infer(*function, &operands[0], &operands[1]),
            Self::Compare(_) => binary::infer_comparison(&operands[0], &operands[1]),
            Self::Select => select::infer([&operands[0], &operands[1], &operands[2]]),
            Self::Reduce { kind, axes, keep_dims } => {
                reduce::infer(*kind, axes, *keep_dims, &operands[0])
            }
            Self::Cast { to, .. } => Ok(TensorType::new(*to, operands[0].shape.clone())),
            Self::Fill { shape, dtype, .. } => fill::infer(shape, *dtype),
            Self::Broadcast { shape } => broadcast::infer(shape, &operands[0]),
            Self::Matmul { transpose_lhs, transpose_rhs } => {
                matmul::infer([&operands[0], &operands[1]], [*transpose_lhs, *transpose_rhs])
            }
            Self::SequentialSum { axis } => sequential_sum::infer(*axis, &operands[0]),
            Self::SteppedMatmul => stepped_matmul::infer([&operands[0], &operands[1]]),
            Self::Transpose { permutation } => transpose::infer(permutation, &operands[0]),
            Self::Reshape { shape } => reshape::infer(shape, &operands[0]),
            Self::Slice { offsets, sizes } => slice::infer(offsets, sizes, &operands[0]),
            Self::Update { offsets } => update::infer(offsets, &operands[0], &operands[1]),
            Self::Gather => gather::infer(&operands[0], &operands[1]),
            Self::Rope => rope::infer(&operands[0], &operands[1]),
            Self::Bitcast { to, shape } => bitcast::infer(*to, shape, &operands[0]),
            Self::Conv(_) | Self::Compute(_) => {
                let types: Vec<_> = operands.iter().cloned().map(Type::from).collect();
                let ty = self.infer_symbolic(&types).map_err(|error| error.message)?;
                ty.known().ok_or_else(|| format!("expected known sizes, found {ty}"))
            }
        }
    }
}

fn count(ty: &TensorType) -> u64 {
    let dims = ty.shape.iter().map(|dim| dim.unsigned_abs());
    dims.fold(1, u64::saturating_mul)
}
