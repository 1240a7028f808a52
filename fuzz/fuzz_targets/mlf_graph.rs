//! Any bytes: the reader and the checks of graphs never panic, explain what they refuse, and write
//! back what every client takes.
//!
//! On stable Rust, for one minute, from the folder of the repository:
//!
//!     mkdir -p fuzz/corpus/mlf_graph
//!     cargo fuzz run --sanitizer none mlf_graph fuzz/corpus/mlf_graph formats/mlf/tests/data -- \
//!         -max_total_time=60
#![no_main]

use irc_diag::{Sink, Source, render};
use irc_mlf::graph::{check, read, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let source = Source::from_bytes("fuzz.json", bytes);
    let mut sink = Sink::new();
    let graph = read(&source, &mut sink);
    assert_eq!(graph.is_none(), sink.has_errors(), "refused if and only if explained");
    render(&source, sink.diagnostics(), false, 80);
    let Some(graph) = graph else { return };
    check(&graph);
    if let Ok(text) = write(&graph) {
        let again = read(&Source::new("again", text), &mut Sink::new());
        assert_eq!(again, Some(graph), "written and read again");
    }
});
