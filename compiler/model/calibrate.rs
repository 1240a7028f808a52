//! Calibration: the ranges of the values of a model over samples.
use super::Model;
use crate::{CompileOptions, Imported, Session, import::path_of, session::Error};
use irc_diag::Diagnostic;
use irc_quantise::{Granularity, Method, Observer, Plan, Quantisation, Scope};
use irc_runtime::Port;
use irc_tensor::{DType, Tensor};
use irc_tl::{Graph, Node, NodeKind, ValueId};
use std::collections::{BTreeMap, BTreeSet};

/// Tensors by name.
type Tensors = BTreeMap<String, Tensor>;

/// How a model is quantised.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// How ranges follow from samples.
    pub method: Method,
    /// The scales of weights.
    pub granularity: Granularity,
    /// What becomes bytes.
    pub scope: Scope,
}

impl Model<'_> {
    /// A warning if products or convolutions with constant weights stay in `f32`, as their sizes are open, while others become
    /// products of bytes.
    ///
    /// # Errors
    /// Errors in the file.
    pub fn unquantised(&self, scope: Scope) -> Result<Vec<Diagnostic>, Error> {
        let imported = self.imported()?;
        let graph = &imported.graph;
        let products = Plan::new(graph, scope).products();
        if products.is_empty() {
            return Ok(vec![]);
        }
        let constants: BTreeSet<ValueId> = graph
            .nodes
            .iter()
            .filter(|node| matches!(node.kind, NodeKind::Constant(_)))
            .flat_map(|node| node.results.iter().copied())
            .collect();
        let is_left = |(index, node): &(usize, &Node)| {
            let NodeKind::Op(op) = &node.kind else { return false };
            let is_product = matches!(op.summary().as_deref(), Some("conv" | "matmul"));
            let types = || node.operands.iter().chain(&node.results).map(|value| graph.ty(*value));
            is_product
                && !products.contains(index)
                && types().all(|ty| ty.dtype == DType::F32)
                && types().any(|ty| ty.known().is_none())
                && node.operands.iter().any(|value| constants.contains(value))
        };
        let left: Vec<&Node> =
            graph.nodes.iter().enumerate().filter(is_left).map(|(_, node)| node).collect();
        let Some(first) = left.first() else { return Ok(vec![]) };
        let origin = first.origin.as_deref().unwrap_or("graph");
        let others = match left.len() - 1 {
            0 => String::new(),
            count => format!(", and so do {count} other products and convolutions"),
        };
        let message = format!("{origin}: stays in f32, as its sizes are open{others}");
        let is_open = |port: &Port| port.shape.iter().any(|extent| *extent < 0);
        let open = self.inputs()?.into_iter().filter(is_open);
        let shapes: Vec<_> = open.map(|port| format!("--shape {}", port.example_shape())).collect();
        let mut found = Diagnostic::warning("quantise-open", message).path(path_of(origin));
        if !shapes.is_empty() {
            found = found.help(format!("state the sizes, as in {}", shapes.join(" ")));
        }
        let mut found = vec![found];
        self.locate(&mut found);
        Ok(found)
    }

    /// The quantisation of the model by samples of its inputs, for [`crate::ImportOptions::quantisation`]. The first
    /// dimension of each tensor has the samples; the model runs on as many at once as its inputs have, or one if that is
    /// open.
    ///
    /// # Errors
    /// Errors in the file or of compiling it; `quantise-nothing` if no product has constant weights;
    /// `quantise-samples` for samples of other names, types or shapes than the inputs, and values that are not finite.
    pub fn calibrate(&self, samples: &Tensors, how: Calibration) -> Result<Quantisation, Error> {
        let imported = self.imported()?;
        let graph = &imported.graph;
        let plan = Plan::new(graph, how.scope);
        if plan.is_empty() {
            let is_byte = |value: &ValueId| matches!(graph.ty(*value).dtype, DType::I8 | DType::U8);
            // Products of bytes are sums of integers.
            let is_product = |node: &Node| {
                let of_bytes = node.operands.len() > 1 && node.operands.iter().all(is_byte);
                of_bytes && node.results.iter().all(|value| graph.ty(*value).dtype == DType::I32)
            };
            let is_quantised = graph.nodes.iter().any(is_product);
            if is_quantised {
                let message =
                    "nothing to quantise: the model is quantised already, and runs without samples";
                return Err(Error::at("quantise-nothing", self.source(), message));
            }
            let is_open = |port: &Port| port.shape.iter().any(|extent| *extent < 0);
            let open: Vec<Port> = self.inputs()?.into_iter().filter(is_open).collect();
            let known = if open.is_empty() { "" } else { " and known sizes" };
            let message = format!(
                "nothing to quantise: the model has no product or convolution of f32 with constant weights{known}"
            );
            let found = open.iter().fold(
                Diagnostic::error("quantise-nothing", message),
                |found, Port { name, .. }| {
                    found.with_note(format!("input '{name}' has an open size"))
                },
            );
            let shapes: Vec<_> =
                open.iter().map(|port| format!("--shape {}", port.example_shape())).collect();
            let found = match &shapes[..] {
                [] => found,
                shapes => found.help(format!("state the sizes, as in {}", shapes.join(" "))),
            };
            return Err(Error::found(self.source(), vec![found]));
        }
        let wrong = |message: String| Error::at("quantise-samples", self.source(), message);
        let runs = runs(graph, samples).map_err(wrong)?;
        let is_input = |value: &ValueId| graph.inputs.iter().any(|(_, input)| input == value);
        let (given, computed): (Vec<ValueId>, Vec<ValueId>) =
            plan.observed().into_iter().partition(is_input);
        let name = |value: &ValueId| format!("value {}", value.0);
        let mut wide = graph.clone();
        wide.outputs = computed.iter().map(|value| (name(value), *value)).collect();
        wide.prune();
        let session = Session::new();
        // One sample may be fewer than the bounds of open sizes allow.
        let bounds = imported.bounds.iter();
        let bounds =
            bounds.map(|(name, range)| (name.clone(), 1.min(*range.start())..=*range.end()));
        let own = Imported { graph: wide, bounds: bounds.collect(), ..Imported::default() };
        let program =
            session.import_program(self.source(), own).compile(CompileOptions::default())?;
        let mut observers: BTreeMap<ValueId, Observer> = BTreeMap::new();
        let passes = if how.method == Method::MinMax { 1 } else { 2 };
        for pass in 0..passes {
            for number in 0..runs {
                let inputs = sample(graph, samples, runs, number).map_err(wrong)?;
                let read = |value: &ValueId| {
                    let (name, _) = graph.inputs.iter().find(|(_, input)| input == value)?;
                    inputs.get(name).map(|tensor| (*value, tensor.clone()))
                };
                let mut found: Vec<(ValueId, Tensor)> = given.iter().filter_map(read).collect();
                let mut made =
                    program.run(inputs.clone()).map_err(|error| wrong(error.to_string()))?;
                found.extend(
                    computed.iter().filter_map(|value| Some((*value, made.remove(&name(value))?))),
                );
                for (value, tensor) in found {
                    let observer = observers.entry(value).or_default();
                    let elements = tensor.to_f32();
                    if pass > 0 {
                        observer.count(&elements);
                        continue;
                    }
                    observer.extend(&elements).map_err(|found| {
                        let place = place(graph, value);
                        wrong(format!("{place} has the value {found} in sample {number}"))
                    })?;
                }
            }
        }
        let range = |(value, own): (&ValueId, &Observer)| Some((*value, own.range(how.method)?));
        let ranges = observers.iter().filter_map(range).collect();
        Ok(Quantisation { scope: how.scope, granularity: how.granularity, ranges })
    }
}

/// What a value of a graph is, for messages.
fn place(graph: &Graph, value: ValueId) -> String {
    if let Some((name, _)) = graph.inputs.iter().find(|(_, input)| *input == value) {
        return format!("input '{name}'");
    }
    let node = graph.nodes.iter().find(|node| node.results.contains(&value));
    let origin = node.and_then(|node| node.origin.as_deref());
    format!("the result of {}", origin.unwrap_or("a node"))
}

/// The elements of the first dimension that one run reads; `None` of scalars, which all runs read.
fn rows(graph: &Graph, value: ValueId) -> Option<i64> {
    let dims = &graph.ty(value).dims;
    dims.first().map(|first| first.known().unwrap_or(1).max(1))
}

/// The number of runs that samples are for.
fn runs(graph: &Graph, samples: &Tensors) -> Result<i64, String> {
    let names =
        || graph.inputs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    for name in samples.keys() {
        if graph.inputs.iter().all(|(input, _)| input != name) {
            return Err(format!(
                "samples of '{name}', which is no input of the model: its inputs are {}",
                names()
            ));
        }
    }
    let mut runs: Option<(i64, &str)> = None;
    for (name, value) in &graph.inputs {
        let tensor = match samples.get(name) {
            Some(tensor) => tensor,
            None if graph.preserved.contains(value) => continue,
            None => return Err(format!("there are no samples of input '{name}'")),
        };
        let (ty, found) = (graph.ty(*value), tensor.ty());
        let wrong = |why: &str| {
            Err(format!("samples of input '{name}': expected {ty}, found {found}: {why}"))
        };
        let is_stored =
            tensor.dtype() == ty.dtype || tensor.dtype() == DType::U16 && ty.dtype.size() == 2;
        if !is_stored {
            return wrong("the element types differ");
        }
        if found.shape.len() != ty.rank() {
            return wrong("the ranks differ");
        }
        let fits =
            |(dim, extent): (&irc_tl::Dim, &i64)| dim.known().is_none_or(|dim| dim == *extent);
        if !ty.dims.iter().zip(&found.shape).skip(1).all(fits) {
            return wrong("only the first dimension may be longer");
        }
        let Some(rows) = rows(graph, *value) else { continue };
        let own = found.shape[0];
        if own == 0 || own % rows != 0 {
            return wrong(&format!("the first dimension must be a multiple of {rows}, and not 0"));
        }
        match runs {
            Some((all, first)) if all != own / rows => {
                return Err(format!("{all} samples of '{first}', and {} of '{name}'", own / rows));
            }
            _ => runs = Some((own / rows, name)),
        }
    }
    Ok(runs.map_or(1, |(runs, _)| runs))
}

/// The inputs of one run.
fn sample(graph: &Graph, samples: &Tensors, runs: i64, number: i64) -> Result<Tensors, String> {
    let mut inputs = Tensors::new();
    for (name, value) in &graph.inputs {
        let Some(tensor) = samples.get(name) else { continue };
        let mut ty = tensor.ty().clone();
        ty.dtype = graph.ty(*value).dtype;
        let mut bytes = tensor.bytes();
        if let Some(first) = ty.shape.first_mut() {
            *first /= runs;
            let each = bytes.len() / runs as usize;
            bytes = &bytes[each * number as usize..][..each];
        }
        let own = Tensor::from_bytes(ty, bytes).map_err(|error| error.to_string())?;
        inputs.insert(name.clone(), own);
    }
    Ok(inputs)
}
