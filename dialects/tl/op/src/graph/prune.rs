//! Removal of unused nodes and symbols.

use super::{Graph, Node, NodeKind, SymbolSource, ValueId};
use crate::{Algorithm, Dim, Op, Scalar};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Graph {
    /// Removes the nodes and symbols that no output and no check uses, including those of nested
    /// graphs. Inputs and values are unchanged, and calls that share a graph still do.
    pub fn prune(&mut self) {
        self.prune_with(&mut BTreeMap::new());
    }

    fn prune_with(&mut self, functions: &mut Functions) {
        for node in &mut self.nodes {
            match &mut node.kind {
                NodeKind::If { then, otherwise } => {
                    then.prune_with(functions);
                    otherwise.prune_with(functions);
                }
                NodeKind::Loop { body, .. } => body.prune_with(functions),
                NodeKind::Call { body, .. } => {
                    let address = Arc::as_ptr(body) as usize;
                    if !functions.contains_key(&address) {
                        let mut pruned = Graph::clone(body);
                        pruned.prune_with(functions);
                        functions.insert(address, [body.clone(), Arc::new(pruned)]);
                    }
                    body.clone_from(&functions[&address][1]);
                }
                NodeKind::Constant(_)
                | NodeKind::Op(_)
                | NodeKind::Algorithm(_)
                | NodeKind::Host(_)
                | NodeKind::After => {}
            }
        }
        let own = self.symbols.iter().map(|symbol| (symbol.name.clone(), symbol.source)).collect();
        let (symbols, values) = (BTreeSet::new(), BTreeSet::new());
        let mut needs = Needs { graph: self, own, symbols, values };
        needs.ends();
        let mut kept = vec![false; self.nodes.len()];
        // Nodes follow the nodes that they read, and the values that define their symbols.
        for (index, node) in self.nodes.iter().enumerate().rev() {
            if node.results.iter().any(|result| needs.values.contains(result)) {
                kept[index] = true;
                needs.node(node);
            }
        }
        let symbols = needs.symbols;
        let mut kept = kept.into_iter();
        self.nodes.retain(|_| kept.next().unwrap_or(true));
        self.symbols.retain(|symbol| symbols.contains(&symbol.name));
    }
}

/// The graphs of calls, before and after, by the address before. Both exist as long as the table, so that no other graph
/// has the address.
type Functions = BTreeMap<usize, [Arc<Graph>; 2]>;

struct Needs<'g> {
    graph: &'g Graph,
    /// The sources of the symbols of the graph.
    own: BTreeMap<Arc<str>, SymbolSource>,
    symbols: BTreeSet<Arc<str>>,
    values: BTreeSet<ValueId>,
}

impl Needs<'_> {
    /// What is needed independently of the nodes.
    fn ends(&mut self) {
        self.values.extend(self.graph.outputs.iter().map(|(_, value)| *value));
        for (_, value) in &self.graph.inputs {
            self.ty(*value);
        }
        for check in &self.graph.checks {
            self.size(&check.left);
            self.size(&check.right);
        }
    }

    fn node(&mut self, node: &Node) {
        self.values.extend(&node.operands);
        node.results.iter().for_each(|result| self.ty(*result));
        let mut sizes = vec![];
        sizes_of(node, &mut sizes);
        sizes.iter().for_each(|size| self.size(size));
    }

    fn ty(&mut self, value: ValueId) {
        self.graph.ty(value).dims.iter().for_each(|dim| self.size(dim));
    }

    fn size(&mut self, size: &Dim) {
        for name in size.symbols() {
            let own = self.own.get(&name).copied();
            if let Some(source) = own.filter(|_| self.symbols.insert(name)) {
                let (SymbolSource::Extent(value, _) | SymbolSource::Element(value, _)) = source;
                self.values.insert(value);
            }
        }
    }
}

/// The sizes in a node, including those of nested graphs.
fn sizes_of(node: &Node, sizes: &mut Vec<Dim>) {
    match &node.kind {
        NodeKind::Op(Op::Compute(compute)) => {
            sizes.extend(compute.dims.iter().cloned());
            sizes.extend(compute.reduction.iter().flat_map(|over| over.dims.iter().cloned()));
            compute.body.walk(&mut |scalar| {
                if let Scalar::Size(size) = scalar {
                    sizes.push(size.clone());
                }
            });
        }
        NodeKind::Algorithm(Algorithm::TopK { k, .. }) => sizes.push(k.clone()),
        NodeKind::If { then, otherwise } => {
            inside(then, sizes);
            inside(otherwise, sizes);
        }
        NodeKind::Loop { body, .. } => inside(body, sizes),
        NodeKind::Call { body, .. } => inside(body, sizes),
        NodeKind::Constant(_)
        | NodeKind::Op(_)
        | NodeKind::Algorithm(_)
        | NodeKind::Host(_)
        | NodeKind::After => {}
    }
}

fn inside(graph: &Graph, sizes: &mut Vec<Dim>) {
    sizes.extend(graph.types.iter().flat_map(|ty| ty.dims.iter().cloned()));
    sizes.extend(graph.checks.iter().flat_map(|check| [check.left.clone(), check.right.clone()]));
    graph.nodes.iter().for_each(|node| sizes_of(node, sizes));
}

#[cfg(test)]
mod tests {
    use crate::{Binary, Builder, DType, Dim, Type};

    #[test]
    fn what_sizes_are_read_from_stays() {
        let mut b = Builder::new();
        let x = b.input("x", Type::new(DType::F32, [Dim::symbol("N")]));
        let count = b.input("count", Type::new(DType::I64, []));
        let dims = b.dims(x);
        let unused = b.sizes(&dims, false, DType::I64).expect("integers");
        b.binary(Binary::Add, unused, unused).expect("integers");
        let more = b.binary(Binary::Add, count, count).expect("integers");
        let size = b.elements_or_symbols(more).expect("a number");
        let ones = b.fill(1.0, &size, DType::F32).expect("a fill");
        b.output("ones", ones);
        let mut graph = b.finish();
        assert_eq!(graph.nodes.len(), 4);
        graph.prune();
        // The sum and the fill; the input is checked against `N`.
        assert_eq!(graph.nodes.len(), 2);
        assert_eq!(graph.symbols.len(), 2);
    }
}
