//! The meaning of each op kind as `tl` ops.
use super::{
    Accumulate,
    access::{Access, computed, is_idle},
    accumulate,
    emit::{Emitter, Val},
    memory::Memory,
};
use irc_ark_format::model::{DataType, Op, OpKind};
use irc_mlir::attr;

/// Lowers one op: reads its tensors from memory, computes, writes.
///
/// # Errors
/// What about the op has no meaning at the tensor level.
pub fn lower<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    memory: &mut Memory<'c, 'a, '_>,
    op: &Op,
    mode: Accumulate,
) -> Result<(), String> {
    if is_idle(op) {
        return Ok(());
    }
    let reads: Vec<_> = Access::reads(op).map(|access| memory.read(emitter, access)).collect();
    let mut writes = Access::writes(op);
    let (Some(output), None) = (writes.next(), writes.next()) else {
        return Err(format!("{}: expected one tensor written", op.kind));
    };
    let val = evaluate(emitter, op, &reads, output.shape, mode)?;
    memory.write(emitter, output, val);
    Ok(())
}

/// What an op makes of its operands: values of the types and extents it reads; the result has the
/// type of the tensor written, and `shape`.
///
/// # Errors
/// What about the op has no meaning at the tensor level.
pub fn evaluate<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    op: &Op,
    reads: &[Val<'c, 'a>],
    shape: &[i64],
    mode: Accumulate,
) -> Result<Val<'c, 'a>, String> {
    let output = op.writes.first().ok_or_else(|| format!("{}: writes nothing", op.kind))?;
    let dtype = computed(output.dtype);
    let val = compute(emitter, op, reads, (dtype, shape), mode)?;
    if val.dtype != dtype {
        return Err(format!("{}: expected {dtype} as the output, found {}", op.kind, val.dtype));
    }
    fit(emitter, op, val, shape)
}

fn compute<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    op: &Op,
    reads: &[Val<'c, 'a>],
    output: (DataType, &[i64]),
    mode: Accumulate,
) -> Result<Val<'c, 'a>, String> {
    match (op.kind, reads) {
        (OpKind::Copy, [input]) => Ok(input.clone()),
        (OpKind::Cast, [input]) => cast(emitter, op, input, output),
        (OpKind::ScalarAdd | OpKind::ScalarMul, [input]) => scalar(emitter, op, input),
        (OpKind::ScalarAssign, []) => {
            let value = op.float_arg("Value").ok_or("ScalarAssign: expected a Value")?;
            Ok(emitter.fill(value.into(), output.0, output.1))
        }
        (OpKind::ReduceSum | OpKind::ReduceMax | OpKind::ReduceMean, [input]) => {
            reduce(emitter, op, input, mode)
        }
        (OpKind::Matmul, [input, other]) => matmul(emitter, op, [input, other], mode),
        (OpKind::Transpose, [input]) => transpose(emitter, op, input),
        (OpKind::Embedding, [index, table]) => embedding(emitter, index, table),
        (kind, [input]) if kind.is_unary() => {
            let name = tl_name(kind);
            Ok(emitter.op(&name, &[input], &[], (input.dtype, &input.shape)))
        }
        (kind, [lhs, rhs]) if kind.is_binary() => {
            let name = tl_name(kind);
            let shape = broadcast(kind, &lhs.shape, &rhs.shape)?;
            Ok(emitter.op(&name, &[lhs, rhs], &[], (lhs.dtype, &shape)))
        }
        (kind, reads) => Err(format!("{kind} of {} operands is not lowered yet", reads.len())),
    }
}

/// Kinds of the same meaning at both levels have one name.
fn tl_name(kind: OpKind) -> String {
    irc_dialects::ark::mnemonic(kind)
}

fn cast<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    op: &Op,
    input: &Val<'c, 'a>,
    (dtype, shape): (DataType, &[i64]),
) -> Result<Val<'c, 'a>, String> {
    if op.reads[0].dtype == DataType::Byte || op.writes[0].dtype == DataType::Byte {
        let bytes = |dtype: DataType, elements: i64| dtype.bytes().cast_signed() * elements;
        let expected = bytes(dtype, shape.iter().product());
        let found = bytes(input.dtype, input.elements());
        if expected != found {
            return Err(format!("Cast of bytes: expected {expected} bytes, found {found}"));
        }
        return Ok(emitter.retype(input.clone(), dtype, shape));
    }
    if input.dtype == dtype {
        return Ok(input.clone());
    }
    let rounding = attr::string(emitter.context(), rounding(input.dtype, dtype));
    Ok(emitter.op("cast", &[input], &[("rounding", rounding)], (dtype, &input.shape)))
}

/// ARK converts 16-bit floats to 32-bit integers with round-to-nearest intrinsics, and all else
/// with C++ conversions, which drop the fraction.
fn rounding(from: DataType, to: DataType) -> &'static str {
    let is_half = matches!(from, DataType::Fp16 | DataType::Bf16);
    let is_wide = matches!(to, DataType::Int32 | DataType::Uint32);
    if is_half && is_wide { "nearest_even" } else { "toward_zero" }
}

fn scalar<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    op: &Op,
    input: &Val<'c, 'a>,
) -> Result<Val<'c, 'a>, String> {
    let factor = op.float_arg("Factor").ok_or_else(|| format!("{}: expected a Factor", op.kind))?;
    let factor = emitter.fill(factor.into(), input.dtype, &[]);
    let name = if op.kind == OpKind::ScalarAdd { "add" } else { "mul" };
    Ok(emitter.op(name, &[input, &factor], &[], (input.dtype, &input.shape)))
}

fn reduce<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    op: &Op,
    input: &Val<'c, 'a>,
    mode: Accumulate,
) -> Result<Val<'c, 'a>, String> {
    let axis = op.int_arg("Axis").and_then(|axis| usize::try_from(axis).ok());
    let axis = axis.filter(|axis| *axis < input.shape.len());
    let axis = axis.ok_or_else(|| format!("{}: expected an Axis of the input", op.kind))?;
    let keep_dim = op.bool_arg("KeepDim").unwrap_or(true);
    let mut shape = input.shape.clone();
    if keep_dim {
        shape[axis] = 1;
    } else {
        shape.remove(axis);
    }
    let is_half = matches!(input.dtype, DataType::Fp16 | DataType::Bf16);
    if mode == Accumulate::Ark && is_half && op.kind != OpKind::ReduceMax {
        let is_mean = op.kind == OpKind::ReduceMean;
        let val = accumulate::reduce(emitter, input, axis, is_mean);
        return Ok(emitter.reshape(val, &shape));
    }
    let context = emitter.context();
    let axes = attr::i64s(context, &[axis as i64]);
    let attributes = [("axes", axes), ("keep_dims", attr::bool(context, keep_dim))];
    Ok(emitter.op(&tl_name(op.kind), &[input], &attributes, (input.dtype, &shape)))
}

/// Rows and columns of an operand's matrices as they are multiplied.
fn matrix(shape: &[i64], transposed: bool) -> [i64; 2] {
    let [rows, columns] = [shape[shape.len() - 2], shape[shape.len() - 1]];
    if transposed { [columns, rows] } else { [rows, columns] }
}

fn matmul<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    op: &Op,
    [input, other]: [&Val<'c, 'a>; 2],
    mode: Accumulate,
) -> Result<Val<'c, 'a>, String> {
    // A 1-D input is a row, a 1-D other a column.
    let matrices = |emitter: &mut Emitter<'c, 'a>, val: &Val<'c, 'a>, shape: [i64; 2]| {
        if val.shape.len() == 1 { emitter.reshape(val.clone(), &shape) } else { val.clone() }
    };
    let lhs = matrices(emitter, input, [1, input.elements()]);
    let rhs = matrices(emitter, other, [other.elements(), 1]);
    let transposed =
        ["TransposeInput", "TransposeOther"].map(|name| op.bool_arg(name).unwrap_or_default());
    let [rows, depth] = matrix(&lhs.shape, transposed[0]);
    let [other_depth, columns] = matrix(&rhs.shape, transposed[1]);
    if depth != other_depth {
        return Err(format!("Matmul: inner dimensions differ: {depth} and {other_depth}"));
    }
    let batch = |val: &Val<'_, '_>| val.shape[..val.shape.len() - 2].to_vec();
    let mut shape = broadcast(op.kind, &batch(&lhs), &batch(&rhs))?;
    shape.extend([rows, columns]);
    if mode == Accumulate::Ark {
        return Ok(accumulate::matmul(emitter, [lhs, rhs], transposed, &shape));
    }
    Ok(accumulate::plain_matmul(emitter, [&lhs, &rhs], transposed, &shape))
}

fn transpose<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    op: &Op,
    input: &Val<'c, 'a>,
) -> Result<Val<'c, 'a>, String> {
    let permutation = op.dims_arg("Permutation").ok_or("Transpose: expected a Permutation")?;
    let source = |axis: &i64| usize::try_from(*axis).ok().and_then(|axis| input.shape.get(axis));
    let shape: Option<Vec<i64>> = permutation.iter().map(|axis| source(axis).copied()).collect();
    let shape = shape.filter(|shape| shape.len() == input.shape.len());
    let shape = shape.ok_or_else(|| format!("Transpose: {permutation:?} permutes no axes"))?;
    let attribute = attr::i64s(emitter.context(), permutation);
    Ok(emitter.op("transpose", &[input], &[("permutation", attribute)], (input.dtype, &shape)))
}

fn embedding<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    index: &Val<'c, 'a>,
    table: &Val<'c, 'a>,
) -> Result<Val<'c, 'a>, String> {
    if index.dtype.bytes() != DataType::Int32.bytes() || table.shape.len() != 2 {
        return Err("Embedding: expected 32-bit indices and a 2-D table".to_owned());
    }
    // The kernel reads whatever is there as int32.
    let index = emitter.retype(index.clone(), DataType::Int32, &index.shape);
    let mut shape = index.shape.clone();
    shape.push(table.shape[1]);
    Ok(emitter.op("gather", &[table, &index], &[], (table.dtype, &shape)))
}

/// The NumPy broadcast of two shapes.
fn broadcast(kind: OpKind, lhs: &[i64], rhs: &[i64]) -> Result<Vec<i64>, String> {
    let rank = lhs.len().max(rhs.len());
    let extent = |shape: &[i64], back: usize| {
        shape.len().checked_sub(back).map_or(1, |position| shape[position])
    };
    let joined = (1..=rank).rev().map(|back| match (extent(lhs, back), extent(rhs, back)) {
        (left, right) if left == right || right == 1 => Some(left),
        (1, right) => Some(right),
        _ => None,
    });
    joined
        .collect::<Option<_>>()
        .ok_or_else(|| format!("{kind}: {lhs:?} and {rhs:?} do not broadcast together"))
}

/// A value under the shape of the output: unit dimensions come and go, others are repeated.
fn fit<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    op: &Op,
    val: Val<'c, 'a>,
    shape: &[i64],
) -> Result<Val<'c, 'a>, String> {
    let squeezed = |shape: &[i64]| -> Vec<i64> {
        shape.iter().copied().filter(|extent| *extent != 1).collect()
    };
    if squeezed(&val.shape) == squeezed(shape) {
        return Ok(emitter.reshape(val, shape));
    }
    if broadcast(op.kind, &val.shape, shape).is_ok_and(|joined| joined == shape) {
        return Ok(emitter.op("broadcast", &[&val], &[], (val.dtype, shape)));
    }
    Err(format!("{}: a result of shape {:?} does not fit the output {shape:?}", op.kind, val.shape))
}
