//! Checks of single `npu` ops. What a program as a whole must satisfy is `irc_npu::verify`.
use super::export::{core_id, instruction};
use irc_mlir::{OperationRef, read};

/// Checks one `npu` op.
///
/// # Errors
/// What is wrong with it.
pub fn verify(op: OperationRef<'_, '_>) -> Result<(), String> {
    match read::op_name(&op).as_str() {
        "npu.program" => Ok(()),
        "npu.core" => core_id(op).map(|_| ()),
        _ => instruction(op).map(|_| ()),
    }
}
