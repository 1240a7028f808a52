//! Graph, parameters and code of a model go together.

use irc_diag::{Diagnostic, Sink};
use irc_json::Map;

use crate::graph::{self, Graph};
use crate::metadata::{Executor, Memory, Metadata, Module, PATH};
use crate::package::{Package, Part};
use crate::params::{Param, by_name};
use crate::report::Report;
use irc_diag::clip;

/// Name of a model that is given none, which TVM 0.8 takes for that of every model.
const TVMS_NAME: &str = "default";

/// Checks one model; its graph, if it has one without errors.
pub(super) fn check<'p>(
    package: &Package,
    module: &Module,
    part: &'p Part,
    report: &mut Report,
) -> Option<&'p Graph> {
    let archive = &package.archive;
    report.add_json(archive, PATH, names(package, module));
    let faults = part.graph.as_ref().map(graph::check).unwrap_or_default();
    let sound = part.graph.as_ref().filter(|_| faults.is_empty());
    let mut of_graph = faults;
    let mut of_params = Sink::new();
    if let Some(graph) = sound {
        of_graph = graph::outside_subset(graph);
        of_graph.extend(agreement(graph, &part.params));
        of_graph.extend(functions(package, graph));
        of_params.extend(surplus(graph, &part.params));
    }
    report.add_json(archive, &package.metadata.graph_path(module), of_graph);
    if package.library.has_linked_params() && !part.params.is_empty() {
        let message = "the library holds the parameters itself: TVM crashes when these are loaded";
        of_params.push(Diagnostic::warning("mlf-linked-params", message));
    }
    report.add(archive.binary_of(&Metadata::params_path(module)), of_params);
    sound
}

/// What the metadata name is there.
fn names(package: &Package, module: &Module) -> Vec<Diagnostic> {
    let mut found = entry_point(package, module);
    let has_params = matches!(module.memory, Memory::Model(_));
    if package.metadata.version <= 5 && has_params && module.name != TVMS_NAME {
        let message = format!("TVM 0.8 finds the parameters of `{TVMS_NAME}` only");
        let path = format!("{}.model_name", package.metadata.module_path(module));
        found.push(Diagnostic::warning("mlf-subset-model-name", message).path(path));
    }
    found
}

/// Parameters are inputs of the graph, of the same type, and not the first.
fn agreement(graph: &Graph, params: &[Param]) -> Vec<Diagnostic> {
    let numbers = by_name(params);
    let mut found = vec![];
    for (index, (name, entry)) in graph.named_inputs().into_iter().enumerate() {
        let Some(param) = numbers.get(name).map(|number| &params[*number]) else { continue };
        let ty = &graph.entries[entry].ty;
        let (code, path) = match (param.ty.dtype == ty.dtype, param.ty.shape == ty.shape) {
            (true, true) => ("", String::new()),
            (false, _) => ("mlf-param-type", format!("$.attrs.dltype[1][{entry}]")),
            (true, false) => ("mlf-param-type", format!("$.attrs.shape[1][{entry}]")),
        };
        if !code.is_empty() {
            let message =
                format!("`{}` is {ty} here, but parameters hold {}", clip(name), param.ty);
            found.push(Diagnostic::error(code, message).path(path));
        }
        if index == 0 {
            let message =
                format!("the first input is parameter `{}`: TVM's C runtime stops", clip(name));
            let finding = Diagnostic::warning("mlf-subset-first-input", message);
            found.push(finding.path("$.arg_nodes[0]"));
        }
    }
    found
}

/// Parameters that the graph has no input for.
fn surplus(graph: &Graph, params: &[Param]) -> Vec<Diagnostic> {
    let inputs: Map<&str, usize> = graph.named_inputs().into();
    let surplus = params.iter().filter(|param| !inputs.contains_key(param.name.as_str()));
    surplus
        .map(|param| {
            let message =
                format!("no input is named `{}`: TVM's C runtime stops", clip(&param.name));
            Diagnostic::warning("mlf-subset-surplus-param", message)
        })
        .collect()
}

/// Functions that are called are in the library.
fn functions(package: &Package, graph: &Graph) -> Vec<Diagnostic> {
    let called = graph.functions().into_iter();
    let missing = called.filter(|(name, _)| !package.library.functions.contains_key(*name));
    missing
        .map(|(name, node)| {
            let message = format!("no object or source defines `{}`", clip(name));
            Diagnostic::error("mlf-missing-function", message)
                .path(format!("$.nodes[{node}].attrs.func_name"))
        })
        .collect()
}

/// What runs without a graph has a function to run it; operators have theirs.
fn entry_point(package: &Package, module: &Module) -> Vec<Diagnostic> {
    let defined = &package.library.functions;
    let place = package.metadata.module_path(module);
    let missing = |name: &str, path: String| {
        let message = format!("no object or source defines `{}`", clip(name));
        Diagnostic::error("mlf-missing-function", message).path(path)
    };
    if let Memory::Operators(operators) = &module.memory {
        let names = operators.keys().filter(|name| !defined.contains_key(*name));
        return names.map(|name| missing(name, format!("{place}.memory[{name:?}]"))).collect();
    }
    if !module.executors.contains(&Executor::Aot) {
        return vec![];
    }
    // Of TVM 0.8, of later ones, and with the interface in C.
    let names =
        ["run_model", "__tvm_main__", "run"].map(|last| format!("tvmgen_{}_{last}", module.name));
    match names.iter().any(|name| defined.contains_key(name)) {
        true => vec![],
        false => vec![missing(&names[0], format!("{place}.executors"))],
    }
}
