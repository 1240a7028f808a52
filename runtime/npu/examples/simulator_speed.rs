//! Measures how fast a listing is read, verified and timed: `speed listing.txt [repetitions]`.
//!
//! Workloads get 10,000 cycles each.

use std::process::ExitCode;
use std::time::Instant;

use irc_diag::{Sink, Source, render};
use irc_npu::listing::{self, Limits};
use irc_npu::verify::{self, Machine};
use irc_npu::{Program, binary};
use irc_npu_sim::cycles::{self, Error, Options};
use irc_npu_sim::durations::WorkloadTimes;
use irc_npu_sim::noc::Mesh;

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
    println!("verified in {:?}, {} diagnostics", start.elapsed(), sink.diagnostics().len());
    timed(&listing.program, repeat)
}

/// Times the whole program; with several cores also on a mesh, where every link must be followed.
fn timed(program: &Program, repeat: u32) -> ExitCode {
    let workloads = program.cores.iter().flat_map(|core| {
        core.code.iter().map(|instruction| ((core.id, instruction.origin.wkl), 1e4))
    });
    let times: WorkloadTimes = workloads.collect();
    let mut options = Options { times, ..Options::default() };
    if let Err(fault) = measure("alone", program, &options, repeat) {
        eprintln!("{fault}");
        return ExitCode::FAILURE;
    }
    // Cores are numbered by rows of a mesh with a port at each end.
    let last = program.cores.last().map_or(0, |core| core.id);
    let square = (1..64).find(|side| side * (side + 2) > last).unwrap_or(64);
    if program.cores.len() > 1 {
        options.mesh = Some(Mesh::with_ports_at_sides(square, square, 24.0, 16.0));
        if let Err(fault) = measure("on a mesh", program, &options, repeat) {
            eprintln!("{fault}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn measure(how: &str, program: &Program, options: &Options, repeat: u32) -> Result<(), Error> {
    let (start, worked) = (Instant::now(), processor_time());
    for _ in 0..repeat {
        cycles::run(program, options)?;
    }
    let millions = f64::from(repeat) * program.len() as f64 / 1e6;
    let rate = millions / start.elapsed().as_secs_f64();
    let cores = program.cores.len();
    print!("timed {how}, {cores} cores: {rate:.1} million instructions a second");
    match worked.zip(processor_time()) {
        Some((from, to)) => println!(", {:.1} a second of processor time", millions / (to - from)),
        None => println!(),
    }
    Ok(())
}

/// Processor time of this thread in seconds, if the system provides it: on a busy machine it
/// is more accurate than a clock.
fn processor_time() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = text.split(' ').next()?.parse().ok()?;
    Some(nanoseconds as f64 / 1e9)
}
