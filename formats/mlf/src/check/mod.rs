//! Consistency checks of an archive.

mod content;
mod memory;
mod model;

use std::collections::BTreeMap;

use irc_diag::{Diagnostic, Sink, Source};

pub(crate) use content::hash;

use crate::graph::Graph;
use crate::library::{OBJECTS, SOURCES};
use crate::package::Package;
use crate::params::Param;
use crate::report::Report;

/// How thoroughly an archive is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Depth {
    /// Everything except the data of parameters, so that the time does not grow with them.
    Form,
    /// Also hashes of all members, and copies of parameters byte by byte.
    Content,
}

/// All diagnostics of an archive that was read.
///
/// Reasons for a client to reject it or to compute wrong numbers are errors; reasons for only some clients
/// to reject it, and known errors of TVM, are warnings.
pub fn check(package: &Package, depth: Depth) -> Report {
    let mut report = Report::default();
    let Package { archive, metadata, parts, library } = package;
    let mut models = BTreeMap::new();
    for (module, part) in metadata.modules.iter().zip(parts) {
        let graph = model::check(package, module, part, &mut report);
        if let Some(graph) = graph {
            memory::check(package, module, graph, &part.params, &mut report);
        }
        models.insert(module.name.as_str(), Model { graph, params: &part.params });
    }
    library.check_undefined(archive, &mut report);
    let has_code = archive.within(OBJECTS).chain(archive.within(SOURCES)).next().is_some();
    if !has_code {
        let diagnostic = Diagnostic::error("mlf-no-code", "there is no object and no source");
        let help = format!("code is stored in `{OBJECTS}` or `{SOURCES}`");
        report.add(Source::new(archive.name(), ""), one(diagnostic.help(help)));
    }
    if let Some(extension) = &metadata.extension {
        content::check(package, extension, &models, depth, &mut report);
    }
    report.sorted()
}

/// A model for checks of other members.
struct Model<'p> {
    /// Its graph, if it has one without errors.
    graph: Option<&'p Graph>,
    params: &'p [Param],
}

/// Adds an error with a path to diagnostics.
fn error(found: &mut Vec<Diagnostic>, code: &'static str, message: String, path: String) {
    found.push(Diagnostic::error(code, message).path(path));
}

/// A sink with one diagnostic.
fn one(diagnostic: Diagnostic) -> Sink {
    let mut sink = Sink::new();
    sink.push(diagnostic);
    sink
}
