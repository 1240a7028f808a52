//! Checks that each file of tests is part of a program.
//!
//! A package has one test program, `tests/main.rs`, so that it is linked once, and its manifest turns
//! discovery off. A file that `main.rs` does not name would then never be compiled.

#[cfg(test)]
mod tests {
    use crate::metadata::{self, text};
    use std::fs;
    use std::path::Path;

    /// The files directly under `tests/` of the package of `manifest` that are not part of a program.
    fn orphans(manifest: &Path, programs: &[&str]) -> Vec<String> {
        let folder = manifest.with_file_name("tests");
        let main = fs::read_to_string(folder.join("main.rs")).unwrap_or_default();
        let mut orphans = Vec::new();
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("an entry of a folder").path();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let is_source = path.extension().is_some_and(|suffix| suffix == "rs");
            let is_module = main.lines().any(|line| line == format!("mod {stem};"));
            let is_program = programs.iter().any(|program| Path::new(program) == path);
            if is_source && !is_module && !is_program {
                orphans.push(path.display().to_string());
            }
        }
        orphans
    }

    #[test]
    fn no_file_of_tests_is_left_out() {
        let workspace = metadata::read(&["--no-deps"]).expect("metadata");
        for package in metadata::packages(&workspace) {
            let targets = package["targets"].as_array().into_iter().flatten();
            let tests = targets.filter(|target| target["kind"][0] == "test");
            let programs: Vec<_> = tests.map(|target| text(target, "src_path")).collect();
            let orphans = orphans(Path::new(text(package, "manifest_path")), &programs);
            assert!(orphans.is_empty(), "no test program has {orphans:?}: name them in main.rs");
        }
    }

    #[test]
    fn a_file_left_out_is_found() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
        let main = manifest.with_file_name("tests").join("main.rs").display().to_string();
        let left: Vec<_> = orphans(&manifest, &[&main]);
        let names = left.iter().filter_map(|path| Path::new(path).file_name());
        let names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        assert!(names.contains(&"lit.rs".to_owned()) && !names.contains(&"oracle.rs".to_owned()));
    }
}
