//! What programs for GPUs do not have.
use crate::{import::path_of, session::QueryError};
use irc_diag::Diagnostic;
use irc_runtime::{Interface, Port};
use irc_tensor::DType;
use irc_tl::{Check, Compute, Dim, Family, Graph, Node, NodeKind, Op, Scalar, SymbolSource};
use std::{collections::BTreeSet, sync::Arc};

/// Checks that the values of inputs, such as a number of past tokens, determine no sizes.
pub(super) fn expect_stated(
    graph: &Graph,
    path: impl Fn(&str) -> Option<String>,
) -> Result<(), QueryError> {
    let used: BTreeSet<_> =
        graph.types.iter().flat_map(|ty| &ty.dims).flat_map(Dim::symbols).collect();
    for symbol in graph.symbols.iter().filter(|symbol| used.contains(&symbol.name)) {
        let SymbolSource::Element(value, _) = symbol.source else { continue };
        if let Some((name, _)) = graph.inputs.iter().find(|(_, input)| *input == value) {
            let message = format!(
                "the value of input '{name}' determines sizes, and kernels for GPUs need known sizes"
            );
            let help = "a number of past tokens is known if --shape states that of the caches";
            let found = Diagnostic::error("gpu-program", message).help(help);
            return Err(QueryError::found(vec![Diagnostic { path: path(name), ..found }]));
        }
    }
    let elements: BTreeSet<&Arc<str>> = graph
        .symbols
        .iter()
        .filter(|symbol| matches!(symbol.source, SymbolSource::Element(..)))
        .map(|symbol| &symbol.name)
        .collect();
    let is_element = |dim: &Dim| {
        let is_own = |name: &Arc<str>| elements.contains(name) && *dim == Dim::symbol(name);
        dim.symbols().iter().all(is_own)
    };
    let is_open = |check: &&Check| !is_element(&check.left) || !is_element(&check.right);
    let Some(check) = graph.checks.iter().find(is_open) else { return Ok(()) };
    let open = graph.nodes.iter().find_map(|node| {
        let mut types = node.results.iter().map(|result| graph.ty(*result));
        Some((node.origin.clone()?, types.find(|ty| ty.known().is_none())?))
    });
    let error = |message| Diagnostic::error("gpu-program", message);
    let found = match open {
        Some((origin, ty)) => error(format!(
            "{origin} has a size that is computed at run time, and kernels for GPUs need known sizes: {ty}"
        ))
        .path(path_of(&origin)),
        None => error(format!(
            "the program requires of sizes that are computed at run time, which kernels for GPUs do not check: {}",
            check.message
        )),
    };
    Err(QueryError::found(vec![found]))
}

/// Checks that a GPU has the types of a program's inputs and outputs, and that their sizes are known. `path` is that of an
/// input or output in the file, by its name.
pub(super) fn expect_fixed(
    interface: &Interface,
    path: impl Fn(&str) -> Option<String>,
) -> Result<(), QueryError> {
    let ports = || interface.inputs.iter().chain(&interface.outputs);
    let is_text = |port: &&Port| port.element_type() == Some(DType::String);
    let is_open = |port: &&Port| port.shape.iter().any(|extent| *extent < 0);
    let at = |port: &Port, message: String| Diagnostic {
        path: path(&port.name),
        ..Diagnostic::error("gpu-program", message)
    };
    let strings = ports().filter(is_text);
    let mut found: Vec<_> = strings
        .map(|port| at(port, format!("'{}' has strings, which GPUs do not have", port.name)))
        .collect();
    found.extend(interface.inputs.iter().filter(is_open).map(|port| {
        let message = format!(
            "input '{}' has an open size, and kernels for GPUs need known sizes: {}",
            port.name,
            port.type_text()
        );
        let help =
            format!("give its shape, as in --shape {}=1x4; bounds are not enough", port.name);
        at(port, message).help(help)
    }));
    // Sizes of results often follow from those of inputs.
    if found.is_empty() {
        found.extend(interface.outputs.iter().filter(is_open).map(|port| {
            let message = format!(
                "output '{}' has a size that is computed at run time, and kernels for GPUs need known sizes: {}",
                port.name,
                port.type_text()
            );
            let help = "sizes are known that follow from shapes and from constants of the model";
            at(port, message).help(help)
        }));
    }
    if found.is_empty() { Ok(()) } else { Err(QueryError::found(found)) }
}

/// What of a program that has been rejected kernels for GPUs do not have, once for each node of the file.
pub(super) fn unsupported(graph: &Graph) -> Vec<Diagnostic> {
    let mut found = vec![];
    collect_unsupported(graph, &mut BTreeSet::new(), &mut found);
    let mut paths = BTreeSet::new();
    found.retain(|one| paths.insert(one.path.clone()));
    found
}

fn collect_unsupported(
    graph: &Graph,
    functions: &mut BTreeSet<*const Graph>,
    found: &mut Vec<Diagnostic>,
) {
    for node in &graph.nodes {
        match &node.kind {
            NodeKind::If { then, otherwise } => {
                collect_unsupported(then, functions, found);
                collect_unsupported(otherwise, functions, found);
            }
            NodeKind::Loop { body, .. } => collect_unsupported(body, functions, found),
            NodeKind::Call { body, .. } if functions.insert(Arc::as_ptr(body)) => {
                collect_unsupported(body, functions, found);
            }
            NodeKind::Op(op) => found.extend(unsupported_op(graph, node, op)),
            _ => {}
        }
    }
}

fn unsupported_op(graph: &Graph, node: &Node, op: &Op) -> Option<Diagnostic> {
    let origin = node.origin.as_deref()?;
    let error = |what: &str| {
        Diagnostic::error("gpu-program", format!("{origin} {what}")).path(path_of(origin))
    };
    if op.family() == Family::Accumulation {
        let what = "adds in a prescribed order, with a rounding after each step, which is not supported for GPUs";
        return Some(
            error(what).help("for an ARK model, only --ark-accumulate prescribes an order"),
        );
    }
    let results = node.results.iter().flat_map(|result| &graph.ty(*result).dims);
    let is_open = results.into_iter().any(|dim| dim.known().is_none());
    let operands: Vec<_> = node.operands.iter().map(|id| graph.ty(*id).clone()).collect();
    let reads = op.as_compute(&operands).is_some_and(|compute| has_open_sizes(&compute));
    let what =
        "depends on a size that is computed at run time, and kernels for GPUs need known sizes";
    let help = "sizes are known that follow from shapes and from constants of the model";
    (is_open || reads).then(|| error(what).help(help))
}

/// Whether loops over reduced elements or the expression depend on a size that is not known.
fn has_open_sizes(compute: &Compute) -> bool {
    let reduced = compute.reduction.iter().flat_map(|reduction| &reduction.dims);
    let mut is_open = reduced.into_iter().any(|dim| dim.known().is_none());
    compute.body.walk(&mut |scalar| {
        is_open |= matches!(scalar, Scalar::Size(dim) if dim.known().is_none());
    });
    is_open
}
