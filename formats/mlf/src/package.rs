//! An archive with the typed contents of its members.

use bytes::Bytes;
use irc_diag::{Diagnostic, Sink, Source};

use crate::archive::Archive;
use crate::graph::{self, Graph};
use crate::library::Library;
use crate::metadata::{self, Executor, Memory, Metadata, Module};
use crate::params::{self, Param};
use crate::report::Report;

/// An archive with the typed contents of its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// The members.
    pub archive: Archive,
    /// The metadata.
    pub metadata: Metadata,
    /// Graph and parameters of each model, in the order of [`Metadata::modules`].
    pub parts: Vec<Part>,
    /// The code of all models.
    pub library: Library,
}

/// Graph and parameters of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The graph; `None` if a function of the code runs the model.
    pub graph: Option<Graph>,
    /// Parameters, in file order; their data are slices of the archive.
    pub params: Vec<Param>,
}

/// Reads an archive: parses all members, and checks that the files it names exist.
///
/// The data of parameters are not read. Returns `None` after an error; [`crate::check`] checks
/// consistency. `name` is the archive's name in diagnostics.
pub fn read(name: &str, bytes: &Bytes) -> (Option<Package>, Report) {
    let mut report = Report::default();
    let mut sink = Sink::new();
    let archive = Archive::read(name, bytes, &mut sink);
    report.add(Source::new(name, ""), sink);
    let package = archive.and_then(|archive| of_archive(archive, &mut report));
    (package.filter(|_| !report.has_errors()), report.sorted())
}

/// Reads the members of an archive.
pub(crate) fn of_archive(archive: Archive, report: &mut Report) -> Option<Package> {
    let metadata = member(&archive, metadata::PATH, report)?;
    let mut sink = Sink::new();
    let source = Source::from_bytes(archive.name_of(metadata::PATH), &metadata);
    let metadata = metadata::read(&source, &mut sink);
    report.add(source, sink);
    let metadata = metadata?;
    let parts = metadata.modules.iter().map(|module| part(&archive, &metadata, module, report));
    // All parts are read before an error is returned, so that each is reported.
    let parts: Vec<Option<Part>> = parts.collect();
    let library = Library::read(&archive, report);
    Some(Package { parts: parts.into_iter().collect::<Option<_>>()?, archive, metadata, library })
}

fn part(
    archive: &Archive,
    metadata: &Metadata,
    module: &Module,
    report: &mut Report,
) -> Option<Part> {
    if matches!(module.memory, Memory::Operators(_)) {
        return Some(Part { graph: None, params: vec![] });
    }
    let has_graph = module.executors.contains(&Executor::Graph);
    let graph = has_graph.then(|| graph(archive, &metadata.graph_path(module), report));
    let params = params(archive, &Metadata::params_path(module), report);
    match graph {
        Some(graph) => Some(Part { graph: Some(graph?), params: params? }),
        None => Some(Part { graph: None, params: params? }),
    }
}

fn graph(archive: &Archive, path: &str, report: &mut Report) -> Option<Graph> {
    member(archive, path, report)?;
    let mut sink = Sink::new();
    let source = archive.text_of(path);
    let graph = graph::read(&source, &mut sink);
    report.add(source, sink);
    graph
}

fn params(archive: &Archive, path: &str, report: &mut Report) -> Option<Vec<Param>> {
    let bytes = member(archive, path, report)?;
    let mut sink = Sink::new();
    let params = params::read(&bytes, &mut sink);
    report.add(archive.binary_of(path), sink);
    params
}

/// A required member.
fn member(archive: &Archive, path: &str, report: &mut Report) -> Option<Bytes> {
    let found = archive.get(path).cloned();
    if found.is_none() {
        let mut sink = Sink::new();
        let message = format!("there is no member `{path}`");
        sink.push(Diagnostic::error("mlf-missing-member", message));
        report.add(Source::new(archive.name(), ""), sink);
    }
    found
}
