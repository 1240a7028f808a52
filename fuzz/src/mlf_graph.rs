//! Any bytes: the reader and the checks of graphs never panic, explain what they reject, and write
//! back what every client accepts.

use irc_diag::{Sink, Source, render};
use irc_mlf::graph::{self, read, write};

/// Checks the properties of the module for these bytes.
pub fn check(bytes: &[u8]) {
    let source = Source::from_bytes("fuzz.json", bytes);
    let mut sink = Sink::new();
    let found = read(&source, &mut sink);
    assert_eq!(found.is_none(), sink.has_errors(), "rejected if and only if explained");
    render(&source, sink.diagnostics(), false, 80);
    let Some(found) = found else { return };
    graph::check(&found);
    if let Ok(text) = write(&found) {
        let again = read(&Source::new("again", text), &mut Sink::new());
        assert_eq!(again, Some(found), "written and read again");
    }
}
