//! Programs with open sizes as graphs of one node, whose tensors have the largest sizes within the bounds of dimensions.
//!
//! Clients of graphs know one size of each tensor, and run the program at these. irc's own runtime runs the program in the
//! shared library of the archive, which accepts all sizes within the bounds.
use super::{
    ArchiveError, Callee, Planned,
    draft::{
        Draft, LIBRARY_HELP, Place, bound_flags, expect_no_strings, plain_name, symbols, type_of,
    },
    graph, kind,
};
use crate::{
    import::Bounds,
    interface::{Interface, Port},
};
use irc_tensor::TensorType;
use irc_tl::Dim;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The graph of a program with open sizes.
///
/// # Errors
/// If a dimension has no bound, a size is computed at run time, the program applies functions of its host, or clients
/// cannot represent a type.
pub fn plan_open(
    interface: &Interface,
    bounds: &Bounds,
    prefix: &str,
) -> Result<Planned, ArchiveError> {
    expect_no_strings(interface)?;
    if interface.convention == Interface::CALLS {
        let message = "clients of archives have no strings, which this model uses".to_owned();
        return Err(ArchiveError { message, help: Some(LIBRARY_HELP.to_owned()) });
    }
    let open: BTreeSet<Arc<str>> = interface.inputs.iter().flat_map(symbols).collect();
    let unbounded: BTreeSet<Arc<str>> =
        open.into_iter().filter(|name| !bounds.contains_key(&**name)).collect();
    if !unbounded.is_empty() {
        let names = unbounded.iter().cloned().collect::<Vec<_>>().join(", ");
        return Err(ArchiveError {
            message: format!("an archive states the largest sizes: {names} must have a bound"),
            help: Some(format!("bound it, as with {}", bound_flags(&unbounded))),
        });
    }
    let (inputs, mut extents) = (interface.inputs.len(), vec![]);
    for port in &interface.inputs {
        extents.extend(largest(port, bounds)?.shape);
    }
    one_call(interface, bounds, prefix, Callee::Program { inputs, extents })
}

/// The graph of a kernel for a GPU: one node.
///
/// # Errors
/// If clients cannot represent a type.
pub fn plan_kernel(interface: &Interface, prefix: &str) -> Result<Planned, ArchiveError> {
    expect_no_strings(interface)?;
    one_call(interface, &Bounds::new(), prefix, Callee::Gpu)
}

/// The graph that calls a function on all inputs.
fn one_call(
    interface: &Interface,
    bounds: &Bounds,
    prefix: &str,
    callee: Callee,
) -> Result<Planned, ArchiveError> {
    let mut draft = Draft::default();
    for (number, port) in interface.inputs.iter().enumerate() {
        let ty = type_of(&largest(port, bounds)?)?;
        draft.inputs.push((plain_name(interface, number), ty));
    }
    let results = interface.outputs.iter().map(|port| Ok(type_of(&largest(port, bounds)?)?));
    let results = results.collect::<Result<Vec<_>, ArchiveError>>()?;
    let inputs: Vec<Place> = (0..draft.inputs.len()).map(Place::Input).collect();
    draft.outputs = draft.call(callee, inputs, results);
    let no_kernels = BTreeMap::new();
    let kind = |callee: &Callee| kind(callee, &no_kernels);
    let (graph, params, operators) = graph::write(draft, prefix, kind);
    let outputs = interface.outputs.iter().map(|port| port.name.clone()).collect();
    Ok(Planned { graph, params, operators, steps: vec![], outputs })
}

/// The type of an input or output where every dimension has its largest value.
fn largest(port: &Port, bounds: &Bounds) -> Result<TensorType, ArchiveError> {
    let value = |name: &str| bounds.get(name).map(|range| *range.end());
    let extent = |(axis, extent): (usize, &i64)| match port.sizes.get(axis) {
        Some(size) => size.parse::<Dim>().ok()?.eval(&value),
        None => Some(*extent),
    };
    let shape = port.shape.iter().enumerate().map(extent).collect::<Option<Vec<i64>>>();
    match (port.element_type(), shape) {
        (Some(dtype), Some(shape)) => Ok(TensorType { dtype, shape }),
        _ => Err(ArchiveError {
            message: format!(
                "the size of '{}' is computed at run time, not from bounded dimensions alone: {}",
                port.name,
                port.type_text()
            ),
            help: Some(LIBRARY_HELP.to_owned()),
        }),
    }
}
