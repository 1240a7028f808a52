//! Checks that graph, parameters and code of a model match.

use irc_diag::{Diagnostic, Sink};

use super::error;
use crate::graph::{self, Graph};
use crate::metadata::{Executor, Memory, Metadata, Module, PATH};
use crate::package::{Package, Part};
use crate::params::{Param, by_name, index};
use crate::report::Report;
use irc_diag::clip;

/// Default name of a model, which TVM 0.8 uses for every model.
const TVMS_NAME: &str = "default";

/// Checks one model; returns its graph, if it has one without errors.
pub(super) fn check<'p>(
    package: &Package,
    module: &Module,
    part: &'p Part,
    report: &mut Report,
) -> Option<&'p Graph> {
    let archive = &package.archive;
    let mut of_metadata = vec![];
    names(package, module, &mut of_metadata);
    report.add_json(archive, PATH, of_metadata);
    let errors = part.graph.as_ref().map(graph::check).unwrap_or_default();
    let sound = part.graph.as_ref().filter(|_| errors.is_empty());
    let mut of_graph = errors;
    let mut of_params = Sink::new();
    if let Some(graph) = sound {
        of_graph = graph::outside_subset(graph);
        agreement(graph, &part.params, &mut of_graph);
        functions(package, graph, &mut of_graph);
        surplus(graph, &part.params, &mut of_params);
    }
    report.add_json(archive, &package.metadata.graph_path(module), of_graph);
    if package.library.has_linked_params() && !part.params.is_empty() {
        let message = "the library contains the parameters: TVM crashes when it loads them";
        of_params.push(Diagnostic::warning("mlf-linked-params", message));
    }
    report.add(archive.binary_of(&Metadata::params_path(module)), of_params);
    sound
}

/// Checks that the files named in metadata exist.
fn names(package: &Package, module: &Module, found: &mut Vec<Diagnostic>) {
    entry_point(package, module, found);
    let has_params = matches!(module.memory, Memory::Model(_));
    if package.metadata.version <= 5 && has_params && module.name != TVMS_NAME {
        let message = format!("TVM 0.8 finds the parameters of `{TVMS_NAME}` only");
        let path = format!("{}.model_name", package.metadata.module_path(module));
        found.push(Diagnostic::warning("mlf-subset-model-name", message).path(path));
    }
}

/// Checks that parameters are inputs of the graph with the same types, and none is the first.
fn agreement(graph: &Graph, params: &[Param], found: &mut Vec<Diagnostic>) {
    let numbers = by_name(params);
    for (index, (name, entry)) in graph.named_inputs().into_iter().enumerate() {
        let Some(param) = numbers.get(name).map(|number| &params[*number]) else { continue };
        let ty = &graph.entries[entry].ty;
        if param.ty != *ty {
            let key = if param.ty.dtype == ty.dtype { "shape" } else { "dltype" };
            let message =
                format!("`{}` is {ty} here, but {} in the parameters", clip(name), param.ty);
            error(found, "mlf-param-type", message, format!("$.attrs.{key}[1][{entry}]"));
        }
        if index == 0 {
            let message =
                format!("the first input is parameter `{}`: TVM's C runtime fails", clip(name));
            let diagnostic = Diagnostic::warning("mlf-subset-first-input", message);
            found.push(diagnostic.path("$.arg_nodes[0]"));
        }
    }
}

/// Parameters that are not inputs of the graph.
fn surplus(graph: &Graph, params: &[Param], found: &mut Sink) {
    let inputs = index(graph.named_inputs());
    for param in params.iter().filter(|param| !inputs.contains_key(param.name.as_str())) {
        let message = format!("no input is named `{}`: TVM's C runtime fails", clip(&param.name));
        found.push(Diagnostic::warning("mlf-subset-surplus-param", message));
    }
}

/// Checks that called functions are in the library.
fn functions(package: &Package, graph: &Graph, found: &mut Vec<Diagnostic>) {
    let called = graph.functions().into_iter();
    for (name, node) in called.filter(|(name, _)| !package.library.functions.contains_key(*name)) {
        missing(name, format!("$.nodes[{node}].attrs.func_name"), found);
    }
}

fn missing(name: &str, path: String, found: &mut Vec<Diagnostic>) {
    let message = format!("no object or source defines `{}`", clip(name));
    error(found, "mlf-missing-function", message, path);
}

/// Checks that a model without a graph has an entry point, and operators have their functions.
fn entry_point(package: &Package, module: &Module, found: &mut Vec<Diagnostic>) {
    let defined = &package.library.functions;
    let place = package.metadata.module_path(module);
    if let Memory::Operators(operators) = &module.memory {
        for name in operators.keys().filter(|name| !defined.contains_key(name.as_str())) {
            missing(name, format!("{place}.memory[{name:?}]"), found);
        }
        return;
    }
    if !module.executors.contains(&Executor::Aot) {
        return;
    }
    // In TVM 0.8, in later versions, and with the C interface.
    let name = |last: &str| format!("tvmgen_{}_{last}", module.name);
    let mut names = ["run_model", "__tvm_main__", "run"].into_iter().map(name);
    if !names.any(|name| defined.contains_key(name.as_str())) {
        missing(&name("run_model"), format!("{place}.executors"), found);
    }
}
