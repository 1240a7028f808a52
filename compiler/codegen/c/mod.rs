//! C source from MLIR's `llvm` dialect: one C11 file for gcc or clang, which needs only the C library.
//!
//! Blocks become labels, block arguments variables that are assigned before a `goto`, and values constants
//! of the scalar and vector types in `types`. Operations that C has no operator for are functions in the
//! file's prologue, `helpers`, printed if they are used. An op without a translation is an error at that
//! op. `docs/c-source.md` specifies the file.
use super::{CodegenError, Output, Row, llvm};
use crate::lowering::linalg_to_vector::Dots;
use irc_mlir::Module;

mod arithmetic;
mod calls;
mod casts;
mod control;
mod function;
mod globals;
mod header;
mod helpers;
mod intrinsics;
mod lanes;
mod literals;
mod memory;
mod module;
mod names;
mod reductions;
mod types;
mod unit;

/// The row of C source.
pub const ROW: Row = Row {
    name: "c",
    outputs: &[Output::C],
    // C compilers split vectors that are wider than the processor's.
    pipeline: &crate::pipeline::HOST_CPU,
    vector_bytes: |target| if target.has(&["avx"]) { (llvm::ROW.vector_bytes)(target) } else { 16 },
    dots: |_| Dots::Plain,
    streams: |_| false,
    // The C compiler decides; without flags it needs no features.
    features: |_| Vec::new(),
    expect: |_| Ok(()),
    compile: |module, _, _| compile(module).map(String::into_bytes),
};

/// Prints a module in the `llvm` dialect as C.
///
/// # Errors
/// An op that has no translation, with a diagnostic at it.
fn compile(module: &Module<'_>) -> Result<String, CodegenError> {
    let mut unit = unit::Unit::default();
    module::translate(&mut unit, module)
}
