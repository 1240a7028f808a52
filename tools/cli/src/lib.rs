//! The command lines of `irc` and `irc-translate`, as definitions without behaviour.
//!
//! The tools parse with them; `cargo xtask man` and `cargo xtask completions` print them. Nothing
//! here depends on LLVM or MLIR.

mod common;
mod flags;
mod irc;
mod matrix;
mod translate;

pub use common::{
    CUDA, Color, Compile, Console, Diagnostics, Dialect, EMULATOR, ENGINES, Explain, Functions,
    GENERATORS, Graphs, Machine, Npu, Objective, Planner, Progress, Quantise, QuantisedResults,
    REFERENCE, Scales,
};
pub use flags::{COMMANDS, CommandRow, FLAGS, FlagRow, Flags, NamedFile, rejection};
pub use irc::{
    Bench, Check, Codegen, Command, CompileTo, Irc, Kind, Run, Simulate, Transport, Tune,
};
pub use matrix::{InputKind, MODELS, Support, TRANSLATIONS, matrix_page};
pub use translate::{Emit, Import, TextOrBinary, Translate, Writing, double_dashes};

use clap::{CommandFactory, FromArgMatches};

/// The exit codes of all tools; printed at the end of every `--help`.
const EXIT_CODES: &str = "\
Exit codes: 0 success, 1 error in the input, 2 usage error, 3 results differ, 70 internal error.";

/// The command line of `irc`, with what each flag applies to in its help.
pub fn irc_command() -> clap::Command {
    flags::annotated(Irc::command())
}

/// The command line of `irc-translate`, with what each flag applies to in its help.
pub fn translate_command() -> clap::Command {
    flags::annotated(Translate::command())
}

/// Parses the command line of `irc`; beside it the flags of its subcommand.
///
/// # Errors
/// A wrong command line, or a request for help.
pub fn parse_irc(arguments: &[String]) -> Result<(Irc, Flags), clap::Error> {
    let mut command = irc_command();
    let matches = command.try_get_matches_from_mut(arguments)?;
    let (name, own) = matches.subcommand().unwrap_or(("", &matches));
    let flags = Flags::of(command.find_subcommand(name).unwrap_or(&command), own);
    Ok((Irc::from_arg_matches(&matches)?, flags))
}

/// Parses the command line of `irc-translate`, in which long flags may have one dash.
///
/// # Errors
/// As [`parse_irc`].
pub fn parse_translate(arguments: &[String]) -> Result<(Translate, Flags), clap::Error> {
    let mut command = translate_command();
    let rewritten = double_dashes(arguments.iter().cloned());
    let matches = command.try_get_matches_from_mut(rewritten)?;
    let flags = Flags::of(&command, &matches);
    Ok((Translate::from_arg_matches(&matches)?, flags))
}
