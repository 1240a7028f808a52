//! Positions of the items of a module in its file, for locations.
use irc_common_format::model::{AttributeValue, Graph, Module, Node, Path};
use irc_common_format::{Document, Encoding};
use std::collections::BTreeMap;

/// The origins of the nodes of a module.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// The file's name; without one, locations hold only paths in the module.
    pub file: Option<String>,
    /// Line and column of nodes, by path. Binary files have none.
    pub places: BTreeMap<String, (usize, usize)>,
}

impl Origins {
    /// The origins of a document's nodes.
    pub fn of(document: &Document) -> Self {
        let input = &document.input;
        let file = Some(input.name().to_owned());
        if input.form().encoding == Encoding::Binary {
            return Self { file, places: BTreeMap::new() };
        }
        let paths = paths(&document.module);
        let lines = Lines::of(input.bytes());
        let found = input.locate_all(&paths);
        let places = paths.into_iter().zip(found);
        Self { file, places: places.map(|(path, span)| (path, lines.place(span.start))).collect() }
    }
}

/// The paths of all graphs, nodes, constants, functions and operators.
fn paths(module: &Module) -> Vec<String> {
    let mut paths = vec![];
    for index in 0..module.operators.len() {
        paths.push(Path::ROOT.index("operator", index).to_string());
    }
    for (index, function) in module.functions.iter().enumerate() {
        let path = Path::ROOT.index("function", index);
        paths.push(path.to_string());
        nodes(&function.nodes, &path, &mut paths);
    }
    if let Some(graph) = &module.graph {
        within(graph, &Path::GRAPH, &mut paths);
    }
    paths
}

fn within(graph: &Graph, at: &Path<'_>, paths: &mut Vec<String>) {
    paths.push(at.to_string());
    for index in 0..graph.initializers.len() {
        paths.push(at.index("initializer", index).to_string());
    }
    for index in 0..graph.sparse_initializers.len() {
        paths.push(at.index("sparse_initializer", index).to_string());
    }
    nodes(&graph.nodes, at, paths);
}

fn nodes(list: &[Node], at: &Path<'_>, paths: &mut Vec<String>) {
    for (index, node) in list.iter().enumerate() {
        let at = at.index("node", index);
        paths.push(at.to_string());
        each_graph(node, &at, &mut |graph, path| within(graph, path, paths));
    }
}

/// Calls `visit` for every graph in a node's attributes, in their order, with its path.
pub(super) fn each_graph<'m>(
    node: &'m Node,
    at: &Path<'_>,
    visit: &mut dyn FnMut(&'m Graph, &Path<'_>),
) {
    for attribute in &node.attributes {
        let at = at.key("attribute", attribute.name.as_deref().unwrap_or_default());
        match &attribute.value {
            AttributeValue::Graph(graph) => visit(graph, &at.field("g")),
            AttributeValue::Graphs(graphs) => {
                for (index, graph) in graphs.iter().enumerate() {
                    visit(graph, &at.index("graphs", index));
                }
            }
            _ => {}
        }
    }
}

/// Start offsets of lines.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &[u8]) -> Self {
        let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        Self(std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect())
    }

    /// One-based line and column, in bytes.
    fn place(&self, offset: usize) -> (usize, usize) {
        let line = self.0.partition_point(|start| *start <= offset);
        (line, offset - self.0[line - 1] + 1)
    }
}
