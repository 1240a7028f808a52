//! Functions of a module, to be written in place of their calls.

use crate::operator::canonical;
use irc_common_format::model::{Attribute, AttributeValue, Function, Graph, Module, Node, Schema};
use std::collections::BTreeMap;

/// The functions of a module.
pub(crate) struct Functions<'m> {
    by_name: BTreeMap<(String, String, String), &'m Function>,
    pub(crate) schema: Schema,
}

impl<'m> Functions<'m> {
    pub(crate) fn of(module: &'m Module) -> Self {
        let key = |function: &Function| {
            // A function of Common IR is called by its bare name within its file.
            let domain = function.domain.clone().unwrap_or_default();
            let name = function.name.clone().unwrap_or_default();
            (canonical(&domain).to_owned(), name, function.overload.clone().unwrap_or_default())
        };
        Self {
            by_name: module.functions.iter().map(|function| (key(function), function)).collect(),
            schema: module.schema,
        }
    }

    /// The function that a node calls. A body may call its neighbours without naming their home.
    pub(crate) fn called(&self, node: &Node, home: Option<&str>) -> Option<&'m Function> {
        let overload = node.overload.clone().unwrap_or_default();
        let of = |domain: &str| {
            let key = (canonical(domain).to_owned(), node.op.clone(), overload.clone());
            self.by_name.get(&key).copied()
        };
        let domain = node.domain.as_deref().unwrap_or_default();
        let home = home.filter(|_| domain.is_empty() && self.schema == Schema::CommonIr);
        home.and_then(of).or_else(|| of(domain))
    }
}

/// The body of a function with the attributes that a call gives it.
pub(crate) fn body(function: &Function, call: &Node) -> Vec<Node> {
    let given = |name: &str| -> Option<AttributeValue> {
        let attributes = call.attributes.iter().chain(&function.attributes);
        let mut found = attributes.filter(|attribute| attribute.name.as_deref() == Some(name));
        found.next().map(|attribute| attribute.value.clone())
    };
    let mut nodes = function.nodes.clone();
    nodes.iter_mut().for_each(|node| fill(node, &given));
    nodes
}

fn fill(node: &mut Node, given: &dyn Fn(&str) -> Option<AttributeValue>) {
    let mut filled: Vec<Attribute> = vec![];
    for mut attribute in std::mem::take(&mut node.attributes) {
        if let AttributeValue::Reference { name, .. } = &attribute.value {
            match given(name) {
                Some(AttributeValue::Nothing) | None => continue,
                Some(value) => attribute.value = value,
            }
        }
        attribute.value.graphs_mut().iter_mut().for_each(|graph| fill_graph(graph, given));
        filled.push(attribute);
    }
    node.attributes = filled;
}

fn fill_graph(graph: &mut Graph, given: &dyn Fn(&str) -> Option<AttributeValue>) {
    graph.nodes.iter_mut().for_each(|node| fill(node, given));
}
