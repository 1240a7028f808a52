//! The `tl` dialect: the tensor level.
use irc_mlir::OperationRef;

/// Checks one `tl` op.
///
/// # Errors
/// What is wrong with it.
pub fn verify(_op: OperationRef<'_, '_>) -> Result<(), String> {
    Ok(())
}
