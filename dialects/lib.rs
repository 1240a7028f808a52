//! The irc dialects: definitions, import, export, verification.
//!
//! One folder per dialect. The `.td` file is the definition and the manual; [`registry`] holds all
//! of them beside every upstream dialect.

pub mod ark;
mod attributes;
pub mod common_ir;
pub mod gemini;
pub mod npu;
pub mod ods;
pub mod plan;
pub mod tl;

use irc_mlir::{Context, DialectRegistry};

unsafe extern "C" {
    fn ircRegisterDialects(registry: mlir_sys::MlirDialectRegistry);
}

/// Adds our dialects and their verifiers to a registry.
pub fn register(registry: &DialectRegistry) {
    // Safety: the registry is live; registration copies what it needs.
    unsafe { ircRegisterDialects(registry.to_raw()) }
    irc_mlir::register_verifier("ark", ark::verify);
    irc_mlir::register_verifier("common_ir", common_ir::verify);
    irc_mlir::register_verifier("gemini", gemini::verify);
    irc_mlir::register_verifier("npu", npu::verify);
    irc_mlir::register_verifier("tl", tl::verify);
    irc_mlir::register_verifier("plan", plan::verify);
}

/// A registry of every upstream dialect and ours.
pub fn registry() -> DialectRegistry {
    irc_mlir::new_registry(&[register])
}

/// A single-threaded context over [`registry`].
///
/// Our dialects and `func` are loaded: importers build their ops without a parser or a pass.
pub fn new_context() -> Context {
    let context = irc_mlir::new_context(&[register]);
    for dialect in ["ark", "common_ir", "gemini", "npu", "tl", "plan", "func"] {
        context.get_or_load_dialect(dialect);
    }
    context
}
