//! Diagnostics of nodes.

use irc_tl::Dependencies;
use std::collections::BTreeSet;
use std::fmt;

/// A diagnostic about a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeDiagnostic {
    /// The node's path in the module, such as `graph.node[3]`.
    pub path: String,
    /// The node in messages: its operator and name.
    pub node: String,
    /// The kind of diagnostic.
    pub kind: NodeDiagnosticKind,
    /// The message.
    pub message: String,
    /// The values that the structure of the program depends on, as seen from the graph of the node.
    pub(crate) needs: Option<Box<Dependencies>>,
}

/// Kinds of [`NodeDiagnostic`]s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeDiagnosticKind {
    /// Unknown operator: no such name, domain and version.
    UnknownOperator,
    /// The operator is not supported in this form.
    Unsupported,
    /// The node violates the definition of its operator.
    Invalid,
    /// The structure of the program depends on these inputs of the model, which have no value in
    /// [`crate::ImportOptions::values`]. Empty if it depends on a value that is computed from no input, or
    /// changes from one iteration to the next.
    NeedsValue(Vec<String>),
    /// The structure of the program depends on the sizes of these inputs of the model, which have no
    /// shape in [`crate::ImportOptions::shapes`].
    NeedsShape(Vec<String>),
    /// An input is declared with another shape than that of [`crate::ImportOptions::shapes`].
    GivenShape,
    /// The computed shape of an output differs from the one that the model states. Exporters often leave
    /// shapes of an earlier state of the graph behind.
    StatedShape,
    /// ONNX Runtime rejects the model for this; here, it is harmless.
    Rejected,
}

impl NodeDiagnostic {
    pub(crate) fn new(
        path: impl Into<String>,
        node: impl Into<String>,
        kind: NodeDiagnosticKind,
        message: impl Into<String>,
    ) -> Self {
        let (path, node, message) = (path.into(), node.into(), message.into());
        Self { path, node, kind, message, needs: None }
    }

    /// The structure of the program depends on unknown values.
    pub(crate) fn needing(self, needs: Dependencies) -> Self {
        let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>();
        let kind = if needs.values.is_empty() && !needs.shapes.is_empty() {
            NodeDiagnosticKind::NeedsShape(list(&needs.shapes))
        } else {
            NodeDiagnosticKind::NeedsValue(list(&needs.values))
        };
        Self { kind, needs: Some(Box::new(needs)), ..self }
    }
}

impl fmt::Display for NodeDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.path, self.node, self.message)
    }
}
