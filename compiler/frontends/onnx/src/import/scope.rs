//! Scopes of names, and the lowering of nodes.

mod calls;

use super::functions::Functions;
use super::meaning::{inputs_of, operator_of};
use crate::context::{Context, Enclosing, LowerError, Producer};
use crate::data::{dtype_of, tensor_of};
use crate::diagnostic::{NodeDiagnostic, NodeDiagnosticKind};
use crate::item::Item;
use crate::operator::{MICROSOFT, ONNX, canonical};
use crate::region::Region;
use irc_common_format::model::{Graph, Node, Path, Type as FileType, Value};
use irc_common_format::{free_names, topological_order};
use irc_tl::{BuildError, Builder, Built, Dependencies, Dim, Type, ValueId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum depth of nested calls: the functions of a file may be recursive.
const MAX_DEPTH: usize = 64;

/// Names of one graph or function body, with those of the enclosing graph.
pub(crate) struct Scope<'m> {
    functions: &'m Functions<'m>,
    /// The names of the enclosing graph.
    around: Option<&'m Scope<'m>>,
    /// The domain of the function, in its body.
    home: Option<&'m str>,
    opsets: BTreeMap<String, i64>,
    values: BTreeMap<String, Item>,
    declared: BTreeMap<String, Type>,
    /// Results of nodes that could not be lowered: users of them are not reported.
    failed: BTreeSet<String>,
    /// The results of named nodes.
    made: BTreeMap<String, Vec<String>>,
    /// Nodes that quantisation looks for, and their origins, by the names of their results.
    producers: BTreeMap<String, (Arc<Node>, Option<Arc<str>>)>,
    depth: usize,
    /// Whether sizes computed at run time are taken to be those that the model states.
    assumes_stated_shapes: bool,
}

impl<'m> Scope<'m> {
    pub(crate) fn of_graph(
        functions: &'m Functions<'m>,
        graph: &Graph,
        opsets: BTreeMap<String, i64>,
        assumes_stated_shapes: bool,
    ) -> Self {
        let mut scope = Self {
            functions,
            around: None,
            home: None,
            opsets,
            values: BTreeMap::new(),
            declared: BTreeMap::new(),
            failed: BTreeSet::new(),
            made: BTreeMap::new(),
            producers: BTreeMap::new(),
            depth: 0,
            assumes_stated_shapes,
        };
        scope.declare(graph);
        scope
    }

    /// The scope of a graph attribute, which sees the names of this one.
    fn inside(&self) -> Scope<'_> {
        Scope {
            functions: self.functions,
            around: Some(self),
            home: self.home,
            opsets: self.opsets.clone(),
            values: BTreeMap::new(),
            declared: BTreeMap::new(),
            failed: BTreeSet::new(),
            made: BTreeMap::new(),
            producers: BTreeMap::new(),
            depth: self.depth + 1,
            assumes_stated_shapes: self.assumes_stated_shapes,
        }
    }

    /// The first result of `get` in this scope and the enclosing ones.
    fn nearest<'s, T>(&'s self, find: impl Fn(&'s Scope<'s>) -> Option<T>) -> Option<T> {
        let mut scope: Option<&'s Scope<'s>> = Some(self);
        while let Some(here) = scope {
            let found = find(here);
            if found.is_some() {
                return found;
            }
            scope = here.around;
        }
        None
    }

    /// Records the types that a graph declares.
    fn declare(&mut self, graph: &Graph) {
        for value in graph.values.iter().chain(&graph.outputs) {
            if let Some(ty) = declared_type(value) {
                self.declared.insert(value.name().to_owned(), ty);
            }
        }
    }

    pub(crate) fn define(&mut self, name: &str, value: ValueId) {
        self.define_item(name, Item::Tensor(value));
    }

    pub(crate) fn define_item(&mut self, name: &str, item: Item) {
        self.values.insert(name.to_owned(), item);
    }

    /// Records that the value of a name could not be computed.
    pub(crate) fn fail(&mut self, name: &str) {
        self.failed.insert(name.to_owned());
    }

    pub(crate) fn is_failed(&self, name: &str) -> bool {
        self.nearest(|scope| scope.failed.get(name)).is_some()
    }

    pub(crate) fn item(&self, name: &str) -> Option<&Item> {
        self.nearest(|scope| scope.values.get(name))
    }

    /// How the type that the model states for a value contradicts the computed one.
    pub(crate) fn contradiction(
        &self,
        builder: &Builder,
        stated: &Value,
        item: &Item,
    ) -> Option<(NodeDiagnosticKind, String)> {
        let invalid = |message| (NodeDiagnosticKind::Invalid, message);
        let FileType::Tensor(tensor) = stated.ty.as_ref()? else {
            return contradicts(stated.ty.as_ref()?, item).map(invalid);
        };
        let Item::Tensor(value) = item else {
            return Some(invalid(format!("expected a tensor, found {}", item.kind())));
        };
        let found = builder.ty(*value);
        let dtype = dtype_of(tensor.element);
        if dtype != Some(found.dtype) {
            let message = format!("expected elements of type {}, found {found}", tensor.element);
            return Some(invalid(message));
        }
        let expected = declared_type(stated)?;
        let fits = |(stated, found): (&Dim, &Dim)| match (stated.known(), found.known()) {
            (Some(stated), Some(found)) => stated == found,
            _ => true,
        };
        let same_rank = expected.rank() == found.rank();
        if same_rank && expected.dims.iter().zip(&found.dims).all(fits) {
            return None;
        }
        let found = if same_rank { found.to_string() } else { format!("rank {}", found.rank()) };
        let message = format!("the model states {expected}, but computes {found}");
        Some((NodeDiagnosticKind::StatedShape, message))
    }

    /// Lowers nodes in topological order, and defines the names of their results.
    pub(crate) fn nodes(
        &mut self,
        builder: &mut Builder,
        nodes: &[Node],
        at: &Path<'_>,
        diagnostics: &mut Vec<NodeDiagnostic>,
    ) {
        for index in topological_order(nodes) {
            let node = &nodes[index];
            let path = at.index("node", index);
            let inputs = node.inputs.iter().filter(|name| !name.is_empty());
            let mut missing = inputs.filter(|name| self.item(name).is_none());
            if let Some(name) = missing.next() {
                // Where an input of a node failed, the error has been reported.
                if !self.is_failed(name) {
                    let message = format!("nothing before it makes its input '{name}'");
                    diagnostics.push(diagnostic(node, &path, NodeDiagnosticKind::Invalid, message));
                }
                self.failed.extend(node.outputs.iter().cloned());
                continue;
            }
            let origin = format!("{path}: {}", describe(node));
            builder.set_origin(Some(origin.into()));
            let unordered = self.order(builder, node);
            if let Err(found) = self.node(builder, node, &path) {
                diagnostics.extend(found);
                self.failed.extend(node.outputs.iter().cloned());
            }
            self.values.extend(unordered);
            if let [output] = &node.outputs[..]
                && may_be_part(node)
            {
                let made = (Arc::new(node.clone()), builder.origin());
                self.producers.insert(output.clone(), made);
            }
            if let Some(name) = node.name.as_ref().filter(|_| self.functions.control) {
                self.made.insert(name.clone(), node.outputs.clone());
            }
            builder.set_origin(None);
        }
    }

    /// Adds dependencies on the nodes that a node's control inputs name; its input values are unchanged.
    fn order(&mut self, builder: &mut Builder, node: &Node) -> BTreeMap<String, Item> {
        let made = |name: &String| self.nearest(|scope| scope.made.get(name));
        let before = node.control_inputs.iter().filter_map(made).flatten();
        let before = before.filter_map(|name| self.item(name)).flat_map(Item::tensors);
        let before: Vec<ValueId> = before.collect();
        let mut unordered = BTreeMap::new();
        for name in &*inputs_of(node) {
            let Some(item) = self.item(name).filter(|_| !before.is_empty()).cloned() else {
                continue;
            };
            let ordered: Result<Item, LowerError> =
                item.map(&mut |value| Ok(builder.after(value, &before)));
            self.values.extend(ordered.ok().map(|ordered| (name.clone(), ordered)));
            unordered.entry(name.clone()).or_insert(item);
        }
        unordered
    }

    fn node(
        &mut self,
        builder: &mut Builder,
        node: &Node,
        path: &Path<'_>,
    ) -> Result<(), Vec<NodeDiagnostic>> {
        if let Some(function) = self.functions.called(node, self.home) {
            return self.call(builder, node, function, path);
        }
        let wrong = |kind, message: String| vec![diagnostic(node, path, kind, message)];
        let (operator, version) = operator_of(node, self.functions.schema, &self.opsets)
            .map_err(|message| wrong(NodeDiagnosticKind::UnknownOperator, message))?;
        let names = inputs_of(node);
        let items: Vec<Option<Item>> = names.iter().map(|name| self.item(name).cloned()).collect();
        let inputs: Vec<Option<ValueId>> =
            items.iter().map(|item| item.as_ref().and_then(Item::tensor)).collect();
        let mut context = Context {
            b: builder,
            version,
            node,
            inputs: &inputs,
            items: &items,
            results: vec![],
            scope: self,
            path,
        };
        let results = (operator.lower)(&mut context);
        let structured = std::mem::take(&mut context.results);
        let results =
            results.map_err(|error| self.diagnostics_of(builder, node, path, &items, error))?;
        let mut results: Vec<Item> = results.into_iter().map(Item::Tensor).collect();
        if !structured.is_empty() {
            results = structured;
        }
        let wanted =
            node.outputs.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1);
        if results.len() < wanted {
            let message = format!("output {} is not supported", results.len());
            return Err(wrong(NodeDiagnosticKind::Unsupported, message));
        }
        for (name, item) in node.outputs.iter().zip(results) {
            if name.is_empty() {
                continue;
            }
            let item =
                match item {
                    Item::Tensor(value) => {
                        let refined = self.refine(builder, name, value);
                        Item::Tensor(refined.map_err(|error| {
                            wrong(NodeDiagnosticKind::Invalid, error.to_string())
                        })?)
                    }
                    item => item,
                };
            self.define_item(name, item);
        }
        Ok(())
    }

    /// Asserts that sizes computed at run time are those that the model states, if they are assumed.
    fn refine(&self, builder: &mut Builder, name: &str, mut value: ValueId) -> Built {
        let stated = self.declared(name).filter(|_| self.assumes_stated_shapes);
        let Some(stated) = stated else { return Ok(value) };
        let dims = builder.dims(value);
        if stated.rank() != dims.len() {
            return Ok(value);
        }
        for (axis, (stated, found)) in stated.dims.iter().zip(&dims).enumerate() {
            if let (Some(size), None) = (stated.known(), found.known()) {
                let message =
                    format!("the model states that dimension {axis} of '{name}' is {size}");
                value = builder.assume(value, axis, size, &message)?;
            }
        }
        Ok(value)
    }

    fn diagnostics_of(
        &self,
        builder: &Builder,
        node: &Node,
        path: &Path<'_>,
        inputs: &[Option<Item>],
        error: LowerError,
    ) -> Vec<NodeDiagnostic> {
        let mut message = error.to_string();
        if let LowerError::Build(BuildError::Tensor(_)) = &error {
            let named = node.outputs.iter().filter(|name| !name.is_empty());
            let named: Vec<String> = named.map(|name| format!("'{name}'")).collect();
            message = format!("computing {}: {message}", named.join(" and "));
        }
        let wrong = |kind| diagnostic(node, path, kind, message.clone());
        let kind = match error {
            LowerError::Invalid(_) | LowerError::Build(_) => NodeDiagnosticKind::Invalid,
            LowerError::Unsupported(_) => NodeDiagnosticKind::Unsupported,
            LowerError::NeedsConstant(_) | LowerError::NeedsCondition { .. } => {
                let index = if let LowerError::NeedsConstant(index) = error { index } else { 0 };
                let mut needs = Dependencies::default();
                let tensors = inputs.get(index).into_iter().flatten().flat_map(Item::tensors);
                tensors.for_each(|value| join(&mut needs, builder.dependencies(value)));
                return vec![wrong(NodeDiagnosticKind::Invalid).needing(needs)];
            }
            LowerError::NeedsSize(size) => {
                let needs = builder.dependencies_of_sizes(&[size]);
                return vec![wrong(NodeDiagnosticKind::Invalid).needing(needs)];
            }
            LowerError::Inside(diagnostics) => return diagnostics,
        };
        vec![wrong(kind)]
    }

    fn write(
        &mut self,
        builder: &mut Builder,
        graph: &Graph,
        inputs: &[Item],
        path: &Path<'_>,
    ) -> Result<Vec<Item>, LowerError> {
        if self.depth > MAX_DEPTH {
            return Err(LowerError::invalid(format!(
                "graphs are nested more than {MAX_DEPTH} deep"
            )));
        }
        if graph.inputs.len() != inputs.len() {
            let (expected, found) = (inputs.len(), graph.inputs.len());
            let message = format!("expected {expected} inputs of its graph, found {found}");
            return Err(LowerError::invalid(message));
        }
        self.declare(graph);
        for tensor in &graph.initializers {
            let constant = tensor_of(tensor).map_err(LowerError::unsupported)?;
            let value = builder.constant(constant);
            self.define(tensor.name.as_deref().unwrap_or_default(), value);
        }
        for (formal, item) in graph.inputs.iter().zip(inputs) {
            self.define_item(formal.name(), item.clone());
        }
        let mut diagnostics = vec![];
        let origin = builder.origin();
        self.nodes(builder, &graph.nodes, path, &mut diagnostics);
        builder.set_origin(origin);
        if !diagnostics.is_empty() {
            return Err(LowerError::Inside(diagnostics));
        }
        let lost = |output: &Value| self.is_failed(output.name());
        if graph.outputs.iter().any(lost) {
            return Err(LowerError::Inside(vec![]));
        }
        let item = |output: &Value| {
            let message = || format!("nothing in its graph makes '{}'", output.name());
            self.item(output.name()).cloned().ok_or_else(|| LowerError::invalid(message()))
        };
        graph.outputs.iter().map(item).collect()
    }
}

impl Enclosing for Scope<'_> {
    fn declared(&self, name: &str) -> Option<Type> {
        self.nearest(|scope| scope.declared.get(name)).cloned()
    }

    fn producer(&self, name: &str) -> Option<Producer> {
        let (node, origin) = self.producers.get(name)?.clone();
        let tensor = |name: &String| self.item(name).and_then(Item::tensor);
        let inputs = node.inputs.iter().map(tensor).collect();
        Some(Producer { node, inputs, origin })
    }

    fn inline(
        &self,
        builder: &mut Builder,
        graph: &Graph,
        inputs: &[Item],
        path: &Path<'_>,
    ) -> Result<Vec<Item>, LowerError> {
        let mut inside = self.inside();
        inside.write(builder, graph, inputs, path)
    }

    fn write_region(
        &self,
        region: &mut Region,
        around: &Builder,
        graph: &Graph,
        inputs: &[Item],
        path: &Path<'_>,
    ) -> Result<Vec<Item>, LowerError> {
        let mut inside = self.inside();
        for name in free_names(graph) {
            let Some(item) = self.item(name) else { continue };
            let within = item.map(&mut |value| Ok(region.capture(around, value)));
            let within: Result<Item, LowerError> = within;
            inside.define_item(name, within?);
        }
        let written = inside.write(&mut region.b, graph, inputs, path);
        written.map_err(|error| match error {
            LowerError::Inside(diagnostics) => {
                let outward = |diagnostic| outward(diagnostic, region, around);
                LowerError::Inside(diagnostics.into_iter().map(outward).collect())
            }
            error => error,
        })
    }
}

/// Whether a node may be a part of what another one computes: a group on quantised integers, or a product with numbers that
/// are converted.
fn may_be_part(node: &Node) -> bool {
    let domain = canonical(node.domain.as_deref().unwrap_or_default());
    matches!(domain, ONNX | MICROSOFT)
        && (["Cast", "DequantizeLinear"].contains(&node.op.as_str())
            || crate::ops::on_integers(&node.op))
}

fn join(needs: &mut Dependencies, more: Dependencies) {
    needs.values.extend(more.values);
    needs.shapes.extend(more.shapes);
    needs.around.extend(more.around);
}

/// A diagnostic in a graph attribute, with its dependencies as seen from the enclosing graph. What depends on
/// an input of the attribute's own graph, which is different in each iteration, has none: no value of an input
/// of the model helps.
fn outward(diagnostic: NodeDiagnostic, region: &Region, around: &Builder) -> NodeDiagnostic {
    let Some(needs) = &diagnostic.needs else { return diagnostic };
    let mut seen = Dependencies::default();
    for name in &needs.values {
        let Some(value) = region.captured_as(name) else {
            return diagnostic.needing(Dependencies::default());
        };
        join(&mut seen, around.dependencies(value));
    }
    let symbols: Vec<Dim> = needs.around.iter().map(|name| Dim::symbol(name)).collect();
    join(&mut seen, around.dependencies_of_sizes(&symbols));
    diagnostic.needing(seen)
}

/// How the stated type of a value other than a tensor contradicts the computed one.
fn contradicts(ty: &FileType, item: &Item) -> Option<String> {
    match (ty, item) {
        (FileType::Sequence(_), Item::Sequence(_) | Item::Map { .. })
        | (FileType::Map { .. }, Item::Map { .. })
        | (FileType::Sparse(_), Item::Tensor(_))
        | (FileType::Optional(_), _) => None,
        _ => Some(format!("expected {ty}, found {}", item.kind())),
    }
}

fn declared_type(value: &Value) -> Option<Type> {
    let Some(FileType::Tensor(tensor)) = &value.ty else { return None };
    let shape = tensor.shape.as_ref().or(value.shape.as_ref())?;
    let dim = |(axis, dim): (usize, &irc_common_format::model::Dim)| match dim {
        irc_common_format::model::Dim::Size(size) if *size >= 0 => Some(Dim::Known(*size)),
        irc_common_format::model::Dim::Wildcard(_) => None,
        irc_common_format::model::Dim::Variable(name) if super::is_name(name) => {
            Some(Dim::symbol(&super::symbol_name(name)))
        }
        _ => Some(Dim::symbol(&format!("{}_{axis}", super::symbol_name(value.name())))),
    };
    let dims: Option<Vec<Dim>> = shape.dims.iter().enumerate().map(dim).collect();
    Some(Type::new(dtype_of(tensor.element)?, dims?))
}

fn diagnostic(
    node: &Node,
    path: &Path<'_>,
    kind: NodeDiagnosticKind,
    message: String,
) -> NodeDiagnostic {
    NodeDiagnostic::new(path.to_string(), describe(node), kind, message)
}

/// The node in messages.
pub(super) fn describe(node: &Node) -> String {
    match node.name.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => format!("{} '{name}'", node.op),
        None => node.op.clone(),
    }
}
