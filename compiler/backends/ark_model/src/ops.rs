//! Single ops of a graph.

use crate::memory::Memory;
use crate::nodes::{Scope, Storage, Writer};
use crate::numbers::rounded;
use crate::types::{ark_shape, data_type, exact_shape, known};
use crate::{functions, loops, moves};
use irc_ark_format::model::{Arg, DataType, OpKind, Tensor};
use irc_ark_frontend::Meaning;
use irc_tl::{Compute, DType, Graph, Op, Reduction, Rounding, TensorType, Unary, ValueId};

impl Writer {
    /// The result of an op, which is exported unless it is a number.
    pub fn op(
        &mut self,
        graph: &Graph,
        op: &Op,
        operands: &[ValueId],
        ty: &TensorType,
        scope: &mut Scope,
    ) -> Result<Storage, String> {
        if let Op::Fill { value, dtype, .. } = op {
            return Ok(Storage::Splat(rounded(f64::from_bits(*value), *dtype)));
        }
        if let Some(number) = self.folded(graph, op, operands, ty, scope)? {
            return Ok(Storage::Splat(number));
        }
        let dtype = data_type(ty.dtype)?;
        let is_move = matches!(
            op,
            Op::Cast { .. }
                | Op::Broadcast { .. }
                | Op::Transpose { .. }
                | Op::Reshape { .. }
                | Op::Slice { .. }
                | Op::Update { .. }
                | Op::Gather
                | Op::Compute(_)
        );
        if !is_move && operands.iter().any(|value| graph.ty(*value).dtype == DType::I64) {
            return Err("ARK does not compute in i64".into());
        }
        if let Op::Binary(function) = op {
            return self.binary(graph, *function, operands, ty, scope).map(Storage::Box);
        }
        let mut tensors = vec![];
        for value in operands {
            tensors.push(self.tensor(graph, *value, scope)?);
        }
        let types: Result<Vec<_>, _> = operands.iter().map(|value| known(graph, *value)).collect();
        let types = types?;
        let shape = ark_shape(&ty.shape)?;
        let memory = &mut self.memory;
        let result = match op {
            Op::Unary(function) => unary(memory, *function, &tensors[0])?,
            Op::Cast { to, rounding } => cast(memory, &tensors[0], types[0].dtype, *to, *rounding)?,
            Op::Broadcast { .. } => memory.copy(&tensors[0], &shape),
            Op::Reduce { kind, axes, .. } => {
                exact_shape(&types[0].shape)?;
                reduce(memory, *kind, axes, &tensors[0], &shape)?
            }
            Op::Matmul { transpose_lhs, transpose_rhs } => {
                for ty in &types {
                    exact_shape(&ty.shape)?;
                }
                if !dtype.is_float() {
                    return Err(format!("ARK multiplies matrices of floats, found {}", ty.dtype));
                }
                let args = [
                    ("TransposeInput", Arg::Bool(*transpose_lhs)),
                    ("TransposeOther", Arg::Bool(*transpose_rhs)),
                ];
                let operands = [&tensors[0], &tensors[1]];
                memory.op(OpKind::Matmul, &operands, (dtype, &shape), &args)
            }
            Op::Transpose { permutation } => {
                exact_shape(&ty.shape)?;
                moves::transpose(memory, &tensors[0], permutation)
            }
            Op::Reshape { .. } => memory.reshape(&tensors[0], &shape),
            Op::Slice { offsets, sizes } => {
                exact_shape(&types[0].shape)?;
                match sizes.is_empty() {
                    true => tensors[0].clone(),
                    false => memory.slice(&tensors[0], offsets, sizes),
                }
            }
            Op::Update { offsets } => {
                exact_shape(&ty.shape)?;
                moves::update(memory, &tensors[0], &tensors[1], offsets)
            }
            Op::Gather => moves::rows(memory, &tensors[0], &tensors[1], &shape)?,
            Op::Compute(compute) => {
                for ty in types.iter().chain([ty]) {
                    exact_shape(&ty.shape)?;
                }
                moved(memory, compute, &tensors, (dtype, &shape))?
            }
            other => {
                let is_own =
                    |meaning: &Meaning| matches!(meaning, Meaning::Same(own) if own == other);
                let kind = Meaning::find(is_own).ok_or_else(|| no_op(other.name()))?;
                memory.op(kind, &tensors.iter().collect::<Vec<_>>(), (dtype, &shape), &[])
            }
        };
        Ok(Storage::Box(memory.reshape(&result, &shape)))
    }

    /// The number that all elements of the result equal, if the same is true of the operands.
    fn folded(
        &self,
        graph: &Graph,
        op: &Op,
        operands: &[ValueId],
        ty: &TensorType,
        scope: &Scope,
    ) -> Result<Option<f64>, String> {
        let is_same = matches!(op, Op::Reshape { .. } | Op::Slice { .. } | Op::Transpose { .. });
        if !(op.is_elementwise() || is_same) || operands.is_empty() {
            return Ok(None);
        }
        let numbers = operands.iter().map(|value| self.splat(*value, scope));
        let Some(numbers) = numbers.collect::<Option<Vec<f64>>>() else { return Ok(None) };
        if is_same || matches!(op, Op::Broadcast { .. }) {
            return Ok(Some(numbers[0]));
        }
        let mut tensors = vec![];
        for (value, number) in operands.iter().zip(numbers) {
            let one = TensorType::new(graph.ty(*value).dtype, []);
            tensors.push(irc_tl::Tensor::from_f64(one, &[number]).map_err(|e| e.to_string())?);
        }
        let tensors: Vec<_> = tensors.iter().collect();
        let result = op.eval(&tensors).map_err(|error| error.to_string())?;
        // Integers of more than 53 bits are not represented as numbers.
        Ok((!matches!(ty.dtype, DType::I64 | DType::U64)).then(|| result.get_f64(0)))
    }
}

fn unary(memory: &mut Memory, function: Unary, x: &Tensor) -> Result<Tensor, String> {
    let is_own = |meaning: &Meaning| matches!(meaning, Meaning::Unary(own) if *own == function);
    if let Some(kind) = Meaning::find(is_own) {
        return Ok(memory.unary(kind, x));
    }
    Ok(match function {
        Unary::Neg => functions::neg(memory, x),
        Unary::Abs => functions::abs(memory, x),
        Unary::Tanh => functions::in_single(memory, x, functions::tanh),
        Unary::Erf => functions::in_single(memory, x, functions::erf),
        other => return Err(no_op(other.name())),
    })
}

/// ARK converts 16-bit floats to 32-bit integers with round-to-nearest, and other types towards zero.
fn cast(
    memory: &mut Memory,
    x: &Tensor,
    from: DType,
    to: DType,
    rounding: Rounding,
) -> Result<Tensor, String> {
    if from == DType::I64 && !(to.is_float() || matches!(to, DType::I32 | DType::I64))
        || to == DType::I64 && !matches!(from, DType::I64 | DType::I32)
    {
        return Err(format!("ARK does not convert {from} to {to}"));
    }
    let dtype = data_type(to)?;
    if x.dtype == dtype {
        return Ok(x.clone());
    }
    if x.dtype.is_float() && !dtype.is_float() {
        let is_nearest = x.dtype.bytes() == 2 && dtype.bytes() == 4;
        let expected = if is_nearest { Rounding::NearestEven } else { Rounding::TowardZero };
        if rounding != expected {
            return Err(format!("ARK rounds otherwise where it converts {from} to {to}"));
        }
    }
    Ok(memory.op(OpKind::Cast, &[x], (dtype, &x.shape), &[]))
}

/// A reduction over several axes in sequence; adjacent axes are merged if possible.
fn reduce(
    memory: &mut Memory,
    kind: Reduction,
    axes: &[usize],
    x: &Tensor,
    shape: &[i64],
) -> Result<Tensor, String> {
    let own = |kind: Reduction| {
        Meaning::find(|meaning| matches!(meaning, Meaning::Reduction(own) if *own == kind))
    };
    let is_float = x.dtype.is_float();
    // The mean of integers rounds differently.
    let found = own(kind).filter(|_| is_float || kind != Reduction::Mean).map(|op| (op, false));
    let negated = || own(Reduction::Max).filter(|_| is_float && kind == Reduction::Min);
    let found = found.or_else(|| negated().map(|op| (op, true)));
    let (op, is_negated) =
        found.ok_or_else(|| no_op(&format!("{} of {}", kind.name(), x.dtype)))?;
    let mut result = if is_negated { functions::neg(memory, x) } else { x.clone() };
    let mut axes = axes.to_vec();
    if axes.len() > 1 && axes.windows(2).all(|pair| pair[0] + 1 == pair[1]) {
        let last = axes[axes.len() - 1];
        let mut merged = result.shape[..axes[0]].to_vec();
        merged.push(result.shape[axes[0]..=last].iter().product());
        merged.extend(&result.shape[last + 1..]);
        result = memory.reshape(&result, &merged);
        axes.truncate(1);
    }
    for axis in axes {
        let mut kept = result.shape.clone();
        kept[axis] = 1;
        let args = [("Axis", Arg::Int(axis as i32)), ("KeepDim", Arg::Bool(true))];
        result = memory.op(op, &[&result], (result.dtype, &kept), &args);
    }
    let result = memory.reshape(&result, shape);
    Ok(if is_negated { functions::neg(memory, &result) } else { result })
}

/// Loops around an expression that move elements.
fn moved(
    memory: &mut Memory,
    compute: &Compute,
    operands: &[Tensor],
    (dtype, shape): (DataType, &[i64]),
) -> Result<Tensor, String> {
    if compute.reduction.is_some() {
        return Err("ARK has no op for a reduction of an expression".into());
    }
    loops::write(memory, &compute.body, operands, dtype, shape)
}

/// The error for an op that ARK does not have.
pub fn no_op(name: &str) -> String {
    format!("ARK has no op for {name}")
}
