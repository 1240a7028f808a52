//! The files that the Gemini tool chain itself wrote.

use std::path::{Path, PathBuf};

use irc_diag::Source;

/// The files of the corpus, sorted; empty, with a message, if it is absent.
pub fn corpus() -> Vec<PathBuf> {
    let root = std::env::var_os("IRC_CORPUS").map(PathBuf::from);
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let folder = root.unwrap_or_else(default).join("gemini");
    let mut paths = vec![];
    files(&folder, &mut paths);
    if paths.is_empty() {
        println!("skipped: no corpus at {}", folder.display());
    }
    paths.sort();
    paths
}

fn files(folder: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let is_json =
            name.is_some_and(|name| name.ends_with(".json") || name.ends_with(".json.gz"));
        match path.is_dir() {
            true => files(&path, paths),
            false if is_json => paths.push(path),
            false => {}
        }
    }
}

/// The text of a file, decompressed.
pub fn open(path: &Path) -> Source {
    let bytes = std::fs::read(path).expect("a readable file");
    irc_gemini_format::source(&path.display().to_string(), &bytes).expect("a valid file")
}
