//! Finds what ONNX Runtime rejects, though it can be imported here.

use super::functions::Functions;
use super::scope::describe;
use super::{Calls, opsets};
use crate::diagnostic::{NodeDiagnostic, NodeDiagnosticKind};
use crate::operator::canonical;
use crate::schema::{NEWEST, Schema, kind_of, schema};
use irc_common_format::free_names;
use irc_common_format::model::{
    AttributeValue, Graph, Module, Node, Path, Schema as Format, Value,
};
use irc_diag::nearest;
use std::collections::{BTreeMap, BTreeSet};

/// Everything in an ONNX model that ONNX Runtime rejects, though it can be imported here: attributes and numbers of
/// operands that an operator does not have, operator sets that are missing or newer than the newest, functions
/// without one, and names in graph attributes.
pub fn rejections(module: &Module) -> Vec<NodeDiagnostic> {
    if module.schema != Format::Onnx {
        return vec![];
    }
    let mut check = Check {
        functions: Functions::of(module, Calls::Inlined, false),
        opsets: opsets(module),
        found: vec![],
    };
    check.sets(module);
    if let Some(graph) = &module.graph {
        let names: BTreeSet<&str> = names_of(graph).collect();
        check.nodes(&graph.nodes, &names, &Path::GRAPH);
    }
    check.functions(module);
    check.found
}

/// The operator sets that an ONNX model imports and that are newer than the newest that is known: operators are those of the
/// newest known.
pub fn newer_sets(module: &Module) -> Vec<NodeDiagnostic> {
    let sets = module.opsets.iter().enumerate().filter(|_| module.schema == Format::Onnx);
    let newer = sets.filter_map(|(index, opset)| {
        let domain = canonical(opset.domain.as_deref().unwrap_or_default());
        let (_, newest) = NEWEST.iter().find(|(name, _)| *name == domain)?;
        let message = format!(
            "it imports set {} of {domain}, newer than the newest known, {newest}",
            opset.version
        );
        let path = Path::ROOT.index("opset", index).to_string();
        let kind = NodeDiagnosticKind::Rejected;
        (opset.version > *newest).then(|| NodeDiagnostic::new(path, "the model", kind, message))
    });
    newer.collect()
}

struct Check<'m> {
    functions: Functions<'m>,
    opsets: BTreeMap<String, i64>,
    found: Vec<NodeDiagnostic>,
}

impl Check<'_> {
    fn add(&mut self, path: &Path<'_>, what: impl Into<String>, message: impl Into<String>) {
        let kind = NodeDiagnosticKind::Rejected;
        self.found.push(NodeDiagnostic::new(path.to_string(), what, kind, message));
    }

    fn sets(&mut self, module: &Module) {
        if module.opsets.is_empty() {
            self.add(&Path::ROOT, "the model", "it imports no operator set: set 1 is meant");
        }
        self.found.extend(newer_sets(module));
    }

    fn functions(&mut self, module: &Module) {
        let mut known = BTreeSet::new();
        for (index, function) in module.functions.iter().enumerate() {
            let path = Path::ROOT.index("function", index);
            let domain = function.domain.as_deref().unwrap_or_default();
            let name = function.name.as_deref().unwrap_or_default();
            let what = format!("function '{name}'");
            if !known.insert((domain, name, function.overload.as_deref().unwrap_or_default())) {
                self.add(&path, &*what, "it is defined twice");
            }
            if !self.opsets.contains_key(canonical(domain)) {
                self.add(&path, &*what, format!("the model does not import its domain, {domain}"));
            }
            let around = self.opsets.clone();
            for opset in &function.opsets {
                let domain = canonical(opset.domain.as_deref().unwrap_or_default());
                self.opsets.insert(domain.to_owned(), opset.version);
            }
            let mut missing: BTreeSet<&str> = function
                .nodes
                .iter()
                .map(|node| canonical(node.domain.as_deref().unwrap_or_default()))
                .collect();
            for opset in &function.opsets {
                missing.remove(canonical(opset.domain.as_deref().unwrap_or_default()));
            }
            for domain in missing {
                self.add(&path, &*what, format!("it imports no operator set of {domain}"));
            }
            self.nodes(&function.nodes, &BTreeSet::new(), &path);
            self.opsets = around;
        }
    }

    /// Checks nodes; `names` are those of the graph and of the graphs around it.
    fn nodes(&mut self, nodes: &[Node], names: &BTreeSet<&str>, at: &Path<'_>) {
        for (index, node) in nodes.iter().enumerate() {
            let path = at.index("node", index);
            self.node(node, &path);
            for (place, attribute) in node.attributes.iter().enumerate() {
                let path = path.index("attribute", place);
                for graph in attribute.value.graphs() {
                    self.inside(graph, names, &path.field("g"));
                }
            }
        }
    }

    fn inside(&mut self, graph: &Graph, names: &BTreeSet<&str>, path: &Path<'_>) {
        let free = free_names(graph);
        let direct = |name: &&str| graph.outputs.iter().any(|output| output.name() == *name);
        for name in free.into_iter().filter(direct) {
            let message = format!(
                "its output '{name}' is a value of the graph around it: pass it through Identity"
            );
            self.add(path, "graph", message);
        }
        for name in names_of(graph).filter(|name| names.contains(name)) {
            self.add(path, "graph", format!("'{name}' is also the name of a value around it"));
        }
        let all: BTreeSet<&str> = names.iter().copied().chain(names_of(graph)).collect();
        self.nodes(&graph.nodes, &all, path);
    }

    fn node(&mut self, node: &Node, path: &Path<'_>) {
        if self.functions.called(node, None).is_some() {
            return;
        }
        let domain = canonical(node.domain.as_deref().unwrap_or_default());
        let opset = self.opsets.get(domain).copied().unwrap_or(i64::MAX);
        let Some(schema) = schema(domain, &node.op, opset) else { return };
        for message in attributes(node, schema).chain(operands(node, schema)) {
            self.add(path, describe(node), message);
        }
    }
}

/// Names that a graph defines.
fn names_of(graph: &Graph) -> impl Iterator<Item = &str> {
    let constants = graph.initializers.iter().filter_map(|tensor| tensor.name.as_deref());
    let results = graph.nodes.iter().flat_map(|node| &node.outputs).map(String::as_str);
    let inputs = graph.inputs.iter().map(Value::name);
    inputs.chain(constants).chain(results).filter(|name| !name.is_empty())
}

fn attributes(node: &Node, schema: &Schema) -> impl Iterator<Item = String> {
    let since = schema.since;
    node.attributes.iter().filter_map(move |attribute| {
        let name = attribute.name.as_deref().unwrap_or_default();
        let Some(kind) = schema.attributes.get(name) else {
            let near = nearest(name, schema.attributes.keys().copied());
            let near = near.map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
            return Some(format!(
                "version {since} of the operator has no attribute `{name}`{near}"
            ));
        };
        if matches!(attribute.value, AttributeValue::Reference { .. }) {
            return None;
        }
        let found = kind_of(&attribute.value).filter(|found| found != kind)?;
        Some(format!("the attribute `{name}` is of kind {kind}, found {found}"))
    })
}

fn operands(node: &Node, schema: &Schema) -> impl Iterator<Item = String> {
    let since = schema.since;
    let rows = [
        ("inputs", node.inputs.len(), schema.inputs),
        ("outputs", node.outputs.len(), schema.outputs),
    ];
    rows.into_iter().filter_map(move |(what, count, (least, most))| {
        if (least..=most).contains(&count) {
            return None;
        }
        let expected = match (least, most) {
            (least, usize::MAX) => format!("at least {least}"),
            (least, most) if least == most => least.to_string(),
            (least, most) => format!("{least} to {most}"),
        };
        Some(format!("version {since} of the operator has {expected} {what}, found {count}"))
    })
}
