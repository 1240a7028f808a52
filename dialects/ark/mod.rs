//! The `ark` dialect: an ARK model file as written.
use irc_mlir::OperationRef;

/// Checks one `ark` op.
///
/// # Errors
/// What is wrong with it.
pub fn verify(_op: OperationRef<'_, '_>) -> Result<(), String> {
    Ok(())
}
