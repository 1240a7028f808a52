//! Visitors of all tensors and graphs of a module, with their paths.

use super::{
    AttributeKind, AttributeValue, Function, Graph, Module, Node, Path, SparseTensor, Tensor, Value,
};

impl Module {
    /// Calls `visit` for every tensor, including those in attributes, subgraphs and sparse tensors,
    /// with its path.
    pub fn visit_tensors_mut(&mut self, visit: &mut dyn FnMut(&mut Tensor, &Path<'_>)) {
        if let Some(graph) = &mut self.graph {
            graph.visit(&Path::GRAPH, visit);
        }
        for (index, function) in self.functions.iter_mut().enumerate() {
            let Function { nodes, attributes, .. } = function;
            let at = Path::ROOT;
            let at = at.index("function", index);
            visit_nodes(nodes, &at, visit);
            for attribute in attributes {
                let name = attribute.name.clone().unwrap_or_default();
                visit_value(&mut attribute.value, &at.key("attribute", &name), visit);
            }
        }
    }
}

impl Graph {
    fn visit(&mut self, at: &Path<'_>, visit: &mut dyn FnMut(&mut Tensor, &Path<'_>)) {
        for (index, tensor) in self.initializers.iter_mut().enumerate() {
            visit(tensor, &at.index("initializer", index));
        }
        for (index, tensor) in self.sparse_initializers.iter_mut().enumerate() {
            visit_sparse(tensor, &at.index("sparse_initializer", index), visit);
        }
        visit_nodes(&mut self.nodes, at, visit);
    }
}

fn visit_nodes(nodes: &mut [Node], at: &Path<'_>, visit: &mut dyn FnMut(&mut Tensor, &Path<'_>)) {
    for (index, node) in nodes.iter_mut().enumerate() {
        let at = at.index("node", index);
        for attribute in &mut node.attributes {
            if matches!(
                attribute.value.kind(),
                None | Some(AttributeKind::Int | AttributeKind::Float | AttributeKind::Ints)
            ) {
                continue;
            }
            let name = attribute.name.clone().unwrap_or_default();
            visit_value(&mut attribute.value, &at.key("attribute", &name), visit);
        }
    }
}

fn visit_value(
    value: &mut AttributeValue,
    at: &Path<'_>,
    visit: &mut dyn FnMut(&mut Tensor, &Path<'_>),
) {
    match value {
        AttributeValue::Tensor(tensor) => visit(tensor, &at.field("t")),
        AttributeValue::Graph(graph) => graph.visit(&at.field("g"), visit),
        AttributeValue::SparseTensor(tensor) => {
            visit_sparse(tensor, &at.field("sparse_tensor"), visit);
        }
        AttributeValue::Tensors(tensors) => {
            for (index, tensor) in tensors.iter_mut().enumerate() {
                visit(tensor, &at.index("tensors", index));
            }
        }
        AttributeValue::Graphs(graphs) => {
            for (index, graph) in graphs.iter_mut().enumerate() {
                graph.visit(&at.index("graphs", index), visit);
            }
        }
        AttributeValue::SparseTensors(tensors) => {
            for (index, tensor) in tensors.iter_mut().enumerate() {
                visit_sparse(tensor, &at.index("sparse_tensors", index), visit);
            }
        }
        _ => {}
    }
}

fn visit_sparse(
    sparse: &mut SparseTensor,
    at: &Path<'_>,
    visit: &mut dyn FnMut(&mut Tensor, &Path<'_>),
) {
    if let Some(tensor) = &mut sparse.indices {
        visit(tensor, &at.field("indices"));
    }
    if let Some(tensor) = &mut sparse.values {
        visit(tensor, &at.field("values"));
    }
}

/// A list of nodes and the surrounding values: a graph, or the body of a function.
pub(crate) struct Body<'m> {
    /// The nodes.
    pub nodes: &'m mut Vec<Node>,
    /// Inputs, outputs and intermediate values.
    pub values: [&'m mut Vec<Value>; 3],
}

impl Module {
    /// Calls `visit` for every graph and function body, including those in attributes, outer before
    /// inner.
    pub(crate) fn visit_bodies_mut(&mut self, visit: &mut dyn FnMut(Body<'_>, &Path<'_>)) {
        if let Some(graph) = &mut self.graph {
            graph.visit_bodies(&Path::GRAPH, visit);
        }
        for (index, function) in self.functions.iter_mut().enumerate() {
            let at = Path::ROOT;
            let at = at.index("function", index);
            let Function { nodes, inputs, outputs, values, .. } = function;
            visit(Body { nodes, values: [inputs, outputs, values] }, &at);
            visit_inner(&mut function.nodes, &at, visit);
        }
    }
}

impl Graph {
    fn visit_bodies(&mut self, at: &Path<'_>, visit: &mut dyn FnMut(Body<'_>, &Path<'_>)) {
        let Graph { nodes, inputs, outputs, values, .. } = self;
        visit(Body { nodes, values: [inputs, outputs, values] }, at);
        visit_inner(&mut self.nodes, at, visit);
    }
}

fn visit_inner(nodes: &mut [Node], at: &Path<'_>, visit: &mut dyn FnMut(Body<'_>, &Path<'_>)) {
    for (index, node) in nodes.iter_mut().enumerate() {
        let at = at.index("node", index);
        for attribute in &mut node.attributes {
            let name = attribute.name.clone().unwrap_or_default();
            let at = at.key("attribute", &name);
            match &mut attribute.value {
                AttributeValue::Graph(graph) => graph.visit_bodies(&at.field("g"), visit),
                AttributeValue::Graphs(graphs) => {
                    for (index, graph) in graphs.iter_mut().enumerate() {
                        graph.visit_bodies(&at.index("graphs", index), visit);
                    }
                }
                _ => {}
            }
        }
    }
}
