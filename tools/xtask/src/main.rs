//! Project tasks: `cargo xtask TASK`.

mod bench_peers;
mod bless;
mod command_lines;
mod conformance;
mod cycles;
mod differential;
mod docs;
mod layers;
mod licences;
mod metadata;
mod process;
#[cfg(test)]
mod test_programs;
mod tidy;

use std::env;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask TASK

tasks:
  bench-peers      measures irc, ONNX Runtime, OpenVINO and TorchInductor, and writes docs/performance.md; with
                   --only NAME ..., no page
  bless [FILTER]   rewrites the exact expected outputs of lit tests whose path contains FILTER
  completions      writes docs/completions/ from the definitions of the command lines
  conformance      runs ONNX's test cases and writes docs/conformance.md; with arguments, those of
                   irc-conformance, and no page
  differential N   compares irc with ONNX Runtime on N random models; --seed S starts at another one
  docs             writes what docs/ copies from the code: dialects, stages, operators
  layers           checks that dependencies between crates, and modules in them, point one way, and what
                   docs/ARCHITECTURE.md promises of them
  licences         checks the licences of all that irc is built from
  man              writes docs/man/ from the definitions of the command lines
  tidy             checks that words retired by docs/glossary.md are not used";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let task = arguments.first().map(String::as_str);
    let result = match task {
        Some("bench-peers") => bench_peers::run(&arguments[1..]),
        Some("bless") => bless::run(&arguments[1..]),
        Some("completions") => command_lines::completions(),
        Some("conformance") => conformance::run(&arguments[1..]),
        Some("differential") => differential::run(&arguments[1..]),
        Some("docs") => docs::run(),
        Some("layers") => layers::run(),
        Some("licences") => licences::run(),
        Some("man") => command_lines::man(),
        Some("tidy") => tidy::run(),
        Some("help" | "--help" | "-h") => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
