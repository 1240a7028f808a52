//! Cycles of a graph with numbered nodes.

/// The strongly connected component of each node that is on a cycle, by number; `None` for nodes that
/// are on none. Takes time linear in nodes and edges, whatever the depth.
pub(crate) fn cycles(count: usize, edges: &[(u32, u32)]) -> Vec<Option<u32>> {
    let graph = Adjacency::new(count, edges);
    let mut found = Tarjan {
        index: vec![0; count],
        low: vec![0; count],
        is_open: vec![false; count],
        open: vec![],
        next: 1,
        component: vec![None; count],
    };
    for node in 0..count as u32 {
        if found.index[node as usize] == 0 {
            found.visit(node, &graph);
        }
    }
    found.component
}

/// A cycle through a node: the node and those that lead back to it, within its component.
pub(crate) fn cycle_through(
    start: u32,
    edges: &[(u32, u32)],
    component: &[Option<u32>],
) -> Vec<u32> {
    let own = component[start as usize];
    let inner = edges
        .iter()
        .filter(|(a, b)| component[*a as usize] == own && component[*b as usize] == own);
    let inner: Vec<(u32, u32)> = inner.copied().collect();
    let graph = Adjacency::new(component.len(), &inner);
    // Breadth first gives the shortest.
    let mut before = std::collections::BTreeMap::new();
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for &next in graph.of(node) {
            if next == start {
                let mut cycle = vec![node];
                while let Some(previous) = before.get(cycle.last().unwrap_or(&start)) {
                    cycle.push(*previous);
                }
                cycle.reverse();
                return cycle;
            }
            if let std::collections::btree_map::Entry::Vacant(entry) = before.entry(next) {
                entry.insert(node);
                queue.push_back(next);
            }
        }
    }
    vec![start]
}

/// Successors of each node, in one list.
struct Adjacency {
    first: Vec<usize>,
    next: Vec<u32>,
}

impl Adjacency {
    fn new(count: usize, edges: &[(u32, u32)]) -> Self {
        let mut first = vec![0; count + 1];
        edges.iter().for_each(|(from, _)| first[*from as usize + 1] += 1);
        for node in 0..count {
            first[node + 1] += first[node];
        }
        let mut place = first.clone();
        let mut next = vec![0; edges.len()];
        for (from, to) in edges {
            next[place[*from as usize]] = *to;
            place[*from as usize] += 1;
        }
        Self { first, next }
    }

    fn of(&self, node: u32) -> &[u32] {
        &self.next[self.first[node as usize]..self.first[node as usize + 1]]
    }
}

/// Tarjan's strongly connected components (SIAM J. Comput. 1, 1972), without recursion.
struct Tarjan {
    index: Vec<u32>,
    low: Vec<u32>,
    is_open: Vec<bool>,
    open: Vec<u32>,
    next: u32,
    component: Vec<Option<u32>>,
}

impl Tarjan {
    fn visit(&mut self, root: u32, graph: &Adjacency) {
        let mut path = vec![(root, 0)];
        self.enter(root);
        while let Some((node, done)) = path.last_mut() {
            let node = *node;
            if let Some(&next) = graph.of(node).get(*done) {
                *done += 1;
                if self.index[next as usize] == 0 {
                    self.enter(next);
                    path.push((next, 0));
                } else if self.is_open[next as usize] {
                    let low = self.index[next as usize].min(self.low[node as usize]);
                    self.low[node as usize] = low;
                }
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                let low = self.low[node as usize].min(self.low[*parent as usize]);
                self.low[*parent as usize] = low;
            }
            self.leave(node, graph);
        }
    }

    fn enter(&mut self, node: u32) {
        self.index[node as usize] = self.next;
        self.low[node as usize] = self.next;
        self.is_open[node as usize] = true;
        self.open.push(node);
        self.next += 1;
    }

    /// Closes the component of which a node was the first, if it was.
    fn leave(&mut self, node: u32, graph: &Adjacency) {
        if self.low[node as usize] != self.index[node as usize] {
            return;
        }
        let start = self.open.iter().rposition(|open| *open == node).unwrap_or(0);
        let members = self.open.split_off(start);
        let is_cycle = members.len() > 1 || graph.of(node).contains(&node);
        for member in members {
            self.is_open[member as usize] = false;
            self.component[member as usize] = is_cycle.then_some(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_found() {
        let edges = [(0, 1), (1, 2), (2, 1), (2, 3), (4, 4)];
        let found = cycles(5, &edges);
        assert_eq!(found, [None, Some(1), Some(1), None, Some(4)]);
        assert_eq!(cycle_through(2, &edges, &found), [2, 1]);
        assert_eq!(cycle_through(4, &edges, &found), [4]);
    }

    #[test]
    fn a_long_chain_takes_no_stack() {
        let edges: Vec<(u32, u32)> = (0..200_000).map(|node| (node, node + 1)).collect();
        assert!(cycles(200_001, &edges).iter().all(Option::is_none));
    }
}
