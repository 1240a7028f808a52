//! Lowers kernel functions from the tensor level to linalg on tensors.
//!
//! Before: `func.func`s with `tl.kernel` whose bodies are `tl` ops. After: the same functions in
//! `linalg.generic`, `linalg.fill`, `tensor` and `arith`, with signless integers. Inside a kernel
//! no tensor has a dimension of extent 1: arguments are collapsed on entry and results expanded on
//! return, so that every indexing map is a projected permutation.
//! `f16` and `bf16` arithmetic is written in `f32` with one rounding per op.
//!
//! A kernel of `tl.stepped_matmul` does not change: `linalg-to-vector` writes its loops. Nor does a
//! kernel of the kind `loops`, which `compute-to-loops` lowers.

mod block_scaled;
mod contraction;
mod conv;
mod generic;
mod moves;
mod pointwise;
mod quads;
mod reduction;
mod sequential;
mod sums;

use crate::{
    attributes::{KERNEL, LINKAGE, is_loops},
    kernel::element::{self, Element},
};
use generic::Emitter;
use irc_mlir::ops::func;
use irc_mlir::{
    Block, BlockLike, BlockRef, Context, Erase, OpSpec, OperationLike, OperationRef, Options, Pass,
    PassError, PassResult, RegionLike, Type, Value, ValueLike, function, read, walk_collect,
};
use pointwise::Term;
use std::collections::BTreeMap;

/// The pass `tl-to-linalg`.
pub struct TlToLinalg;

impl Pass for TlToLinalg {
    fn name(&self) -> &'static str {
        "tl-to-linalg"
    }
    fn description(&self) -> &'static str {
        "lower kernel functions from the tensor level to linalg on tensors"
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["arith", "func", "linalg", "math", "tensor"]
    }
    fn run(&self, module: OperationRef<'_, '_>, _: &Options) -> PassResult {
        let kernels = walk_collect(module, |op| KERNEL.is_on(&op));
        for kernel in kernels {
            let names: Vec<_> = read::body_ops(kernel).iter().map(read::op_name).collect();
            let stays = names.iter().any(|name| name == "tl.stepped_matmul") || is_loops(&kernel);
            if !stays && names.iter().any(|name| name.starts_with("tl.")) {
                lower_kernel(kernel)?;
            }
        }
        Ok(())
    }
}

/// A tensor-level value inside a kernel.
#[derive(Clone)]
pub(crate) struct Lowered<'c, 'a> {
    /// The shape at the tensor level, including dimensions of extent 1.
    shape: Vec<i64>,
    element: Element<'c>,
    contents: Contents<'c, 'a>,
}

#[derive(Clone)]
pub(crate) enum Contents<'c, 'a> {
    /// A tensor without the dimensions of extent 1.
    Tensor(Value<'c, 'a>),
    /// The same number everywhere.
    Splat(f64),
}

/// Positions of the dimensions that are not 1.
fn wide_dims(shape: &[i64]) -> Vec<usize> {
    (0..shape.len()).filter(|dim| shape[*dim] != 1).collect()
}

/// The shape without dimensions of extent 1.
fn squeezed(shape: &[i64]) -> Vec<i64> {
    shape.iter().copied().filter(|size| *size != 1).collect()
}

fn lower_kernel(kernel: OperationRef<'_, '_>) -> PassResult {
    let context = irc_mlir::context_of(&kernel);
    let Some((inputs, results)) = read::signature(&kernel) else {
        return Err(PassError::at(&kernel, "is not a function"));
    };
    let (Some(input_types), Some(result_types)) =
        (signless(context, &inputs), signless(context, &results))
    else {
        return Err(PassError::at(&kernel, "expects ranked tensors of numbers"));
    };

    let location = kernel.location();
    let arguments: Vec<_> = input_types.iter().map(|ty| (*ty, location)).collect();
    let name = read::string(&kernel, "sym_name").unwrap_or_default();
    let mut spec =
        function(context, &name, &input_types, &result_types, Block::new(&arguments), location);
    for kept in ["sym_visibility", KERNEL.name(), LINKAGE, "arg_attrs", "res_attrs"] {
        spec = spec.maybe_attr(kept, read::attribute(&kernel, kept));
    }
    let Some(parent) = kernel.block() else {
        return Err(PassError::at(&kernel, "is not in a module"));
    };
    let lowered = spec.before(&parent, kernel);
    let block = lowered.region(0).ok().and_then(|region| region.first_block());
    let Some(block) = block else { return Err(PassError::at(&kernel, "has no body")) };
    lower_body(kernel, &Emitter::new(context, block), &result_types)?;
    erase_unused(block);
    kernel.erase();
    Ok(())
}

fn signless<'c>(context: &'c Context, types: &[Type<'c>]) -> Option<Vec<Type<'c>>> {
    types.iter().map(|ty| element::signless_tensor(context, *ty)).collect()
}

fn lower_body<'c: 'a, 'a>(
    kernel: OperationRef<'c, 'a>,
    emitter: &Emitter<'c, 'a>,
    result_types: &[Type<'c>],
) -> PassResult {
    let mut values: BTreeMap<usize, Lowered<'c, 'a>> = BTreeMap::new();
    let body = kernel.region(0).ok().and_then(|region| region.first_block());
    let Some(body) = body else { return Err(PassError::at(&kernel, "has no body")) };
    for index in 0..body.argument_count() {
        let (Ok(old), Ok(new)) = (body.argument(index), emitter.block.argument(index)) else {
            return Err(PassError::at(&kernel, "loses an argument"));
        };
        let Some((shape, ty)) = read::tensor_of(old.r#type()) else {
            return Err(PassError::at(&kernel, "expects ranked tensor arguments"));
        };
        let Some(element) = Element::of(emitter.context, ty) else {
            return Err(PassError::at(&kernel, format!("cannot lower elements of type {ty}")));
        };
        let emitter = emitter.at(kernel.location());
        let contents = Contents::Tensor(emitter.squeeze(new.into(), &shape, element));
        values.insert(key(old.into()), Lowered { shape, element, contents });
    }
    for op in read::body_ops(kernel) {
        let emitter = emitter.at(op.location());
        if read::op_name(&op) == func::RETURN {
            return lower_return(op, &emitter, &values, result_types);
        }
        let operands: Option<Vec<_>> =
            op.operands().map(|operand| values.get(&key(operand)).cloned()).collect();
        let Some(operands) = operands else {
            return Err(PassError::at(&op, "uses a value from outside its kernel"));
        };
        let lowered = match lower_sum(op, &emitter, &values) {
            Some(lowered) => lowered,
            None => {
                lower_op(op, &emitter, &operands).map_err(|message| PassError::at(&op, message))?
            }
        };
        let Ok(result) = op.result(0) else {
            return Err(PassError::at(&op, "has no result"));
        };
        values.insert(key(result.into()), lowered);
    }
    Err(PassError::at(&kernel, "does not return"))
}

/// A product and a sum that are computed by one instruction.
fn lower_sum<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    emitter: &Emitter<'c, 'a>,
    values: &BTreeMap<usize, Lowered<'c, 'a>>,
) -> Option<Lowered<'c, 'a>> {
    let terms = pointwise::multiplied_and_added(op)?;
    let (shape, _) = read::tensor_of(op.result(0).ok()?.r#type())?;
    let element = Element::f32(emitter.context);
    let lowered = |term: Term<'c, 'a>| match term {
        Term::Value(value) => values.get(&key(value)).cloned(),
        Term::Number(number) => {
            Some(Lowered { shape: vec![], element, contents: Contents::Splat(number) })
        }
    };
    let [x, y, z] = terms.map(lowered);
    let contents = pointwise::multiply_add(emitter, &[x?, y?, z?], &shape, element);
    Some(Lowered { shape, element, contents })
}

/// Erases the ops of a block whose results are not used.
fn erase_unused(block: BlockRef<'_, '_>) {
    let mut ops = vec![];
    let mut next = block.first_operation();
    while let Some(op) = next {
        ops.push(op);
        next = op.next_in_block();
    }
    for op in ops.into_iter().rev() {
        let mut results = op.results();
        if op.result_count() > 0 && results.all(|result| irc_mlir::uses(result.into()).is_empty()) {
            op.erase();
        }
    }
}

fn lower_return<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    emitter: &Emitter<'c, 'a>,
    values: &BTreeMap<usize, Lowered<'c, 'a>>,
    result_types: &[Type<'c>],
) -> PassResult {
    let mut returned = Vec::new();
    for (operand, ty) in op.operands().zip(result_types) {
        let Some(lowered) = values.get(&key(operand)) else {
            return Err(PassError::at(&op, "returns a value from outside its kernel"));
        };
        let tensor = emitter.materialise(lowered);
        returned.push(emitter.expand(tensor, &lowered.shape, *ty));
    }
    OpSpec::new(emitter.context, func::RETURN, op.location())
        .operands(&returned)
        .append(&emitter.block);
    Ok(())
}

fn lower_op<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    emitter: &Emitter<'c, 'a>,
    operands: &[Lowered<'c, 'a>],
) -> Result<Lowered<'c, 'a>, String> {
    let result = op.result(0).map_err(|_| "has no result")?;
    let (shape, ty) = read::tensor_of(result.r#type()).ok_or("expects a ranked tensor result")?;
    let element = Element::of(emitter.context, ty)
        .ok_or_else(|| format!("cannot lower elements of type {ty}"))?;
    let done = |contents| Lowered { shape: shape.clone(), element, contents };
    let name = read::op_name(&op);
    let contents = match name.as_str() {
        "tl.fill" => Contents::Splat(read::float(&op, "value").ok_or("lacks its value")?),
        "tl.conv" => conv::lower(op, emitter, operands, &shape, element)?,
        "tl.block_scaled_matmul" => block_scaled::lower(op, emitter, operands, &shape, element)?,
        "tl.matmul" => contraction::lower(op, emitter, operands, &shape, element)?,
        "tl.reduce_sum" | "tl.reduce_product" | "tl.reduce_max" | "tl.reduce_min"
        | "tl.reduce_mean" => reduction::lower(op, emitter, &operands[0], element)?,
        "tl.sequential_sum" => sequential::lower(op, emitter, &operands[0], element)?,
        "tl.transpose" => moves::transpose(op, emitter, &operands[0], &shape)?,
        "tl.slice" => moves::slice(op, emitter, &operands[0], &shape)?,
        "tl.bitcast" if operands[0].element == element => operands[0].contents.clone(),
        // A splat is another number in a type of the other signedness.
        "tl.bitcast" if operands[0].element.storage == element.storage => {
            Contents::Tensor(emitter.materialise(&operands[0]))
        }
        "tl.reshape" => moves::reshape(emitter, &operands[0], &shape),
        "tl.update" => moves::update(op, emitter, &operands[0], &operands[1])?,
        "tl.gather" => moves::gather(emitter, &operands[1], &operands[0], &shape),
        "tl.rope" => moves::rope(emitter, &operands[0], &operands[1], &shape)?,
        _ => pointwise::lower(op, emitter, operands, &shape, element)?,
    };
    Ok(done(contents))
}

/// The identity of a value while the kernel is being rewritten.
fn key(value: Value<'_, '_>) -> usize {
    value.to_raw().ptr as usize
}
