//! Checks of irc's extensions: hashes, a shared library, aligned weights, test vectors.

use std::collections::BTreeMap;

use irc_diag::{Diagnostic, Sink};
use sha2::{Digest, Sha256};

use super::{Depth, Model, error};
use crate::archive::Archive;
use crate::graph::Graph;
use crate::library::{Library, exports};
use crate::metadata::{ALIGNMENT, Extension, ModelExtension, PATH, SharedLibrary, Vector, Weights};
use crate::package::Package;
use crate::params::{self, Param, by_name, index};
use crate::report::Report;
use crate::types::Type;
use irc_diag::clip;

/// Checks the metadata against other members.
pub(super) fn check(
    package: &Package,
    ours: &Extension,
    models: &BTreeMap<&str, Model<'_>>,
    depth: Depth,
    report: &mut Report,
) {
    let archive = &package.archive;
    let mut found = vec![];
    hashes(archive, &ours.hashes, depth, &mut found);
    if let Some(shared) = &ours.library {
        library(archive, shared, &package.library, models, &mut found);
    }
    for (name, of_model) in ours.models.iter() {
        let place = format!("$.irc.models[{name:?}]");
        match models.get(name.as_str()) {
            Some(model) => {
                let member = ExtensionCheck { archive, model, place, depth };
                member.check(of_model, report, &mut found);
            }
            None => {
                let message = format!("there is no model `{}`", clip(name));
                error(&mut found, "mlf-model-name", message, place);
            }
        }
    }
    report.add_json(archive, PATH, found);
}

/// SHA-256 in lower-case hexadecimal.
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Checks the hash of every member except the metadata.
fn hashes(
    archive: &Archive,
    stated: &BTreeMap<String, String>,
    depth: Depth,
    found: &mut Vec<Diagnostic>,
) {
    for (path, expected) in stated.iter() {
        let place = || format!("$.irc.sha256[{path:?}]");
        match archive.get(path) {
            None => {
                let message = format!("there is no member `{}`", clip(path));
                error(found, "mlf-hash", message, place());
            }
            Some(content) if depth == Depth::Content && hash(content) != *expected => {
                let message = format!("`{}` has another hash", clip(path));
                let diagnostic = Diagnostic::error("mlf-hash", message).path(place());
                found.push(diagnostic.with_note(format!("it is {}", hash(content))));
            }
            Some(_) => {}
        }
    }
    let unlisted = archive.members().keys().filter(|path| !stated.contains_key(path.as_str()));
    for path in unlisted.filter(|path| *path != PATH) {
        let message = format!("`{}` has no hash", clip(path));
        error(found, "mlf-hash", message, "$.irc.sha256".into());
    }
}

/// Checks that the shared library is for the machine of the objects, and exports the functions of graphs.
fn library(
    archive: &Archive,
    shared: &SharedLibrary,
    objects: &Library,
    models: &BTreeMap<&str, Model<'_>>,
    found: &mut Vec<Diagnostic>,
) {
    let mut report =
        |message: String| error(found, "mlf-library", message, "$.irc.library.member".into());
    let member = clip(&shared.member);
    let Some(content) = archive.get(&shared.member) else {
        return report(format!("there is no member `{member}`"));
    };
    let (machine, functions) = match exports(content) {
        Ok(exports) => exports,
        Err(message) => return report(format!("`{member}` is not a shared library: {message}")),
    };
    if let Some(other) = objects.machine.filter(|other| *other != machine) {
        report(format!("`{member}` is for {machine:?}, the objects are for {other:?}"));
    }
    let called = models.values().filter_map(|model| model.graph).flat_map(Graph::functions);
    let called = index(called);
    for name in called.keys().filter(|name| !functions.contains_key(**name)) {
        report(format!("`{member}` does not export `{}`", clip(name)));
    }
}

/// Checks irc's extensions for a model.
struct ExtensionCheck<'p> {
    archive: &'p Archive,
    model: &'p Model<'p>,
    /// Path of the extension.
    place: String,
    depth: Depth,
}

impl ExtensionCheck<'_> {
    fn check(&self, ours: &ModelExtension, report: &mut Report, found: &mut Vec<Diagnostic>) {
        let place = &self.place;
        let outputs = self.model.graph.map_or(0, |graph| graph.outputs.len());
        if ours.outputs.len() != outputs {
            let message = format!("{} names of {outputs} outputs", ours.outputs.len());
            error(found, "mlf-outputs", message, format!("{place}.outputs"));
        }
        if let Some(weights) = &ours.weights {
            self.weights(weights, found);
        }
        for (index, vector) in ours.vectors.iter().enumerate() {
            let place = format!("{place}.test_vectors[{index}]");
            self.test_vector(vector, &place, report, found);
        }
    }

    /// Checks that the member of weights holds each parameter once, aligned, and nothing else.
    fn weights(&self, weights: &Weights, found: &mut Vec<Diagnostic>) {
        const CODE: &str = "mlf-weights";
        let (params, place) = (self.model.params, format!("{}.weights", self.place));
        let Some(content) = self.archive.get(&weights.member) else {
            let message = format!("there is no member `{}`", clip(&weights.member));
            return error(found, CODE, message, format!("{place}.member"));
        };
        let numbers = by_name(params);
        for name in numbers.keys().filter(|name| !weights.offsets.contains_key(**name)) {
            let message = format!("parameter `{}` has no offset", clip(name));
            error(found, CODE, message, format!("{place}.offsets"));
        }
        let mut free = 0;
        let by_offset: Vec<(&String, &u64)> = weights.offsets.iter().collect();
        let by_offset = irc_diag::sorted(by_offset, |(_, a), (_, b)| a.cmp(b));
        for (name, &offset) in by_offset {
            let path = format!("{place}.offsets[{name:?}]");
            let Some(param) = numbers.get(name.as_str()).map(|number| &params[*number]) else {
                error(found, CODE, format!("there is no parameter `{}`", clip(name)), path);
                continue;
            };
            let end = offset.checked_add(param.data.len() as u64);
            let held = end
                .and_then(|end| content.get(usize::try_from(offset).ok()?..end.try_into().ok()?));
            let message = match held {
                None => format!("`{}` exceeds the member", clip(name)),
                Some(_) if offset % ALIGNMENT as u64 != 0 => {
                    format!("`{}` is not aligned to {ALIGNMENT} bytes", clip(name))
                }
                Some(_) if offset < free => format!("`{}` overlaps another parameter", clip(name)),
                Some(held) if self.depth == Depth::Content && *held != *param.data => {
                    format!("`{}` differs from the parameter of that name", clip(name))
                }
                Some(_) => {
                    free = end.unwrap_or(free);
                    continue;
                }
            };
            error(found, CODE, message, path);
        }
    }

    /// Checks that a test vector has inputs and outputs of the graph's types.
    fn test_vector(
        &self,
        vector: &Vector,
        place: &str,
        report: &mut Report,
        found: &mut Vec<Diagnostic>,
    ) {
        let Some(graph) = self.model.graph else {
            let message = "test vectors require a valid graph".into();
            return error(found, "mlf-test-vector", message, place.into());
        };
        let inputs = expected_inputs(graph, self.model.params);
        let outputs = graph.output_entries().into_iter().enumerate();
        let outputs = outputs.map(|(index, entry)| (index.to_string(), &graph.entries[entry].ty));
        let place = |what: &str| format!("{place}.{what}");
        found.extend(tensors(self.archive, &vector.inputs, inputs, place("inputs"), report));
        let outputs = index(outputs);
        found.extend(tensors(self.archive, &vector.outputs, outputs, place("outputs"), report));
    }
}

fn expected_inputs<'g>(graph: &'g Graph, params: &[Param]) -> BTreeMap<String, &'g Type> {
    let params = by_name(params);
    let inputs = graph.named_inputs().into_iter().filter(|(name, _)| !params.contains_key(name));
    index(inputs.map(|(name, entry)| (name.to_owned(), &graph.entries[entry].ty)))
}

fn tensors(
    archive: &Archive,
    path: &str,
    expected: BTreeMap<String, &Type>,
    place: String,
    report: &mut Report,
) -> Option<Diagnostic> {
    let error = |message: String| Diagnostic::error("mlf-test-vector", message).path(place);
    let Some(content) = archive.get(path) else {
        return Some(error(format!("there is no member `{}`", clip(path))));
    };
    let mut sink = Sink::new();
    let read = params::read(content, &mut sink);
    report.add(archive.binary_of(path), sink);
    let read = read?;
    let given = index(read.iter().map(|tensor| (tensor.name.clone(), &tensor.ty)));
    if given == expected {
        return None;
    }
    let show = |tensors: &BTreeMap<String, &Type>| {
        let show = |(name, ty): (&String, &&Type)| format!("`{}` {ty}", clip(name));
        tensors.iter().map(show).collect::<Vec<_>>().join(", ")
    };
    let diagnostic = error(format!("`{}` does not match the graph", clip(path)));
    let diagnostic = diagnostic.with_note(format!("it has {}", show(&given)));
    Some(diagnostic.with_note(format!("the graph has {}", show(&expected))))
}
