//! Names and what they stand for, and the writing of nodes.

use super::functions::{self, Functions};
use super::{Finding, FindingKind};
use crate::context::{Context, LowerError};
use crate::data::{dtype_of, tensor_of};
use crate::operator::{canonical, find};
use irc_common_format::model::{Graph, Node, Path, Type as FileType, Value};
use irc_tl::{Builder, Dim, Type, ValueId};
use std::collections::{BTreeMap, BTreeSet};

/// Calls within calls beyond this are refused: the functions of a file may call each other in a ring.
const DEEPEST: usize = 64;

/// Names of one graph or function body, with those around a graph.
#[derive(Clone)]
pub(crate) struct Scope<'m> {
    functions: &'m Functions<'m>,
    opsets: BTreeMap<String, i64>,
    values: BTreeMap<String, ValueId>,
    declared: BTreeMap<String, Type>,
    depth: usize,
}

impl<'m> Scope<'m> {
    pub(crate) fn of_graph(
        functions: &'m Functions<'m>,
        graph: &Graph,
        opsets: BTreeMap<String, i64>,
    ) -> Self {
        let mut scope = Self {
            functions,
            opsets,
            values: BTreeMap::new(),
            declared: BTreeMap::new(),
            depth: 0,
        };
        scope.declare(graph);
        scope
    }

    /// Remembers the types that a graph states.
    fn declare(&mut self, graph: &Graph) {
        for value in graph.values.iter().chain(&graph.outputs) {
            if let Some(ty) = declared_type(value) {
                self.declared.insert(value.name().to_owned(), ty);
            }
        }
    }

    pub(crate) fn define(&mut self, name: &str, value: ValueId) {
        self.values.insert(name.to_owned(), value);
    }

    pub(crate) fn value(&self, name: &str) -> Option<ValueId> {
        self.values.get(name).copied()
    }

    pub(crate) fn declared(&self, name: &str) -> Option<Type> {
        self.declared.get(name).cloned()
    }

    /// What the model says of a value and is not so.
    pub(crate) fn contradiction(
        &self,
        builder: &Builder,
        stated: &Value,
        value: ValueId,
    ) -> Option<String> {
        let found = builder.ty(value);
        let FileType::Tensor(tensor) = stated.ty.as_ref()? else {
            return Some(format!("expected no tensor, found {found}"));
        };
        let dtype = dtype_of(tensor.element);
        if dtype != Some(found.dtype) {
            return Some(format!("expected elements of type {}, found {found}", tensor.element));
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
        Some(format!("expected {expected}, found {found}"))
    }

    /// Writes nodes, in order; what they make gets its name.
    pub(crate) fn nodes(
        &mut self,
        builder: &mut Builder,
        nodes: &[Node],
        at: &Path<'_>,
        findings: &mut Vec<Finding>,
    ) {
        for (index, node) in nodes.iter().enumerate() {
            let path = at.index("node", index);
            // What a node needs and did not come about was told where it did not.
            let inputs = node.inputs.iter().filter(|name| !name.is_empty());
            let missing: Vec<_> = inputs.filter(|name| self.value(name).is_none()).collect();
            if let Some(name) = missing.first() {
                if findings.is_empty() {
                    let message = format!("nothing before it makes its input '{name}'");
                    findings.push(finding(node, &path, FindingKind::Invalid, message));
                }
                continue;
            }
            let origin = format!("{path}: {}", describe(node));
            builder.set_origin(Some(origin.into()));
            if let Err(found) = self.node(builder, node, &path) {
                findings.extend(found);
            }
            builder.set_origin(None);
        }
    }

    fn node(
        &mut self,
        builder: &mut Builder,
        node: &Node,
        path: &Path<'_>,
    ) -> Result<(), Vec<Finding>> {
        if let Some(function) = self.functions.called(node) {
            return self.call(builder, node, function, path);
        }
        let wrong = |kind, message: String| vec![finding(node, path, kind, message)];
        let domain = canonical(node.domain.as_deref().unwrap_or_default());
        let version = self.opsets.get(domain).copied().unwrap_or(1);
        let operator = find(domain, &node.op)
            .and_then(|operator| Some((operator, operator.version_in(version)?)));
        let Some((operator, version)) = operator else {
            let message = format!("no operator {} of {domain} {version}", node.op);
            return Err(wrong(FindingKind::UnknownOperator, message));
        };
        let inputs: Vec<Option<ValueId>> =
            node.inputs.iter().map(|name| self.value(name)).collect();
        let mut context = Context { b: builder, version, node, inputs: &inputs, scope: self };
        let results = (operator.lower)(&mut context);
        let results =
            results.map_err(|error| self.findings_of(builder, node, path, &inputs, error))?;
        let wanted =
            node.outputs.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1);
        if results.len() < wanted {
            let message = format!("output {} is not supported", results.len());
            return Err(wrong(FindingKind::Unsupported, message));
        }
        for (name, value) in node.outputs.iter().zip(results) {
            if !name.is_empty() {
                self.define(name, value);
            }
        }
        Ok(())
    }

    fn call(
        &mut self,
        builder: &mut Builder,
        node: &Node,
        function: &irc_common_format::model::Function,
        path: &Path<'_>,
    ) -> Result<(), Vec<Finding>> {
        if self.depth >= DEEPEST {
            let message = format!("calls are more than {DEEPEST} deep");
            return Err(vec![finding(node, path, FindingKind::Invalid, message)]);
        }
        let mut opsets = self.opsets.clone();
        for opset in &function.opsets {
            let domain = canonical(opset.domain.as_deref().unwrap_or_default());
            opsets.insert(domain.to_owned(), opset.version);
        }
        let mut inside = Scope {
            functions: self.functions,
            opsets,
            values: BTreeMap::new(),
            declared: BTreeMap::new(),
            depth: self.depth + 1,
        };
        for (formal, given) in function.inputs.iter().zip(&node.inputs) {
            if let Some(value) = self.value(given) {
                inside.define(formal.name(), value);
            }
        }
        let mut findings = vec![];
        let body = functions::body(function, node);
        let body = leave_out_missing(body, function, &inside);
        inside.nodes(builder, &body, path, &mut findings);
        if !findings.is_empty() {
            return Err(findings);
        }
        for (formal, name) in function.outputs.iter().zip(&node.outputs) {
            match inside.value(formal.name()) {
                Some(value) => self.define(name, value),
                None if name.is_empty() => {}
                None => {
                    let message = format!("its function makes no '{}'", formal.name());
                    return Err(vec![finding(node, path, FindingKind::Invalid, message)]);
                }
            }
        }
        Ok(())
    }

    fn findings_of(
        &self,
        builder: &Builder,
        node: &Node,
        path: &Path<'_>,
        inputs: &[Option<ValueId>],
        error: LowerError,
    ) -> Vec<Finding> {
        let message = error.to_string();
        let kind = match error {
            LowerError::Invalid(_) | LowerError::Build(_) => FindingKind::Invalid,
            LowerError::Unsupported(_) => FindingKind::Unsupported,
            LowerError::NeedsConstant(index) => {
                let value = inputs.get(index).copied().flatten();
                FindingKind::NeedsValue(
                    value.map(|value| builder.depends_on(value)).unwrap_or_default(),
                )
            }
            LowerError::Inside(findings) => return findings,
        };
        vec![finding(node, path, kind, message)]
    }

    /// See [`Context::inline`].
    pub(crate) fn inline(
        &self,
        builder: &mut Builder,
        graph: &Graph,
        inputs: &[ValueId],
    ) -> Result<Vec<ValueId>, LowerError> {
        let mut inside = self.clone();
        inside.depth += 1;
        inside.write(builder, graph, inputs)
    }

    /// See [`Context::region`].
    pub(crate) fn region(
        &self,
        builder: &mut Builder,
        graph: &Graph,
        inputs: &[Type],
    ) -> Result<(Builder, Vec<ValueId>, Vec<ValueId>), LowerError> {
        let mut inside = self.clone();
        inside.depth += 1;
        let mut nested = builder.inside();
        let mut own = vec![];
        for (index, ty) in inputs.iter().enumerate() {
            own.push(nested.input(format!("input_{index}"), ty.clone()));
        }
        let mut captured = vec![];
        for name in free_names(graph) {
            let Some(value) = self.value(&name) else { continue };
            let (within, operand) = nested.capture(builder, value, &name);
            inside.define(&name, within);
            captured.extend(operand.then_some(value));
        }
        let outputs = inside.write(&mut nested, graph, &own)?;
        Ok((nested, outputs, captured))
    }

    fn write(
        &mut self,
        builder: &mut Builder,
        graph: &Graph,
        inputs: &[ValueId],
    ) -> Result<Vec<ValueId>, LowerError> {
        if self.depth > DEEPEST {
            return Err(LowerError::invalid(format!("graphs are more than {DEEPEST} deep")));
        }
        self.declare(graph);
        for tensor in &graph.initializers {
            let constant = tensor_of(tensor).map_err(LowerError::unsupported)?;
            let value = builder.constant(constant);
            self.define(tensor.name.as_deref().unwrap_or_default(), value);
        }
        for (formal, value) in graph.inputs.iter().zip(inputs) {
            self.define(formal.name(), *value);
        }
        let mut findings = vec![];
        self.nodes(builder, &graph.nodes, &Path::GRAPH, &mut findings);
        if !findings.is_empty() {
            return Err(LowerError::Inside(findings));
        }
        let value = |output: &Value| {
            let message = || format!("nothing in its graph makes '{}'", output.name());
            self.value(output.name()).ok_or_else(|| LowerError::invalid(message()))
        };
        graph.outputs.iter().map(value).collect()
    }
}

/// Inputs of a function that a call leaves out are left out of the calls in its body.
fn leave_out_missing(
    mut body: Vec<Node>,
    function: &irc_common_format::model::Function,
    inside: &Scope<'_>,
) -> Vec<Node> {
    let names = function.inputs.iter().map(Value::name);
    let missing: BTreeSet<&str> = names.filter(|name| inside.value(name).is_none()).collect();
    for input in body.iter_mut().flat_map(|node| &mut node.inputs) {
        if missing.contains(input.as_str()) {
            input.clear();
        }
    }
    body
}

/// Names that a graph uses and does not define, in order.
fn free_names(graph: &Graph) -> BTreeSet<String> {
    let mut own: BTreeSet<&str> = graph.inputs.iter().map(Value::name).collect();
    own.extend(graph.initializers.iter().filter_map(|tensor| tensor.name.as_deref()));
    own.extend(graph.nodes.iter().flat_map(|node| &node.outputs).map(String::as_str));
    let mut free: BTreeSet<String> = BTreeSet::new();
    for node in &graph.nodes {
        free.extend(node.inputs.iter().cloned());
        for attribute in &node.attributes {
            attribute.value.graphs().iter().for_each(|graph| free.extend(free_names(graph)));
        }
    }
    free.extend(graph.outputs.iter().map(|output| output.name().to_owned()));
    free.retain(|name| !name.is_empty() && !own.contains(name.as_str()));
    free
}

fn declared_type(value: &Value) -> Option<Type> {
    let Some(FileType::Tensor(tensor)) = &value.ty else { return None };
    let shape = tensor.shape.as_ref().or(value.shape.as_ref())?;
    let dim = |(axis, dim): (usize, &irc_common_format::model::Dim)| match dim {
        irc_common_format::model::Dim::Size(size) if *size >= 0 => Some(Dim::Known(*size)),
        irc_common_format::model::Dim::Wildcard(_) => None,
        irc_common_format::model::Dim::Variable(name) => {
            Some(Dim::symbol(&super::symbol_name(name)))
        }
        _ => Some(Dim::symbol(&format!("{}_{axis}", super::symbol_name(value.name())))),
    };
    let dims: Option<Vec<Dim>> = shape.dims.iter().enumerate().map(dim).collect();
    Some(Type::new(dtype_of(tensor.element)?, dims?))
}

fn finding(node: &Node, path: &Path<'_>, kind: FindingKind, message: String) -> Finding {
    Finding { path: path.to_string(), node: describe(node), kind, message }
}

/// A node as a reader knows it.
pub(super) fn describe(node: &Node) -> String {
    match node.name.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => format!("{} '{name}'", node.op),
        None => node.op.clone(),
    }
}
