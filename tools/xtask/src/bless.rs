//! Rewrites exact expectations.

use std::env;
use std::process::Command;

/// Runs the lit tests that have an exact expectation in blessing mode; the author should review the changed
/// `.expected` files.
///
/// # Errors
/// If a command of a test fails before it reaches its expectation.
pub fn run(filters: &[String]) -> Result<(), String> {
    let filters = filters.iter().map(String::as_str);
    let fixed = ["--test", "lit", "--"];
    cargo_test(&fixed.into_iter().chain(filters).collect::<Vec<_>>())
}

/// Runs tests of the workspace in blessing mode, with what `irc-dev` builds: of one package alone, cargo would
/// build dependencies again with other features.
///
/// # Errors
/// If a test fails even in this mode.
pub fn cargo_test(arguments: &[&str]) -> Result<(), String> {
    let cargo = env::var("CARGO").unwrap_or("cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--locked", "--workspace"])
        .args(has_mpi().then_some("--features=irc-executor/mpi,irc-tools/mpi"))
        .args(arguments)
        .env("IRC_BLESS", "1")
        .status()
        .map_err(|error| format!("cannot run cargo test: {error}"))?;
    if status.success() { Ok(()) } else { Err("some tests failed and blessed nothing".into()) }
}

fn has_mpi() -> bool {
    let compiler = env::var("MPICC").unwrap_or("mpicc".into());
    Command::new(compiler).arg("--version").output().is_ok()
}
