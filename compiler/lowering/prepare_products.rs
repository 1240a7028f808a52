//! Prepares products for kernels: pads those of bytes with constants, so that kernels multiply them four at a time, and makes
//! those of halves of open size, and of bytes of open sizes where kernels do not add these, products of `f32`.
//!
//! Before: products of `integers` may be bytes minus zero points, and one of `u8` and `i8` may have any depth. After: those are of
//! `u8` and `i8`, and a known depth is a multiple of 4. Zeros follow the
//! elements of both operands along it: those of a constant when the model is compiled, those of the other operand when it
//! runs. Sums of `halves` of open size have `f32` operands, and those of `bytes` over images, and of `matrices` of bytes, where they are
//! exact.
mod bytes;
mod halves;
mod integers;
mod matrices;
mod neighbours;

use neighbours::Neighbours;

use irc_tensor::TensorType;
use irc_tl::{
    Compute, Constant, DType, Dim, Graph, Node, NodeKind, Op, Rounding, Scalar, Type, ValueId,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, btree_map::Entry};
use std::sync::Arc;

/// The number of bytes that kernels multiply at a time.
const BYTES: i64 = 4;

/// How kernels add products of bytes of images of open sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ByteSums {
    /// Four at a time ([`adds_bytes`](super::compute_to_loops::adds_bytes)).
    Dots,
    /// As products of `f32`, where they are exact.
    #[default]
    Floats,
}

impl ByteSums {
    const ALL: [(&str, Self); 2] = [("dots", Self::Dots), ("floats", Self::Floats)];

    /// Those of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(own, _)| *own == name).map(|(_, sums)| sums)
    }

    /// Their name in the options of passes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dots => "dots",
            Self::Floats => "floats",
        }
    }
}

/// The graph with prepared products, in nested graphs as well.
pub fn prepare_products(graph: &Graph, sums: ByteSums) -> Cow<'_, Graph> {
    match (Preparer { sums, ..Preparer::default() }).graph(graph) {
        Some(padded) => Cow::Owned(padded),
        None => Cow::Borrowed(graph),
    }
}

/// An operand of a product and its axis along the depth.
#[derive(Clone, Copy)]
struct Operand {
    value: ValueId,
    axis: usize,
}

#[derive(Default)]
struct Preparer {
    sums: ByteSums,
    /// The prepared graphs of functions by address, as calls of one function share its graph; `None` for one that does not
    /// change.
    functions: BTreeMap<usize, Option<Arc<Graph>>>,
    /// The padded constants, by axis.
    padded: Shared<usize>,
    /// The filters of sums of bytes as `f32`, constants of halves, and those of integers.
    filters: bytes::Filters,
    wide: Shared<()>,
    integers: integers::Constants,
}

/// What is made of constants, each in ways of its own, so that users of one share it.
///
/// The key is the address of a constant, which is kept so that no other has its address.
struct Shared<W>(BTreeMap<(usize, TensorType, W), [Constant; 2]>);

impl<W> Default for Shared<W> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<W: Ord> Shared<W> {
    /// What is made of a constant in a way; `None` if nothing is.
    fn constant(
        &mut self,
        of: &Constant,
        way: W,
        make: impl FnOnce() -> Option<Constant>,
    ) -> Option<Constant> {
        let key = (of.bytes.as_ptr() as usize, of.ty.clone(), way);
        let [_, made] = match self.0.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(entry) => entry.insert([of.clone(), make()?]),
        };
        Some(made.clone())
    }
}

impl Preparer {
    /// `None` if nothing in a graph changes.
    fn graph(&mut self, graph: &Graph) -> Option<Graph> {
        let of_bytes = self.products_of_bytes(graph);
        let prepared = self.products(of_bytes.as_ref().unwrap_or(graph));
        prepared.or(of_bytes)
    }

    /// The graph with its products of integers as those of bytes; `None` if it has none.
    fn products_of_bytes(&mut self, graph: &Graph) -> Option<Graph> {
        let neighbours = Neighbours::of(graph);
        let constant = |value: ValueId| match &neighbours.maker(value)?.kind {
            NodeKind::Constant(constant) => Some(constant),
            _ => None,
        };
        let mut made: Option<Graph> = None;
        for (index, node) in graph.nodes.iter().enumerate() {
            let product = integers::Product::of(graph, node, &neighbours, constant);
            if made.is_none() && product.is_some() {
                made = Some(until(graph, index));
            }
            let Some(made) = &mut made else { continue };
            let written =
                product.and_then(|product| product.write(made, constant, &mut self.integers));
            if written.is_none() {
                made.nodes.push(node.clone());
            }
        }
        let mut made = made?;
        made.prune();
        Some(made)
    }

    /// The graph with its other products prepared, and those of nested graphs; `None` if nothing changes.
    fn products(&mut self, graph: &Graph) -> Option<Graph> {
        let mut constants: BTreeMap<ValueId, &Constant> = BTreeMap::new();
        let neighbours = Neighbours::of(graph);
        let mut made: Option<Graph> = None;
        for (index, node) in graph.nodes.iter().enumerate() {
            if let NodeKind::Constant(constant) = &node.kind {
                constants.extend(node.results.iter().map(|result| (*result, constant)));
            }
            let operands = operands_to_pad(graph, node);
            let padded = operands.filter(|operands| {
                operands.iter().any(|operand| constants.contains_key(&operand.value))
            });
            let nested = self.nested(&node.kind);
            let constant = |value: ValueId| constants.get(&value).copied();
            let product = bytes::Product::of((graph, self.sums), node, constant);
            let sum = halves::Sum::of(graph, node, &neighbours);
            let matrices = matrices::Product::of(graph, node);
            let is_float = product.is_some() || sum.is_some() || matrices.is_some();
            if made.is_none() && (padded.is_some() || nested.is_some() || is_float) {
                made = Some(until(graph, index));
            }
            let Some(made) = &mut made else { continue };
            let written = match (product, sum, matrices) {
                (Some(product), ..) => product.write(made, &mut self.filters),
                (_, Some(sum), _) => sum.write(made, constant, &mut self.wide),
                (.., Some(product)) => product.write(made),
                (None, None, None) => None,
            };
            if written.is_some() {
                continue;
            }
            let mut node = node.clone();
            if let Some(nested) = nested {
                node.kind = nested;
            }
            if let Some(operands) = padded {
                let pad = |operand: Operand| {
                    let constant = constants.get(&operand.value).copied();
                    self.operand(made, operand, constant, node.origin.clone())
                };
                node.operands = operands.map(pad).to_vec();
            }
            made.nodes.push(node);
        }
        let mut made = made?;
        made.prune();
        Some(made)
    }

    /// The kind of a node with prepared nested graphs; `None` if nothing in them changes.
    fn nested(&mut self, kind: &NodeKind) -> Option<NodeKind> {
        match kind {
            NodeKind::If { then, otherwise } => {
                let [padded, other] = [then, otherwise].map(|graph| self.graph(graph));
                if padded.is_none() && other.is_none() {
                    return None;
                }
                let [then, otherwise] = [(padded, then), (other, otherwise)]
                    .map(|(padded, graph)| padded.map_or_else(|| graph.clone(), Box::new));
                Some(NodeKind::If { then, otherwise })
            }
            NodeKind::Loop { body, carried } => {
                let body = Box::new(self.graph(body)?);
                Some(NodeKind::Loop { body, carried: *carried })
            }
            NodeKind::Call { name, body } => {
                let address = Arc::as_ptr(body) as usize;
                if !self.functions.contains_key(&address) {
                    let padded = self.graph(body).map(Arc::new);
                    self.functions.insert(address, padded);
                }
                let body = self.functions.get(&address)?.clone()?;
                Some(NodeKind::Call { name: name.clone(), body })
            }
            NodeKind::Constant(_)
            | NodeKind::Op(_)
            | NodeKind::Algorithm(_)
            | NodeKind::Host(_)
            | NodeKind::After => None,
        }
    }

    /// A value with zeros after its elements along an axis, which a new node of `made` defines.
    fn operand(
        &mut self,
        made: &mut Graph,
        operand: Operand,
        constant: Option<&Constant>,
        origin: Option<Arc<str>>,
    ) -> ValueId {
        let (value, axis) = (operand.value, operand.axis);
        let (op, ty) = (padding(made.ty(value), axis), padded_type(made.ty(value), axis));
        let mut adder = Adder { made, origin };
        let padded = constant.and_then(|constant| {
            self.padded.constant(constant, axis, || Some(padded_constant(constant, axis)))
        });
        match padded {
            Some(padded) => adder.constant(padded),
            None => adder.op(op, &[value], ty),
        }
    }
}

/// A constant with zeros after its elements along an axis.
fn padded_constant(constant: &Constant, axis: usize) -> Constant {
    let mut ty = constant.ty.clone();
    ty.shape[axis] = multiple(ty.shape[axis]);
    let inner: i64 = ty.shape[axis + 1..].iter().product();
    let [own, all] = [constant.ty.shape[axis], ty.shape[axis]]
        .map(|depth| usize::try_from(depth * inner).unwrap_or(0));
    let mut bytes = Vec::with_capacity(constant.bytes.len() / own.max(1) * all);
    for elements in constant.bytes.chunks_exact(own.max(1)) {
        bytes.extend_from_slice(elements);
        bytes.resize(bytes.len() + all - own, 0);
    }
    Constant::new(ty, bytes)
}

/// A graph with its nodes before one.
fn until(graph: &Graph, index: usize) -> Graph {
    let mut copy = graph.clone();
    copy.nodes.truncate(index);
    copy
}

/// The operands of a product of bytes whose depth is known and no multiple of 4.
fn operands_to_pad(graph: &Graph, node: &Node) -> Option<[Operand; 2]> {
    let NodeKind::Op(Op::Matmul { transpose_lhs, transpose_rhs }) = node.kind else { return None };
    let &[lhs, rhs] = &node.operands[..] else { return None };
    let are_bytes = matches!(
        [lhs, rhs].map(|value| graph.ty(value).dtype),
        [DType::U8, DType::I8] | [DType::I8, DType::U8]
    );
    let axis = |value: ValueId, from_last: usize| {
        Some(Operand { value, axis: graph.ty(value).rank().checked_sub(from_last)? })
    };
    let lhs = axis(lhs, if transpose_lhs { 2 } else { 1 })?;
    let rhs = axis(rhs, if transpose_rhs { 1 } else { 2 })?;
    let depth = graph.ty(lhs.value).dims.get(lhs.axis)?.known()?;
    let is_empty = |operand: Operand| graph.ty(operand.value).dims.iter().any(|dim| dim.is(0));
    let is_padded = are_bytes && depth % BYTES != 0 && !is_empty(lhs) && !is_empty(rhs);
    is_padded.then_some([lhs, rhs])
}

/// The loops of a node.
fn loops_of(graph: &Graph, node: &Node) -> Option<Compute> {
    let NodeKind::Op(op) = &node.kind else { return None };
    let types: Vec<Type> = node.operands.iter().map(|value| graph.ty(*value).clone()).collect();
    op.as_compute(&types)
}

/// Whether an image, given by its extents, the first of which are those of images and channels, has an open size.
fn is_open_image(dims: &[Dim]) -> bool {
    dims.iter().skip(2).any(|dim| dim.known().is_none())
}

/// Adds nodes in place of one.
struct Adder<'m> {
    made: &'m mut Graph,
    origin: Option<Arc<str>>,
}

impl<'m> Adder<'m> {
    fn of(made: &'m mut Graph, node: &Node) -> Self {
        Self { made, origin: node.origin.clone() }
    }

    fn node(&mut self, kind: NodeKind, operands: &[ValueId], ty: Type) -> ValueId {
        let value = ValueId(self.made.types.len());
        self.made.types.push(ty);
        let (operands, origin) = (operands.to_vec(), self.origin.clone());
        self.made.nodes.push(Node { kind, operands, results: vec![value], origin });
        value
    }

    fn op(&mut self, op: Op, operands: &[ValueId], ty: Type) -> ValueId {
        self.node(NodeKind::Op(op), operands, ty)
    }

    /// An op of operands of known or open sizes, whose type follows from theirs.
    fn inferred(&mut self, op: Op, operands: &[ValueId]) -> Option<ValueId> {
        let types: Vec<Type> = operands.iter().map(|it| self.made.ty(*it).clone()).collect();
        let ty = op.infer_symbolic(&types).ok()?;
        Some(self.op(op, operands, ty))
    }

    /// A value as another type.
    fn cast(&mut self, value: ValueId, to: DType) -> ValueId {
        let ty = Type::new(to, self.made.ty(value).dims.clone());
        self.op(cast(to), &[value], ty)
    }

    /// A scalar of `i32`.
    fn integer(&mut self, value: i32) -> ValueId {
        let op = Op::fill(value.into(), [], DType::I32);
        self.op(op, &[], Type::new(DType::I32, []))
    }

    fn constant(&mut self, constant: Constant) -> ValueId {
        let ty = constant.ty.clone().into();
        self.node(NodeKind::Constant(constant), &[], ty)
    }

    /// Has the last node define the result of the node that is replaced.
    fn define(self, result: ValueId) -> Option<()> {
        self.made.nodes.last_mut()?.results = vec![result];
        Some(())
    }
}

fn cast(to: DType) -> Op {
    Op::Cast { to, rounding: Rounding::TowardZero }
}

/// The next multiple of 4.
fn multiple(depth: i64) -> i64 {
    (depth + BYTES - 1) / BYTES * BYTES
}

fn padded_type(ty: &Type, axis: usize) -> Type {
    let mut padded = ty.clone();
    if let Some(depth) = ty.dims[axis].known() {
        padded.dims[axis] = Dim::Known(multiple(depth));
    }
    padded
}

/// An op that pads a value with zeros.
fn padding(ty: &Type, axis: usize) -> Op {
    let at: Vec<Scalar> = (0..ty.rank()).map(Scalar::Loop).collect();
    let is_own = Scalar::Loop(axis).lt(Scalar::Size(ty.dims[axis].clone()));
    let body = is_own.select(Scalar::load(0, at), Scalar::number(0, ty.dtype));
    Op::compute(Compute::map(padded_type(ty, axis).dims, body))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use irc_tensor::Tensor;
    use irc_tl::Builder;

    /// A product of rows of `depth` bytes with constants of three columns, given by columns if `turned`.
    fn product(b: &mut Builder, depth: i64, turned: bool, w: &Constant) -> ValueId {
        let rows = Dim::symbol("N");
        let x = b.input("x", Type::new(DType::U8, [rows, depth.into()]));
        let w = b.constant(w.clone());
        b.op(Op::Matmul { transpose_lhs: false, transpose_rhs: turned }, &[x, w]).unwrap()
    }

    fn constant(depth: i64, turned: bool) -> Constant {
        let shape = if turned { [3, depth] } else { [depth, 3] };
        let values: Vec<i8> = (0..depth * 3).map(|index| (index * 29 % 255 - 127) as i8).collect();
        Constant::of(&Tensor::from_values(shape, &values).unwrap())
    }

    fn graph(depth: i64, turned: bool) -> Graph {
        let mut b = Builder::new();
        let sum = product(&mut b, depth, turned, &constant(depth, turned));
        b.output("y", sum);
        b.finish()
    }

    fn depths(graph: &Graph) -> Vec<i64> {
        let products = graph.nodes.iter().filter_map(|node| match node.kind {
            NodeKind::Op(Op::Matmul { .. }) => graph.ty(node.operands[0]).dims[1].known(),
            _ => None,
        });
        products.collect()
    }

    #[test]
    fn zeros_change_no_sum() {
        for (depth, turned) in [(1, false), (3, true), (6, false), (9, true)] {
            let graph = graph(depth, turned);
            let padded = prepare_products(&graph, ByteSums::Floats);
            assert_eq!(depths(&padded), [multiple(depth)]);
            let x: Vec<u8> = (0..2 * depth).map(|index| (index * 37 % 251) as u8).collect();
            let x = Tensor::from_values([2, depth], &x).unwrap();
            let inputs = BTreeMap::from([("x".to_owned(), x)]);
            assert_eq!(padded.eval(&inputs).unwrap(), graph.eval(&inputs).unwrap(), "{depth}");
        }
    }

    #[test]
    fn other_products_stay() {
        for depth in [0, 4, 8] {
            assert!(
                matches!(
                    prepare_products(&graph(depth, false), ByteSums::Floats),
                    Cow::Borrowed(_)
                ),
                "{depth}"
            );
        }
        let mut b = Builder::new();
        let x = b.input("x", Type::new(DType::U8, [Dim::Known(2), Dim::Known(3)]));
        let w = b.input("w", Type::new(DType::I8, [Dim::Known(3), Dim::Known(4)]));
        let sum = b.matmul(x, w).unwrap();
        b.output("y", sum);
        assert!(
            matches!(prepare_products(&b.finish(), ByteSums::Floats), Cow::Borrowed(_)),
            "no constant"
        );
    }

    #[test]
    fn calls_share_a_function_and_its_constants() {
        let w = constant(6, false);
        let body = Arc::new({
            let mut b = Builder::nested("f");
            let sum = product(&mut b, 6, false, &w);
            b.output("y", sum);
            b.finish()
        });
        let mut b = Builder::new();
        let own = product(&mut b, 6, false, &w);
        let x = b.input("other", Type::new(DType::U8, [Dim::symbol("N"), 6.into()]));
        let mut results = vec![own];
        for _ in 0..2 {
            let kind = NodeKind::Call { name: "f".into(), body: body.clone() };
            results.extend(b.region(kind, &[x], [b.ty(own).clone()]).unwrap());
        }
        for (index, result) in results.iter().enumerate() {
            b.output(format!("y{index}"), *result);
        }
        let graph = b.finish();
        let padded = prepare_products(&graph, ByteSums::Floats);
        let bodies = padded.nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Call { body, .. } => Some(body),
            _ => None,
        });
        let bodies: Vec<&Arc<Graph>> = bodies.collect();
        let [first, second] = bodies[..] else { panic!("{} calls", bodies.len()) };
        assert_eq!(depths(first), [8]);
        assert!(Arc::ptr_eq(first, second));
        let elements = |graph: &Graph| {
            let constant = graph.nodes.iter().find_map(|node| match &node.kind {
                NodeKind::Constant(constant) => Some(constant.bytes.as_ptr()),
                _ => None,
            });
            constant.unwrap()
        };
        assert_eq!(elements(first), elements(&padded));
    }
}
