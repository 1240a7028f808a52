//! Any bytes: the listing reader never panics, explains what it rejects, and writes back what it
//! accepts; and verifier and simulators end on that.

use irc_diag::{Sink, Source, render};
use irc_npu::listing::{self, Limits};
use irc_npu::verify::{self, Machine};
use irc_npu_sim::cycles;

/// Checks the properties of the module for these bytes.
pub fn check(bytes: &[u8]) {
    let source = Source::from_bytes("fuzz.txt", bytes);
    let mut sink = Sink::new();
    let listing = listing::parse(&source, Limits::default(), &mut sink);
    assert_eq!(listing.is_none(), sink.has_errors(), "rejected if and only if explained");
    if let Some(listing) = listing {
        let text = listing::write(&listing.program);
        let again = listing::parse(&Source::new("again", text), Limits::default(), &mut sink);
        assert_eq!(again.map(|again| again.program).as_ref(), Some(&listing.program));
        verify::verify(&listing.program, Some(&listing.spans), &Machine::default(), &mut sink);
        let _ = cycles::run(&listing.program, &cycles::Options::default());
    }
    render(&source, &sink.into_diagnostics(), false, 80);
}
