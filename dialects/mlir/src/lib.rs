//! Safe wrappers over the bindings of MLIR: the only `unsafe` code for MLIR.
//!
//! [`Context`] and [`Module`] are melior's; this crate adds what the C API lacks (passes registered
//! by name with options, verifiers in Rust, `mlir-opt`'s main) and makes melior sound:
//! passes are `Send + Sync`, and a panic in a callback becomes a diagnostic instead of unwinding
//! through C++.

pub mod attr;
mod bridge;
mod build;
mod context;
mod diagnostic;
pub mod elements;
mod ir;
mod key;
pub mod llvm;
mod mains;
pub mod ops;
mod pass;
pub mod read;
mod verify;

pub use build::{OpSpec, block_with, function, region_of, ty};
pub use context::{DialectHook, context_of, new_context, new_registry};
pub use diagnostic::{Capture, CapturedDiagnostic, Frame, Severity, frames, origin};
pub use ir::{
    Erase, emit_remark, emit_warning, erase_arguments, has_one_use, is_used_only_by, location_of,
    move_before_terminator, move_to_end, parse_bytecode, parse_module, rebind, remove_attribute,
    replace_all_uses, set_attribute, set_operand, set_operands, set_type, string_value,
    to_brief_text, to_bytecode, to_generic_text, to_text, to_text_of_valid, update_function_type,
    uses, walk_collect,
};
pub use key::{AttributeValue, Key};
pub use mains::{lsp_server_main, opt_main};
pub use melior::{
    self, Context,
    dialect::DialectRegistry,
    ir::{
        Attribute, AttributeLike, Block, BlockLike, BlockRef, Location, Module, Operation,
        OperationRef, Region, RegionLike, RegionRef, Type, TypeLike, Value, ValueLike,
        operation::OperationLike,
    },
};
pub use pass::{
    OptionKind, Options, Pass, PassError, PassOption, PassResult, register_pass, register_pipeline,
    registered_passes, run_pipeline, run_unverified, verified,
};
pub use verify::{Verifier, register_verifier};
