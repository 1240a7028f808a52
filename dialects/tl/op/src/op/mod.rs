//! The ops.
//!
//! An op is defined in the file of its name: its [`Row`], type rule, evaluator, loops and
//! cost. The list below defines the enum. Functions of numbers, comparisons and
//! reductions are rows of a table each.

mod attribute;
mod binary;
mod bitcast;
mod block_scaled_matmul;
mod broadcast;
mod cast;
mod compare;
mod compute;
mod conv;
mod family;
mod fill;
mod gather;
mod matmul;
mod ods;
mod open_rows;
mod reduce;
mod reshape;
mod rope;
mod row;
mod select;
mod sequential_sum;
mod slice;
mod stepped_matmul;
mod transpose;
mod unary;
mod update;

pub use attribute::{Attribute, AttributeKind, Attributes, Presence, Value};
pub use binary::Binary;
pub(crate) use block_scaled_matmul::agreement as block_scaled_sizes;
pub use broadcast::broadcast_shapes;
pub use cast::Rounding;
pub use compare::Comparison;
pub use conv::Conv;
pub use ods::ods;
pub use reduce::Reduction;
pub use row::{Family, Law, Operands, Row};
pub use stepped_matmul::STEP;
pub use unary::Unary;

use crate::{Compute, DType, EvalError, InferError, Tensor, TensorType, Type};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// Defines [`Op`] from a list of ops, each with its parameters and its module; a family also names the
/// row of its table. The functions of a module take the operands, then the parameters.
macro_rules! ops {
    ($(#[$enum_meta:meta])* pub enum Op {
        $($(#[$meta:meta])*
        $variant:ident
        $(($inner:ident: $held:ty))?
        $({ $($(#[$about:meta])* $field:ident: $ty:ty),* $(,)? })?
        in $module:ident $([$row:expr])?,)*
    }) => {
        $(#[$enum_meta])*
        pub enum Op {
            $($(#[$meta])* $variant $(($held))? $({ $($(#[$about])* $field: $ty),* })?,)*
        }

        impl Op {
            /// The definition of the op as data.
            #[allow(unused_variables)]
            pub fn row(&self) -> &'static Row {
                match self {
                    $(Self::$variant $(($inner))? $({ $($field),* })? => row_of!($module $([$row])?),)*
                }
            }

            /// The rows of all ops.
            pub fn rows() -> impl Iterator<Item = &'static Row> {
                let rows: Vec<Vec<&'static Row>> = vec![$(rows_of!($module $([$row])?)),*];
                rows.into_iter().flatten()
            }

            fn infer_message(&self, operands: &[TensorType]) -> Result<TensorType, String> {
                match self {
                    $(Self::$variant $(($inner))? $({ $($field),* })? => {
                        $module::infer(operands $(, $inner)? $($(, $field)*)?)
                    })*
                }
            }

            fn eval_as(&self, operands: &[&Tensor], ty: TensorType) -> Result<Tensor, EvalError> {
                match self {
                    $(Self::$variant $(($inner))? $({ $($field),* })? => {
                        $module::eval(operands, ty $(, $inner)? $($(, $field)*)?)
                    })*
                }
            }

            fn loops(&self, operands: &[Type]) -> Result<Compute, String> {
                match self {
                    $(Self::$variant $(($inner))? $({ $($field),* })? => {
                        $module::compute(operands $(, $inner)? $($(, $field)*)?)
                    })*
                }
            }

            fn flops_of(&self, operands: &[TensorType], result: &TensorType) -> u64 {
                match self {
                    $(Self::$variant $(($inner))? $({ $($field),* })? => {
                        $module::flops(operands, result $(, $inner)? $($(, $field)*)?)
                    })*
                }
            }
        }
    };
}

macro_rules! row_of {
    ($module:ident) => {
        &$module::ROW
    };
    ($module:ident [$row:expr]) => {
        $row
    };
}

macro_rules! rows_of {
    ($module:ident) => {
        vec![&$module::ROW]
    };
    ($module:ident [$row:expr]) => {
        $module::rows().collect()
    };
}

ops! {
    /// One op of the tensor level: a pure function of tensors with a single result.
    ///
    /// Operands are positional; any rank is accepted. Sizes are static, except in [`Op::Compute`],
    /// whose sizes may depend on symbols: an op on symbolic operands is written as one, see
    /// [`Op::as_compute`], unless it has [rows](Op::open_rows). Ops without sizes of their own accept symbolic operands
    /// directly, see [`Op::infer_symbolic`].
    #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Op {
        /// A function applied to every element.
        Unary(function: Unary) in unary [function.row()],
        /// A function applied to every pair of elements of one element type. This op and the two below
        /// broadcast as in NumPy.
        Binary(function: Binary) in binary [function.row()],
        /// A comparison of every pair of elements; the result is `bool`.
        Compare(comparison: Comparison) in compare [comparison.row()],
        /// Operands `condition, yes, no`: `yes` if the `bool` condition holds, otherwise `no`.
        Select in select,
        /// Conversion of every element by value; see [`Rounding`] and the table in `cast.rs`.
        Cast {
            /// Element type of the result.
            to: DType,
            /// How a float is converted to an integer.
            rounding: Rounding,
        } in cast,
        /// No operand: a tensor filled with one value. Create it with [`Op::fill`].
        Fill {
            /// Bits of the `f64` value, before it is rounded to `dtype`; NaN is canonical.
            value: u64,
            /// Shape of the result.
            shape: Vec<i64>,
            /// Element type of the result.
            dtype: DType,
        } in fill,
        /// The operand repeated along new or unit dimensions, aligned at the last dimension (NumPy).
        Broadcast {
            /// Shape of the result.
            shape: Vec<i64>,
        } in broadcast,
        /// A reduction over some axes.
        Reduce {
            /// The kind of reduction.
            kind: Reduction,
            /// The axes, strictly increasing.
            axes: Vec<usize>,
            /// Whether the axes are kept, with extent 1.
            keep_dims: bool,
        } in reduce [kind.row()],
        /// Sum along an axis, which is removed: from zero, in order, each addition rounded to the
        /// element type; floats.
        SequentialSum {
            /// The axis.
            axis: usize,
        } in sequential_sum,
        /// Matrix product of `f16` matrices, batched like `Matmul`, with an `f16` accumulator: the
        /// products of every [`STEP`](crate::STEP) terms are summed in `f32`, from zero and in order,
        /// and added to the accumulator in `f32`, which is then rounded.
        SteppedMatmul in stepped_matmul,
        /// Matrix product over the last two dimensions; the dimensions before them broadcast (NumPy's
        /// `matmul`, for ranks of at least 2).
        Matmul {
            /// Whether the last two dimensions of the first operand are `[k, m]`, not `[m, k]`.
            transpose_lhs: bool,
            /// Whether the last two dimensions of the second operand are `[n, k]`, not `[k, n]`.
            transpose_rhs: bool,
        } in matmul,
        /// Operands `lhs, codes, scales` and optionally `zeros`: product of `f32` over the last dimension of `lhs` with a
        /// matrix of small integers, of which those of a block along the depth share a scale and a zero point. If `lhs` is
        /// `i8`, the last operand has the scales of the blocks of its rows.
        BlockScaledMatmul {
            /// Bits of an integer: 2, 4 or 8.
            bits: usize,
            /// Integers of a block, a multiple of 32 bits.
            block: usize,
        } in block_scaled_matmul,
        /// Reordered dimensions: dimension `i` of the result is dimension `permutation[i]` of the
        /// operand (NumPy).
        Transpose {
            /// A permutation of the axes.
            permutation: Vec<usize>,
        } in transpose,
        /// The same elements in row-major order with another shape.
        Reshape {
            /// Shape of the result.
            shape: Vec<i64>,
        } in reshape,
        /// A box of the operand.
        Slice {
            /// First index along each dimension.
            offsets: Vec<i64>,
            /// Number of elements along each dimension.
            sizes: Vec<i64>,
        } in slice,
        /// Operands `dest, source`: `dest` with the box of `source`'s shape at `offsets` replaced by
        /// `source`.
        Update {
            /// First index along each dimension.
            offsets: Vec<i64>,
        } in update,
        /// Operands `table, index`: rows of the 2-D table by an `i32` index tensor of any rank; a
        /// negative index counts from the end. The result has the shape `index.shape ++ [columns]`.
        Gather in gather,
        /// Operands `input, other`: rotary embedding of adjacent pairs. `other` holds `(cos, sin)`
        /// pairs in its last dimension and broadcasts to `input`:
        /// `out[2i] = x[2i] c - x[2i+1] s`, `out[2i+1] = x[2i] s + x[2i+1] c`; floats.
        Rope in rope,
        /// Reinterprets the bytes as another type with the same size in bytes.
        Bitcast {
            /// Element type of the result.
            to: DType,
            /// Shape of the result.
            shape: Vec<i64>,
        } in bitcast,
        /// Operands `x, w`: correlation of `x[batch, channels, ...]` with the filters
        /// `w[filters, channels / groups, ...]`; see [`Conv`].
        Conv(conv: Conv) in conv,
        /// Loops around an expression: everything that has no op of its own.
        Compute(compute: Arc<Compute>) in compute,
    }
}

static ROWS: LazyLock<BTreeMap<&'static str, &'static Row>> =
    LazyLock::new(|| Op::rows().map(|row| (row.name, row)).collect());

impl Row {
    /// The row with a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ROWS.get(name).copied()
    }
}

impl Op {
    /// Loops around an expression.
    pub fn compute(compute: Compute) -> Self {
        Self::Compute(Arc::new(compute))
    }

    /// A tensor filled with `value`.
    pub fn fill(value: f64, shape: impl Into<Vec<i64>>, dtype: DType) -> Self {
        let value = if value.is_nan() { f64::NAN } else { value };
        Self::Fill { value: value.to_bits(), shape: shape.into(), dtype }
    }

    /// The op's name in the IR, without its dialect.
    pub fn name(&self) -> &'static str {
        self.row().name
    }

    /// Number of operands; `None` if variadic, as in [`Op::Compute`].
    pub fn arity(&self) -> Option<usize> {
        self.row().arity()
    }

    /// What it computes, as in the name of a kernel; `None` if it only moves elements by loops around an expression.
    pub fn summary(&self) -> Option<String> {
        match self {
            Self::Compute(compute) => compute.summary(),
            _ => Some(self.name().to_owned()),
        }
    }

    /// Its role in fusion.
    pub fn family(&self) -> Family {
        self.row().family
    }

    /// Whether a kernel of the op has a schedule in vectors; otherwise it is computed by loops.
    pub fn has_schedule(&self, operands: &[&TensorType]) -> bool {
        self.family() != Family::Loops && (self.row().has_schedule)(self, operands)
    }

    /// Whether each element of the result depends on at most one element of each operand, at the
    /// same position after broadcasting.
    pub fn is_elementwise(&self) -> bool {
        self.family() == Family::Elementwise
    }

    /// The number of products that each element of a matrix product adds; `None` for other ops.
    pub fn depth(&self, operands: &[&TensorType]) -> Option<i64> {
        let Self::Matmul { transpose_lhs, .. } = self else { return None };
        let lhs = operands.first()?;
        let axis = lhs.rank().checked_sub(if *transpose_lhs { 2 } else { 1 })?;
        lhs.shape.get(axis).copied()
    }

    /// The attributes that are written for the op, in the order of its row.
    pub fn attributes(&self) -> Vec<(&'static str, Value)> {
        let row = self.row();
        let mut attributes = (row.write)(self);
        let is_default = |name: &str, value: &Value| {
            let known = row.attributes.iter().find(|attribute| attribute.name == name);
            known.is_some_and(|attribute| attribute.presence == Presence::FalseByDefault)
                && *value == Value::Bool(false)
        };
        attributes.retain(|(name, value)| !is_default(name, value));
        attributes
    }

    /// The type of the result.
    ///
    /// # Errors
    /// If the operands are not as expected.
    pub fn infer(&self, operands: &[TensorType]) -> Result<TensorType, InferError> {
        let result = self.check_arity(operands.len()).and_then(|()| self.infer_message(operands));
        result.map_err(|message| InferError { op: self.name(), message })
    }

    /// The type of the result for operands whose sizes may depend on symbols.
    ///
    /// # Errors
    /// As [`Op::infer`]; if the op does not support such operands.
    pub fn infer_symbolic(&self, operands: &[Type]) -> Result<Type, InferError> {
        // Sizes of the op itself may depend on symbols even if those of its operands are known.
        if self.family() != Family::Loops {
            let known: Option<Vec<TensorType>> = operands.iter().map(Type::known).collect();
            if let Some(known) = known {
                return self.infer(&known).map(Type::from);
            }
        }
        let result = self.check_arity(operands.len()).and_then(|()| self.loops(operands));
        let result = result.and_then(|compute| compute.infer(operands));
        result.map_err(|message| InferError { op: self.name(), message })
    }

    /// The op as loops around an expression; `None` for ops with a prescribed order,
    /// for bit casts, and for operands of ranks or types that the op does not accept.
    ///
    /// If two sizes must agree and it is not known whether they do, the result assumes it;
    /// callers must check this at run time where it may not hold.
    pub fn as_compute(&self, operands: &[Type]) -> Option<Compute> {
        self.check_arity(operands.len()).and_then(|()| self.loops(operands)).ok()
    }

    /// The value of the result, which defines the op.
    ///
    /// # Errors
    /// As [`Op::infer`]; if a result cannot be allocated or a gather index is out of range.
    pub fn eval(&self, operands: &[&Tensor]) -> Result<Tensor, EvalError> {
        let types: Vec<_> = operands.iter().map(|operand| operand.ty().clone()).collect();
        let ty = self.infer(&types)?;
        crate::values::expect_memory(operands, std::slice::from_ref(&ty))?;
        self.eval_as(operands, ty)
    }

    /// Number of arithmetic operations: one per element of an elementwise result or of a
    /// reduced operand, two per multiply-accumulate, six per rotated pair, and zero for data
    /// movement.
    ///
    /// # Errors
    /// As [`Op::infer`].
    pub fn flops(&self, operands: &[TensorType]) -> Result<u64, InferError> {
        let result = self.infer(operands)?;
        Ok(self.flops_of(operands, &result))
    }

    fn check_arity(&self, found: usize) -> Result<(), String> {
        let Some(expected) = self.arity().filter(|expected| *expected != found) else {
            return Ok(());
        };
        Err(format!("expected {expected} operands, found {found}"))
    }
}

/// Number of elements.
fn count(ty: &TensorType) -> u64 {
    let dims = ty.shape.iter().map(|dim| dim.unsigned_abs());
    dims.fold(1, u64::saturating_mul)
}

/// The error for ops with a prescribed order or that only move bytes.
fn no_loops() -> Result<Compute, String> {
    Err("expected operands of known sizes".to_owned())
}
