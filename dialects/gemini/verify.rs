//! Checks of single `gemini` ops beyond their definition: names of the format. Checks of a schedule
//! as a whole are in `irc_gemini_format::schedule::check`.
use crate::attributes::text;
use irc_gemini_format::schedule::{CutMode, LayerKind, ResidentKind, Wl0Source};
use irc_mlir::{OperationLike, OperationRef, read::op_name};

/// Checks one `gemini` op.
///
/// # Errors
/// An invalid name.
pub fn verify(op: OperationRef<'_, '_>) -> Result<(), String> {
    match op_name(&op).as_str() {
        "gemini.workload" => one_of(op, "layer_type", LayerKind::NAMES),
        "gemini.resident" => one_of(op, "type", ResidentKind::NAMES),
        "gemini.tile" => one_of(op, "cut_mode", CutMode::NAMES),
        "gemini.wl0_row" => one_of(op, "source", Wl0Source::NAMES),
        _ => Ok(()),
    }
}

fn one_of(op: OperationRef<'_, '_>, name: &str, known: &[&str]) -> Result<(), String> {
    let Some(found) = op.attribute(name).ok().and_then(text) else { return Ok(()) };
    match known.contains(&found.as_str()) {
        true => Ok(()),
        false => Err(format!("expected '{name}' of {}, found '{found}'", known.join(", "))),
    }
}
