//! The licence of every crate in the dependency graph.
//!
//! `cargo metadata` says each crate's SPDX expression. It passes when it can be met with the
//! licences below: `OR` with one of its sides, `AND` with both.

use crate::metadata::{self, text};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Permissive licences, fit to ship with under `MIT OR Apache-2.0`.
const ALLOWED: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// What only the MIT licence says.
const MIT_GRANT: &str = "Permission is hereby granted, free of charge";

/// Checks the whole graph, tests and build scripts included.
///
/// # Errors
/// Every crate whose licence is missing or not allowed.
pub fn run() -> Result<(), String> {
    let graph = metadata::read(&[])?;
    let mut faults = Vec::new();
    let mut count = 0;
    for package in metadata::packages(&graph) {
        count += 1;
        let licence = licence_of(package);
        if !admits(&licence) {
            let (name, version) = (text(package, "name"), text(package, "version"));
            faults.push(format!("{name} {version}: licence `{licence}` is not allowed"));
        }
    }
    if !faults.is_empty() {
        return Err(faults.join("\n"));
    }
    println!("licences of {count} crates are allowed");
    Ok(())
}

/// The SPDX expression; for a crate that only carries the text, what the text is.
fn licence_of(package: &Value) -> String {
    let (expression, file) = (text(package, "license"), text(package, "license_file"));
    let folder = Path::new(text(package, "manifest_path")).with_file_name(file);
    if expression.is_empty()
        && let Ok(found) = fs::read_to_string(folder)
        && found.contains(MIT_GRANT)
    {
        return "MIT".into();
    }
    expression.into()
}

/// `/` is the older spelling of `OR`. No expression in use nests deeper than one bracket.
fn admits(licence: &str) -> bool {
    let licence = licence.replace('/', " OR ");
    let terms = split_outside_brackets(&licence, " AND ");
    terms.iter().all(|term| {
        let term = term.trim();
        let inner = term.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        inner.unwrap_or(term).split(" OR ").any(|one| ALLOWED.contains(&one.trim()))
    })
}

fn split_outside_brackets<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(separator) {
        let before = &text[..at];
        if before.matches('(').count() == before.matches(')').count() {
            parts.push(&text[start..at]);
            start = at + separator.len();
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graph_is_allowed() {
        assert_eq!(run(), Ok(()));
    }

    #[test]
    fn expressions_are_read() {
        assert!(admits("MIT OR Apache-2.0"));
        assert!(admits("MIT/Apache-2.0"));
        assert!(admits("GPL-3.0 OR MIT"));
        assert!(admits("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(!admits("MIT AND GPL-3.0"));
        assert!(!admits("(MIT OR Apache-2.0) AND NCSA"));
        assert!(!admits(""));
    }
}
