//! Runs a listing on files of DRAM: `simulate listing.txt 0=in.bin 1=weights.bin -- 0=out.bin`.
//!
//! Files before `--` are read into DRAM after that base; those after it are written from it.

use std::process::ExitCode;
use std::time::Instant;

use irc_diag::{Sink, Source, render};
use irc_npu::listing::{self, Limits};
use irc_npu_sim::functional::{self, Memory};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, files) = arguments.split_first().ok_or("usage: simulate listing.txt 0=file ...")?;
    let cut = files.iter().position(|file| file == "--").unwrap_or(files.len());
    let (inputs, outputs) = files.split_at(cut);
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let (source, mut sink) = (Source::new(path, text), Sink::new());
    let listing = listing::parse(&source, Limits::default(), &mut sink);
    let listing = listing.ok_or_else(|| render(&source, &sink.into_diagnostics(), false, 100))?;
    let mut memory = Memory::new(listing.program.cores.len(), 8 << 20);
    for input in inputs {
        let (base, file) = base_and_file(input)?;
        let bytes = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
        memory.dram.insert(base, bytes);
    }
    let start = Instant::now();
    functional::run(&listing.program, &mut memory).map_err(|fault| fault.to_string())?;
    eprintln!("{} instructions in {:?}", listing.program.len(), start.elapsed());
    for output in outputs.iter().skip(1) {
        let (base, file) = base_and_file(output)?;
        let bytes = memory.dram.get(&base).map_or(&[][..], Vec::as_slice);
        std::fs::write(file, bytes).map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(())
}

fn base_and_file(argument: &str) -> Result<(u32, &str), String> {
    let parts = argument.split_once('=').and_then(|(base, file)| Some((base.parse().ok()?, file)));
    parts.ok_or_else(|| format!("`{argument}` is not a base, `=` and a file"))
}
