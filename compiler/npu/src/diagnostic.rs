//! Diagnostics of schedules that cannot be compiled to a program.

use irc_diag::Diagnostic;
use irc_gemini_format::FileKind;
use irc_gemini_format::frontend::layer_path;

/// A diagnostic and which of the two files it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiagnostic {
    /// The file of the diagnostic's path.
    pub file: FileKind,
    /// The diagnostic, with a JSON path in that file but without a span.
    pub diagnostic: Diagnostic,
}

/// The result of this crate's functions.
pub type Result<T, E = Box<FileDiagnostic>> = std::result::Result<T, E>;

/// A diagnostic at a path of the schedule's file.
pub fn error(code: &'static str, path: &str, message: impl Into<String>) -> Box<FileDiagnostic> {
    let diagnostic = Diagnostic::error(code, message).path(path);
    Box::new(FileDiagnostic { file: FileKind::Schedule, diagnostic })
}

/// A diagnostic at a layer of the frontend's file, and there at a key.
pub fn layer_error(
    code: &'static str,
    (layer, key): (&str, &str),
    message: impl Into<String>,
) -> Box<FileDiagnostic> {
    let path = format!("{}.{key}", layer_path(layer));
    let diagnostic = Diagnostic::error(code, message).path(path);
    Box::new(FileDiagnostic { file: FileKind::Frontend, diagnostic })
}

/// Converts a quantity to an unsigned 32-bit field of an instruction.
pub fn word(value: i64, path: &str) -> Result<u32> {
    u32::try_from(value).map_err(|_| too_large(value, path))
}

/// The same for a quantity of a layer, at a key.
pub fn layer_word(value: i64, place: (&str, &str)) -> Result<u32> {
    u32::try_from(value).map_err(|_| layer_error("emit-range", place, range_message(value)))
}

/// Converts quantities to unsigned 32-bit fields of an instruction.
pub fn words<const N: usize>(values: [i64; N], path: &str) -> Result<[u32; N]> {
    let mut all = [0; N];
    for (slot, value) in all.iter_mut().zip(values) {
        *slot = word(value, path)?;
    }
    Ok(all)
}

/// Converts a quantity to a signed 32-bit field of an instruction.
pub fn signed(value: i64, path: &str) -> Result<i32> {
    i32::try_from(value).map_err(|_| too_large(value, path))
}

fn too_large(value: i64, path: &str) -> Box<FileDiagnostic> {
    error("emit-range", path, range_message(value))
}

fn range_message(value: i64) -> String {
    format!("{value} does not fit into an instruction")
}
