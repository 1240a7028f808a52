//! The inputs from which values and sizes are computed.

use super::{Graph, SymbolSource, ValueId};
use crate::{Dim, Op, Scalar};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The inputs of a graph on which something depends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// Inputs on whose elements it depends.
    pub values: BTreeSet<String>,
    /// Inputs on whose extents it depends.
    pub shapes: BTreeSet<String>,
    /// Symbols of the enclosing graphs.
    pub around: BTreeSet<Arc<str>>,
}

/// Returns the elements of a value as sizes, if they are known.
type Elements<'g> = dyn Fn(ValueId) -> Option<&'g [Dim]> + 'g;

pub(super) fn of_value<'g>(
    graph: &'g Graph,
    elements: &Elements<'g>,
    value: ValueId,
) -> Dependencies {
    let mut walk = Walk::new(graph, elements);
    walk.value(value);
    walk.run()
}

pub(super) fn of_sizes<'g>(
    graph: &'g Graph,
    elements: &Elements<'g>,
    sizes: &[Dim],
) -> Dependencies {
    let mut walk = Walk::new(graph, elements);
    sizes.iter().for_each(|size| walk.size(size));
    walk.run()
}

struct Walk<'g, 'e> {
    graph: &'g Graph,
    elements: &'e Elements<'g>,
    found: Dependencies,
    symbols: BTreeSet<Arc<str>>,
    /// Values on whose computation the result depends.
    wanted: Vec<bool>,
}

impl<'g, 'e> Walk<'g, 'e> {
    fn new(graph: &'g Graph, elements: &'e Elements<'g>) -> Self {
        let wanted = vec![false; graph.types.len()];
        Self { graph, elements, found: Dependencies::default(), symbols: BTreeSet::new(), wanted }
    }

    /// The elements of a value; of elements that are sizes, only the sizes are dependencies.
    fn value(&mut self, value: ValueId) {
        match (self.elements)(value) {
            Some(sizes) => sizes.iter().for_each(|size| self.size(size)),
            None => self.wanted[value.0] = true,
        }
    }

    fn size(&mut self, size: &Dim) {
        for name in size.symbols() {
            if !self.symbols.insert(name.clone()) {
                continue;
            }
            let own = self.graph.symbols.iter().find(|symbol| symbol.name == name);
            match own.map(|symbol| symbol.source) {
                None => drop(self.found.around.insert(name)),
                Some(SymbolSource::Element(value, _)) => self.wanted[value.0] = true,
                Some(SymbolSource::Extent(value, _)) => match self.input(value) {
                    Some(name) => drop(self.found.shapes.insert(name)),
                    None => self.wanted[value.0] = true,
                },
            }
        }
    }

    fn input(&self, value: ValueId) -> Option<String> {
        let input = self.graph.inputs.iter().find(|(_, input)| *input == value);
        input.map(|(name, _)| name.clone())
    }

    /// Nodes precede their consumers and the symbols that they define: one backward traversal
    /// is enough, except for sizes that lead back.
    fn run(mut self) -> Dependencies {
        let mut done = vec![false; self.graph.nodes.len()];
        loop {
            let mut changed = false;
            for (index, node) in self.graph.nodes.iter().enumerate().rev() {
                if done[index] || !node.results.iter().any(|result| self.wanted[result.0]) {
                    continue;
                }
                (done[index], changed) = (true, true);
                node.operands.iter().for_each(|operand| self.value(*operand));
                if let super::NodeKind::Op(Op::Compute(compute)) = &node.kind {
                    compute.dims.iter().for_each(|dim| self.size(dim));
                    compute.body.walk(&mut |scalar| {
                        if let Scalar::Size(dim) = scalar {
                            self.size(dim);
                        }
                    });
                }
            }
            if !changed {
                break;
            }
        }
        for (name, value) in &self.graph.inputs {
            if self.wanted[value.0] {
                self.found.values.insert(name.clone());
            }
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use crate::{Binary, Builder, DType, Dim, Type};

    #[test]
    fn elements_and_extents_are_distinguished() {
        let mut b = Builder::new();
        let x = b.input("x", Type::new(DType::F32, [Dim::symbol("N")]));
        let k = b.input("k", Type::new(DType::I64, []));
        let dims = b.dims(x);
        let count = b.sizes(&dims, true, DType::I64).expect("integers");
        let found = b.dependencies(count);
        assert!(found.values.is_empty());
        assert_eq!(found.shapes.iter().collect::<Vec<_>>(), ["x"]);
        let sum = b.binary(Binary::Add, count, k).expect("numbers");
        let found = b.dependencies(sum);
        assert_eq!(found.values.iter().collect::<Vec<_>>(), ["k"]);
        let read = b.elements_or_symbols(k).expect("a number");
        let found = b.dependencies_of_sizes(&read);
        assert_eq!(found.values.iter().collect::<Vec<_>>(), ["k"]);
        assert!(found.shapes.is_empty());
    }
}
