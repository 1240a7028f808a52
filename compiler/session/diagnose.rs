//! MLIR's diagnostics as diagnostics in the user's file.
use super::error::QueryError;
use crate::import::{Document, path_of};
use irc_diag::{Diagnostic, Source};
use irc_mlir::{CapturedDiagnostic, Frame, Severity};

/// The errors among captured diagnostics, at their places in the file that the module was made of.
pub fn failure(captured: &[CapturedDiagnostic], document: Option<&dyn Document>) -> QueryError {
    let mut errors: Vec<_> = errors(captured).map(of_node).collect();
    if errors.is_empty() {
        return QueryError::internal("a pass failed without a diagnostic");
    }
    if let Some(document) = document {
        document.locate(&mut errors);
    }
    let internal = captured.iter().any(|one| one.message.contains("internal error"));
    QueryError { diagnostics: errors, internal }
}

/// The errors among captured diagnostics of a module that is itself the file.
pub fn in_text(captured: &[CapturedDiagnostic], source: &Source) -> Vec<Diagnostic> {
    let found: Vec<_> = errors(captured).map(|one| in_module(one, source)).collect();
    match found.is_empty() {
        true => vec![Diagnostic::error("mlir", "the module cannot be read")],
        false => found,
    }
}

fn errors(captured: &[CapturedDiagnostic]) -> impl Iterator<Item = &CapturedDiagnostic> {
    captured.iter().filter(|one| one.severity == Severity::Error)
}

/// A diagnostic at the node that the location names.
fn of_node(captured: &CapturedDiagnostic) -> Diagnostic {
    let mut diagnostic = Diagnostic::error("lowering", captured.message.clone());
    let origin = captured.frames.iter().find_map(|frame| match frame {
        Frame::Name(name) => Some(name),
        Frame::File { .. } => None,
    });
    if let Some(origin) = origin {
        diagnostic = diagnostic.path(path_of(origin));
    }
    with_notes(diagnostic, captured)
}

/// A diagnostic at the op that the location places in the module's text, which MLIR calls `-`.
fn in_module(captured: &CapturedDiagnostic, source: &Source) -> Diagnostic {
    let mut diagnostic = Diagnostic::error("mlir", captured.message.clone());
    for frame in &captured.frames {
        match frame {
            Frame::File { name, line, column }
                if diagnostic.labels.is_empty() && (name == "-" || name == source.name()) =>
            {
                let at = offset(source.text(), *line, *column);
                let len = source.text()[at..].chars().next().map_or(0, char::len_utf8);
                diagnostic = diagnostic.at(at..at + len, "here");
            }
            Frame::File { name, line, column } => {
                diagnostic = diagnostic.with_note(format!("from {name}:{line}:{column}"));
            }
            Frame::Name(name) if name.starts_with('$') => {
                diagnostic = diagnostic.path(name.clone())
            }
            Frame::Name(name) => diagnostic = diagnostic.with_note(format!("in {name}")),
        }
    }
    with_notes(diagnostic, captured)
}

fn with_notes(mut diagnostic: Diagnostic, captured: &CapturedDiagnostic) -> Diagnostic {
    for note in &captured.notes {
        // The IR as it stood then is for reproducers, not for the user's eyes.
        if !note.message.starts_with("see current operation") {
            diagnostic = diagnostic.with_note(note.message.clone());
        }
    }
    diagnostic
}

/// Byte offset of a one-based line and column, in characters.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let mut rest = text[start..].char_indices().skip(column.saturating_sub(1));
    rest.next().map_or(text.len(), |(offset, _)| start + offset)
}
