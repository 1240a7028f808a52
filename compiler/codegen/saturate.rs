//! Replaces saturating conversions of `f16`, for some of which LLVM 22 selects wrong code if the processor
//! has AVX512-FP16 or AVX10.2 (`docs/kernels.md` lists such bugs).
//!
//! Before: the `llvm` dialect. After: `llvm.fptosi.sat` and `llvm.fptoui.sat` of `f16` are those of `f32`,
//! which represents every `f16` exactly, so that the results are the same.
use irc_mlir::{
    Module, OpSpec, OperationLike, OperationRef, ValueLike, attr, context_of, ops::llvm, read,
    set_attribute, set_operand, ty, walk_collect,
};

const SATURATING: [&str; 2] = ["llvm.fptosi.sat.", "llvm.fptoui.sat."];

/// Widens the operands of saturating conversions of `f16`.
pub fn widen_saturating_conversions(module: &Module<'_>) {
    for op in walk_collect(module.as_operation(), |op| read::op_name(&op) == llvm::CALL_INTRINSIC) {
        widen(op);
    }
}

/// Returns `None` if the op is not such a conversion.
fn widen(op: OperationRef<'_, '_>) -> Option<()> {
    let (context, name) = (context_of(&op), read::string(&op, "intrin")?);
    let operand = op.operand(0).ok()?;
    let narrow = operand.r#type().to_string();
    let is_half = narrow.ends_with("f16") || narrow.ends_with("f16>");
    if !is_half || narrow.contains("bf16") || !SATURATING.iter().any(|it| name.starts_with(it)) {
        return None;
    }
    let single = ty::parse(context, &narrow.replace("f16", "f32"));
    let spec = OpSpec::new(context, llvm::FPEXT, op.location()).operands(&[operand]);
    let wide = spec.results(&[single]).before(&op.block()?, op);
    set_operand(op, 0, wide.result(0).ok()?.into());
    // The result is an integer: `f16` in the name can only be the operand's type.
    set_attribute(op, "intrin", attr::string(context, &name.replace("f16", "f32")));
    Some(())
}
