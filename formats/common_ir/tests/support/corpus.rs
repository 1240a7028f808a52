//! Files that other tools wrote.

use std::path::{Path, PathBuf};

/// A folder of the corpus and its files with one of the suffixes, sorted; `None`, with a message,
/// if it is absent.
pub fn files(folder: &str, suffixes: &[&str]) -> Vec<PathBuf> {
    let root = std::env::var_os("IRC_CORPUS").map(PathBuf::from);
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let folder = root.unwrap_or_else(default).join("common_ir").join(folder);
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: no corpus at {}", folder.display());
        return vec![];
    };
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let has_suffix = |path: &PathBuf| {
        let name = path.to_string_lossy();
        suffixes.iter().any(|suffix| name.ends_with(suffix))
    };
    let mut paths: Vec<PathBuf> = paths.filter(has_suffix).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no {suffixes:?} in {}", folder.display());
    paths
}
