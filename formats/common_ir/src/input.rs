//! The bytes of a file.

use std::ops::Range;

use bytes::Bytes;
use irc_diag::{Diagnostic, Label, Source};

use crate::locate::Locator;
use crate::{Encoding, Form};

/// Start of the note that locates a diagnostic in a binary file.
pub(crate) const AT_BYTE: &str = "at byte ";

/// The file a module was read from; cheap to clone.
#[derive(Clone, Debug)]
pub struct Input {
    name: String,
    bytes: Bytes,
    form: Form,
}

impl Input {
    pub(crate) fn new(name: &str, bytes: Bytes, form: Form) -> Self {
        Self { name: name.into(), bytes, form }
    }

    /// Name of the file, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Its form.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Byte range of the item at a path of the module, or of the closest ancestor that the
    /// file has; `None` if the file cannot be parsed. For many paths use [`Self::place`].
    pub fn locate(&self, path: &str) -> Option<Range<usize>> {
        Some(Locator::new(&self.bytes, self.form)?.locate(path))
    }

    /// As [`Self::locate`] for many paths; empty ranges if the file cannot be parsed.
    pub fn locate_all(&self, paths: &[String]) -> Vec<Range<usize>> {
        match Locator::new(&self.bytes, self.form) {
            Some(locator) => paths.iter().map(|path| locator.locate(path)).collect(),
            None => vec![0..0; paths.len()],
        }
    }

    /// Locates every diagnostic that has a path but no location: by its bytes in the text, or for a binary
    /// file by a note of the offset; adds the node it is in.
    pub fn place(&self, diagnostics: &mut [Diagnostic]) {
        let mut named =
            diagnostics.iter_mut().filter(|diagnostic| diagnostic.path.is_some()).peekable();
        if named.peek().is_none() {
            return;
        }
        let Some(locator) = Locator::new(&self.bytes, self.form) else { return };
        for diagnostic in named {
            self.place_one(&locator, diagnostic);
        }
    }

    fn place_one(&self, locator: &Locator<'_>, diagnostic: &mut Diagnostic) {
        let Some(path) = &diagnostic.path else { return };
        if let Some(node) = locator.node_of(path) {
            let note = format!("in {node}");
            let is_said = diagnostic.message.contains(&node) || diagnostic.notes.contains(&note);
            diagnostic.notes.extend((!is_said).then_some(note));
        }
        let is_placed = diagnostic.notes.iter().any(|note| note.starts_with(AT_BYTE));
        if is_placed || !diagnostic.labels.is_empty() {
            return;
        }
        let span = locator.locate(path);
        if self.form.encoding == Encoding::Binary {
            diagnostic.notes.push(format!("{AT_BYTE}{} of the file", span.start));
            return;
        }
        let label = |span, text: &str, primary| Label { span, text: text.into(), primary };
        diagnostic.labels.push(label(span, "", true));
        for place in &diagnostic.related {
            diagnostic.labels.push(label(locator.locate(&place.path), &place.text, false));
        }
    }

    /// The source that diagnostics are shown in: the text, or only the name for a binary file.
    pub fn source(&self) -> Source {
        source(&self.name, &self.bytes, self.form.encoding)
    }
}

pub(crate) fn source(name: &str, bytes: &Bytes, encoding: Encoding) -> Source {
    match encoding {
        Encoding::Binary => Source::new(name, ""),
        Encoding::Json | Encoding::Text => Source::from_bytes(name, bytes),
    }
}
