//! Checks that dependencies point one way, and that the restrictions on crates in `docs/ARCHITECTURE.md`
//! hold.
//!
//! Runtime and formats do not depend on MLIR; dialects depend on formats; the compiler depends on dialects;
//! tools depend on the compiler. A crate's layer follows from its folder. The restrictions "no MLIR" and
//! "does not depend on LLVM" are read from the page's code map, and apply to all dependencies of the crate.

use crate::{
    cycles,
    metadata::{self, Graph, text},
};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A layer, which may use itself and the layers before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    /// Runtime, formats, diagnostics, the ops as data: plain Rust.
    Plain,
    /// Crates that need MLIR for the definition of the IR.
    Dialects,
    Compiler,
    Tools,
}

/// The layer of a folder: the first matching row.
const FOLDERS: [(&str, Layer); 7] = [
    ("formats", Layer::Plain),
    ("runtime", Layer::Plain),
    ("dialects/tl/op", Layer::Plain),
    ("dialects", Layer::Dialects),
    ("compiler", Layer::Compiler),
    ("tools", Layer::Tools),
    ("fuzz", Layer::Tools),
];

/// Crates that bind LLVM or MLIR.
const BINDINGS: [&str; 6] = ["inkwell", "llvm-sys", "melior", "melior-macro", "mlir-sys", "tblgen"];

/// The subjects of restrictions, and the crates that they exclude.
const SUBJECTS: [(&str, &[&str]); 3] =
    [("MLIR", &BINDINGS), ("LLVM", &BINDINGS), ("schedules", &["irc-gemini-format"])];

/// Checks the workspace.
///
/// # Errors
/// Every dependency in the wrong direction, and every restriction that is violated or missing.
pub fn run() -> Result<(), String> {
    let workspace = metadata::resolved()?;
    let page = Path::new(text(&workspace, "workspace_root")).join("docs/ARCHITECTURE.md");
    let page = fs::read_to_string(&page).map_err(|error| format!("{}: {error}", page.display()))?;
    let mut faults = faults(&workspace, &page)?;
    faults.extend(cycles::faults(&workspace)?);
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

fn faults(workspace: &Value, page: &str) -> Result<Vec<String>, String> {
    let root = Path::new(text(workspace, "workspace_root"));
    let graph = Graph::new(workspace);
    let mut layers = Vec::new();
    for package in graph.members() {
        layers.push((text(package, "name"), layer(root, package)?));
    }
    let mut faults = Vec::new();
    for package in graph.members() {
        let (user, own) = (text(package, "name"), layer(root, package)?);
        for used in graph.below([package]) {
            let used = text(used, "name");
            let above = layers.iter().find(|(name, other)| *name == used && *other > own);
            if let Some((_, other)) = above {
                faults
                    .push(format!("{user} ({own:?}) depends on {used} ({other:?}), a layer above"));
            }
        }
        let folder = folder(root, package).display();
        let Some(row) = rows(page).find(|row| row.name == user) else {
            faults.push(format!("{user} has no row in the code map of docs/ARCHITECTURE.md"));
            continue;
        };
        if row.folder != folder.to_string() {
            faults.push(format!("{user} is in {folder}; docs/ARCHITECTURE.md says {}", row.folder));
        }
        if own == Layer::Plain
            && !row.exclusions().any(|subject| ["MLIR", "LLVM"].contains(&subject))
        {
            faults.push(format!(
                "{user} is plain Rust: its row in docs/ARCHITECTURE.md says `no MLIR`"
            ));
        }
        faults.extend(row.exclusions().flat_map(|subject| broken(&graph, package, subject)));
    }
    Ok(faults)
}

/// How a package depends on an excluded subject.
fn broken(graph: &Graph, package: &Value, subject: &str) -> Vec<String> {
    let name = text(package, "name");
    let Some((_, never)) = SUBJECTS.iter().find(|(known, _)| *known == subject) else {
        return vec![format!("{name}: layers.rs does not say which crates know of {subject}")];
    };
    let chains = never.iter().map(|crate_name| graph.chain(package, crate_name));
    let chains = chains.filter(|chain| !chain.is_empty());
    chains.map(|chain| format!("{name} knows of {subject}: {}", chain.join(" -> "))).collect()
}

/// A crate in the page's code map.
struct Row<'p> {
    folder: &'p str,
    name: &'p str,
    /// The invariants of the crate.
    keeps: &'p str,
}

impl<'p> Row<'p> {
    /// The excluded subjects, by the clauses `no MLIR`, `no LLVM` and `does not depend on ...`.
    fn exclusions(&self) -> impl Iterator<Item = &'p str> {
        self.keeps.split([';', ',', ':']).filter_map(|clause| {
            let clause = clause.trim();
            let subject =
                clause.strip_prefix("no ").filter(|known| ["MLIR", "LLVM"].contains(known));
            subject.or_else(|| clause.strip_prefix("does not depend on "))
        })
    }
}

fn rows(page: &str) -> impl Iterator<Item = Row<'_>> {
    page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let folder = cells.next()?.strip_suffix('`')?;
        let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
        Some(Row { folder, name, keeps: cells.nth(1)?.trim_end_matches(" |") })
    })
}

fn folder<'w>(root: &Path, package: &'w Value) -> &'w Path {
    let manifest = Path::new(text(package, "manifest_path"));
    let folder = manifest.parent().and_then(|folder| folder.strip_prefix(root).ok());
    folder.unwrap_or(manifest)
}

fn layer(root: &Path, package: &Value) -> Result<Layer, String> {
    let folder = folder(root, package);
    let found = FOLDERS.iter().find(|(top, _)| folder.starts_with(top));
    found.map(|(_, layer)| *layer).ok_or_else(|| {
        format!("{} has no layer: give its folder one in layers.rs", folder.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_workspace_holds_its_layers() {
        assert_eq!(run(), Ok(()));
    }

    /// A workspace of packages with their folders and dependencies. A package: its name, its folder, and
    /// its dependencies, each with its kind.
    type Package<'p> = (&'p str, &'p str, &'p [(&'p str, Option<&'p str>)]);

    fn workspace(packages: &[Package<'_>]) -> Value {
        let package = |(name, folder, _): &(&str, &str, _)| json!({ "id": name, "name": name, "manifest_path": format!("/w/{folder}/Cargo.toml") });
        let node = |(name, _, used): &(&str, _, &[(&str, Option<&str>)])| {
            let used = used.iter();
            let used = used.map(|(id, kind)| json!({ "pkg": id, "dep_kinds": [{ "kind": kind }] }));
            json!({ "id": name, "deps": used.collect::<Vec<_>>() })
        };
        let own = packages.iter().filter(|(_, folder, _)| *folder != "registry");
        json!({
            "workspace_root": "/w",
            "workspace_members": own.map(|(name, ..)| *name).collect::<Vec<_>>(),
            "packages": packages.iter().map(package).collect::<Vec<_>>(),
            "resolve": { "nodes": packages.iter().map(node).collect::<Vec<_>>() },
        })
    }

    const PAGE: &str = "\
| folder | crate | what it is | what it keeps |
|---|---|---|---|
| `runtime` | `run` | runs | does not depend on schedules: times are given |
| `formats/a` | `reader` | reads | no MLIR; never a panic |
| `compiler` | `compile` | compiles | no globals; does not depend on clocks |
";

    #[test]
    fn a_wrong_turn_is_found() {
        let workspace = workspace(&[
            ("run", "runtime", &[("compile", None)]),
            ("compile", "compiler", &[("irc-gemini-format", None), ("run", Some("dev"))]),
            ("reader", "formats/b", &[("helper", Some("build"))]),
            ("helper", "registry", &[("melior", None)]),
            ("melior", "registry", &[]),
            ("irc-gemini-format", "registry", &[]),
            ("values", "formats/tensor", &[("melior", Some("dev"))]),
        ]);
        let expected = [
            "run (Plain) depends on compile (Compiler), a layer above",
            "run is plain Rust: its row in docs/ARCHITECTURE.md says `no MLIR`",
            "run knows of schedules: run -> compile -> irc-gemini-format",
            "compile: layers.rs does not say which crates know of clocks",
            "reader is in formats/b; docs/ARCHITECTURE.md says formats/a",
            "reader knows of MLIR: reader -> helper -> melior",
            "values has no row in the code map of docs/ARCHITECTURE.md",
        ];
        assert_eq!(faults(&workspace, PAGE), Ok(expected.map(String::from).to_vec()));
    }

    #[test]
    fn a_folder_of_no_layer_is_an_error() {
        let stray = workspace(&[("x", "odd", &[])]);
        assert!(faults(&stray, PAGE).is_err_and(|error| error.starts_with("odd has no layer")));
    }
}
