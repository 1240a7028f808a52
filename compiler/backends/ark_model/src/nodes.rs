//! Exports the nodes of a graph in order.

use crate::memory::Memory;
use crate::numbers::{factor, narrowed, splat};
use crate::types::{ark_shape, data_type, known};
use crate::{ArkModel, NamedBuffer, Role};
use irc_ark_format::model::{Tensor, validate};
use irc_diag::Diagnostic;
use irc_tl::{Constant, DType, Graph, Node, NodeKind, SymbolSource, TensorType, ValueId};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of nodes: calls are inlined, so a small graph can expand to any size.
const MAX_NODES: usize = 1 << 20;

/// Exports a graph.
pub fn write(graph: &Graph) -> Result<ArkModel, Vec<Diagnostic>> {
    let mut graph = graph.clone();
    graph.prune();
    let mut writer = Writer::default();
    expect_known_sizes(&graph)?;
    let mut scope = Scope::default();
    for (name, value) in &graph.inputs {
        scope.held.insert(*value, Storage::Input(name.clone()));
    }
    writer.nodes(&graph, &mut scope);
    if writer.found.is_empty() {
        writer.outputs(&graph, &mut scope);
    }
    if !writer.found.is_empty() {
        return Err(writer.found);
    }
    let Writer { memory, buffers, .. } = writer;
    let model = memory.finish();
    // An invalid model is a bug in this crate, which is reported.
    let found = validate(&model);
    let wrong: Vec<Diagnostic> = found.into_iter().filter(Diagnostic::is_error).collect();
    if wrong.is_empty() { Ok(ArkModel { model, buffers }) } else { Err(wrong) }
}

/// Fails for a graph with sizes that are not numbers.
fn expect_known_sizes(graph: &Graph) -> Result<(), Vec<Diagnostic>> {
    let open: BTreeSet<&str> = graph.symbols.iter().map(|symbol| &*symbol.name).collect();
    if open.is_empty() {
        return Ok(());
    }
    let names = open.into_iter().collect::<Vec<_>>().join(", ");
    let message = format!("shapes of ARK are numbers, and the graph depends on the sizes {names}");
    let found = Diagnostic::error("ark-emit", message);
    let inputs: BTreeSet<ValueId> = graph.inputs.iter().map(|(_, value)| *value).collect();
    let is_of_input = |source: &SymbolSource| match source {
        SymbolSource::Extent(value, _) => inputs.contains(value),
        SymbolSource::Element(..) => false,
    };
    let flag = |(name, value): &(String, ValueId)| {
        let dims = &graph.ty(*value).dims;
        let extents: Vec<_> = dims.iter().map(|dim| dim.known().unwrap_or(1).to_string()).collect();
        let is_open = dims.iter().any(|dim| dim.known().is_none());
        is_open.then(|| format!("--shape {name}={}", extents.join("x")))
    };
    let flags: Vec<String> = graph.inputs.iter().filter_map(flag).collect();
    let depends_on_inputs = graph.symbols.iter().all(|symbol| is_of_input(&symbol.source));
    Err(vec![match depends_on_inputs {
        true => found.help(format!("specify the shapes of inputs, as with {}", flags.join(" "))),
        false => Diagnostic {
            notes: vec!["some of them depend on values, whatever the shapes of inputs".to_owned()],
            ..found
        },
    }])
}

/// The storage of a value.
#[derive(Clone)]
pub enum Storage {
    /// An input of the graph, which gets a buffer at its first use.
    Input(String),
    /// A constant, which gets a buffer at its first use.
    Constant(Constant),
    /// A number, for all elements.
    Splat(f64),
    /// A box of a buffer. It has the shape of the value without the dimensions that [`ark_shape`] omits.
    Box(Tensor),
    /// The result of a node that cannot be exported.
    Unknown,
}

/// The values of a graph.
#[derive(Default)]
pub struct Scope {
    held: BTreeMap<ValueId, Storage>,
}

/// Exports the nodes of a graph into a model.
#[derive(Default)]
pub struct Writer {
    pub(crate) memory: Memory,
    buffers: Vec<NamedBuffer>,
    found: Vec<Diagnostic>,
    constants: usize,
    count: usize,
}

impl Writer {
    /// Exports the nodes of a graph. The result of an unsupported node is a buffer if possible, so that
    /// later nodes can be checked.
    fn nodes(&mut self, graph: &Graph, scope: &mut Scope) {
        for node in &graph.nodes {
            self.count += 1;
            if self.count > MAX_NODES {
                // Reported once, independently of the number of open calls.
                if self.count == MAX_NODES + 1 {
                    let message = format!("the graph comes to over {MAX_NODES} nodes");
                    self.found.push(Diagnostic::error("ark-emit", message));
                }
                return;
            }
            let is_unknown =
                |value: &ValueId| matches!(scope.held.get(value), Some(Storage::Unknown) | None);
            if node.operands.iter().any(is_unknown) {
                scope.held.extend(node.results.iter().map(|value| (*value, Storage::Unknown)));
                continue;
            }
            let origin = node.origin.as_deref().unwrap_or_default();
            origin.clone_into(&mut self.memory.origin);
            if let Err(message) = self.node(graph, node, scope) {
                self.found.push(diagnostic(node, &message));
                for value in &node.results {
                    let ty = known(graph, *value);
                    let like = ty.and_then(|ty| Ok((data_type(ty.dtype)?, ark_shape(&ty.shape)?)));
                    let held = like.map_or(Storage::Unknown, |(dtype, shape)| {
                        Storage::Box(self.memory.buffer(dtype, &shape))
                    });
                    scope.held.insert(*value, held);
                }
            }
        }
    }

    fn node(&mut self, graph: &Graph, node: &Node, scope: &mut Scope) -> Result<(), String> {
        let results: &[ValueId] = &node.results;
        match (&node.kind, results) {
            (NodeKind::Constant(constant), [result]) => {
                scope.held.insert(*result, Storage::Constant(constant.clone()));
            }
            (NodeKind::After, [result]) => {
                let held = scope.held[&node.operands[0]].clone();
                scope.held.insert(*result, held);
            }
            (NodeKind::Op(op), [result]) => {
                let ty = known(graph, *result)?;
                let held = self.op(graph, op, &node.operands, &ty, scope)?;
                scope.held.insert(*result, held);
            }
            (NodeKind::Call { body, .. }, _) => {
                let mut inner = Scope::default();
                for ((_, parameter), operand) in body.inputs.iter().zip(&node.operands) {
                    // Read here, so that all calls read the same buffer.
                    if matches!(scope.held[operand], Storage::Input(_) | Storage::Constant(_)) {
                        self.tensor(graph, *operand, scope)?;
                    }
                    inner.held.insert(*parameter, scope.held[operand].clone());
                }
                self.nodes(body, &mut inner);
                for ((_, value), result) in body.outputs.iter().zip(&node.results) {
                    let held = inner.held.get(value).cloned().unwrap_or(Storage::Unknown);
                    scope.held.insert(*result, held);
                }
            }
            (NodeKind::If { .. } | NodeKind::Loop { .. }, _) => {
                return Err("ARK has no control flow".into());
            }
            (NodeKind::Algorithm(algorithm), _) => {
                return Err(format!("ARK has no op for {}", algorithm.name()));
            }
            (NodeKind::Host(_), _) => return Err("ARK has no functions of the host".into()),
            _ => return Err("it does not have one result".into()),
        }
        Ok(())
    }

    /// The box of a value. Inputs and constants get a buffer at their first use.
    pub fn tensor(
        &mut self,
        graph: &Graph,
        value: ValueId,
        scope: &mut Scope,
    ) -> Result<Tensor, String> {
        let ty = known(graph, value)?;
        let held = scope.held.get(&value).cloned();
        let tensor = match held.ok_or("an operand is not computed before it")? {
            Storage::Box(tensor) => return Ok(tensor),
            Storage::Unknown => return Err("an operand cannot be written".into()),
            // Not stored: the shape of a number depends on its use.
            Storage::Splat(number) => {
                let shape = ark_shape(&ty.shape)?;
                return self.number(number, ty.dtype, &shape);
            }
            Storage::Input(name) => self.outside(name, Role::Input, &ty, None)?,
            Storage::Constant(constant) => match splat(&constant) {
                Some(number) => {
                    scope.held.insert(value, Storage::Splat(number));
                    return self.tensor(graph, value, scope);
                }
                None => {
                    let constant = narrowed(&constant)?;
                    let name = format!("constant_{}", self.constants);
                    self.constants += 1;
                    self.outside(name, Role::Constant, &ty, Some(constant))?
                }
            },
        };
        scope.held.insert(value, Storage::Box(tensor.clone()));
        Ok(tensor)
    }

    /// An externally visible buffer.
    fn outside(
        &mut self,
        name: String,
        role: Role,
        ty: &TensorType,
        elements: Option<Constant>,
    ) -> Result<Tensor, String> {
        let tensor = self.memory.buffer(data_type(ty.dtype)?, &ark_shape(&ty.shape)?);
        self.name(name, role, ty, &tensor, elements);
        Ok(tensor)
    }

    fn name(
        &mut self,
        name: String,
        role: Role,
        ty: &TensorType,
        tensor: &Tensor,
        elements: Option<Constant>,
    ) {
        let (dtype, shape) = (ty.dtype, ty.shape.clone());
        let (id, data_type) = (tensor.buffer.id, tensor.dtype);
        self.buffers.push(NamedBuffer { id, name, role, data_type, dtype, shape, elements });
    }

    /// A buffer filled with one number.
    pub fn number(&mut self, number: f64, dtype: DType, shape: &[i64]) -> Result<Tensor, String> {
        let number = factor(number, dtype)?;
        Ok(self.memory.fill(number, data_type(dtype)?, shape))
    }

    /// The number that all elements of a value equal.
    pub fn splat(&self, value: ValueId, scope: &Scope) -> Option<f64> {
        match scope.held.get(&value)? {
            Storage::Splat(number) => Some(*number),
            Storage::Constant(constant) => splat(constant),
            Storage::Input(_) | Storage::Box(_) | Storage::Unknown => None,
        }
    }

    /// Makes every output a buffer that an op writes and none reads, like results of ARK models.
    fn outputs(&mut self, graph: &Graph, scope: &mut Scope) {
        self.memory.origin.clear();
        let mut given = BTreeSet::new();
        for (name, value) in &graph.outputs {
            let output = known(graph, *value).and_then(|ty| {
                if ty.dtype == DType::I64 {
                    return Err("ARK has no elements of i64".to_owned());
                }
                let shape = ark_shape(&ty.shape)?;
                let mut tensor = self.tensor(graph, *value, scope)?;
                if !self.memory.is_last(&tensor) || !given.insert(tensor.buffer.id) {
                    tensor = self.memory.copy(&tensor, &shape);
                    given.insert(tensor.buffer.id);
                }
                Ok((ty, tensor))
            });
            match output {
                Ok((ty, tensor)) => self.name(name.clone(), Role::Output, &ty, &tensor, None),
                Err(message) => {
                    let message = format!("output '{name}': {message}");
                    self.found.push(Diagnostic::error("ark-emit", message));
                }
            }
        }
    }
}

/// A diagnostic about a node, whose origin is a path in the source, or `path: name`.
fn diagnostic(node: &Node, message: &str) -> Diagnostic {
    let origin = node.origin.as_deref().unwrap_or_default();
    let (path, name) = origin.split_once(": ").unwrap_or((origin, ""));
    let name = if name.is_empty() { name_of(node) } else { name.to_owned() };
    let diagnostic = Diagnostic::error("ark-emit", format!("{name}: {message}"));
    if path.is_empty() { diagnostic } else { diagnostic.path(path) }
}

fn name_of(node: &Node) -> String {
    match &node.kind {
        NodeKind::Constant(_) => "a constant".into(),
        NodeKind::Op(op) => format!("tl.{}", op.name()),
        NodeKind::Algorithm(algorithm) => format!("tl.{}", algorithm.name()),
        NodeKind::Host(_) => "tl.host".into(),
        NodeKind::If { .. } => "tl.if".into(),
        NodeKind::After => "tl.after".into(),
        NodeKind::Call { name, .. } => format!("tl.call of {name}"),
        NodeKind::Loop { .. } => "tl.loop".into(),
    }
}
