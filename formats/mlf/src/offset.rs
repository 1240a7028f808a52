//! Locations in binary data.

use irc_diag::Diagnostic;

/// Start of the note that locates a diagnostic in binary data.
const AT_BYTE: &str = "at byte ";

/// Gives a diagnostic its location in binary data.
pub(crate) fn at_byte(diagnostic: Diagnostic, offset: usize) -> Diagnostic {
    diagnostic.with_note(format!("{AT_BYTE}{offset}"))
}
