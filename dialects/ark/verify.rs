//! Semantic checks of `ark` ops, which are those of the file format.
use super::export;
use crate::attributes;
use irc_ark_format::model::{Model, validate_graph, validate_op};
use irc_diag::Diagnostic;
use irc_mlir::{OperationLike, OperationRef, read::body_ops};

/// Checks one `ark` op.
///
/// # Errors
/// If the op is invalid.
pub fn verify(op: OperationRef<'_, '_>) -> Result<(), String> {
    let name = op.name();
    match name.as_string_ref().as_str().unwrap_or_default() {
        "ark.model" => verify_model(op),
        "ark.buffer" => export::declared_buffer(op).map(|_| ()),
        "ark.tensor" => {
            let value = op.result(0).map_err(|error| error.to_string())?;
            export::tensor(value.into()).map(|_| ())
        }
        _ => errors(validate_op(&export::node(op)?.op)),
    }
}

/// Checks across ops: ranks, edges, shared ids, order.
fn verify_model(op: OperationRef<'_, '_>) -> Result<(), String> {
    let rank = attributes::op_integer(op, "rank")?;
    let world_size = attributes::op_integer(op, "world_size")?;
    let nodes = body_ops(op).into_iter().filter(|op| export::is_node(*op)).map(export::node);
    // Errors of a single op are reported at that op.
    let Ok(nodes) = nodes.collect() else { return Ok(()) };
    errors(validate_graph(&Model { rank, world_size, nodes }))
}

/// All errors in one message, one per line.
fn errors(found: Vec<Diagnostic>) -> Result<(), String> {
    let lines: Vec<String> =
        found.iter().filter(|diagnostic| diagnostic.is_error()).map(line).collect();
    if lines.is_empty() { Ok(()) } else { Err(lines.join("\n")) }
}

fn line(diagnostic: &Diagnostic) -> String {
    let Diagnostic { message, path, help, .. } = diagnostic;
    let path = path.as_deref().map_or("", |path| path.strip_prefix("$.").unwrap_or(path));
    let help = help.as_deref().map_or(String::new(), |help| format!("; {help}"));
    if path.is_empty() { format!("{message}{help}") } else { format!("{path}: {message}{help}") }
}
