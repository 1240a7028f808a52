//! Checks that modules in one folder do not import each other in a cycle.
//!
//! A folder's own file is the parent of its modules: it uses them, and they use its declarations. Modules
//! in one folder are ordered: of two that depend on each other, only one may use the other.

use crate::metadata::{self, text};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Folders whose crates are checked.
const LOOKED_AT: [&str; 5] = ["compiler", "dialects", "formats", "runtime", "tools"];

/// Folders with tests and similar files.
const SKIPPED: [&str; 4] = [TESTS, "benches", "examples", "target"];

/// The name of modules of tests, too.
const TESTS: &str = "tests";

/// The cycles among the modules of each crate of a workspace.
///
/// # Errors
/// If a file cannot be read.
pub fn faults(workspace: &Value) -> Result<Vec<String>, String> {
    let root = Path::new(text(workspace, "workspace_root"));
    let mut found = vec![];
    for package in metadata::packages(workspace) {
        let targets = package["targets"].as_array().into_iter().flatten();
        let sources = targets.map(|target| Path::new(text(target, "src_path")));
        let roots =
            sources.filter(|source| source.ends_with("lib.rs") || source.ends_with("main.rs"));
        let folders: BTreeSet<&Path> = roots.filter_map(Path::parent).collect();
        for folder in folders {
            let is_test = folder.ends_with("tests");
            if is_test || !LOOKED_AT.into_iter().any(|top| folder.starts_with(root.join(top))) {
                continue;
            }
            let name = text(package, "name");
            let cycles = cycles(&read(folder)?).into_iter();
            found.extend(cycles.map(|cycle| format!("{name}: {cycle}")));
        }
    }
    Ok(found)
}

/// The text of each module by its path from the crate's root, whose own path is empty.
type Modules = BTreeMap<Vec<String>, String>;

fn read(root: &Path) -> Result<Modules, String> {
    let mut modules = Modules::new();
    let mut open: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        let fault = |error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(&folder).map_err(fault)? {
            let path = entry.map_err(fault)?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let is_skipped = match path.is_dir() {
                true => SKIPPED.contains(&name.as_str()) || path.join("Cargo.toml").exists(),
                false => name == TESTS,
            };
            if is_skipped {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|suffix| suffix == "rs") {
                let inside = path.strip_prefix(root).unwrap_or(&path).with_extension("");
                let parts = inside.iter().map(|part| part.to_string_lossy().into_owned());
                let mut module: Vec<String> = parts.collect();
                module.pop_if(|last| last == "mod" || last == "lib");
                modules.insert(module, fs::read_to_string(&path).map_err(fault)?);
            }
        }
    }
    Ok(modules)
}

/// The cycles of modules in one folder.
fn cycles(modules: &Modules) -> Vec<String> {
    // By folder, the modules that each module in it uses.
    let mut folders: BTreeMap<&[String], BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for (module, text) in modules {
        for path in paths(text) {
            let Some(used) = target(modules, module, &path) else { continue };
            let shared = module.iter().zip(used).take_while(|(own, other)| own == other).count();
            if let (Some(own), Some(other)) = (module.get(shared), used.get(shared)) {
                let uses = folders.entry(&module[..shared]).or_default();
                uses.entry(own).or_default().insert(other);
            }
        }
    }
    let mut cycles = vec![];
    for (folder, uses) in folders {
        let mut listed: BTreeSet<&str> = BTreeSet::new();
        for module in uses.keys() {
            let is_around = |other: &&str| reached(&uses, other).contains(module);
            let around: Vec<&str> = reached(&uses, module).into_iter().filter(is_around).collect();
            if !around.is_empty() && !listed.contains(module) {
                let folder = folder.join("::");
                cycles.push(format!("{} use each other in '{folder}'", around.join(", ")));
                listed.extend(around);
            }
        }
    }
    cycles
}

/// All modules that a module uses, directly and indirectly.
fn reached<'m>(uses: &BTreeMap<&'m str, BTreeSet<&'m str>>, start: &'m str) -> BTreeSet<&'m str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = vec![start];
    while let Some(next) = open.pop() {
        let used = uses.get(next).into_iter().flatten();
        open.extend(used.copied().filter(|used| found.insert(*used)));
    }
    found
}

/// The module that a path refers to from another; `None` if it is outside of the crate.
fn target<'m>(modules: &'m Modules, from: &[String], path: &[String]) -> Option<&'m [String]> {
    let mut module = if path[0] == "crate" { vec![] } else { from.to_vec() };
    let is_plain = !["crate", "self", "super"].contains(&path[0].as_str());
    for (index, part) in path.iter().enumerate() {
        match part.as_str() {
            "crate" | "self" => {}
            "super" => {
                module.pop();
            }
            part => {
                module.push(part.to_owned());
                if !modules.contains_key(&module) {
                    module.pop();
                    if is_plain && index == 0 {
                        return None;
                    }
                    break;
                }
            }
        }
    }
    modules.get_key_value(&module).map(|(module, _)| &module[..])
}

/// The paths in the text of a module: those of `use` declarations, one for each leaf, and those in code.
/// Comments and unit tests are ignored.
fn paths(text: &str) -> Vec<Vec<String>> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or(line));
    let mut rest = lines.collect::<Vec<_>>().join("\n");
    let mut found = vec![];
    // `use` declarations are removed, so that only code remains.
    let mut from = 0;
    while let Some(start) = rest[from..].find("use ").map(|at| from + at) {
        let is_word = rest[..start].ends_with(|letter: char| is_part(letter));
        let end = rest[start..].find(';').map(|at| start + at);
        match end {
            Some(end) if !is_word => {
                leaves(&[], &rest[start + 4..end], &mut found);
                rest.replace_range(start..end, "");
                from = start;
            }
            _ => from = start + 4,
        }
    }
    for word in rest.split(|letter: char| !is_part(letter) && letter != ':') {
        let parts: Vec<String> = word.split("::").map(str::to_owned).collect();
        if parts.len() > 1 && parts.iter().all(|part| !part.is_empty()) {
            found.push(parts);
        }
    }
    found
}

fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The paths of a tree of imports: `a::{b, c::{self, d}}` has three.
fn leaves(prefix: &[String], tree: &str, found: &mut Vec<Vec<String>>) {
    let (mut depth, mut start) = (0, 0);
    let ends = tree.char_indices().chain([(tree.len(), ',')]);
    for (at, letter) in ends {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                leaf(prefix, tree[start..at].trim(), found);
                start = at + 1;
            }
            _ => {}
        }
    }
}

fn leaf(prefix: &[String], tree: &str, found: &mut Vec<Vec<String>>) {
    let (path, inner) = match tree.split_once('{') {
        Some((path, inner)) => (path.trim_end_matches("::"), inner.rsplit_once('}')),
        None => (tree.split(" as ").next().unwrap_or(tree), None),
    };
    let parts = path.split("::").map(str::trim).filter(|part| !part.is_empty());
    let whole: Vec<String> = prefix.iter().cloned().chain(parts.map(str::to_owned)).collect();
    match inner {
        Some((inner, _)) => leaves(&whole, inner, found),
        None if whole.is_empty() => {}
        None => found.push(whole),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(texts: &[(&str, &str)]) -> Modules {
        let path = |name: &str| -> Vec<String> {
            name.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        texts.iter().map(|(name, text)| (path(name), (*text).to_owned())).collect()
    }

    #[test]
    fn modules_beside_each_other_are_found_in_a_cycle() {
        let around = modules(&[
            ("", "mod a; mod b; mod c;"),
            ("a", "use crate::b::deep::Deep;"),
            ("b", ""),
            ("b/deep", "fn f() { super::super::c::g() }"),
            ("c", "use super::{\n    a::{self, A},\n    c::C,\n};"),
        ]);
        assert_eq!(cycles(&around), ["a, b, c use each other in ''"]);
    }

    /// Files are read whatever their names, but for those of tests.
    #[test]
    fn folders_of_tests_and_builds_are_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        for path in ["lib.rs", "target.rs", "tests.rs", "target/made.rs", "inner/mod.rs"] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("written");
            fs::write(path, "").expect("written");
        }
        let names: Vec<String> =
            read(folder.path()).expect("read").keys().map(|module| module.join("/")).collect();
        assert_eq!(names, ["", "inner", "target"]);
    }

    #[test]
    fn a_roof_and_what_it_covers_are_none() {
        let covered = modules(&[
            ("", "mod a;"),
            ("a", "mod one; mod two;\nuse one::One; struct Shared;"),
            ("a/one", "use super::{Shared, two};"),
            (
                "a/two",
                "use super::Shared; // use super::one;\n#[cfg(test)]\nmod tests {\n    use super::one;\n}",
            ),
        ]);
        assert_eq!(cycles(&covered), [""; 0]);
    }
}
