//! Replaces the uses of `bf16` for which LLVM needs a support library on processors without it.
//!
//! Before: the `llvm` dialect, with masked loads, stores and gathers of vectors of `bf16`, and
//! conversions of integers to `bf16`. After: the same on their bits as `i16`, and conversions to `f32`,
//! rounded to the nearest `bf16`, ties to even. The results are the same on every processor.
use irc_mlir::ops::llvm;
use irc_mlir::{
    BlockLike, Context, Erase, OpSpec, OperationLike, OperationRef, Options, Pass, PassError,
    PassResult, Type, Value, ValueLike, attr, read, replace_all_uses, ty, walk_collect,
};

/// The pass `bf16-as-bits`.
pub struct Bf16AsBits;

const LOADS: [&str; 2] = [llvm::INTR_MASKED_LOAD, llvm::INTR_MASKED_GATHER];
const STORES: [&str; 2] = [llvm::INTR_MASKED_STORE, llvm::INTR_MASKED_SCATTER];
const FROM_INTEGERS: [&str; 2] = [llvm::SITOFP, llvm::UITOFP];

impl Pass for Bf16AsBits {
    fn name(&self) -> &'static str {
        "bf16-as-bits"
    }
    fn description(&self) -> &'static str {
        "move bf16 under masks as integers, and round integers to it by hand"
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["llvm"]
    }
    fn run(&self, module: OperationRef<'_, '_>, _: &Options) -> PassResult {
        let named = |names: &[&str]| {
            walk_collect(module, |op| names.contains(&read::op_name(&op).as_str()))
        };
        for op in named(&LOADS) {
            load(op).ok_or_else(|| lost(op))?;
        }
        for op in named(&STORES) {
            store(op).ok_or_else(|| lost(op))?;
        }
        for op in named(&FROM_INTEGERS) {
            from_integer(op).ok_or_else(|| lost(op))?;
        }
        Ok(())
    }
}

fn lost(op: OperationRef<'_, '_>) -> PassError {
    PassError::at(&op, "expected an op of the llvm dialect")
}

/// A type with `bf16` replaced by another element type; `None` if it has no `bf16`.
fn with_element<'c>(context: &'c Context, of: Type<'c>, element: &str) -> Option<Type<'c>> {
    let text = of.to_string();
    text.contains("bf16").then(|| ty::parse(context, &text.replace("bf16", element)))
}

/// Replaces an operand by its bits, which are computed before the op.
fn take_bits(op: OperationRef<'_, '_>, index: usize) -> Option<()> {
    let context = irc_mlir::context_of(&op);
    let operand = op.operand(index).ok()?;
    let Some(bits) = with_element(context, operand.r#type(), "i16") else { return Some(()) };
    let spec = OpSpec::new(context, llvm::BITCAST, op.location()).operands(&[operand]);
    let cast = spec.results(&[bits]).before(&op.block()?, op);
    irc_mlir::set_operand(op, index, cast.result(0).ok()?.into());
    Some(())
}

fn store(op: OperationRef<'_, '_>) -> Option<()> {
    take_bits(op, 0)
}

fn load(op: OperationRef<'_, '_>) -> Option<()> {
    let context = irc_mlir::context_of(&op);
    let loaded: Value = op.result(0).ok()?.into();
    let ty = loaded.r#type();
    let Some(bits) = with_element(context, ty, "i16") else { return Some(()) };
    for index in 0..op.operand_count() {
        take_bits(op, index)?;
    }
    let uses = irc_mlir::uses(loaded);
    irc_mlir::set_type(loaded, bits);
    let spec = OpSpec::new(context, llvm::BITCAST, op.location()).operands(&[loaded]);
    let cast = op.block()?.insert_operation_after(op, spec.results(&[ty]).build());
    let cast: Value = cast.result(0).ok()?.into();
    for (user, operand) in uses {
        irc_mlir::set_operand(user, operand, cast);
    }
    Some(())
}

/// `(bits + 0x7fff + (bits >> 16 & 1)) >> 16` of the integer as `f32`, which is not NaN.
fn from_integer<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Option<()> {
    let context = irc_mlir::context_of(&op);
    let result: Value = op.result(0).ok()?.into();
    let ty = result.r#type();
    let (Some(wide), Some(bits), Some(short)) = (
        with_element(context, ty, "f32"),
        with_element(context, ty, "i32"),
        with_element(context, ty, "i16"),
    ) else {
        return Some(());
    };
    let block = op.block()?;
    let emit = |name: &str, operands: &[Value<'c, 'a>], ty: Type<'c>| -> Option<Value<'c, 'a>> {
        let spec = OpSpec::new(context, name, op.location()).operands(operands).results(&[ty]);
        Some(irc_mlir::rebind(spec.before(&block, op).result(0).ok()?.into()))
    };
    let constant = |number: i64| -> Option<Value<'c, 'a>> {
        let text = match bits.to_string().starts_with("vector") {
            true => format!("dense<{number}> : {bits}"),
            false => format!("{number} : i32"),
        };
        let value = attr::parse(context, &text);
        let spec = OpSpec::new(context, llvm::MLIR_CONSTANT, op.location()).attr("value", value);
        Some(irc_mlir::rebind(spec.results(&[bits]).before(&block, op).result(0).ok()?.into()))
    };
    let float = emit(&read::op_name(&op), &[op.operand(0).ok()?], wide)?;
    let float = emit(llvm::BITCAST, &[float], bits)?;
    let sixteen = constant(16)?;
    let odd = emit(llvm::LSHR, &[float, sixteen], bits)?;
    let odd = emit(llvm::AND, &[odd, constant(1)?], bits)?;
    let rounded = emit(llvm::ADD, &[float, constant(0x7fff)?], bits)?;
    let rounded = emit(llvm::ADD, &[rounded, odd], bits)?;
    let rounded = emit(llvm::LSHR, &[rounded, sixteen], bits)?;
    let rounded = emit(llvm::TRUNC, &[rounded], short)?;
    replace_all_uses(result, emit(llvm::BITCAST, &[rounded], ty)?);
    op.erase();
    Some(())
}
