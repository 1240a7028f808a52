//! The meaning of each op kind as ops of the tensor level.

use crate::Accumulate;
use crate::access::element_type;
use crate::accumulate;
use crate::emit::{fill, reshape, retype, shape, tensor_type};
use irc_ark_format::model::{DataType, Op, OpKind};
use irc_tl::{
    Binary, Builder, Built, DType, Op as Tl, Reduction, Rounding, TensorType, Unary, ValueId,
    broadcast_shapes,
};

/// What is wrong with an op that moves data between ranks.
pub(crate) const NO_COMMUNICATION: &str = "communication between ranks is not compiled";

/// What an op makes of its operands: values of the types and extents it reads. The result has the
/// type of the tensor written, and the shape `to`.
///
/// # Errors
/// What about the op has no meaning at the tensor level.
pub fn evaluate(
    builder: &mut Builder,
    op: &Op,
    reads: &[ValueId],
    to: &[i64],
    mode: Accumulate,
) -> Built {
    let output = op.writes.first().ok_or_else(|| format!("{}: writes nothing", op.kind))?;
    let ty = TensorType::new(element_type(output.dtype), to);
    let value = compute(builder, op, reads, &ty, mode)?;
    let found = builder.dtype(value);
    if found != ty.dtype {
        let expected = ty.dtype;
        return Err(format!("{}: expected {expected} as the output, found {found}", op.kind).into());
    }
    fit(builder, op, value, to)
}

/// The result before it takes the shape of the output, whose type is `ty`.
fn compute(
    builder: &mut Builder,
    op: &Op,
    reads: &[ValueId],
    ty: &TensorType,
    mode: Accumulate,
) -> Built {
    use OpKind::*;
    match op.kind {
        Add => binary(builder, op, reads, Binary::Add),
        Sub => binary(builder, op, reads, Binary::Sub),
        Mul => binary(builder, op, reads, Binary::Mul),
        Div => binary(builder, op, reads, Binary::Div),
        Rope => builder.op(Tl::Rope, &operands::<2>(op, reads)?),
        Exp => unary(builder, op, reads, Unary::Exp),
        Gelu => unary(builder, op, reads, Unary::Gelu),
        Relu => unary(builder, op, reads, Unary::Relu),
        Rsqrt => unary(builder, op, reads, Unary::Rsqrt),
        Sigmoid => unary(builder, op, reads, Unary::Sigmoid),
        Sqrt => unary(builder, op, reads, Unary::Sqrt),
        Copy => operands(op, reads).map(|[input]| input),
        Cast => cast(builder, op, operands(op, reads)?, ty),
        ScalarAdd => scalar(builder, op, operands(op, reads)?, Binary::Add),
        ScalarMul => scalar(builder, op, operands(op, reads)?, Binary::Mul),
        ScalarAssign => {
            let [] = operands(op, reads)?;
            fill(builder, float(op, "Value")?, ty.dtype, &ty.shape)
        }
        ReduceSum => reduce(builder, op, operands(op, reads)?, Reduction::Sum, mode),
        ReduceMax => reduce(builder, op, operands(op, reads)?, Reduction::Max, mode),
        ReduceMean => reduce(builder, op, operands(op, reads)?, Reduction::Mean, mode),
        Matmul => matmul(builder, op, operands(op, reads)?, mode),
        Transpose => transpose(builder, op, operands(op, reads)?),
        Embedding => embedding(builder, operands(op, reads)?),
        Noop | Tensor | Reshape => Err(format!("{}: computes nothing", op.kind).into()),
        Send | SendDone | Recv | SendPacket | RecvPacket | RecvReduceSend
        | RecvReduceSendPacket | DeviceSync => {
            Err(format!("{}: {NO_COMMUNICATION}", op.kind).into())
        }
    }
}

fn operands<const N: usize>(op: &Op, reads: &[ValueId]) -> Built<[ValueId; N]> {
    let found = reads.len();
    let operands = <[ValueId; N]>::try_from(reads);
    operands.map_err(|_| format!("{}: expected {N} operands, found {found}", op.kind).into())
}

fn unary(builder: &mut Builder, op: &Op, reads: &[ValueId], function: Unary) -> Built {
    let [input] = operands(op, reads)?;
    builder.unary(function, input)
}

fn binary(builder: &mut Builder, op: &Op, reads: &[ValueId], function: Binary) -> Built {
    let [input, other] = operands(op, reads)?;
    builder.binary(function, input, other)
}

fn float(op: &Op, name: &str) -> Built<f64> {
    let value = op.float_arg(name).ok_or_else(|| format!("{}: expected a {name}", op.kind))?;
    Ok(value.into())
}

fn cast(builder: &mut Builder, op: &Op, [input]: [ValueId; 1], ty: &TensorType) -> Built {
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

/// ARK converts 16-bit floats to 32-bit integers with round-to-nearest intrinsics, and all else
/// with C++ conversions, which drop the fraction.
fn rounding(from: DType, to: DType) -> Rounding {
    let is_wide = matches!(to, DType::I32 | DType::U32);
    if is_half(from) && is_wide { Rounding::NearestEven } else { Rounding::TowardZero }
}

fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

fn scalar(builder: &mut Builder, op: &Op, [input]: [ValueId; 1], function: Binary) -> Built {
    let factor = fill(builder, float(op, "Factor")?, builder.dtype(input), &[])?;
    builder.binary(function, input, factor)
}

fn reduce(
    builder: &mut Builder,
    op: &Op,
    [input]: [ValueId; 1],
    kind: Reduction,
    mode: Accumulate,
) -> Built {
    let ty = tensor_type(builder, input)?;
    let axis = op.int_arg("Axis").and_then(|axis| usize::try_from(axis).ok());
    let axis = axis.filter(|axis| *axis < ty.rank());
    let axis = axis.ok_or_else(|| format!("{}: expected an Axis of the input", op.kind))?;
    let keep_dims = op.bool_arg("KeepDim").unwrap_or(true);
    if mode == Accumulate::Ark && is_half(ty.dtype) && kind != Reduction::Max {
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

fn matmul(builder: &mut Builder, op: &Op, [input, other]: [ValueId; 2], mode: Accumulate) -> Built {
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
    match mode {
        Accumulate::Ark => accumulate::matmul(builder, [lhs, rhs], transposed),
        Accumulate::Wide => accumulate::plain_matmul(builder, [lhs, rhs], transposed),
    }
}

fn transpose(builder: &mut Builder, op: &Op, [input]: [ValueId; 1]) -> Built {
    let permutation = op.dims_arg("Permutation").ok_or("Transpose: expected a Permutation")?;
    let axes = permutation.iter().map(|axis| usize::try_from(*axis).ok());
    let axes: Option<Vec<usize>> = axes.collect();
    let permutation = axes.ok_or_else(|| format!("Transpose: {permutation:?} permutes no axes"))?;
    builder.op(Tl::Transpose { permutation }, &[input])
}

fn embedding(builder: &mut Builder, [index, table]: [ValueId; 2]) -> Built {
    let ty = tensor_type(builder, index)?;
    if ty.dtype.size() != DType::I32.size() {
        return Err(format!("Embedding: expected 32-bit indices, found {ty}").into());
    }
    // The kernel reads whatever is there as int32.
    let index = retype(builder, index, DType::I32, &ty.shape)?;
    builder.op(Tl::Gather, &[table, index])
}

/// A value under the shape of the output: unit dimensions come and go, others are repeated.
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
