//! `math-to-functions`: functions that GPUs have no code for become functions of the module.
//!
//! Before: functions of scalars of `f64` (`math.exp`, ...), and remainders of floats. After: calls of private functions, one
//! for each that is used, of arithmetic (`kernel::expand_double`). LLVM divides floats by way of their rounded quotient for
//! GPUs, so that a remainder of `f32` is that of `f64`, which is exact.
use crate::{
    attributes::LINKAGE,
    kernel::{
        emit::{Emit, first_result},
        expand_double::expand_double,
    },
};
use irc_mlir::ops::{arith, func, math};
use irc_mlir::{
    Block, BlockLike, Erase, OpSpec, OperationLike, OperationRef, Options, Pass, PassError,
    PassResult, RegionLike, Type, TypeLike, Value, ValueLike, attr, read, region_of,
    replace_all_uses, walk_collect,
};
use melior::ir::r#type::FunctionType;
use std::collections::BTreeSet;

/// The pass `math-to-functions`.
pub struct MathToFunctions;

impl Pass for MathToFunctions {
    fn name(&self) -> &'static str {
        "math-to-functions"
    }
    fn description(&self) -> &'static str {
        "compute functions of f64 and remainders of floats by functions of arithmetic"
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["arith", "func", "math", "scf"]
    }
    fn run(&self, module: OperationRef<'_, '_>, _: &Options) -> PassResult {
        let mut known = BTreeSet::new();
        walk_collect(module, is_missing).into_iter().try_for_each(|op| call(module, op, &mut known))
    }
}

/// Whether GPUs have no code for a function.
fn is_missing(op: OperationRef<'_, '_>) -> bool {
    let name = read::op_name(&op);
    let Some(result) = op.results().next() else { return false };
    let ty: Type<'_> = result.r#type();
    name.starts_with(math::PREFIX) && ty.is_f64()
        || name == arith::REMF && (ty.is_f64() || ty.is_f32())
}

/// Replaces an op by a call, and defines the function if it is not known; an op without an expansion stays.
fn call<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    op: OperationRef<'c, 'a>,
    known: &mut BTreeSet<String>,
) -> PassResult {
    let context = irc_mlir::context_of(&op);
    let of = read::op_name(&op);
    let function = format!("irc_f64_{}", of.rsplit('.').next().unwrap_or_default());
    let f64 = Type::float64(context);
    let types = vec![f64; op.operand_count()];
    if !known.contains(&function) {
        let body = module.region(0).ok().and_then(|region| region.first_block());
        let first = body.and_then(|body| Some((body, body.first_operation()?)));
        let (parent, first) = first.ok_or_else(|| PassError::at(&module, "has no body"))?;
        let arguments: Vec<_> = types.iter().map(|ty| (*ty, op.location())).collect();
        let signature = FunctionType::new(context, &types, &[f64]);
        let spec = OpSpec::new(context, func::FUNC, op.location())
            .attr("sym_name", attr::string(context, &function))
            .attr("sym_visibility", attr::string(context, "private"))
            .attr(LINKAGE, attr::parse(context, "#llvm.linkage<internal>"))
            .attr("function_type", attr::ty(signature.into()))
            .region(region_of(Block::new(&arguments)));
        let defined = spec.before(&parent, first);
        let block = defined.region(0).ok().and_then(|region| region.first_block());
        let block = block.ok_or_else(|| PassError::at(&defined, "has no body"))?;
        let e = Emit { context, block, location: op.location() };
        let arguments = (0..types.len()).map(|index| block.argument(index).map(Into::into));
        let arguments: Result<Vec<Value<'_, '_>>, _> = arguments.collect();
        let arguments = arguments.map_err(|error| PassError::at(&defined, error.to_string()))?;
        let Some(value) = expand_double(e, &of, &arguments) else {
            defined.erase();
            return Ok(());
        };
        e.spec(func::RETURN).operands(&[value]).append(&block);
        known.insert(function.clone());
    }
    let block = op.block().ok_or_else(|| PassError::at(&op, "is not in a block"))?;
    let result = first_result(op);
    let narrow = result.r#type();
    let convert = |name: &str, value: Value<'c, 'a>, ty: Type<'c>| {
        if value.r#type() == ty {
            return value;
        }
        let spec = OpSpec::new(context, name, op.location()).operands(&[value]).results(&[ty]);
        first_result(spec.before(&block, op))
    };
    let operands: Vec<_> = op.operands().map(|it| convert(arith::EXTF, it, f64)).collect();
    let spec = OpSpec::new(context, func::CALL, op.location())
        .attr("callee", attr::symbol(context, &function))
        .operands(&operands)
        .results(&[f64]);
    let value = first_result(spec.before(&block, op));
    replace_all_uses(result, convert(arith::TRUNCF, value, narrow));
    op.erase();
    Ok(())
}
