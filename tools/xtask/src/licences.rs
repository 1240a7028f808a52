//! Checks that every dependency has a licence that permits irc to be distributed.
//!
//! Dependencies that are built into programs are checked, and build dependencies; those of tests are not
//! distributed.

use crate::metadata::{self, Graph, text};
use serde_json::Value;
use spdx::{Expression, ParseMode};
use std::fs;
use std::path::Path;

/// Licences that require no more than notices.
const ALLOWED: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
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

/// The exception that LLVM adds to `Apache-2.0`: it only grants more permissions.
const ALLOWED_EXCEPTION: &str = "LLVM-exception";

/// The beginning of the text of the licence `MIT`, for packages with a file instead of a name.
const MIT: &str = "Permission is hereby granted, free of charge, to any person obtaining a copy";

/// Checks the workspace.
///
/// # Errors
/// Every package whose licence is not allowed.
pub fn run() -> Result<(), String> {
    let workspace = metadata::resolved()?;
    let graph = Graph::new(&workspace);
    let faults: Vec<_> = graph.below(graph.members()).into_iter().filter_map(fault).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// The error in the licence of a package.
fn fault(package: &Value) -> Option<String> {
    let (name, version) = (text(package, "name"), text(package, "version"));
    let licence = licence(package);
    match Expression::parse_mode(&licence, ParseMode::LAX) {
        Err(error) => Some(format!("{name} {version}: the licence `{licence}`: {}", error.reason)),
        Ok(expression) if expression.evaluate(is_allowed) => None,
        Ok(_) => {
            Some(format!("{name} {version}: the licence `{licence}` is not one of licences.rs"))
        }
    }
}

/// The licence that a package names, or that of its licence file.
fn licence(package: &Value) -> String {
    let (named, file) = (text(package, "license"), text(package, "license_file"));
    if !named.is_empty() || file.is_empty() {
        return named.to_owned();
    }
    let path = Path::new(text(package, "manifest_path")).with_file_name(file);
    let words = fs::read_to_string(path).unwrap_or_default();
    let words: Vec<&str> = words.split_whitespace().collect();
    if words.join(" ").contains(MIT) { "MIT".to_owned() } else { String::new() }
}

fn is_allowed(licence: &spdx::LicenseReq) -> bool {
    let has_name = |name| licence.license.id().is_some_and(|id| id.name == name);
    let exception = licence.addition.as_ref().map(|addition| addition.id().map(|id| id.name));
    ALLOWED.into_iter().any(has_name)
        && exception.is_none_or(|exception| exception == Some(ALLOWED_EXCEPTION))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dependencies_may_be_given_away() {
        assert_eq!(run(), Ok(()));
    }

    #[test]
    fn a_licence_that_asks_for_more_is_found() {
        let fault = |licence: &str| {
            fault(&json!({ "name": "x", "version": "1.0.0", "license": licence }))
                .unwrap_or_default()
        };
        for sound in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0-only OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert_eq!(fault(sound), "", "{sound}");
        }
        for wrong in ["GPL-3.0-only", "MIT AND MPL-2.0", "Apache-2.0 WITH Classpath-exception-2.0"]
        {
            assert_eq!(
                fault(wrong),
                format!("x 1.0.0: the licence `{wrong}` is not one of licences.rs")
            );
        }
        assert!(fault("").starts_with("x 1.0.0: the licence ``: "));
    }
}
