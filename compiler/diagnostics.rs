//! Converts MLIR's diagnostics to diagnostics with files.
use irc_diag::{Diagnostic, Severity, Source};
use irc_mlir::{CapturedDiagnostic, Frame};
use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

/// Converts MLIR's diagnostic, with the file that it points into. `file` finds the file of a name; text
/// that MLIR parses from memory has the name `-`. Returns `None` for notes that do not belong to an error.
pub fn place(
    captured: &CapturedDiagnostic,
    file: &dyn Fn(&str) -> Option<Source>,
) -> Option<(Option<Source>, Diagnostic)> {
    let severity = match captured.severity {
        irc_mlir::Severity::Error => Severity::Error,
        irc_mlir::Severity::Warning => Severity::Warning,
        irc_mlir::Severity::Note | irc_mlir::Severity::Remark => return None,
    };
    let (message, code) = with_code(&captured.message);
    let mut diagnostic = Diagnostic::new(severity, code, message);
    let mut own: Option<Source> = None;
    for frame in &captured.frames {
        diagnostic = match frame {
            Frame::Name(name) if name.starts_with('$') => diagnostic.path(name.clone()),
            Frame::Name(name) => diagnostic.with_note(format!("in {name}")),
            Frame::File { name, line, column } => {
                match own.is_none().then(|| file(name)).flatten() {
                    Some(named) => {
                        let offset = named.offset(*line, *column);
                        let len = named.text()[offset..].chars().next().map_or(0, char::len_utf8);
                        own = Some(named);
                        diagnostic.at(offset..offset + len, "here")
                    }
                    None => diagnostic.with_note(format!("from {name}:{line}:{column}")),
                }
            }
        };
    }
    Some((own, with_notes(diagnostic, captured)))
}

/// The errors among captured diagnostics of a module that was parsed from `source`.
pub fn in_text(captured: &[CapturedDiagnostic], source: &Source) -> Vec<Diagnostic> {
    let own = |name: &str| (name == "-" || name == source.name()).then(|| source.clone());
    let found = errors(captured).filter_map(|one| place(one, &own));
    let found: Vec<_> = found.map(|(_, diagnostic)| diagnostic).collect();
    match found.is_empty() {
        true => vec![Diagnostic::error("mlir", "the module cannot be read")],
        false => found,
    }
}

/// The errors among captured diagnostics.
pub(crate) fn errors(captured: &[CapturedDiagnostic]) -> impl Iterator<Item = &CapturedDiagnostic> {
    captured.iter().filter(|one| one.severity == irc_mlir::Severity::Error)
}

/// Adds the notes of MLIR's diagnostic.
pub(crate) fn with_notes(mut diagnostic: Diagnostic, captured: &CapturedDiagnostic) -> Diagnostic {
    for note in &captured.notes {
        // The IR at that point is of use in reproducers, but not to the user.
        if !note.message.starts_with("see current operation") {
            diagnostic = diagnostic.with_note(note.message.clone());
        }
    }
    diagnostic
}

/// Splits a message from the error code that this project's passes append to it.
fn with_code(message: &str) -> (&str, &'static str) {
    let is_code = |code: &str| {
        let is_part = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        code.contains('-') && code.bytes().all(is_part)
    };
    let coded = message.strip_suffix(']').and_then(|message| message.rsplit_once(" ["));
    match coded.filter(|(_, code)| is_code(code)) {
        Some((message, code)) => (message, interned(code)),
        None => (message, "mlir"),
    }
}

/// An interned error code; it is never freed, as the number of codes is bounded.
fn interned(code: &str) -> &'static str {
    static CODES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut codes = CODES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = codes.get(code) {
        return known;
    }
    let code: &'static str = Box::leak(code.into());
    codes.insert(code);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_stand_behind_messages() {
        assert_eq!(with_code("too large [gem-b2-size]"), ("too large", "gem-b2-size"));
        assert_eq!(with_code("expected [1, 2]"), ("expected [1, 2]", "mlir"));
        assert_eq!(with_code("expected [x]"), ("expected [x]", "mlir"));
    }
}
