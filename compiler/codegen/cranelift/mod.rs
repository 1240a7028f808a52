//! The quick tier: MLIR's `llvm` dialect to Cranelift IR to an object.
//!
//! Blocks become blocks, block arguments block parameters, and values lists of Cranelift values, see
//! `types`. Code is not optimised: the purpose of the tier is fast compilation. An op without a translation
//! is an error at that op.
use super::{CodegenError, Output, Row, Target};
use crate::lowering::linalg_to_vector::Dots;
use irc_mlir::Module;
use std::panic::{AssertUnwindSafe, catch_unwind};

mod arithmetic;
mod calls;
mod casts;
mod constants;
mod control;
mod function;
mod half;
mod intrinsics;
mod isa;
mod lanes;
mod memory;
mod module;
mod types;
mod unit;
mod vectors;

/// Cranelift's row.
pub const ROW: Row = Row {
    name: "cranelift",
    outputs: &[Output::Object],
    // The only vectors that Cranelift supports.
    pipeline: &crate::pipeline::HOST_CPU,
    vector_bytes: |_| 16,
    dots: |_| Dots::Plain,
    streams: |_| false,
    features: |target| isa::features(target).unwrap_or_default(),
    expect: |target| isa::isa(target).map(drop),
    compile: |module, target, _| compile(module, target),
};

/// Compiles a module in the `llvm` dialect to a relocatable object.
///
/// # Errors
/// An op that the quick tier does not translate, with a diagnostic at it; or an unsupported processor.
fn compile(module: &Module<'_>, target: &Target) -> Result<Vec<u8>, CodegenError> {
    let work = || {
        let mut unit = unit::Unit::new(target)?;
        unit.translate(module)?;
        unit.finish()
    };
    // Cranelift panics if its instruction selection has no rule: an internal error, which must not end the
    // process.
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(CodegenError::new("cranelift panicked")))
}
