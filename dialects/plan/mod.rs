//! The `plan` dialect: an ARK execution plan.
use irc_mlir::OperationRef;

/// Checks one `plan` op.
///
/// # Errors
/// What is wrong with it.
pub fn verify(_op: OperationRef<'_, '_>) -> Result<(), String> {
    Ok(())
}
