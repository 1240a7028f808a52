//! The vertices of an ensemble, as a file states them, and their checks.

use crate::context::LowerError;
use irc_tl::Comparison;
use std::collections::VecDeque;

/// How a branch decides.
#[derive(Clone, Debug)]
pub(super) enum Mode {
    /// By a comparison of the feature with a number.
    Compare(Comparison, f64),
    /// By whether the feature is a member of a set.
    Member(Vec<f64>),
}

/// A decision.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    pub mode: Mode,
    pub feature: i64,
    /// Whether a missing feature satisfies the decision.
    pub missing: bool,
    /// The vertex if the decision holds, and if not.
    pub next: [usize; 2],
}

/// A node of a tree.
#[derive(Clone, Debug)]
pub(super) enum Vertex {
    Branch(Branch),
    /// Targets and their weights.
    Leaf(Vec<(usize, f64)>),
}

/// Trees over common vertices.
#[derive(Debug, Default)]
pub(super) struct Forest {
    pub vertices: Vec<Vertex>,
    /// The name of each vertex in messages.
    pub names: Vec<Name>,
    pub roots: Vec<usize>,
}

/// How the file identifies a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Name {
    /// By tree and node.
    Node(i64, i64),
    /// By position among the branches.
    Branch(usize),
    /// By position among the leaves.
    Leaf(usize),
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Node(tree, node) => write!(f, "node {node} of tree {tree}"),
            Self::Branch(index) => write!(f, "node {index}"),
            Self::Leaf(index) => write!(f, "leaf {index}"),
        }
    }
}

impl Forest {
    /// The children of a vertex.
    fn next(&self, vertex: usize) -> &[usize] {
        match &self.vertices[vertex] {
            Vertex::Branch(branch) => &branch.next,
            Vertex::Leaf(_) => &[],
        }
    }

    /// The vertices that the roots lead to, tree by tree and level by level.
    ///
    /// # Errors
    /// If a path returns to a vertex, or a feature is negative.
    pub(super) fn order(&self) -> Result<Vec<usize>, LowerError> {
        if self.roots.is_empty() {
            return Err(LowerError::invalid("expected at least one tree, found none"));
        }
        let mut order = vec![];
        let mut is_found = vec![false; self.vertices.len()];
        let mut queue = VecDeque::new();
        for root in &self.roots {
            queue.push_back(*root);
            while let Some(vertex) = queue.pop_front() {
                if !std::mem::replace(&mut is_found[vertex], true) {
                    order.push(vertex);
                    queue.extend(self.next(vertex));
                }
            }
        }
        self.expect_no_cycle(&order)?;
        let negative = order.iter().find_map(|vertex| match &self.vertices[*vertex] {
            Vertex::Branch(branch) if branch.feature < 0 => Some((vertex, branch.feature)),
            _ => None,
        });
        match negative {
            Some((vertex, feature)) => {
                let name = self.names[*vertex];
                Err(LowerError::invalid(format!("{name}: expected a feature, found {feature}")))
            }
            None => Ok(order),
        }
    }

    /// Removes vertices that nothing leads to until none is left; vertices on a cycle stay.
    fn expect_no_cycle(&self, found: &[usize]) -> Result<(), LowerError> {
        let mut parents = vec![0usize; self.vertices.len()];
        for next in found.iter().flat_map(|vertex| self.next(*vertex)) {
            parents[*next] += 1;
        }
        let mut free: Vec<usize> =
            found.iter().copied().filter(|vertex| parents[*vertex] == 0).collect();
        let mut removed = 0;
        while let Some(vertex) = free.pop() {
            removed += 1;
            for next in self.next(vertex) {
                parents[*next] -= 1;
                if parents[*next] == 0 {
                    free.push(*next);
                }
            }
        }
        if removed == found.len() {
            return Ok(());
        }
        let stuck = found.iter().find(|vertex| parents[**vertex] > 0);
        let name = stuck.map_or(Name::Branch(0), |vertex| self.names[*vertex]);
        Err(LowerError::invalid(format!("{name}: the nodes of a tree form a cycle")))
    }

    /// Every target and weight of a leaf that is reached, with the leaf.
    pub(super) fn weights<'f>(
        &'f self,
        order: &'f [usize],
    ) -> impl Iterator<Item = (usize, usize, f64)> + 'f {
        order.iter().flat_map(|vertex| {
            let entries = match &self.vertices[*vertex] {
                Vertex::Leaf(entries) => &entries[..],
                Vertex::Branch(_) => &[],
            };
            entries.iter().map(|(target, weight)| (*vertex, *target, *weight))
        })
    }
}
