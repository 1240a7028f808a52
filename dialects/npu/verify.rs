//! Checks of single `npu` ops. Checks of a program as a whole are in `irc_npu::verify`.
use super::export::{core_id, instruction};
use irc_mlir::{OperationRef, read};

/// Checks one `npu` op.
///
/// # Errors
/// An invalid op.
pub fn verify(op: OperationRef<'_, '_>) -> Result<(), String> {
    match read::op_name(&op).as_str() {
        "npu.program" => Ok(()),
        "npu.core" => core_id(op).map(|_| ()),
        _ => instruction(op).map(|_| ()),
    }
}
