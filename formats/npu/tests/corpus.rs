//! Published listings and traces print as they were read, byte for byte, and round-trip through the binary
//! encoding.

use std::path::{Path, PathBuf};

use irc_diag::{Sink, Source, render};
use irc_npu::listing::{self, Limits};
use irc_npu::verify::{self, Machine};
use irc_npu::{Program, binary};

/// Texts of the corpus with a suffix; prints a message if there are none.
fn texts(ending: &str) -> Vec<(String, String)> {
    let folder = std::env::var_os("IRC_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"),
        PathBuf::from,
    );
    let Ok(entries) = std::fs::read_dir(folder.join("gemini/single_core")) else {
        println!("skipped: there is no corpus at {}", folder.display());
        return vec![];
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let named = paths.into_iter().filter(|path| path.to_string_lossy().ends_with(ending));
    named
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a text");
            (path.display().to_string(), text)
        })
        .collect()
}

fn explained(source: &Source, sink: Sink) -> String {
    render(source, &sink.into_diagnostics(), false, 100)
}

fn assert_packs(program: &Program, text: &str) {
    let packed = binary::encode(program);
    assert_eq!(binary::decode(&packed).as_ref(), Ok(program));
    assert!(packed.len() * 5 < text.len(), "{} of {} bytes", packed.len(), text.len());
}

#[test]
fn listings_print_as_read() {
    for (name, text) in texts("_asm.txt") {
        let (source, mut sink) = (Source::new(&name, &text), Sink::new());
        let listing = listing::parse(&source, Limits::default(), &mut sink);
        let listing = listing.unwrap_or_else(|| panic!("{}", explained(&source, sink)));
        assert_eq!(listing.program.len(), text.lines().count(), "{name}");
        assert!(listing::write(&listing.program) == text, "{name} prints differently");
        assert_packs(&listing.program, &text);
    }
}

#[test]
fn traces_print_as_read() {
    for (name, text) in texts("_sim.txt") {
        let (source, mut sink) = (Source::new(&name, &text), Sink::new());
        let trace = listing::parse_trace(&source, Limits::default(), &mut sink);
        let trace = trace.unwrap_or_else(|| panic!("{}", explained(&source, sink)));
        assert_eq!(trace.times[0].len(), trace.program.len(), "{name}");
        let written = listing::write_trace(&trace.program, &trace.times);
        assert!(written == text, "{name} prints differently");
    }
}

/// The vector operations of batches, which repeat without their own addresses, are warnings.
#[test]
fn listings_are_right() {
    for (name, text) in texts("_asm.txt") {
        // Those of 16 and 64 images have races, which their own traces show.
        if name.contains("_b16_") || name.contains("_b64_") {
            continue;
        }
        let (source, mut sink) = (Source::new(&name, &text), Sink::new());
        let listing = listing::parse(&source, Limits::default(), &mut sink).expect("a listing");
        let machine = Machine::default();
        verify::verify(&listing.program, Some(&listing.spans), &machine, &mut sink);
        let expected: &[&str] = match (name.contains("resnet50"), name.contains("_b1_")) {
            (_, true) => &[],
            (false, false) => &["npu-vector-batch"],
            // Two layers share units of WL0.
            (true, false) => &["npu-vector-batch", "npu-weights"],
        };
        let codes: Vec<_> = sink.diagnostics().iter().map(|diagnostic| diagnostic.code).collect();
        assert_eq!(codes, expected, "{}", explained(&source, sink));
    }
}
