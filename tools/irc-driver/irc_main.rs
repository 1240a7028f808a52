//! `irc`: parses the command line and calls the command.
use crate::{
    bench, check, compile,
    console::{Console, usage},
    crash, npu, run, tune,
};
use irc_cli::{Command, parse_irc};
use std::process::ExitCode;

/// Runs the command of the arguments.
pub fn main(arguments: &[String]) -> ExitCode {
    let (parsed, flags) = match parse_irc(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return usage(&error),
    };
    let console = Console::new("irc", &parsed.console);
    crash::guard(&console, arguments, || match &parsed.command {
        Command::Compile(arguments) => compile::compile(&console, arguments, &flags),
        Command::Run(arguments) => run::run(&console, arguments, &flags),
        Command::Check(arguments) => check::check(&console, arguments, &flags),
        Command::Bench(arguments) => bench::bench(&console, arguments, &flags),
        Command::Tune(arguments) => tune::tune(&console, arguments, &flags),
        Command::Simulate(arguments) => npu::simulate::simulate(&console, arguments, &flags),
    })
}
