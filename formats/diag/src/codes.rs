//! The codes in sources and in pages, for a test that compares them.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// The codes with one of these prefixes (`ark-`) that are in double quotes in the files of a folder, at
/// any depth.
///
/// # Errors
/// When a file cannot be read.
pub fn in_sources(folder: &Path, prefixes: &[&str]) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        found.extend(match path.is_dir() {
            true => in_sources(&path, prefixes)?,
            false => quoted(&std::fs::read_to_string(&path)?, '"', prefixes),
        });
    }
    Ok(found)
}

/// The codes with one of these prefixes that are in backquotes in a page.
pub fn in_page(page: &str, prefixes: &[&str]) -> BTreeSet<String> {
    quoted(page, '`', prefixes)
}

fn quoted(text: &str, quote: char, prefixes: &[&str]) -> BTreeSet<String> {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_code = |part: &&str| {
        let mut rest = prefixes.iter().filter_map(|prefix| part.strip_prefix(prefix));
        rest.any(|rest| rest.chars().all(is_letter))
    };
    text.split(quote).filter(is_code).map(str::to_owned).collect()
}
