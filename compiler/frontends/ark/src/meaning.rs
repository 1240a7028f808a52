//! The meaning of each op kind as ops of the tensor level, one row each.

use crate::Accumulate;
use crate::access::element_type;
use crate::accumulate;
use crate::emit::{fill, reshape, retype, shape, tensor_type};
use irc_ark_format::model::{DataType, Op, OpKind};
use irc_tl::{
    Binary, BuildError, Builder, Built, DType, Op as Tl, Reduction, Rounding, TensorType, Unary,
    ValueId, broadcast_shapes,
};

/// The error for an op that moves data between ranks.
pub(crate) const NO_COMMUNICATION: &str = "communication between ranks is not compiled";

/// Why an op that only describes memory has no meaning.
const NO_COMPUTATION: &str = "computes nothing";

/// What an op computes, as ops of the tensor level. The rows lower ARK from left to right; the writer
/// of ARK models uses those with a single op on the right in the opposite direction.
#[derive(Clone, Debug)]
pub enum Meaning {
    /// A function of each element.
    Unary(Unary),
    /// A function of two elements, after broadcasting.
    Binary(Binary),
    /// A function of each element and the argument `Factor`.
    Factor(Binary),
    /// A reduction along `Axis`.
    Reduction(Reduction),
    /// The op of the same operands.
    Same(Tl),
    /// The operand itself, in the shape of the output.
    Operand,
    /// The ops that this function appends.
    Ops(fn(&mut Builder, &Application<'_>) -> Built),
    /// No meaning within a rank, with the reason.
    None(&'static str),
}

impl Meaning {
    /// The row of a kind.
    pub fn of(kind: OpKind) -> Self {
        match kind {
            OpKind::Add => Self::Binary(Binary::Add),
            OpKind::Cast => Self::Ops(cast),
            OpKind::Copy => Self::Operand,
            OpKind::DeviceSync => Self::None(NO_COMMUNICATION),
            OpKind::Div => Self::Binary(Binary::Div),
            OpKind::Embedding => Self::Ops(embedding),
            OpKind::Exp => Self::Unary(Unary::Exp),
            OpKind::Gelu => Self::Unary(Unary::Gelu),
            OpKind::Matmul => Self::Ops(matmul),
            OpKind::Mul => Self::Binary(Binary::Mul),
            OpKind::Noop => Self::None(NO_COMPUTATION),
            OpKind::Recv => Self::None(NO_COMMUNICATION),
            OpKind::RecvPacket => Self::None(NO_COMMUNICATION),
            OpKind::RecvReduceSend => Self::None(NO_COMMUNICATION),
            OpKind::RecvReduceSendPacket => Self::None(NO_COMMUNICATION),
            OpKind::ReduceMax => Self::Reduction(Reduction::Max),
            OpKind::ReduceMean => Self::Reduction(Reduction::Mean),
            OpKind::ReduceSum => Self::Reduction(Reduction::Sum),
            OpKind::Relu => Self::Unary(Unary::Relu),
            OpKind::Reshape => Self::None(NO_COMPUTATION),
            OpKind::Rope => Self::Same(Tl::Rope),
            OpKind::Rsqrt => Self::Unary(Unary::Rsqrt),
            OpKind::ScalarAdd => Self::Factor(Binary::Add),
            OpKind::ScalarAssign => Self::Ops(assign),
            OpKind::ScalarMul => Self::Factor(Binary::Mul),
            OpKind::Send => Self::None(NO_COMMUNICATION),
            OpKind::SendDone => Self::None(NO_COMMUNICATION),
            OpKind::SendPacket => Self::None(NO_COMMUNICATION),
            OpKind::Sigmoid => Self::Unary(Unary::Sigmoid),
            OpKind::Sqrt => Self::Unary(Unary::Sqrt),
            OpKind::Sub => Self::Binary(Binary::Sub),
            OpKind::Tensor => Self::None(NO_COMPUTATION),
            OpKind::Transpose => Self::Ops(transpose),
        }
    }

    /// The first kind whose meaning satisfies a predicate.
    pub fn find(is: impl Fn(&Self) -> bool) -> Option<OpKind> {
        OpKind::ALL.iter().copied().find(|kind| is(&Self::of(*kind)))
    }
}

/// An op of a model on values.
#[derive(Clone, Copy, Debug)]
pub struct Application<'a> {
    /// The op.
    op: &'a Op,
    /// Values with the types and extents of its operands.
    reads: &'a [ValueId],
    /// The type of its result.
    ty: &'a TensorType,
    /// How sums and products accumulate.
    mode: Accumulate,
}

/// Applies an op to operands, which are values of the types and extents that it reads. The result has
/// the type of the written tensor, and the shape `to`.
///
/// # Errors
/// If the op has no meaning at the tensor level.
pub fn evaluate(
    builder: &mut Builder,
    op: &Op,
    reads: &[ValueId],
    to: &[i64],
    mode: Accumulate,
) -> Built {
    let output = op.writes.first().ok_or_else(|| format!("{}: writes nothing", op.kind))?;
    let ty = TensorType::new(element_type(output.dtype), to);
    let value = compute(builder, &Application { op, reads, ty: &ty, mode })?;
    let found = builder.dtype(value);
    if found != ty.dtype {
        let expected = ty.dtype;
        return Err(format!("{}: expected {expected} as the output, found {found}", op.kind).into());
    }
    fit(builder, op, value, to)
}

/// The result before it is converted to the shape of the output.
fn compute(builder: &mut Builder, applied: &Application<'_>) -> Built {
    match Meaning::of(applied.op.kind) {
        Meaning::Unary(function) => {
            let [input] = applied.operands()?;
            builder.unary(function, input)
        }
        Meaning::Binary(function) => {
            let [input, other] = applied.operands()?;
            builder.binary(function, input, other)
        }
        Meaning::Factor(function) => {
            let [input] = applied.operands()?;
            let factor = fill(builder, applied.float("Factor")?, builder.dtype(input), &[])?;
            builder.binary(function, input, factor)
        }
        Meaning::Reduction(kind) => reduce(builder, applied, kind),
        Meaning::Same(op) => {
            let arity = op.row().arity();
            if arity.is_some_and(|arity| arity != applied.reads.len()) {
                return Err(applied.error("expected other operands"));
            }
            builder.op(op, applied.reads)
        }
        Meaning::Operand => applied.operands().map(|[input]| input),
        Meaning::Ops(append) => append(builder, applied),
        Meaning::None(why) => Err(applied.error(why)),
    }
}

impl Application<'_> {
    fn operands<const N: usize>(&self) -> Built<[ValueId; N]> {
        let found = self.reads.len();
        let operands = <[ValueId; N]>::try_from(self.reads);
        operands.map_err(|_| self.error(&format!("expected {N} operands, found {found}")))
    }

    fn float(&self, name: &str) -> Built<f64> {
        let value = self.op.float_arg(name);
        value.map(f64::from).ok_or_else(|| self.error(&format!("expected a {name}")))
    }

    fn error(&self, message: &str) -> BuildError {
        format!("{}: {message}", self.op.kind).into()
    }
}

fn assign(builder: &mut Builder, applied: &Application<'_>) -> Built {
    let [] = applied.operands()?;
    fill(builder, applied.float("Value")?, applied.ty.dtype, &applied.ty.shape)
}

fn cast(builder: &mut Builder, applied: &Application<'_>) -> Built {
    let (op, ty, [input]) = (applied.op, applied.ty, applied.operands()?);
    let found = tensor_type(builder, input)?;
    let is_byte = |tensors: &[irc_ark_format::model::Tensor]| {
        tensors.first().is_some_and(|tensor| tensor.dtype == DataType::Byte)
    };
    if is_byte(&op.reads) || is_byte(&op.writes) {
        let bytes = |ty: &TensorType| ty.shape.iter().product::<i64>() * ty.dtype.size() as i64;
        let (expected, found) = (bytes(ty), bytes(&found));
        if expected != found {
            let message = format!("Cast of bytes: expected {expected} bytes, found {found}");
            return Err(message.into());
        }
        return retype(builder, input, ty.dtype, &ty.shape);
    }
    if found.dtype == ty.dtype {
        return Ok(input);
    }
    let rounding = rounding(found.dtype, ty.dtype);
    builder.op(Tl::Cast { to: ty.dtype, rounding }, &[input])
}

/// ARK converts 16-bit floats to 32-bit integers with round-to-nearest intrinsics, and other types
/// with C++ conversions, which truncate.
fn rounding(from: DType, to: DType) -> Rounding {
    let is_wide = matches!(to, DType::I32 | DType::U32);
    if is_half(from) && is_wide { Rounding::NearestEven } else { Rounding::TowardZero }
}

fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

fn reduce(builder: &mut Builder, applied: &Application<'_>, kind: Reduction) -> Built {
    let (op, [input]) = (applied.op, applied.operands()?);
    let ty = tensor_type(builder, input)?;
    let axis = op.int_arg("Axis").and_then(|axis| usize::try_from(axis).ok());
    let axis = axis.filter(|axis| *axis < ty.rank());
    let axis = axis.ok_or_else(|| applied.error("expected an Axis of the input"))?;
    let keep_dims = op.bool_arg("KeepDim").unwrap_or(true);
    if applied.mode == Accumulate::Ark && is_half(ty.dtype) && kind != Reduction::Max {
        let sum = accumulate::reduce(builder, input, axis, kind == Reduction::Mean)?;
        let mut shape = ty.shape;
        match keep_dims {
            true => shape[axis] = 1,
            false => drop(shape.remove(axis)),
        }
        return reshape(builder, sum, &shape);
    }
    builder.reduce(kind, input, &[axis], keep_dims)
}

fn matmul(builder: &mut Builder, applied: &Application<'_>) -> Built {
    let (op, [input, other]) = (applied.op, applied.operands()?);
    // A 1-D input is a row, a 1-D other a column.
    let lhs = match shape(builder, input)?[..] {
        [depth] => reshape(builder, input, &[1, depth])?,
        _ => input,
    };
    let rhs = match shape(builder, other)?[..] {
        [depth] => reshape(builder, other, &[depth, 1])?,
        _ => other,
    };
    let transposed =
        ["TransposeInput", "TransposeOther"].map(|name| op.bool_arg(name).unwrap_or_default());
    match applied.mode {
        Accumulate::Ark => accumulate::matmul(builder, [lhs, rhs], transposed),
        Accumulate::Wide => accumulate::plain_matmul(builder, [lhs, rhs], transposed),
    }
}

fn transpose(builder: &mut Builder, applied: &Application<'_>) -> Built {
    let [input] = applied.operands()?;
    let permutation = applied.op.dims_arg("Permutation");
    let permutation = permutation.ok_or_else(|| applied.error("expected a Permutation"))?;
    let axes = permutation.iter().map(|axis| usize::try_from(*axis).ok());
    let axes: Option<Vec<usize>> = axes.collect();
    let permutation = axes.ok_or_else(|| format!("Transpose: {permutation:?} permutes no axes"))?;
    builder.op(Tl::Transpose { permutation }, &[input])
}

fn embedding(builder: &mut Builder, applied: &Application<'_>) -> Built {
    let [index, table] = applied.operands()?;
    let ty = tensor_type(builder, index)?;
    if ty.dtype.size() != DType::I32.size() {
        return Err(format!("Embedding: expected 32-bit indices, found {ty}").into());
    }
    // The kernel interprets the bytes as int32.
    let index = retype(builder, index, DType::I32, &ty.shape)?;
    builder.op(Tl::Gather, &[table, index])
}

/// A value in the shape of the output: unit dimensions are added, removed or repeated.
fn fit(builder: &mut Builder, op: &Op, value: ValueId, to: &[i64]) -> Built {
    let found = shape(builder, value)?;
    let squeezed = |shape: &[i64]| -> Vec<i64> {
        shape.iter().copied().filter(|extent| *extent != 1).collect()
    };
    if squeezed(&found) == squeezed(to) {
        return reshape(builder, value, to);
    }
    if broadcast_shapes(&found, to).is_some_and(|joined| joined == to) {
        return builder.op(Tl::Broadcast { shape: to.to_vec() }, &[value]);
    }
    let kind = op.kind;
    Err(format!("{kind}: a result of shape {found:?} does not fit the output {to:?}").into())
}
