//! MLIR's diagnostics as diagnostics in the user's file.
use super::error::QueryError;
use crate::{
    diagnostics::{errors, with_notes},
    import::{Document, path_of},
};
use irc_diag::Diagnostic;
use irc_mlir::{CapturedDiagnostic, Frame};

/// The errors among captured diagnostics, with locations in the file that the module was imported from.
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

/// A diagnostic at the node of the location.
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
