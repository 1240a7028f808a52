//! Sums of products of `f16` or `bf16`, over images of open size, as sums of `f32`, which are rounded at the end.
//!
//! Such sums are defined in `f32`, and kernels of open sizes have vectors of it.
use super::Adder;
use irc_tensor::TensorType;
use irc_tl::{
    Binary, Combine, Compute, Constant, DType, Graph, Node, NodeKind, Op, Rounding, Scalar, Type,
    ValueId,
};
use std::collections::BTreeMap;

/// Constants as `f32` by the address and type of those that they are made of.
pub(super) type Shared = BTreeMap<(usize, TensorType), Constant>;

/// A sum of products of halves.
pub(super) struct Sum<'g> {
    node: &'g Node,
    /// The op with operands of `f32`.
    op: Op,
    result: ValueId,
}

impl<'g> Sum<'g> {
    /// The sum that a node computes, if the image has an open size.
    pub(super) fn of(graph: &Graph, node: &'g Node) -> Option<Self> {
        let (NodeKind::Op(op), &[result]) = (&node.kind, &node.results[..]) else { return None };
        let ty = graph.ty(result);
        let is_half = |dtype| matches!(dtype, DType::F16 | DType::BF16);
        let are_halves = node.operands.len() == 2
            && node.operands.iter().all(|operand| graph.ty(*operand).dtype == ty.dtype)
            && is_half(ty.dtype);
        if !are_halves || !super::is_open_image(&ty.dims) {
            return None;
        }
        let sum = wide(&super::loops_of(graph, node)?)?;
        let op = if let Op::Compute(_) = op { Op::compute(sum) } else { op.clone() };
        Some(Self { node, op, result })
    }

    /// Adds nodes that compute the result.
    pub(super) fn write<'k>(
        &self,
        made: &mut Graph,
        constant: impl Fn(ValueId) -> Option<&'k Constant>,
        shared: &mut Shared,
    ) -> Option<()> {
        let cast = |to| Op::Cast { to, rounding: Rounding::TowardZero };
        let mut adder = Adder::of(made, self.node);
        let mut operands = vec![];
        for &operand in &self.node.operands {
            operands.push(match constant(operand) {
                Some(found) => adder.constant(wide_constant(found, shared)?),
                None => {
                    let dims = adder.made.ty(operand).dims.clone();
                    adder.op(cast(DType::F32), &[operand], Type::new(DType::F32, dims))
                }
            });
        }
        let narrow = adder.made.ty(self.result).clone();
        let wide = Type::new(DType::F32, narrow.dims.clone());
        let sum = adder.op(self.op.clone(), &operands, wide);
        adder.op(cast(narrow.dtype), &[sum], narrow);
        adder.define(self.result)
    }
}

/// A constant as `f32`, which its users share.
fn wide_constant(constant: &Constant, shared: &mut Shared) -> Option<Constant> {
    let key = (constant.bytes.as_ptr() as usize, constant.ty.clone());
    if let Some(wide) = shared.get(&key) {
        return Some(wide.clone());
    }
    let to = Op::Cast { to: DType::F32, rounding: Rounding::TowardZero };
    let wide = Constant::of(&to.eval(&[&constant.tensor().ok()?]).ok()?);
    shared.insert(key, wide.clone());
    Some(wide)
}

/// The sum over a window with operands of `f32`; `None` if it computes something else.
fn wide(compute: &Compute) -> Option<Compute> {
    compute.reduction.as_ref().filter(|it| it.combine == Combine::Sum && it.dims.len() > 1)?;
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
    use super::super::prepare_products;
    use super::*;
    use irc_tensor::{Tensor, Tolerance};
    use irc_tl::{Builder, Conv, Dim};

    #[test]
    fn sums_have_the_error_of_one_rounding() {
        for dtype in [DType::F16, DType::BF16] {
            let mut b = Builder::new();
            let dims = [1.into(), 4.into(), Dim::symbol("H"), Dim::symbol("W")];
            let x = b.input("x", Type::new(dtype, dims));
            let to = Op::Cast { to: dtype, rounding: Rounding::TowardZero };
            let values =
                |count: i64| (0..count).map(|at| (at * 37 % 101) as f32 / 64.0).collect::<Vec<_>>();
            let half = |shape: [i64; 4]| {
                let values = Tensor::from_values(shape, &values(shape.iter().product())).unwrap();
                to.eval(&[&values]).unwrap()
            };
            let w = b.constant(Constant::of(&half([3, 4, 3, 3])));
            let [strides, dilations] = [vec![1, 1], vec![1, 1]];
            let conv = Conv { strides, dilations, pads: vec![[0; 2]; 2], groups: 1, outside: 0 };
            let sum = b.op(Op::Conv(conv), &[x, w]).unwrap();
            b.output("y", sum);
            let graph = b.finish();
            let made = prepare_products(&graph);
            let dtypes = made.nodes.iter().map(|node| made.ty(node.results[0]).dtype);
            assert_eq!(dtypes.collect::<Vec<_>>(), [DType::F32, DType::F32, DType::F32, dtype]);
            let inputs = BTreeMap::from([("x".to_owned(), half([1, 4, 5, 6]))]);
            let [own, expected] = [&*made, &graph].map(|graph| graph.eval(&inputs).unwrap());
            let result = irc_tensor::compare(&expected[0], &own[0], Tolerance::of(dtype)).unwrap();
            assert!(result.is_match(), "{dtype}: {result}");
        }
    }
}
