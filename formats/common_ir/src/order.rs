//! Topological order of nodes.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

use crate::model::{Graph, Node, Value};

/// Names that a graph in an attribute uses and does not define: values of the surrounding graph.
pub fn free_names(graph: &Graph) -> BTreeSet<&str> {
    let mut own: BTreeSet<&str> = graph.inputs.iter().map(Value::name).collect();
    own.extend(graph.initializers.iter().filter_map(|tensor| tensor.name.as_deref()));
    let sparse = graph.sparse_initializers.iter().filter_map(|tensor| tensor.values.as_ref());
    own.extend(sparse.filter_map(|values| values.name.as_deref()));
    own.extend(graph.nodes.iter().flat_map(|node| &node.outputs).map(String::as_str));
    let mut free: BTreeSet<&str> = graph.nodes.iter().flat_map(uses).collect();
    free.extend(graph.outputs.iter().map(Value::name));
    free.retain(|name| !name.is_empty() && !own.contains(name));
    free
}

/// Names of the values that a node uses: its inputs, and what graphs in its attributes use of those around
/// them.
pub fn uses(node: &Node) -> impl Iterator<Item = &str> {
    node.inputs.iter().map(String::as_str).chain(inner_uses(node))
}

/// What graphs in a node's attributes use of the values around them.
pub fn inner_uses(node: &Node) -> impl Iterator<Item = &str> {
    node.attributes.iter().flat_map(|attribute| attribute.value.graphs()).flat_map(free_names)
}

/// The indices of nodes in an order in which each comes after those whose outputs it uses and those that its
/// control inputs name. Of the nodes that
/// can come next, it is the first of the list, so nodes that are in order keep their places. Nodes on cycles,
/// and those that depend on them, come last. Takes n log n time.
pub fn topological_order(nodes: &[Node]) -> Vec<usize> {
    let mut producers: HashMap<&str, usize> = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        for output in node.outputs.iter().filter(|output| !output.is_empty()) {
            producers.entry(output).or_insert(index);
        }
    }
    let mut named: HashMap<&str, usize> = HashMap::new();
    if nodes.iter().any(|node| !node.control_inputs.is_empty()) {
        let names = nodes.iter().map(|node| node.name.as_deref().unwrap_or_default());
        names.zip(0..).for_each(|(name, index)| _ = named.entry(name).or_insert(index));
    }
    let mut waits_for = vec![0usize; nodes.len()];
    let mut users: Vec<Vec<usize>> = vec![vec![]; nodes.len()];
    let mut is_sorted = true;
    for (index, node) in nodes.iter().enumerate() {
        let data = uses(node).filter_map(|name| producers.get(name));
        let control = node.control_inputs.iter().filter_map(|name| named.get(name.as_str()));
        for producer in data.chain(control).copied() {
            users[producer].push(index);
            waits_for[index] += 1;
            is_sorted &= producer < index;
        }
    }
    if is_sorted {
        return (0..nodes.len()).collect();
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..nodes.len()).filter(|index| waits_for[*index] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse(index)) = ready.pop() {
        order.push(index);
        for user in &users[index] {
            waits_for[*user] -= 1;
            if waits_for[*user] == 0 {
                ready.push(Reverse(*user));
            }
        }
    }
    order.extend((0..nodes.len()).filter(|index| waits_for[*index] > 0));
    order
}

/// Sorts nodes into a [`topological_order`].
pub(crate) fn sort(nodes: &mut [Node]) {
    let order = topological_order(nodes);
    if order.is_sorted() {
        return;
    }
    let sorted: Vec<Node> = order.iter().map(|index| std::mem::take(&mut nodes[*index])).collect();
    nodes.iter_mut().zip(sorted).for_each(|(place, node)| *place = node);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Attribute, AttributeValue};

    fn node(inputs: &[&str], output: &str) -> Node {
        let inputs = inputs.iter().map(|name| (*name).to_owned()).collect();
        Node { inputs, outputs: vec![output.to_owned()], ..Node::default() }
    }

    #[test]
    fn nodes_keep_their_places_where_they_can() {
        let nodes = [node(&["c"], "d"), node(&["x"], "a"), node(&["a"], "c"), node(&["x"], "e")];
        assert_eq!(topological_order(&nodes), [1, 2, 0, 3]);
        assert_eq!(topological_order(&nodes[1..]), [0, 1, 2]);
        let mut sorted = nodes.to_vec();
        sort(&mut sorted);
        assert_eq!(topological_order(&sorted), [0, 1, 2, 3]);
    }

    #[test]
    fn what_is_on_a_cycle_comes_last() {
        let nodes = [node(&["b"], "a"), node(&["a"], "b"), node(&["b"], "c"), node(&[], "d")];
        assert_eq!(topological_order(&nodes), [3, 0, 1, 2]);
    }

    #[test]
    fn a_graph_in_an_attribute_uses_values_around_it() {
        let inner = Graph { nodes: vec![node(&["own", "b"], "r")], ..Graph::default() };
        let mut user = node(&[], "a");
        let value = AttributeValue::Graph(Box::new(inner));
        user.attributes.push(Attribute { value, ..Attribute::default() });
        let nodes = [user, node(&[], "b")];
        assert_eq!(topological_order(&nodes), [1, 0]);
    }

    #[test]
    fn a_reversed_chain_of_many_nodes_is_sorted() {
        let count = 100_000;
        let name = |index: usize| format!("v{index}");
        let nodes: Vec<Node> =
            (0..count).rev().map(|index| node(&[&name(index)], &name(index + 1))).collect();
        assert!(topological_order(&nodes).into_iter().eq((0..count).rev()));
    }
}
