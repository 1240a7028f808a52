//! Which constants of a graph stay out of the IR.
use irc_tl::{Constant, Graph, Node, NodeKind, SymbolSource, TensorType, ValueId};
use std::collections::BTreeSet;

/// Constants of at most this many bytes stand in the IR.
const SMALL: usize = 1024;

/// The large constants of a graph and of the graphs inside it, each once: what the arguments
/// with `irc.weight` number.
pub fn weights(graph: &Graph) -> Vec<Constant> {
    let mut table = vec![];
    collect(graph, &mut table);
    table
}

fn collect(graph: &Graph, table: &mut Vec<Constant>) {
    for node in live_nodes(graph) {
        match &node.kind {
            NodeKind::Constant(constant)
                if is_large(constant) && position(table, constant).is_none() =>
            {
                table.push(constant.clone());
            }
            NodeKind::If { then, otherwise } => {
                collect(then, table);
                collect(otherwise, table);
            }
            NodeKind::Loop { body, .. } => collect(body, table),
            NodeKind::Call { body, .. } => collect(body, table),
            _ => {}
        }
    }
}

/// The numbers of the weights that a graph and the graphs inside it use, increasing.
pub fn used(graph: &Graph, table: &[Constant]) -> Vec<usize> {
    let mut own = vec![];
    collect(graph, &mut own);
    let found: BTreeSet<usize> =
        own.iter().filter_map(|constant| position(table, constant)).collect();
    found.into_iter().collect()
}

/// Whether a constant is an argument of the compiled program: it is large, and not one value
/// everywhere.
pub fn is_large(constant: &Constant) -> bool {
    constant.bytes.len() > SMALL && splat(constant).is_none()
}

/// Where a constant stands in the table. Equal means the same memory: elements are not compared.
pub fn position(table: &[Constant], constant: &Constant) -> Option<usize> {
    let same = |other: &Constant| {
        let places = [other, constant].map(|constant| constant.bytes.as_ptr());
        places[0] == places[1]
            && other.bytes.len() == constant.bytes.len()
            && other.ty == constant.ty
    };
    table.iter().position(same)
}

/// The number that every element of a constant is, when an `f64` holds it exactly.
pub fn splat(constant: &Constant) -> Option<f64> {
    let width = constant.ty.dtype.size();
    let (first, rest) = constant.bytes.split_at_checked(width)?;
    if !rest.chunks_exact(width).all(|element| element == first) {
        return None;
    }
    let one = Constant {
        ty: TensorType::new(constant.ty.dtype, []),
        bytes: constant.bytes.slice(..width),
    };
    let tensor = one.tensor().ok()?;
    let value = tensor.get_f64(0);
    // Another bit pattern (a NaN with a payload) or a number beyond 53 bits stays as it is.
    let mut back = tensor.clone();
    back.set_f64(0, value);
    (back.bytes() == tensor.bytes()).then_some(value)
}

/// The nodes whose results matter: for an output, a symbol that is used, or another such node.
pub fn live_nodes(graph: &Graph) -> Vec<&Node> {
    let mut needed: BTreeSet<ValueId> = graph.outputs.iter().map(|(_, value)| *value).collect();
    for symbol in &graph.symbols {
        let (SymbolSource::Element(value, _) | SymbolSource::Extent(value, _)) = symbol.source;
        needed.insert(value);
    }
    let mut live = vec![];
    for node in graph.nodes.iter().rev() {
        if node.results.iter().any(|result| needed.contains(result)) {
            needed.extend(&node.operands);
            live.push(node);
        }
    }
    live.reverse();
    live
}
