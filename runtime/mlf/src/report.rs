//! Findings by file of the archive.

use std::collections::BTreeMap;

use irc_diag::{Diagnostic, Severity, Sink, Source};

use crate::archive::Archive;

/// How the note begins that places a finding in what is no text.
const AT_BYTE: &str = "at byte ";

/// Gives a finding its place in what is no text.
pub(crate) fn at_byte(finding: Diagnostic, offset: usize) -> Diagnostic {
    finding.with_note(format!("{AT_BYTE}{offset}"))
}

/// What was found in one file: the archive itself, or a member.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The file; its text is empty where it is none, and findings then name the byte in a note.
    pub source: Source,
    /// What was found in it; never empty.
    pub found: Vec<Diagnostic>,
}

/// Everything found in an archive, by file.
#[derive(Clone, Debug, Default)]
pub struct Report {
    files: BTreeMap<String, Findings>,
}

impl Report {
    /// The findings by file: the archive, then its members in order.
    pub fn files(&self) -> impl Iterator<Item = &Findings> {
        self.files.values()
    }

    /// All findings.
    pub fn all(&self) -> impl Iterator<Item = &Diagnostic> {
        self.files().flat_map(|file| &file.found)
    }

    /// Whether the archive is refused.
    pub fn has_errors(&self) -> bool {
        self.all().any(|finding| finding.severity == Severity::Error)
    }

    /// Adds what was found in a file.
    pub(crate) fn add(&mut self, source: Source, sink: Sink) {
        self.put(source, sink.into_diagnostics());
    }

    /// Adds what was found in a JSON member, placed by the paths of the findings.
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

    /// Adds all of another report.
    pub(crate) fn extend(&mut self, other: Report) {
        other.files.into_values().for_each(|file| self.put(file.source, file.found));
    }

    fn put(&mut self, source: Source, found: Vec<Diagnostic>) {
        if found.is_empty() {
            return;
        }
        let empty = || Findings { source: source.clone(), found: vec![] };
        self.files.entry(source.name().to_owned()).or_insert_with(empty).found.extend(found);
    }
}
