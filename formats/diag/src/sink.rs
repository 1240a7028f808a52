//! A collection of diagnostics.

use crate::{Diagnostic, Severity};

/// Diagnostics kept by default before further ones are only counted.
const DEFAULT_LIMIT: usize = 1000;

/// Gathers diagnostics in the order they are made; prints nothing.
///
/// Memory is bounded: beyond the limit diagnostics are counted, not kept.
#[derive(Clone, Debug)]
pub struct Sink {
    diagnostics: Vec<Diagnostic>,
    limit: usize,
    dropped: usize,
    errors: usize,
}

impl Default for Sink {
    fn default() -> Self {
        Self::with_limit(DEFAULT_LIMIT)
    }
}

impl Sink {
    /// An empty sink with the default limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty sink that keeps at most `limit` diagnostics.
    pub fn with_limit(limit: usize) -> Self {
        Self { diagnostics: vec![], limit, dropped: 0, errors: 0 }
    }

    /// Takes one diagnostic.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        if self.diagnostics.len() < self.limit {
            self.diagnostics.push(diagnostic);
        } else {
            self.dropped += 1;
        }
    }

    /// Takes many diagnostics.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        diagnostics.into_iter().for_each(|diagnostic| self.push(diagnostic));
    }

    /// Number of errors so far, those beyond the limit included.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// Whether any error was found.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Diagnostics that were counted but not kept.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// The diagnostics kept, in order.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The diagnostics, followed by a note of how many were left out, if any.
    pub fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        if self.dropped > 0 {
            let message = format!("{} further diagnostics are not shown", self.dropped);
            self.diagnostics.push(Diagnostic::note("too-many-diagnostics", message));
        }
        self.diagnostics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnostics_beyond_the_limit_are_counted() {
        let mut sink = Sink::with_limit(1);
        sink.extend((0..3).map(|i| Diagnostic::error("x", i.to_string())));
        assert_eq!((sink.diagnostics().len(), sink.error_count(), sink.dropped()), (1, 3, 2));
        assert_eq!(sink.into_diagnostics()[1].message, "2 further diagnostics are not shown");
    }
}
