//! Sums of products of `f16` or `bf16` of open size as sums of `f32`, which are rounded at the end.
//!
//! Such sums are defined in `f32`, and kernels of open sizes have vectors of it.
use super::{Adder, Neighbours, Shared, cast};
use irc_tl::{
    Binary, Combine, Compute, Constant, DType, Graph, Node, NodeKind, Op, Scalar, Type, Unary,
    ValueId,
};

/// A sum of products of halves.
pub(super) struct Sum<'g> {
    node: &'g Node,
    /// The op with operands of `f32`.
    op: Op,
    result: ValueId,
}

impl<'g> Sum<'g> {
    /// The sum that a node computes, if it has an open size other than a number of rows. Products before and after a softmax
    /// stay, as they may be attention, which has kernels of halves.
    pub(super) fn of(graph: &Graph, node: &'g Node, neighbours: &Neighbours<'_>) -> Option<Self> {
        let (NodeKind::Op(op), &[result]) = (&node.kind, &node.results[..]) else { return None };
        let ty = graph.ty(result);
        let is_half = |dtype| matches!(dtype, DType::F16 | DType::BF16);
        let are_halves = node.operands.len() == 2
            && node.operands.iter().all(|operand| graph.ty(*operand).dtype == ty.dtype)
            && is_half(ty.dtype);
        if !are_halves {
            return None;
        }
        let types = node.operands.iter().map(|operand| graph.ty(*operand).clone());
        let types: Vec<Type> = types.collect();
        let sum = wide(&op.as_compute(&types)?)?;
        if !is_open(&sum) || op.open_rows(&types).is_some() || has_softmax(neighbours, node) {
            return None;
        }
        let op = if let Op::Compute(_) = op { Op::compute(sum) } else { op.clone() };
        Some(Self { node, op, result })
    }

    /// Adds nodes that compute the result.
    pub(super) fn write<'k>(
        &self,
        made: &mut Graph,
        constant: impl Fn(ValueId) -> Option<&'k Constant>,
        shared: &mut Shared<()>,
    ) -> Option<()> {
        let mut adder = Adder::of(made, self.node);
        let (mut operands, wide) = (vec![], cast(DType::F32));
        for &operand in &self.node.operands {
            operands.push(match constant(operand) {
                Some(found) => {
                    let wide = || Some(Constant::of(&wide.eval(&[&found.tensor().ok()?]).ok()?));
                    adder.constant(shared.constant(found, (), wide)?)
                }
                None => adder.cast(operand, DType::F32),
            });
        }
        let narrow = adder.made.ty(self.result).clone();
        let sums = Type::new(DType::F32, narrow.dims.clone());
        let sum = adder.op(self.op.clone(), &operands, sums);
        adder.cast(sum, narrow.dtype);
        adder.define(self.result)
    }
}

/// The maximum number of nodes between a product and the maximum or exponential of a softmax.
const MAX_BETWEEN: usize = 8;

/// Whether the result of a node leads to a maximum along an axis, or an operand comes from an exponential, each through few
/// other nodes that are read once.
fn has_softmax(neighbours: &Neighbours<'_>, node: &Node) -> bool {
    let mut next = node.results.first().copied();
    for _ in 0..MAX_BETWEEN {
        let readers = next.map_or(&[][..], |value| neighbours.readers(value));
        if readers.iter().copied().any(is_maximum) {
            return true;
        }
        next = match readers {
            [reader] => reader.results.first().copied(),
            _ => break,
        };
    }
    node.operands.iter().any(|operand| {
        let mut next = Some(*operand);
        for _ in 0..MAX_BETWEEN {
            let Some(maker) = next.and_then(|value| neighbours.maker(value)) else { return false };
            if is_exponential(maker) {
                return true;
            }
            next = maker.operands.first().copied();
        }
        false
    })
}

/// Whether a node computes the largest elements along an axis.
fn is_maximum(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Op(Op::Reduce { kind, .. }) => kind.combine() == Some(Combine::Max),
        NodeKind::Op(Op::Compute(compute)) => {
            compute.reduction.as_ref().is_some_and(|over| over.combine == Combine::Max)
        }
        _ => false,
    }
}

/// Whether a node computes an exponential of each element.
fn is_exponential(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Op(Op::Unary(function)) => *function == Unary::Exp,
        NodeKind::Op(Op::Compute(compute)) => {
            let mut found = false;
            compute.body.walk(&mut |part| found |= matches!(part, Scalar::Unary(Unary::Exp, _)));
            found
        }
        _ => false,
    }
}

/// Whether a size of a sum is open.
fn is_open(sum: &Compute) -> bool {
    let reduced = sum.reduction.iter().flat_map(|over| &over.dims);
    sum.dims.iter().chain(reduced).any(|dim| dim.known().is_none())
}

/// The sum of products with operands of `f32`; `None` if it computes something else.
fn wide(compute: &Compute) -> Option<Compute> {
    compute.reduction.as_ref().filter(|it| it.combine == Combine::Sum)?;
    let (product, zero) = match &compute.body {
        Scalar::Select(parts) => (&parts[1], Some(&parts[2])),
        product => (product, None),
    };
    let Scalar::Binary(Binary::Mul, x, w) = product else { return None };
    let are_loads = [x, w].into_iter().all(|side| matches!(**side, Scalar::Load(..)));
    let is_zero =
        |scalar: &&Scalar| matches!(scalar, Scalar::Float(bits, _) if f64::from_bits(*bits) == 0.0);
    if !are_loads || !zero.iter().all(is_zero) {
        return None;
    }
    let body = compute.body.replace(&mut |part| match part {
        Scalar::Float(bits, _) => Some(Scalar::float(f64::from_bits(*bits), DType::F32)),
        _ => None,
    });
    Some(Compute { body, ..compute.clone() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{ByteSums, prepare_products};
    use super::*;
    use irc_tensor::{Tensor, Tolerance};
    use irc_tl::{Builder, Conv, Dim, Rounding};
    use std::collections::BTreeMap;

    fn half(dtype: DType, shape: impl Into<Vec<i64>>) -> Tensor {
        let shape = shape.into();
        let count = shape.iter().product::<i64>();
        let values: Vec<f32> = (0..count).map(|at| (at * 37 % 101) as f32 / 64.0).collect();
        let to = Op::Cast { to: dtype, rounding: Rounding::TowardZero };
        to.eval(&[&Tensor::from_values(shape, &values).unwrap()]).unwrap()
    }

    /// Checks the results of a graph with an input `x`, and that it computes a sum of `f32`.
    fn check(graph: &Graph, dtype: DType, x: Tensor) {
        let made = prepare_products(graph, ByteSums::Floats);
        let dtypes: Vec<_> = made.nodes.iter().map(|node| made.ty(node.results[0]).dtype).collect();
        assert_eq!(dtypes[dtypes.len() - 2..], [DType::F32, dtype]);
        let inputs = BTreeMap::from([("x".to_owned(), x)]);
        let [own, expected] = [&*made, graph].map(|graph| graph.eval(&inputs).unwrap());
        let result = irc_tensor::compare(&expected[0], &own[0], Tolerance::of(dtype)).unwrap();
        assert!(result.is_match(), "{dtype}: {result}");
    }

    #[test]
    fn sums_have_the_error_of_one_rounding() {
        for dtype in [DType::F16, DType::BF16] {
            let mut b = Builder::new();
            let dims = [1.into(), 4.into(), Dim::symbol("H"), Dim::symbol("W")];
            let x = b.input("x", Type::new(dtype, dims));
            let w = b.constant(Constant::of(&half(dtype, [3, 4, 3, 3])));
            let [strides, dilations] = [vec![1, 1], vec![1, 1]];
            let conv = Conv { strides, dilations, pads: vec![[0; 2]; 2], groups: 1, outside: 0 };
            let sum = b.op(Op::Conv(conv), &[x, w]).unwrap();
            b.output("y", sum);
            check(&b.finish(), dtype, half(dtype, [1, 4, 5, 6]));
        }
    }

    #[test]
    fn products_of_open_columns_and_depths_are_those_of_single_precision() {
        let dtype = DType::F16;
        let open = || Dim::symbol("N");
        for is_depth in [false, true] {
            let mut b = Builder::new();
            let dims = if is_depth { [3.into(), open()] } else { [5.into(), open()] };
            let x = b.input("x", Type::new(dtype, dims));
            let sum = match is_depth {
                true => {
                    let turned = b.transpose(x, &[1, 0]).unwrap();
                    b.matmul(x, turned).unwrap()
                }
                false => {
                    let w = b.constant(Constant::of(&half(dtype, [3, 5])));
                    b.matmul(w, x).unwrap()
                }
            };
            b.output("y", sum);
            let rows = if is_depth { 3 } else { 5 };
            check(&b.finish(), dtype, half(dtype, [rows, 7]));
        }
    }

    #[test]
    fn products_of_open_rows_stay() {
        let mut b = Builder::new();
        let x = b.input("x", Type::new(DType::F16, [Dim::symbol("N"), 5.into()]));
        let w = b.constant(Constant::of(&half(DType::F16, [5, 3])));
        let sum = b.matmul(x, w).unwrap();
        b.output("y", sum);
        assert!(matches!(
            prepare_products(&b.finish(), ByteSums::Floats),
            std::borrow::Cow::Borrowed(_)
        ));
    }
}
