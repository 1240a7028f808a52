//! How fast a listing is read, verified and timed: `speed listing.txt [repetitions]`.
//!
//! Workloads get 10,000 cycles each; a long program is the listing's cores repeated side by side.

use std::process::ExitCode;
use std::time::Instant;

use irc_diag::{Sink, Source, render};
use irc_npu::listing::{self, Limits};
use irc_npu::verify::{self, Machine};
use irc_npu::{Core, Program, binary};
use irc_npu_sim::cycles::{self, Options};

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: speed listing.txt [repetitions]");
        return ExitCode::from(2);
    };
    let repeat: u32 = std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(100);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("cannot read {path}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let source = Source::new(&path, text);
    let mut sink = Sink::new();
    let start = Instant::now();
    let Some(listing) = listing::parse(&source, Limits::default(), &mut sink) else {
        eprint!("{}", render(&source, &sink.into_diagnostics(), false, 100));
        return ExitCode::FAILURE;
    };
    println!("read {} instructions in {:?}", listing.program.len(), start.elapsed());
    println!("binary: {} of {} bytes", binary::encode(&listing.program).len(), source.text().len());
    let start = Instant::now();
    verify::verify(&listing.program, None, &Machine::default(), &mut sink);
    println!("verified in {:?}, {} findings", start.elapsed(), sink.diagnostics().len());
    timed(&listing.program, repeat)
}

fn timed(program: &Program, repeat: u32) -> ExitCode {
    let Some(first) = program.cores.first() else { return ExitCode::SUCCESS };
    let workloads = first.code.iter().map(|instruction| instruction.origin.wkl);
    let times = workloads.map(|workload| ((first.id, workload), 1e4)).collect();
    let alone = Program { cores: vec![Core { id: first.id, code: first.code.clone() }] };
    let options = Options { times, ..Options::default() };
    let start = Instant::now();
    for _ in 0..repeat {
        if let Err(fault) = cycles::run(&alone, &options) {
            eprintln!("{fault}");
            return ExitCode::FAILURE;
        }
    }
    let count = f64::from(repeat) * alone.len() as f64;
    println!(
        "timed {:.1} million instructions a second",
        count / start.elapsed().as_secs_f64() / 1e6
    );
    ExitCode::SUCCESS
}
