//! Diagnostics at the nodes of a graph.

use irc_diag::Diagnostic;

/// A diagnostic at the node of an origin, which is `path` or `path: node`.
pub fn located(diagnostic: Diagnostic, origin: Option<&str>) -> Diagnostic {
    match origin.map(|origin| origin.split_once(": ").unwrap_or((origin, ""))) {
        Some((path, "")) => diagnostic.path(path),
        Some((path, node)) => {
            let message = format!("{node}: {}", diagnostic.message);
            Diagnostic { message, ..diagnostic }.path(path)
        }
        None => diagnostic,
    }
}
