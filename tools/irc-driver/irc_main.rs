//! `irc`: parses the command line and hands over to the command.
use crate::{bench, check, compile, console::Console, crash, npu, run};
use irc_cli::{Command, parse_irc};
use std::process::ExitCode;

/// Runs the command that the arguments say.
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
        Command::Simulate(arguments) => npu::simulate::simulate(&console, arguments),
    })
}

/// Prints what clap has to say: help to standard output, errors to standard error.
pub fn usage(error: &clap::Error) -> ExitCode {
    // A reader that has gone away, as `| head` does, is no error.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
