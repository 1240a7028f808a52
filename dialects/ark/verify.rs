//! Semantic checks of `ark` ops, those of the file format.
use super::export;
use irc_mlir::{OperationLike, OperationRef};

/// Checks one `ark` op.
///
/// # Errors
/// What is wrong with it.
pub fn verify(op: OperationRef<'_, '_>) -> Result<(), String> {
    let name = op.name();
    match name.as_string_ref().as_str().unwrap_or_default() {
        "ark.model" => Ok(()),
        "ark.buffer" => export::declared_buffer(op).map(|_| ()),
        "ark.tensor" => {
            let value = op.result(0).map_err(|error| error.to_string())?;
            export::tensor(value.into()).map(|_| ())
        }
        _ => export::node(op).map(|_| ()),
    }
}
