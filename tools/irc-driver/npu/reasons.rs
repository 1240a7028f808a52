//! Why the NPU does not compute a model.
use irc_diag::{Diagnostic, counted};

/// An error about what the NPU does not compute, with the flag that helps.
pub fn advised(mut error: irc::Error) -> irc::Error {
    if let Some(last) = error.diagnostics.iter_mut().rfind(|found| is_of_node(found))
        && last.help.is_none()
        && last.path.is_some()
    {
        last.help = Some("with --host-fallback, the host computes what the NPU does not".into());
    }
    error
}

/// The first diagnostic of an error, and the number of others.
pub fn first(error: &irc::Error) -> String {
    let found = error.diagnostics();
    let first = found.first().map_or(String::new(), |first| first.message.clone());
    match found.len() {
        0 | 1 => first,
        count => format!("{first} (and {})", counted(count - 1, "more layer")),
    }
}

/// Whether an error is about what the NPU does not compute.
pub fn is_of_nodes(error: &irc::Error) -> bool {
    error.diagnostics().iter().any(is_of_node)
}

/// Whether the NPU does not compute a node.
fn is_of_node(found: &Diagnostic) -> bool {
    let codes = ["layer-operator", "layer-axes", "layer-numbers", "cost-layer", "cost-network"];
    codes.contains(&found.code)
}
