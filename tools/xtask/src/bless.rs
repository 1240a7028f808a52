//! Writes exact expectations anew.

use std::env;
use std::process::Command;

/// Runs the lit tests that have an exact expectation in blessing mode; the changed `.expected`
/// files are then for the author to read.
///
/// # Errors
/// When a command of a test fails before it comes to its expectation.
pub fn run(filters: &[String]) -> Result<(), String> {
    let cargo = env::var("CARGO").unwrap_or("cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--package", "irc-tools", "--test", "lit", "--"])
        .args(filters)
        .env("IRC_BLESS", "1")
        .status()
        .map_err(|error| format!("cannot run cargo test: {error}"))?;
    if status.success() { Ok(()) } else { Err("some tests failed and were not blessed".into()) }
}
