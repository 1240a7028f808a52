//! Products of matrices of bytes, of open sizes other than a number of rows, as sums of `f32`.
//!
//! Kernels of open sizes have vectors of `f32`. A sum of integers is exact there if it is at most 2^24: a longer one is that of
//! parts of the depth.
use super::{Adder, bytes::EXACT, loops_of};
use irc_tl::{
    Combine, Compute, DType, Dim, Graph, Node, NodeKind, Op, Reduce, Scalar, Type, ValueId,
};

/// The largest product of an element of `u8` and one of `i8`.
const LARGEST: i64 = 255 * 128;

/// The longest depth whose sums are exact.
const DEPTH: i64 = EXACT / LARGEST;

/// A product of matrices of bytes.
pub(super) struct Product<'g> {
    node: &'g Node,
    operands: [ValueId; 2],
    result: ValueId,
    /// The product as loops.
    compute: Compute,
    depth: Dim,
}

impl<'g> Product<'g> {
    /// The product that a node computes, if it has an open size other than a number of rows.
    pub(super) fn of(graph: &Graph, node: &'g Node) -> Option<Self> {
        let (NodeKind::Op(op @ Op::Matmul { .. }), &[lhs, rhs], &[result]) =
            (&node.kind, &node.operands[..], &node.results[..])
        else {
            return None;
        };
        let types = [lhs, rhs].map(|value| graph.ty(value).clone());
        let dtypes = types.each_ref().map(|ty| ty.dtype);
        let are_bytes = matches!(dtypes, [DType::U8, DType::I8] | [DType::I8, DType::U8]);
        let is_open = types.iter().any(|ty| ty.known().is_none());
        if !are_bytes || !is_open || op.open_rows(&types).is_some() {
            return None;
        }
        let compute = loops_of(graph, node)?;
        let [depth] = &compute.reduction.as_ref()?.dims[..] else { return None };
        let depth = Some(depth.clone()).filter(|depth| !depth.is(0))?;
        Some(Self { node, operands: [lhs, rhs], result, compute, depth })
    }

    /// Adds nodes that compute the result.
    pub(super) fn write(&self, made: &mut Graph) -> Option<()> {
        let mut adder = Adder::of(made, self.node);
        let wide = self.operands.map(|operand| adder.cast(operand, DType::F32));
        let is_exact = self.depth.known().is_some_and(|depth| depth <= DEPTH);
        let sums = if is_exact { self.sums() } else { self.sums_of_parts() };
        let ty = Type::new(DType::F32, sums.dims.clone());
        let sums = adder.op(Op::compute(sums), &wide, ty);
        match is_exact {
            true => adder.cast(sums, DType::I32),
            false => {
                let result = Type::new(DType::I32, self.compute.dims.clone());
                adder.op(Op::compute(self.total()), &[sums], result)
            }
        };
        adder.define(self.result)
    }

    /// The sums in `f32`.
    fn sums(&self) -> Compute {
        let body = self.compute.body.replace(&mut |part| match part {
            Scalar::Cast(DType::I32, _, element) => Some((**element).clone()),
            _ => None,
        });
        Compute { body, ..self.compute.clone() }
    }

    /// The number of parts of the depth.
    fn parts(&self) -> Dim {
        self.depth.ceil_div(&DEPTH.into())
    }

    /// The sums in `f32` for each part of the depth, along a new first axis.
    fn sums_of_parts(&self) -> Compute {
        let Compute { dims, body, .. } = self.sums();
        let rank = dims.len();
        let at = Scalar::Loop(0) * Scalar::index(DEPTH) + Scalar::Loop(rank + 1);
        let body = body.replace(&mut |part| match part {
            Scalar::Loop(loop_) if *loop_ == rank => Some(at.clone()),
            Scalar::Loop(loop_) => Some(Scalar::Loop(loop_ + 1)),
            _ => None,
        });
        let size = self.depth.known().map_or(Scalar::Size(self.depth.clone()), Scalar::index);
        let body = at.lt(size).select(body, Scalar::number(0, DType::F32));
        let over = Reduce { combine: Combine::Sum, dims: vec![self.depth.minimum(&DEPTH.into())] };
        let dims = [self.parts()].into_iter().chain(dims).collect();
        Compute { dims, reduction: Some(over), body }
    }

    /// The sum of those of the parts.
    fn total(&self) -> Compute {
        let dims = self.compute.dims.clone();
        let at = [dims.len()].into_iter().chain(0..dims.len()).map(Scalar::Loop);
        let body = Scalar::load(0, at.collect::<Vec<_>>()).cast(DType::I32);
        Compute::reduce(dims, Combine::Sum, [self.parts()], body)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{ByteSums, prepare_products};
    use super::*;
    use irc_tensor::Tensor;
    use irc_tl::Builder;
    use std::collections::BTreeMap;

    /// The largest or the smallest bytes of a type.
    fn bytes(dtype: DType, shape: &[i64], is_least: bool) -> Tensor {
        let byte: u8 = match (dtype, is_least) {
            (DType::U8, _) => 255,
            (_, true) => 128,
            (_, false) => 127,
        };
        let bytes = vec![byte; shape.iter().product::<i64>() as usize];
        Tensor::from_values(shape, &bytes).unwrap().reinterpret(dtype).unwrap()
    }

    #[test]
    fn sums_are_exact() {
        for (open_depth, depth, is_least) in
            [(false, 513, true), (false, 700, false), (true, 0, false), (true, 1029, true)]
        {
            let mut b = Builder::new();
            let of_depth = if open_depth { Dim::symbol("K") } else { depth.into() };
            let x = b.input("x", Type::new(DType::U8, [2.into(), 3.into(), of_depth.clone()]));
            let w = b.input("w", Type::new(DType::I8, [2.into(), of_depth, Dim::symbol("N")]));
            let product = b.matmul(x, w).unwrap();
            b.output("y", product);
            let graph = b.finish();
            let made = prepare_products(&graph, ByteSums::Floats);
            let sums = made.nodes.iter().filter(|node| match &node.kind {
                NodeKind::Op(Op::Compute(compute)) => compute.reduction.is_some(),
                _ => false,
            });
            let dtypes: Vec<DType> = sums.map(|node| made.ty(node.results[0]).dtype).collect();
            assert_eq!(dtypes[0], DType::F32);
            let inputs = BTreeMap::from([
                ("x".to_owned(), bytes(DType::U8, &[2, 3, depth], is_least)),
                ("w".to_owned(), bytes(DType::I8, &[2, depth, 5], is_least)),
            ]);
            assert_eq!(made.eval(&inputs).unwrap(), graph.eval(&inputs).unwrap(), "{depth}");
        }
    }

    #[test]
    fn products_of_open_rows_stay() {
        let mut b = Builder::new();
        let x = b.input("x", Type::new(DType::U8, [Dim::symbol("N"), 8.into()]));
        let w = b.input("w", Type::new(DType::I8, [Dim::Known(8), 5.into()]));
        let product = b.matmul(x, w).unwrap();
        b.output("y", product);
        assert!(matches!(
            prepare_products(&b.finish(), ByteSums::Floats),
            std::borrow::Cow::Borrowed(_)
        ));
    }
}
