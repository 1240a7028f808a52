//! Moves reshapes of products behind the elementwise ops that follow, which then run in the kernel of the product.
//!
//! `add(reshape(matmul(a, b)), c)` becomes `reshape(add(matmul(a, b), c'))`, where `c'` is `c` in the shape of the
//! product. A reshape is free, but stays outside of kernels and so would separate them.
use super::{
    graph::{Graph, Node, ValueId, is_view, read_function},
    simplify::rewrite_body,
};
use irc_mlir::OperationRef;
use irc_tl::{Family, Op, TensorType};
use std::collections::{BTreeMap, BTreeSet};

/// Moves the reshapes of a function.
///
/// # Errors
/// If the function cannot be represented as a graph of tensors.
pub fn sink_reshapes<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Result<(), String> {
    let Some(function) = read_function(func)? else { return Ok(()) };
    match sunk(&function.graph) {
        Some(graph) => rewrite_body(func, &function, &graph),
        None => Ok(()),
    }
}

/// The graph with its reshapes moved; `None` if none is.
fn sunk(graph: &Graph) -> Option<Graph> {
    let mut sinker = Sinker {
        old: graph,
        is_moved: read_by_elementwise_ops(graph),
        new: Graph::default(),
        values: vec![None; graph.types.len()],
        follow_products: BTreeSet::new(),
        reshaped: BTreeMap::new(),
        moved: false,
    };
    for value in (0..graph.types.len()).filter(|value| graph.makers[*value].is_none()) {
        let ty = graph.types[value].clone();
        let base = sinker.new.add_value(ty.clone(), None);
        sinker.values[value] = Some(Shaped { base, ty, origins: vec![] });
    }
    graph.nodes.iter().for_each(|node| sinker.node(node));
    let results = graph.results.iter().map(|result| sinker.read(*result));
    sinker.new.results = results.collect();
    sinker.moved.then_some(sinker.new)
}

/// Whether elementwise ops alone read each value, in its own shape.
fn read_by_elementwise_ops(graph: &Graph) -> Vec<bool> {
    let mut found = vec![true; graph.types.len()];
    for node in &graph.nodes {
        let is_elementwise = node.op.as_ref().is_some_and(is_elementwise);
        for operand in &node.operands {
            let shape = &graph.types[*operand].shape;
            found[*operand] &= is_elementwise && graph.types[node.results[0]].shape == *shape;
        }
    }
    graph.results.iter().for_each(|result| found[*result] = false);
    found
}

fn is_elementwise(op: &Op) -> bool {
    !is_view(op) && op.family() == Family::Elementwise
}

/// A value of the old graph: one of the new graph, in another shape if the types differ.
#[derive(Clone)]
struct Shaped {
    base: ValueId,
    ty: TensorType,
    /// The ops that give it its shape.
    origins: Vec<usize>,
}

struct Sinker<'g> {
    old: &'g Graph,
    /// Whether the reshape that a value is moves behind its readers.
    is_moved: Vec<bool>,
    new: Graph,
    /// What each value of the old graph is.
    values: Vec<Option<Shaped>>,
    /// The values of the new graph that are products, or follow from one by elementwise ops.
    follow_products: BTreeSet<ValueId>,
    /// Reshapes in the new graph, by value and shape.
    reshaped: BTreeMap<(ValueId, Vec<i64>), ValueId>,
    moved: bool,
}

impl Sinker<'_> {
    fn shaped(&self, value: ValueId) -> &Shaped {
        self.values[value].as_ref().expect("ops are in topological order")
    }

    /// The value of the new graph that an old one is.
    fn read(&mut self, value: ValueId) -> ValueId {
        self.make(self.shaped(value).clone())
    }

    fn make(&mut self, shaped: Shaped) -> ValueId {
        let Shaped { base, ty, origins } = shaped;
        if self.new.types[base] == ty {
            return base;
        }
        let place = (base, ty.shape.to_vec());
        if let Some(known) = self.reshaped.get(&place) {
            return *known;
        }
        let op = Op::Reshape { shape: ty.shape.clone() };
        let made = self.new.add_op(op, vec![base], ty, origins);
        self.reshaped.insert(place, made);
        made
    }

    fn node(&mut self, node: &Node) {
        match &node.op {
            Some(Op::Reshape { .. }) => {
                let Shaped { base, mut origins, .. } = self.shaped(node.operands[0]).clone();
                origins.extend(&node.origins);
                let ty = self.old.types[node.results[0]].clone();
                self.values[node.results[0]] = Some(Shaped { base, ty, origins });
            }
            Some(op) if is_elementwise(op) => self.elementwise(op, node),
            _ => self.copy(node),
        }
    }

    fn copy(&mut self, node: &Node) {
        let operands = node.operands.iter().map(|operand| self.read(*operand)).collect();
        let index = self.new.nodes.len();
        let is_product = node.op.as_ref().is_some_and(|op| op.family() == Family::Contraction);
        let mut results = vec![];
        for result in &node.results {
            let ty = self.old.types[*result].clone();
            let base = self.new.add_value(ty.clone(), Some(index));
            if is_product {
                self.follow_products.insert(base);
            }
            self.values[*result] = Some(Shaped { base, ty, origins: vec![] });
            results.push(base);
        }
        self.new.nodes.push(Node { operands, results, ..node.clone() });
    }

    /// An elementwise op in the shape of a product before its reshape, if one of its operands is that.
    fn elementwise(&mut self, op: &Op, node: &Node) {
        let result = node.results[0];
        let ty = self.old.types[result].clone();
        let carrier =
            node.operands.iter().find(|operand| self.is_reshape_of_product(**operand, &ty));
        let Some(carrier) = carrier.copied() else {
            let follows = node.operands.iter().any(|operand| {
                let Shaped { base, ty: own, .. } = self.shaped(*operand);
                self.follow_products.contains(base)
                    && self.new.types[*base] == *own
                    && own.shape == ty.shape
            });
            self.copy(node);
            if follows {
                self.follow_products.insert(self.shaped(result).base);
            }
            return;
        };
        let Shaped { base, origins, .. } = self.shaped(carrier).clone();
        let inner = self.new.types[base].shape.clone();
        let operands = node.operands.iter().map(|operand| {
            let mut shaped = self.shaped(*operand).clone();
            shaped.ty.shape = in_shape(&shaped.ty.shape, &ty.shape, &inner)?;
            // A change of shape of its own is that of the reshape which moves.
            shaped.origins.extend(&origins);
            Some(shaped)
        });
        let own = TensorType::new(ty.dtype, inner.to_vec());
        let operands: Option<Vec<Shaped>> = operands.collect();
        let operands = operands.filter(|operands| {
            let types: Vec<TensorType> = operands.iter().map(|shaped| shaped.ty.clone()).collect();
            op.infer(&types).is_ok_and(|found| found == own)
        });
        let Some(operands) = operands else { return self.copy(node) };
        let operands = operands.into_iter().map(|shaped| self.make(shaped)).collect();
        let made = self.new.add_op(op.clone(), operands, own, node.origins.clone());
        self.follow_products.insert(made);
        self.moved = true;
        self.values[result] = Some(Shaped { base: made, ty, origins });
    }

    /// Whether a value is the reshape of a product, has this shape, and only elementwise ops read it.
    fn is_reshape_of_product(&self, value: ValueId, ty: &TensorType) -> bool {
        let Shaped { base, ty: own, .. } = self.shaped(value);
        self.follow_products.contains(base)
            && self.new.types[*base] != *own
            && own.shape == ty.shape
            && self.is_moved[value]
    }
}

/// The shape that an operand of an elementwise op has if the shape of the result is not `outer` but `inner`; `None` if
/// that is more than a change of shape.
fn in_shape(operand: &[i64], outer: &[i64], inner: &[i64]) -> Option<Vec<i64>> {
    if operand == outer {
        return Some(inner.to_vec());
    }
    let units = operand.iter().take_while(|size| **size == 1).count();
    let own = &operand[units..];
    let pairs = outer.iter().rev().zip(inner.iter().rev());
    let common = pairs.take_while(|(a, b)| a == b).count();
    (own.len() <= common).then(|| own.to_vec())
}

#[cfg(test)]
mod tests {
    use super::in_shape;

    #[test]
    fn operands_are_broadcast_along_the_same_dimensions() {
        let (outer, inner) = ([1, 12, 128, 64], [12, 128, 64]);
        assert_eq!(in_shape(&outer, &outer, &inner), Some(inner.to_vec()));
        assert_eq!(in_shape(&[1, 1, 1, 64], &outer, &inner), Some(vec![64]));
        assert_eq!(in_shape(&[12, 1, 64], &outer, &inner), Some(vec![12, 1, 64]));
        assert_eq!(in_shape(&[], &outer, &inner), Some(vec![]));
        assert_eq!(in_shape(&[12, 1, 64], &[2, 12, 128, 64], &[24, 128, 64]), None);
        assert_eq!(in_shape(&[128, 1], &[2, 128, 64], &[256, 64]), None);
    }
}
