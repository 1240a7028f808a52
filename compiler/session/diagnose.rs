//! MLIR's diagnostics as diagnostics in the user's file.
use super::Failure;
use irc_ark_format::model::Document;
use irc_diag::{Diagnostic, Source};
use irc_mlir::{CapturedDiagnostic, Frame, Severity};
use std::ops::Range;

/// Places captured diagnostics in the file they came from.
pub fn failure(
    captured: &[CapturedDiagnostic],
    source: &Source,
    document: Option<&Document>,
) -> Failure {
    let errors: Vec<_> = captured
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .map(|diagnostic| place(diagnostic, source, document))
        .collect();
    if errors.is_empty() {
        return Failure::internal("a pass failed without saying why");
    }
    let internal = captured.iter().any(|diagnostic| diagnostic.message.contains("internal error"));
    Failure { diagnostics: errors, internal }
}

fn place(
    captured: &CapturedDiagnostic,
    source: &Source,
    document: Option<&Document>,
) -> Diagnostic {
    let path = captured.frames.iter().find_map(|frame| match frame {
        Frame::Name(name) if document.is_none() || name.starts_with('$') => Some(name.clone()),
        _ => None,
    });
    let mut diagnostic = Diagnostic::error("lowering", captured.message.clone());
    if let Some(path) = path {
        let span = document.and_then(|document| span_of(&path, document, source));
        if let Some(span) = span {
            diagnostic = diagnostic.at(span, "this op");
        }
        diagnostic = diagnostic.path(path);
    }
    for note in &captured.notes {
        // The IR as it stood then is for reproducers, not for the user's eyes.
        if !note.message.starts_with("see current operation") {
            diagnostic = diagnostic.with_note(note.message.clone());
        }
    }
    diagnostic
}

/// The first line of the node that a path leads into.
fn span_of(path: &str, document: &Document, source: &Source) -> Option<Range<usize>> {
    let index: usize = path.strip_prefix("$.Nodes[")?.split(']').next()?.parse().ok()?;
    let origin = document.origins.get(index)?;
    let text = source.text().get(origin.offset..origin.offset + origin.len)?;
    let line = text.find('\n').unwrap_or(text.len());
    Some(origin.offset..origin.offset + line.max(1))
}
