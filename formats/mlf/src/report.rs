//! Diagnostics by file of an archive.

use irc_diag::{Diagnostic, Severity, Sink, Source};

use crate::archive::Archive;

/// The diagnostics of one file: the archive itself, or a member.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    /// The file; its text is empty if it is binary, and diagnostics then state the offset in a note.
    pub source: Source,
    /// The diagnostics; never empty.
    pub found: Vec<Diagnostic>,
}

/// All diagnostics of an archive, by file.
#[derive(Clone, Debug, Default)]
pub struct Report {
    files: Vec<Diagnostics>,
}

impl Report {
    /// The diagnostics by file: the archive, then its members in order.
    pub fn files(&self) -> impl Iterator<Item = &Diagnostics> {
        self.files.iter()
    }

    /// All diagnostics.
    pub fn all(&self) -> impl Iterator<Item = &Diagnostic> {
        self.files().flat_map(|file| &file.found)
    }

    /// Whether the archive is rejected.
    pub fn has_errors(&self) -> bool {
        self.all().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Adds the diagnostics of a file.
    pub(crate) fn add(&mut self, source: Source, sink: Sink) {
        self.put(source, sink.into_diagnostics());
    }

    /// Adds diagnostics of binary members, each with the path of its member.
    pub(crate) fn add_binary(&mut self, archive: &Archive, found: Vec<(&str, Diagnostic)>) {
        let found = irc_diag::sorted(found, |(a, _), (b, _)| a.cmp(b));
        let mut sink = Sink::new();
        let mut found = found.into_iter().peekable();
        while let Some((path, diagnostic)) = found.next() {
            sink.push(diagnostic);
            if found.peek().is_none_or(|(next, _)| *next != path) {
                self.add(archive.binary_of(path), std::mem::take(&mut sink));
            }
        }
    }

    /// Adds the diagnostics of a JSON member, located by their paths.
    pub(crate) fn add_json(&mut self, archive: &Archive, path: &str, found: Vec<Diagnostic>) {
        if found.is_empty() {
            return;
        }
        let source = archive.text_of(path);
        let mut sink = Sink::new();
        sink.extend(found);
        let mut found = sink.into_diagnostics();
        irc_json::place(source.text(), &crate::json::FORMAT, &mut found);
        self.put(source, found);
    }

    /// Adds all diagnostics of another report.
    pub(crate) fn extend(&mut self, other: Report) {
        self.files.extend(other.files);
    }

    fn put(&mut self, source: Source, found: Vec<Diagnostic>) {
        if found.is_empty() {
            return;
        }
        self.files.push(Diagnostics { source, found });
    }

    /// The complete report: each file once, in order.
    pub(crate) fn sorted(mut self) -> Self {
        self.files = irc_diag::sorted(self.files, |a, b| a.source.name().cmp(b.source.name()));
        self.files.dedup_by(|next, kept| {
            let is_same = next.source.name() == kept.source.name();
            if is_same {
                kept.found.append(&mut next.found);
            }
            is_same
        });
        self
    }
}
