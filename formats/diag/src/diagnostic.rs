//! One diagnostic.

use std::ops::Range;

use serde::Serialize;

/// How bad a diagnostic is, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The input is rejected.
    Error,
    /// The input is accepted, and something in it deserves a look.
    Warning,
    /// Information only.
    Note,
}

/// A byte range of the source with a word about it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Label {
    /// Byte range in the text of the source.
    pub span: Range<usize>,
    /// What to say under the range; may be empty.
    pub text: String,
    /// Whether this is where the diagnostic is, rather than a place that explains it.
    pub primary: bool,
}

/// Another place of the same document that explains a diagnostic, named by its JSON path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Related {
    /// JSON path of the place.
    pub path: String,
    /// What the place has to do with the diagnostic.
    pub text: String,
}

/// One diagnostic: where, what was expected, what was found, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Stable name of the kind of diagnostic, such as `ark-missing-key`.
    pub code: &'static str,
    /// The diagnostic in one line.
    pub message: String,
    /// Places in the source; empty when the input did not come from text.
    pub labels: Vec<Label>,
    /// JSON path of the value concerned, such as `$.Nodes[3].Op.Type`.
    pub path: Option<String>,
    /// Other places of the document that explain the diagnostic.
    pub related: Vec<Related>,
    /// Further facts, one a line.
    pub notes: Vec<String>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic without a place yet.
    pub fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            severity,
            code,
            message,
            labels: vec![],
            path: None,
            related: vec![],
            notes: vec![],
            help: None,
        }
    }

    /// An error: the input is rejected.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// A warning: the input is accepted.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    /// A note.
    pub fn note(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, code, message)
    }

    /// Adds the place of the diagnostic.
    #[must_use]
    pub fn at(mut self, span: Range<usize>, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into(), primary: true });
        self
    }

    /// Adds a place that explains the diagnostic.
    #[must_use]
    pub fn also(mut self, span: Range<usize>, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into(), primary: false });
        self
    }

    /// Names the JSON value concerned.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Names another JSON value that explains the diagnostic.
    #[must_use]
    pub fn related(mut self, path: impl Into<String>, text: impl Into<String>) -> Self {
        self.related.push(Related { path: path.into(), text: text.into() });
        self
    }

    /// Adds a further fact.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Whether the input is rejected because of this.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Range of the first primary label, or of the first label.
    pub fn primary_span(&self) -> Option<Range<usize>> {
        let primary = self.labels.iter().find(|label| label.primary);
        primary.or(self.labels.first()).map(|label| label.span.clone())
    }
}
