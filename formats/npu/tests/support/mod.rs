//! Small programs.

use irc_diag::{Diagnostic, Sink, Source, render};
use irc_npu::listing::{self, Limits, Listing};
use irc_npu::verify::{self, Machine};
use irc_npu::{Op, Program};

/// One core: quantise, convolve, pool, convolve in two tiles, copy, add, store.
pub const SMALL: &str = include_str!("../data/small.txt");

/// Two cores: one sends to the other, which stores what the first loads again.
pub const TWO_CORES: &str = include_str!("../data/two_cores.txt");

/// Parses a listing that must be valid.
pub fn read(text: &str) -> Listing {
    let (source, mut sink) = (Source::new("small.txt", text), Sink::new());
    let listing = listing::parse(&source, Limits::default(), &mut sink);
    listing.unwrap_or_else(|| panic!("{}", render(&source, &sink.into_diagnostics(), false, 100)))
}

/// The diagnostics of the verifier.
#[allow(dead_code, reason = "not every test file verifies")]
pub fn diagnostics(program: &Program) -> Vec<Diagnostic> {
    let mut sink = Sink::new();
    verify::verify(program, None, &Machine::default(), &mut sink);
    sink.into_diagnostics()
}

/// Indices of the instructions with a name on a core.
#[allow(dead_code, reason = "not every test file looks for instructions")]
pub fn places(program: &Program, core: usize, name: &str) -> Vec<usize> {
    let code = &program.cores[core].code;
    assert!(Op::NAMES.contains(&name));
    (0..code.len()).filter(|i| code[*i].op.name() == name).collect()
}
