//! The README names every code a finding can have, and no other.

use std::collections::BTreeSet;
use std::path::Path;

fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => sources(&path, text),
            false => text.push_str(&std::fs::read_to_string(&path).expect("a source file")),
        }
    }
}

/// Codes between two quotes of the kind given.
fn codes(text: &str, quote: char) -> BTreeSet<&str> {
    let is_code = |part: &&str| {
        let rest = part.strip_prefix("emit-");
        rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
    };
    text.split(quote).filter(is_code).collect()
}

#[test]
fn every_code_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).expect("a README");
    let mut text = String::new();
    sources(&root.join("src"), &mut text);
    assert_eq!(codes(&text, '"'), codes(&readme, '`'));
}
