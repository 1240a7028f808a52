//! Builds archives of models, with exact sizes.

use std::collections::BTreeMap;

use bytes::Bytes;
use irc_diag::{Diagnostic, Severity, Sink, Source};

use crate::archive::Archive;
use crate::check::{Depth, check, hash};
use crate::graph::{self, Graph};
use crate::metadata::{
    self, Executor, Extension, FunctionUsage, Memory, Metadata, ModelExtension, ModelMemory,
    Module, SharedLibrary, Storage, Target, Vector, Weights, export_datetime, usage,
};
use crate::package::{Package, of_archive};
use crate::params::{self, Param};
use crate::report::Report;
use irc_tensor::append_aligned;

/// The contents of an archive.
#[derive(Clone, Debug)]
pub struct Contents {
    /// Version of the format.
    pub version: Version,
    /// Time of export, in seconds since 1970.
    pub time: u64,
    /// The models; one in version 5.
    pub models: Vec<Model>,
    /// Code of all models, by path below `codegen/host/`: `lib/default_lib0.o`, `src/…`, `include/…`.
    pub code: BTreeMap<String, Bytes>,
    /// The same code as a shared library, if it is linked.
    pub shared: Option<Shared>,
    /// The IR of the models at each stage, by path below `src/`.
    pub sources: BTreeMap<String, Bytes>,
}

/// Code as a shared library.
#[derive(Clone, Debug)]
pub struct Shared {
    /// The library, which contains only code: parameters are members of their own.
    pub bytes: Bytes,
    /// Processor features that the code uses, by LLVM's names: `avx512f`.
    pub requires: Vec<String>,
}

/// Versions of the format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// That of TVM 0.8, which is documented.
    V5,
    /// That of TVM 0.9 to 0.18: several models, types of inputs and outputs.
    V7,
}

/// A model of an archive.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its name; TVM 0.8 finds parameters only of a model named `default`.
    pub name: String,
    /// The target of the code, in TVM's notation: `llvm -keys=cpu`.
    pub target: String,
    /// Device type (DLPack's) of all memory: 1 of the host.
    pub device: i64,
    /// The graph that calls the code.
    pub graph: Graph,
    /// Names of its outputs, in order.
    pub outputs: Vec<String>,
    /// Parameters, in file order.
    pub params: Vec<Param>,
    /// Bytes of workspace of each function that the graph calls.
    pub workspaces: BTreeMap<String, u64>,
    /// Whether an aligned copy of the parameters is stored, for use in place.
    pub with_weights: bool,
    /// Inputs and expected outputs.
    pub vectors: Vec<TestVector>,
}

/// Inputs and expected outputs of a model.
#[derive(Clone, Debug)]
pub struct TestVector {
    /// Inputs, by name.
    pub inputs: Vec<Param>,
    /// Outputs, by number: `0`, `1`.
    pub outputs: Vec<Param>,
}

/// Builds an archive with all metadata; equal contents give equal archives.
/// [`Archive::write`] writes it to a file.
///
/// # Errors
/// All reasons why some client would reject the archive, and all inconsistencies of the
/// contents.
pub fn build(name: &str, contents: &Contents) -> Result<Package, Report> {
    let mut report = Report::default();
    let package = built(name, contents, &mut report);
    let is_rejected = |diagnostic: &Diagnostic| diagnostic.severity <= Severity::Warning;
    match package {
        Some(package) if !report.all().any(is_rejected) => Ok(package),
        _ => Err(report.sorted()),
    }
}

fn built(name: &str, contents: &Contents, report: &mut Report) -> Option<Package> {
    let version = match contents.version {
        Version::V5 => 5,
        Version::V7 => 7,
    };
    let modules = contents.models.iter().map(|model| module(model, contents.time)).collect();
    let mut metadata = Metadata { version, modules, extension: None };
    let mut members = BTreeMap::new();
    let mut add = |path: String, content: Bytes| members.insert(path, content);
    for (folder, files) in [("codegen/host", &contents.code), ("src", &contents.sources)] {
        files.iter().for_each(|(path, file)| drop(add(format!("{folder}/{path}"), file.clone())));
    }
    let library = contents.shared.as_ref().map(|shared| {
        add(metadata::LIBRARY.into(), shared.bytes.clone());
        SharedLibrary { member: metadata::LIBRARY.into(), requires: shared.requires.clone() }
    });
    let mut models = vec![];
    for (model, module) in contents.models.iter().zip(&metadata.modules) {
        let graph_path = metadata.graph_path(module);
        match graph::write(&model.graph) {
            Ok(graph) => drop(add(graph_path, graph.into())),
            Err(found) => reject(report, &format!("{name}:{graph_path}"), found),
        }
        add(Metadata::params_path(module), params::write(&model.params));
        models.push((model.name.clone(), extension(model, &mut add)));
    }
    for (path, error) in
        members.keys().filter_map(|path| Some((path, crate::archive::path_error(path)?)))
    {
        let message = format!("path `{path}` {error}");
        reject(report, name, vec![Diagnostic::error("mlf-path", message)]);
    }
    let hashes = members.iter().map(|(path, content)| (path.clone(), hash(content))).collect();
    let models = models.into_iter().collect();
    metadata.extension = Some(Extension { hashes, library, models });
    let text = match metadata::write(&metadata) {
        Ok(text) => text,
        Err(message) => {
            reject(report, name, vec![Diagnostic::error("mlf-version", message)]);
            return None;
        }
    };
    if report.has_errors() {
        return None;
    }
    members.insert(metadata::PATH.into(), text.into());
    let package = of_archive(Archive::new(name, members), report)?;
    report.extend(check(&package, Depth::Form));
    Some(package)
}

fn reject(report: &mut Report, file: &str, found: Vec<Diagnostic>) {
    let mut sink = Sink::new();
    sink.extend(found);
    report.add(Source::new(file, ""), sink);
}

fn module(model: &Model, time: u64) -> Module {
    let functions = model.workspaces.iter().map(|(name, bytes)| FunctionUsage {
        name: name.clone(),
        workspace: vec![(model.device, *bytes)],
    });
    let functions: Vec<FunctionUsage> = functions.collect();
    let memory = ModelMemory {
        storages: Some(storages(&model.graph)),
        main: vec![usage(&model.graph, &model.params, &functions, model.device)],
        functions,
    };
    Module {
        name: model.name.clone(),
        exported: export_datetime(time),
        executors: vec![Executor::Graph],
        targets: vec![Target { device: Some(model.device), text: model.target.clone() }],
        memory: Memory::Model(memory),
    }
}

/// Storages in the order in which entries name them.
fn storages(graph: &Graph) -> Vec<Storage> {
    let mut sizes: BTreeMap<i64, u64> = graph::storages(graph).into_iter().collect();
    let inputs = graph.named_inputs().into_iter();
    let inputs: BTreeMap<usize, &str> = inputs.map(|(name, entry)| (entry, name)).collect();
    let entries = graph.entries.iter().enumerate();
    entries
        .filter_map(|(index, entry)| {
            let bytes = sizes.remove(&entry.storage)?;
            let input = inputs.get(&index).map(|name| (*name).to_owned());
            Some(Storage { id: entry.storage, bytes, input })
        })
        .collect()
}

/// Adds the members of irc's extensions.
fn extension(
    model: &Model,
    add: &mut impl FnMut(String, Bytes) -> Option<Bytes>,
) -> ModelExtension {
    let weights = model.with_weights.then(|| {
        let member = format!("parameters/{}.weights", model.name);
        let (bytes, offsets) = aligned(&model.params);
        add(member.clone(), bytes);
        Weights { member, offsets }
    });
    let vectors = model.vectors.iter().enumerate().map(|(index, vector)| {
        let path = |what: &str| format!("test-vectors/{}/{index}.{what}.params", model.name);
        let (inputs, outputs) = (path("inputs"), path("outputs"));
        add(inputs.clone(), params::write(&vector.inputs));
        add(outputs.clone(), params::write(&vector.outputs));
        Vector { inputs, outputs }
    });
    ModelExtension { outputs: model.outputs.clone(), weights, vectors: vectors.collect() }
}

/// Concatenates parameters, each at a multiple of the alignment, and returns their offsets.
fn aligned(params: &[Param]) -> (Bytes, BTreeMap<String, u64>) {
    let (mut bytes, mut offsets) = (vec![], BTreeMap::new());
    for param in params {
        let offset = append_aligned(&mut bytes, &param.data);
        offsets.insert(param.name.clone(), offset as u64);
    }
    (bytes.into(), offsets)
}
