//! What only our archives have: hashes, a shared library, aligned weights, test vectors.

use irc_diag::{Diagnostic, Sink};
use irc_json::{Map, sort_by};
use sha2::{Digest, Sha256};

use super::{Depth, Model};
use crate::archive::Archive;
use crate::graph::Graph;
use crate::library::{Library, exports};
use crate::metadata::{ALIGNMENT, Extension, ModelExtension, PATH, SharedLibrary, Vector, Weights};
use crate::package::Package;
use crate::params::{self, Param, by_name};
use crate::report::Report;
use crate::types::Type;
use irc_diag::clip;

/// Checks what the metadata say of other members.
pub(super) fn check(
    package: &Package,
    ours: &Extension,
    models: &Map<&str, Model<'_>>,
    depth: Depth,
    report: &mut Report,
) {
    let archive = &package.archive;
    let mut found = hashes(archive, &ours.hashes, depth);
    if let Some(shared) = &ours.library {
        found.extend(library(archive, shared, &package.library, models));
    }
    for (name, of_model) in ours.models.iter() {
        let place = format!("$.irc.models[{name:?}]");
        match models.get(name.as_str()) {
            Some(model) => found.extend(of(archive, of_model, model, &place, depth, report)),
            None => {
                let message = format!("there is no model `{}`", clip(name));
                found.push(Diagnostic::error("mlf-model-name", message).path(place));
            }
        }
    }
    report.add_json(archive, PATH, found);
}

/// SHA-256 in lower-case hexadecimal.
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Every member but the metadata has its hash.
fn hashes(archive: &Archive, stated: &Map<String, String>, depth: Depth) -> Vec<Diagnostic> {
    let error = |message: String, path: String| Diagnostic::error("mlf-hash", message).path(path);
    let place = |path: &str| format!("$.irc.sha256[{path:?}]");
    let mut found = vec![];
    for (path, expected) in stated.iter() {
        match archive.get(path) {
            None => found.push(error(format!("there is no member `{}`", clip(path)), place(path))),
            Some(content) if depth == Depth::Content && hash(content) != *expected => {
                let message = format!("`{}` does not have this hash", clip(path));
                found.push(
                    error(message, place(path)).with_note(format!("it is {}", hash(content))),
                );
            }
            Some(_) => {}
        }
    }
    let unlisted = archive.members().keys().filter(|path| !stated.contains_key(path.as_str()));
    for path in unlisted.filter(|path| *path != PATH) {
        found.push(error(format!("`{}` has no hash", clip(path)), "$.irc.sha256".into()));
    }
    found
}

/// The shared library is for the machine of the objects, and has what graphs call.
fn library(
    archive: &Archive,
    shared: &SharedLibrary,
    objects: &Library,
    models: &Map<&str, Model<'_>>,
) -> Vec<Diagnostic> {
    let error =
        |message: String| Diagnostic::error("mlf-library", message).path("$.irc.library.member");
    let member = clip(&shared.member);
    let Some(content) = archive.get(&shared.member) else {
        return vec![error(format!("there is no member `{member}`"))];
    };
    let (machine, functions) = match exports(content) {
        Ok(exports) => exports,
        Err(message) => {
            return vec![error(format!("`{member}` is no shared library: {message}"))];
        }
    };
    let mut found = vec![];
    if let Some(other) = objects.machine.filter(|other| *other != machine) {
        found.push(error(format!("`{member}` is for {machine}, the objects are for {other}")));
    }
    let called = models.values().filter_map(|model| model.graph).flat_map(Graph::functions);
    let called: Map<&str, usize> = called.collect();
    for name in called.keys().filter(|name| !functions.contains_key(**name)) {
        found.push(error(format!("`{member}` does not export `{}`", clip(name))));
    }
    found
}

fn of(
    archive: &Archive,
    ours: &ModelExtension,
    model: &Model<'_>,
    place: &str,
    depth: Depth,
    report: &mut Report,
) -> Vec<Diagnostic> {
    let mut found = vec![];
    let outputs = model.graph.map_or(0, |graph| graph.outputs.len());
    if ours.outputs.len() != outputs {
        let message = format!("{} names of {outputs} outputs", ours.outputs.len());
        found.push(Diagnostic::error("mlf-outputs", message).path(format!("{place}.outputs")));
    }
    if let Some(weights) = &ours.weights {
        found.extend(aligned(archive, weights, model.params, &format!("{place}.weights"), depth));
    }
    for (index, vector) in ours.vectors.iter().enumerate() {
        let place = format!("{place}.test_vectors[{index}]");
        found.extend(test_vector(archive, vector, model, &place, report));
    }
    found
}

/// The member of weights holds each parameter once, aligned, and nothing else.
fn aligned(
    archive: &Archive,
    weights: &Weights,
    params: &[Param],
    place: &str,
    depth: Depth,
) -> Vec<Diagnostic> {
    let error =
        |message: String, path: String| Diagnostic::error("mlf-weights", message).path(path);
    let Some(content) = archive.get(&weights.member) else {
        let message = format!("there is no member `{}`", clip(&weights.member));
        return vec![error(message, format!("{place}.member"))];
    };
    let numbers = by_name(params);
    let mut found = vec![];
    for name in numbers.keys().filter(|name| !weights.offsets.contains_key(**name)) {
        let message = format!("parameter `{}` has no place", clip(name));
        found.push(error(message, format!("{place}.offsets")));
    }
    let mut free = 0;
    let mut by_offset: Vec<(&String, u64)> =
        weights.offsets.iter().map(|(name, offset)| (name, *offset)).collect();
    sort_by(&mut by_offset, &|a, b| a.1.cmp(&b.1));
    for (name, offset) in by_offset {
        let path = format!("{place}.offsets[{name:?}]");
        let Some(param) = numbers.get(name.as_str()).map(|number| &params[*number]) else {
            found.push(error(format!("there is no parameter `{}`", clip(name)), path));
            continue;
        };
        let end = offset.checked_add(param.data.len() as u64);
        let held =
            end.and_then(|end| content.get(usize::try_from(offset).ok()?..end.try_into().ok()?));
        let message = match held {
            None => format!("`{}` ends after the member does", clip(name)),
            Some(_) if offset % ALIGNMENT as u64 != 0 => {
                format!("`{}` is not aligned to {ALIGNMENT} bytes", clip(name))
            }
            Some(_) if offset < free => format!("`{}` lies over another parameter", clip(name)),
            Some(held) if depth == Depth::Content && *held != *param.data => {
                format!("`{}` is not the parameter of that name", clip(name))
            }
            Some(_) => {
                free = end.unwrap_or(free);
                continue;
            }
        };
        found.push(error(message, path));
    }
    found
}

/// A test vector has what goes in and what comes out, of the graph's types.
fn test_vector(
    archive: &Archive,
    vector: &Vector,
    model: &Model<'_>,
    place: &str,
    report: &mut Report,
) -> Vec<Diagnostic> {
    let Some(graph) = model.graph else {
        let message = "a model without a sound graph has no test vectors";
        return vec![Diagnostic::error("mlf-test-vector", message).path(place)];
    };
    let inputs = expected_inputs(graph, model.params);
    let outputs = graph.output_entries().into_iter().enumerate();
    let outputs = outputs.map(|(index, entry)| (index.to_string(), &graph.entries[entry].ty));
    let mut found = tensors(archive, &vector.inputs, inputs, format!("{place}.inputs"), report);
    let outputs = outputs.collect();
    found.extend(tensors(archive, &vector.outputs, outputs, format!("{place}.outputs"), report));
    found
}

fn expected_inputs<'g>(graph: &'g Graph, params: &[Param]) -> Map<String, &'g Type> {
    let params = by_name(params);
    let inputs = graph.named_inputs().into_iter().filter(|(name, _)| !params.contains_key(name));
    inputs.map(|(name, entry)| (name.to_owned(), &graph.entries[entry].ty)).collect()
}

fn tensors(
    archive: &Archive,
    path: &str,
    expected: Map<String, &Type>,
    place: String,
    report: &mut Report,
) -> Vec<Diagnostic> {
    let error = |message: String| Diagnostic::error("mlf-test-vector", message).path(place.clone());
    let Some(content) = archive.get(path) else {
        return vec![error(format!("there is no member `{}`", clip(path)))];
    };
    let mut sink = Sink::new();
    let read = params::read(content, &mut sink);
    report.add(archive.binary_of(path), sink);
    let Some(read) = read else { return vec![] };
    let given: Map<String, &Type> =
        read.iter().map(|tensor| (tensor.name.clone(), &tensor.ty)).collect();
    if given == expected {
        return vec![];
    }
    let show = |tensors: &Map<String, &Type>| {
        let show = |(name, ty): (&String, &&Type)| format!("`{}` {ty}", clip(name));
        tensors.iter().map(show).collect::<Vec<_>>().join(", ")
    };
    let finding = error(format!("`{}` does not hold what the graph has", clip(path)));
    vec![
        finding
            .with_note(format!("it holds {}", show(&given)))
            .with_note(format!("the graph has {}", show(&expected))),
    ]
}
