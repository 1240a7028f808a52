//! Nodes of a graph in diagnostics and names.

use irc_diag::Diagnostic;
use irc_tl::{Graph, Node, NodeKind, Op};
use std::collections::BTreeSet;

/// A diagnostic at the node of an origin, which is `path` or `path: node`.
pub fn located(diagnostic: Diagnostic, origin: Option<&str>) -> Diagnostic {
    match origin.map(|origin| origin.split_once(": ").unwrap_or((origin, ""))) {
        Some((path, "")) => diagnostic.path(path),
        Some((path, node)) => {
            let message = format!("{node}: {}", diagnostic.message);
            Diagnostic { message, ..diagnostic }.path(path)
        }
        None => diagnostic,
    }
}

/// The node of an origin as it is named in messages, or its path.
pub fn label(origin: Option<&str>) -> Option<&str> {
    origin.map(|origin| origin.split_once(": ").map_or(origin, |(_, node)| node))
}

/// The first of some nodes that reduces a dimension: of a softmax, of a norm.
pub fn reduction<'g>(graph: &'g Graph, nodes: &[usize]) -> Option<&'g Node> {
    let is_reduction = |node: &&Node| match &node.kind {
        NodeKind::Op(Op::Reduce { .. }) => true,
        NodeKind::Op(Op::Compute(compute)) => compute.reduction.is_some(),
        _ => false,
    };
    nodes.iter().map(|node| &graph.nodes[*node]).find(is_reduction)
}

/// A name of one word: that of the node of an origin, or its path, or else `other`.
pub fn word(origin: Option<&str>, other: &str) -> String {
    let (path, node) =
        origin.map_or((other, ""), |origin| origin.split_once(": ").unwrap_or((origin, "")));
    let own = node.split_once('\'').and_then(|(_, name)| name.strip_suffix('\''));
    let own = own.filter(|name| !name.is_empty()).unwrap_or(path);
    own.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect()
}

/// A name that is not one of `names` yet, with a number if it is taken.
pub fn unique(name: &str, names: &mut BTreeSet<String>) -> String {
    let mut unique = name.to_owned();
    let mut number = 2;
    while !names.insert(unique.clone()) {
        unique = format!("{name}_{number}");
        number += 1;
    }
    unique
}
