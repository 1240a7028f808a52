//! The files written by ARK itself.

use std::path::{Path, PathBuf};

/// The folder and its files, sorted; `None`, with a printed line, if it is absent.
pub fn corpus() -> Option<(PathBuf, Vec<PathBuf>)> {
    let root = std::env::var_os("IRC_CORPUS").map(PathBuf::from);
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let folder = root.unwrap_or_else(default).join("ark");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: no corpus at {}", folder.display());
        return None;
    };
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    Some((folder, paths))
}
