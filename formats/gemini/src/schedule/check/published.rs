//! Known errors of published files: accepted, and reported once for each kind.

use std::collections::BTreeMap;

use irc_diag::{Diagnostic, Sink};

/// Collects harmless errors, of which a file may have thousands.
#[derive(Default)]
pub(super) struct Published(BTreeMap<&'static str, Occurrence>);

struct Occurrence {
    message: String,
    path: String,
    why: &'static str,
    count: usize,
}

impl Published {
    /// Records an error; the first place of each code is shown, with the reason `why` it is accepted.
    pub fn note(
        &mut self,
        code: &'static str,
        why: &'static str,
        path: impl FnOnce() -> String,
        message: impl FnOnce() -> String,
    ) {
        let first = || Occurrence { message: message(), path: path(), why, count: 0 };
        self.0.entry(code).or_insert_with(first).count += 1;
    }

    /// One warning for each kind.
    pub fn report(self, sink: &mut Sink) {
        for (code, Occurrence { message, path, why, count }) in self.0 {
            let mut diagnostic = Diagnostic::warning(code, message).path(path).with_note(why);
            if count > 1 {
                diagnostic = diagnostic.with_note(format!("{count} occurrences in this file"));
            }
            sink.push(diagnostic);
        }
    }
}
