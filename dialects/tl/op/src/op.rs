//! The ops.

use crate::binary::Binary;
use crate::reduce::Reduction;
use crate::unary::Unary;
use crate::{
    DType, EvalError, InferError, Rounding, Tensor, TensorType, binary, bitcast, broadcast, cast,
    fill, gather, matmul, reduce, reshape, rope, sequential_sum, slice, stepped_matmul, transpose,
    unary, update,
};

/// One op of the tensor level: a pure function of tensors with a single result.
///
/// Operands are positional. Shapes are static, and ranks up to any number are accepted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// `e^x`; floats.
    Exp,
    /// `max(x, 0)`; floats and integers.
    Relu,
    /// `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`; floats. The tanh approximation of
    /// Hendrycks and Gimpel, "Gaussian error linear units" (2016).
    Gelu,
    /// `1 / (1 + e^-x)`; floats.
    Sigmoid,
    /// `sqrt(x)`; floats.
    Sqrt,
    /// `1 / sqrt(x)`; floats.
    Rsqrt,
    /// The nearest number of 10 explicit bits of mantissa (TF32), ties away from zero, as
    /// `cvt.rna.tf32.f32` of PTX; `f32`.
    RoundTf32,
    /// `lhs + rhs`, broadcast as NumPy does, as are the four below; one element type.
    Add,
    /// `lhs - rhs`.
    Sub,
    /// `lhs * rhs`.
    Mul,
    /// `lhs / rhs`; integers truncate toward zero, and give 0 for a divisor of 0.
    Div,
    /// The larger of the two.
    Max,
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
    /// Sum over some axes.
    ReduceSum {
        /// The axes, strictly increasing.
        axes: Vec<usize>,
        /// Whether they stay, with one element.
        keep_dims: bool,
    },
    /// Maximum over some axes, none of them empty.
    ReduceMax {
        /// The axes, strictly increasing.
        axes: Vec<usize>,
        /// Whether they stay, with one element.
        keep_dims: bool,
    },
    /// Mean over some axes, none of them empty.
    ReduceMean {
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
}

impl Op {
    /// A tensor of `value` everywhere.
    pub fn fill(value: f64, shape: impl Into<Vec<i64>>, dtype: DType) -> Self {
        let value = if value.is_nan() { f64::NAN } else { value };
        Self::Fill { value: value.to_bits(), shape: shape.into(), dtype }
    }

    /// The op's name in the IR, without its dialect.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Exp => "exp",
            Self::Relu => "relu",
            Self::Gelu => "gelu",
            Self::Sigmoid => "sigmoid",
            Self::Sqrt => "sqrt",
            Self::Rsqrt => "rsqrt",
            Self::RoundTf32 => "round_tf32",
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::Div => "div",
            Self::Max => "max",
            Self::Cast { .. } => "cast",
            Self::Fill { .. } => "fill",
            Self::Broadcast { .. } => "broadcast",
            Self::ReduceSum { .. } => "reduce_sum",
            Self::ReduceMax { .. } => "reduce_max",
            Self::ReduceMean { .. } => "reduce_mean",
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
        }
    }

    /// Number of operands.
    pub const fn arity(&self) -> usize {
        match self {
            Self::Fill { .. } => 0,
            Self::Add | Self::Sub | Self::Mul | Self::Div | Self::Max => 2,
            Self::Matmul { .. } | Self::SteppedMatmul => 2,
            Self::Update { .. } | Self::Gather | Self::Rope => 2,
            _ => 1,
        }
    }

    /// Whether each element of the result depends on at most one element of each operand, at the
    /// same place after broadcasting.
    pub const fn is_elementwise(&self) -> bool {
        self.unary().is_some()
            || self.binary().is_some()
            || matches!(self, Self::Cast { .. } | Self::Fill { .. } | Self::Broadcast { .. })
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
        if let Some(unary) = self.unary() {
            return unary::eval(unary, operands[0], ty);
        }
        if let Some(binary) = self.binary() {
            return binary::eval(binary, operands[0], operands[1], ty);
        }
        if let Some((reduction, axes, _)) = self.reduction() {
            return reduce::eval(reduction, axes, operands[0], ty);
        }
        match self {
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
            _ => unreachable!("unary, binary and reduction ops returned above"),
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
            Self::ReduceSum { .. } | Self::ReduceMax { .. } | Self::ReduceMean { .. } => {
                count(&operands[0])
            }
            Self::SequentialSum { .. } => count(&operands[0]),
            Self::Rope => count(&result).saturating_mul(3),
            Self::Cast { .. } => count(&result),
            _ if self.unary().is_some() || self.binary().is_some() => count(&result),
            _ => 0,
        })
    }

    fn check_arity(&self, found: usize) -> Result<(), String> {
        let expected = self.arity();
        if expected == found {
            return Ok(());
        }
        Err(format!("expected {expected} operands, found {found}"))
    }

    fn infer_message(&self, operands: &[TensorType]) -> Result<TensorType, String> {
        if let Some(unary) = self.unary() {
            return unary::infer(unary, &operands[0]);
        }
        if self.binary().is_some() {
            return binary::infer(&operands[0], &operands[1]);
        }
        if let Some((reduction, axes, keep_dims)) = self.reduction() {
            return reduce::infer(reduction, axes, keep_dims, &operands[0]);
        }
        match self {
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
            _ => unreachable!("unary, binary and reduction ops returned above"),
        }
    }

    const fn unary(&self) -> Option<Unary> {
        Some(match self {
            Self::Exp => Unary::Exp,
            Self::Relu => Unary::Relu,
            Self::Gelu => Unary::Gelu,
            Self::Sigmoid => Unary::Sigmoid,
            Self::Sqrt => Unary::Sqrt,
            Self::Rsqrt => Unary::Rsqrt,
            Self::RoundTf32 => Unary::RoundTf32,
            _ => return None,
        })
    }

    const fn binary(&self) -> Option<Binary> {
        Some(match self {
            Self::Add => Binary::Add,
            Self::Sub => Binary::Sub,
            Self::Mul => Binary::Mul,
            Self::Div => Binary::Div,
            Self::Max => Binary::Max,
            _ => return None,
        })
    }

    fn reduction(&self) -> Option<(Reduction, &[usize], bool)> {
        Some(match self {
            Self::ReduceSum { axes, keep_dims } => (Reduction::Sum, axes, *keep_dims),
            Self::ReduceMax { axes, keep_dims } => (Reduction::Max, axes, *keep_dims),
            Self::ReduceMean { axes, keep_dims } => (Reduction::Mean, axes, *keep_dims),
            _ => return None,
        })
    }
}

fn count(ty: &TensorType) -> u64 {
    let dims = ty.shape.iter().map(|dim| dim.unsigned_abs());
    dims.fold(1, u64::saturating_mul)
}
