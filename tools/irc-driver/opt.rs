//! `irc-opt`: mlir-opt over irc's dialects and passes.
use std::process::ExitCode;

/// Runs mlir-opt's main with our registry.
pub fn main(arguments: &[String]) -> ExitCode {
    irc::passes::register_all();
    let summary = "irc modular optimizer driver";
    crate::code(irc_mlir::opt_main(arguments, summary, &irc_dialects::registry()))
}
