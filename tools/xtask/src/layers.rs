//! Dependencies point one way.
//!
//! Runtime and formats know nothing of MLIR; dialects know formats; the compiler knows dialects;
//! tools know the compiler. A crate's layer follows from its folder.

use crate::metadata::{self, text};
use serde_json::Value;
use std::path::Path;

/// A layer may use those up to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    /// Runtime, formats, diagnostics, the ops as data: plain Rust.
    Plain,
    /// What needs MLIR to say what the IR means.
    Dialects,
    Compiler,
    Tools,
}

/// Crates that bind LLVM or MLIR; none below [`Layer::Dialects`] may name one.
const BINDINGS: [&str; 6] = ["inkwell", "llvm-sys", "melior", "melior-macro", "mlir-sys", "tblgen"];

/// Checks the workspace.
///
/// # Errors
/// Every dependency that points the wrong way.
pub fn run() -> Result<(), String> {
    let faults = faults(&metadata::read(&["--no-deps"])?)?;
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

fn faults(workspace: &Value) -> Result<Vec<String>, String> {
    let root = Path::new(text(workspace, "workspace_root"));
    let mut layers = Vec::new();
    for package in metadata::packages(workspace) {
        layers.push((text(package, "name"), layer(root, package)?));
    }
    let mut faults = Vec::new();
    for package in metadata::packages(workspace) {
        let (user, own) = (text(package, "name"), layer(root, package)?);
        for used in dependencies(package) {
            let above = layers.iter().find(|(name, other)| *name == used && *other > own);
            if let Some((_, other)) = above {
                faults
                    .push(format!("{user} ({own:?}) depends on {used} ({other:?}), a layer above"));
            }
            if own == Layer::Plain && BINDINGS.contains(&used) {
                faults.push(format!("{user} is plain Rust, but depends on {used}"));
            }
        }
    }
    Ok(faults)
}

/// Names of the crates a package is built from; tests may use what they like.
fn dependencies(package: &Value) -> impl Iterator<Item = &str> {
    let all = package["dependencies"].as_array().into_iter().flatten();
    all.filter(|dependency| text(dependency, "kind") != "dev").map(|used| text(used, "name"))
}

fn layer(root: &Path, package: &Value) -> Result<Layer, String> {
    let manifest = Path::new(text(package, "manifest_path"));
    let folder = manifest.parent().and_then(|folder| folder.strip_prefix(root).ok());
    let folder = folder.unwrap_or(manifest);
    let below = |top: &str| folder.starts_with(top);
    if ["formats", "runtime", "dialects/tl/op"].into_iter().any(below) {
        return Ok(Layer::Plain);
    }
    for (top, layer) in
        [("dialects", Layer::Dialects), ("compiler", Layer::Compiler), ("tools", Layer::Tools)]
    {
        if below(top) {
            return Ok(layer);
        }
    }
    Err(format!("{} has no layer: give its folder one in layers.rs", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_workspace_holds_its_layers() {
        assert_eq!(run(), Ok(()));
    }

    #[test]
    fn a_wrong_turn_is_found() {
        let package = |name: &str, folder: &str, used: &str, kind: Option<&str>| {
            json!({
                "name": name, "manifest_path": format!("/w/{folder}/Cargo.toml"),
                "dependencies": [{ "name": used, "kind": kind }],
            })
        };
        let workspace = json!({ "workspace_root": "/w", "packages": [
            package("run", "runtime", "compile", None),
            package("compile", "compiler", "run", None),
            package("reader", "formats/ark", "melior", Some("build")),
            package("values", "formats/tensor", "compile", Some("dev")),
        ]});
        let expected = [
            "run (Plain) depends on compile (Compiler), a layer above",
            "reader is plain Rust, but depends on melior",
        ];
        assert_eq!(faults(&workspace), Ok(expected.map(String::from).to_vec()));
        let stray = json!({ "workspace_root": "/w", "packages": [package("x", "odd", "y", None)] });
        assert!(faults(&stray).is_err_and(|error| error.starts_with("odd has no layer")));
    }
}
