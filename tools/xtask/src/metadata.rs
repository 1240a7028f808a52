//! Cargo's metadata of the workspace.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::process::Command;

/// The output of `cargo metadata --format-version 1` with `flags`.
///
/// # Errors
/// If cargo cannot be run or fails.
pub fn read(flags: &[&str]) -> Result<Value, String> {
    let cargo = env::var("CARGO").unwrap_or("cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(flags)
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo metadata failed: {stderr}"));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// The workspace with all its dependencies on irc's platform.
///
/// # Errors
/// See [`read`].
pub fn resolved() -> Result<Value, String> {
    read(&["--filter-platform", "x86_64-unknown-linux-gnu"])
}

/// The packages, as cargo lists them.
pub fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

/// A text field of a JSON object; empty if absent.
pub fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// The dependencies of each package: normal and build dependencies, without those of tests.
pub struct Graph<'m> {
    /// By id: the package.
    packages: BTreeMap<&'m str, &'m Value>,
    /// By id: the ids of its direct dependencies.
    edges: BTreeMap<&'m str, Vec<&'m str>>,
    /// Ids of the workspace's own packages.
    members: Vec<&'m str>,
}

impl<'m> Graph<'m> {
    /// The graph of the output of [`resolved`].
    pub fn new(metadata: &'m Value) -> Self {
        let is_built = |dependency: &&Value| {
            let mut kinds = list(&dependency["dep_kinds"]);
            kinds.any(|kind| text(kind, "kind") != "dev")
        };
        let edges = list(&metadata["resolve"]["nodes"]).map(|node| {
            let used = list(&node["deps"]).filter(is_built).map(|used| text(used, "pkg"));
            (text(node, "id"), used.collect())
        });
        Self {
            packages: packages(metadata).map(|package| (text(package, "id"), package)).collect(),
            edges: edges.collect(),
            members: list(&metadata["workspace_members"]).filter_map(Value::as_str).collect(),
        }
    }

    /// The workspace's own packages.
    pub fn members(&self) -> impl Iterator<Item = &'m Value> {
        self.members.iter().filter_map(|id| self.packages.get(id).copied())
    }

    /// `roots` and all their dependencies, in the order of their ids.
    pub fn below<'a>(&self, roots: impl IntoIterator<Item = &'a Value>) -> Vec<&'m Value>
    where
        'm: 'a,
    {
        let mut open: Vec<&str> = roots.into_iter().map(|root| text(root, "id")).collect();
        let mut found = BTreeSet::new();
        while let Some(id) = open.pop() {
            if found.insert(id) {
                open.extend(self.edges.get(id).into_iter().flatten());
            }
        }
        found.into_iter().filter_map(|id| self.packages.get(id).copied()).collect()
    }

    /// The shortest chain of names from a package to one named `target`; empty if there is none.
    pub fn chain(&self, from: &Value, target: &str) -> Vec<&'m str> {
        let Some((&start, _)) = self.packages.get_key_value(text(from, "id")) else {
            return Vec::new();
        };
        let mut chains = std::collections::VecDeque::from([vec![start]]);
        let mut seen = BTreeSet::from([start]);
        while let Some(chain) = chains.pop_front() {
            let Some(&last) = chain.last() else { continue };
            if self.name(last) == target {
                return chain.into_iter().map(|id| self.name(id)).collect();
            }
            for &next in self.edges.get(last).into_iter().flatten() {
                if seen.insert(next) {
                    chains.push_back([&chain[..], &[next]].concat());
                }
            }
        }
        Vec::new()
    }

    fn name(&self, id: &str) -> &'m str {
        self.packages.get(id).map_or("", |package| text(package, "name"))
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
