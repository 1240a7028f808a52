//! Checks of single `plan` ops. Checks of a plan as a whole are in `irc_ark_format::plan::check`.
use super::export::range;
use crate::attributes::{op_integer, op_text};
use irc_ark_format::plan::Architecture;
use irc_mlir::{OperationLike, OperationRef};

/// Checks one `plan` op.
///
/// # Errors
/// An invalid op.
pub fn verify(op: OperationRef<'_, '_>) -> Result<(), String> {
    let name = op.name();
    match name.as_string_ref().as_str().unwrap_or_default() {
        "plan.program" => verify_program(op),
        "plan.task" => positive(op, "warps"),
        "plan.processor_group" => ranges(op, &["processor_range"]),
        "plan.resource_group" => ranges(op, &["processor_range", "warp_range", "sram_range"]),
        "plan.task_group" => ranges(op, &["task_range"]).and_then(|()| positive(op, "granularity")),
        _ => Ok(()),
    }
}

fn verify_program(op: OperationRef<'_, '_>) -> Result<(), String> {
    let name = op_text(op, "architecture")?;
    if Architecture::from_name(&name).is_none() {
        let known: Vec<_> = Architecture::ALL.iter().map(|known| known.name()).collect();
        return Err(format!("expected one of {}, found '{name}'", known.join(", ")));
    }
    positive(op, "processors").and_then(|()| positive(op, "warps_per_processor"))
}

fn positive(op: OperationRef<'_, '_>, name: &str) -> Result<(), String> {
    let value = op_integer(op, name)?;
    if value >= 1 { Ok(()) } else { Err(format!("expected '{name}' of at least 1, found {value}")) }
}

fn ranges(op: OperationRef<'_, '_>, names: &[&str]) -> Result<(), String> {
    for name in names {
        let range = range(op, name)?;
        if !(0..=range.end).contains(&range.begin) {
            return Err(format!(
                "expected 0 <= begin <= end in '{name}', found [{}, {}]",
                range.begin, range.end
            ));
        }
    }
    Ok(())
}
