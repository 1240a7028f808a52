//! The model files that tests run over: the repository's own, and the corpus when it is there.
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// The corpus of ARK files: `IRC_CORPUS`, or beside the repository.
pub fn corpus() -> PathBuf {
    let default = root().join("../shared/corpus");
    std::env::var_os("IRC_CORPUS").map_or(default, PathBuf::from).join("ark")
}

/// The name of a file.
pub fn name_of(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}

/// The model files of a folder, in order; empty, with a line that says so, when it is absent.
pub fn models(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        println!("skipped: no folder {}", folder.display());
        return vec![];
    };
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let mut models: Vec<_> =
        paths.filter(|path| path.to_string_lossy().ends_with(".model.json")).collect();
    models.sort();
    models
}

/// As [`models`], without the virtual ones: each gives the bytes of the one beside it (`tools/tests/oracle.rs`).
pub fn plain_models(folder: &Path) -> Vec<PathBuf> {
    let is_plain = |path: &PathBuf| !path.to_string_lossy().ends_with(".virtual.model.json");
    models(folder).into_iter().filter(is_plain).collect()
}
