//! What cargo knows of the workspace.

use serde_json::Value;
use std::env;
use std::process::Command;

/// The output of `cargo metadata --format-version 1` with `flags`.
///
/// # Errors
/// When cargo cannot be run or fails.
pub fn read(flags: &[&str]) -> Result<Value, String> {
    let cargo = env::var("CARGO").unwrap_or("cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(flags)
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo metadata failed: {stderr}"));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// The packages, as cargo lists them.
pub fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

/// A text field of a JSON object, empty when absent.
pub fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}
