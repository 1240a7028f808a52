//! Products of `i32` that are bytes minus zero points, as products of bytes.
//!
//! `(x - zero) (w - other)` is the product of `x` and `w`, minus `zero` times the sums of the columns of `w`, and `other` times
//! the sums of the rows of `x - zero`, modulo 2^32. Kernels multiply `u8` and `i8`: signed elements of the first operand
//! are moved by 128, and unsigned ones of the second by -128, as are their zero points.
use super::{Adder, Neighbours, Shared, cast, loops_of};
use irc_tensor::TensorType;
use irc_tl::{
    Binary, Constant, DType, Dim, Graph, Node, NodeKind, Op, Reduction, Scalar, Type, ValueId,
};

/// Constants as bytes of a type, and the sums of those along an axis.
#[derive(Default)]
pub(super) struct Constants {
    moved: Shared<DType>,
    sums: Shared<usize>,
}

/// A product of integers.
pub(super) struct Product<'g> {
    node: &'g Node,
    result: ValueId,
    operands: [Operand<'g>; 2],
}

/// An operand of a product: elements minus a zero point.
#[derive(Clone, Copy)]
enum Operand<'g> {
    /// Bytes, and their zero point in `i32`, which broadcasts to them; in the shape of the operand afterwards.
    Bytes { value: ValueId, zero: Option<ValueId> },
    /// Constants of `i32` within a range of 256 numbers, which starts at `least`.
    Constant { elements: &'g Constant, least: i32 },
}

/// The maximum number of nodes from bytes to an operand: a conversion, a difference, and reshapes.
const MAX_STEPS: usize = 4;

/// The distance between a signed byte and the unsigned one of the same order.
const DISTANCE: i32 = 128;

impl<'g> Product<'g> {
    /// The product that a node computes, if its operands are bytes minus zero points that are constant along the depth.
    pub(super) fn of(
        graph: &Graph,
        node: &'g Node,
        neighbours: &Neighbours<'_>,
        constant: impl Fn(ValueId) -> Option<&'g Constant>,
    ) -> Option<Self> {
        let (
            NodeKind::Op(Op::Matmul { transpose_lhs: false, transpose_rhs: false }),
            &[lhs, rhs],
            &[result],
        ) = (&node.kind, &node.operands[..], &node.results[..])
        else {
            return None;
        };
        if [lhs, rhs].iter().any(|value| graph.ty(*value).dtype != DType::I32) {
            return None;
        }
        // From the last.
        let depths = [1, 2];
        let mut operands = vec![];
        for (value, depth) in [lhs, rhs].into_iter().zip(depths) {
            let found = match constant(value) {
                Some(elements) => Operand::constant(elements)?,
                None => Operand::of(graph, neighbours, value, MAX_STEPS)?,
            };
            if let Operand::Bytes { zero: Some(zero), .. } = found {
                let dims = &graph.ty(zero).dims;
                if dims.len() >= depth && !dims[dims.len() - depth].is(1) {
                    return None;
                }
            }
            operands.push(found);
        }
        Some(Self { node, result, operands: operands.try_into().ok()? })
    }

    /// Adds nodes that compute the result.
    pub(super) fn write(
        &self,
        made: &mut Graph,
        constant: impl Fn(ValueId) -> Option<&'g Constant>,
        shared: &mut Constants,
    ) -> Option<()> {
        let mut adder = Adder::of(made, self.node);
        let NodeKind::Op(product) = &self.node.kind else { return None };
        let [lhs, rhs] = [0, 1].map(|side| self.node.operands[side]);
        let [x_dims, w_dims] = [lhs, rhs].map(|value| adder.made.ty(value).dims.clone());
        let x = self.operands[0].bytes(&mut adder, (DType::U8, &x_dims), &constant, shared)?;
        let w = self.operands[1].bytes(&mut adder, (DType::I8, &w_dims), &constant, shared)?;
        let mut sum = adder.inferred(product.clone(), &[x.value, w.value])?;
        if let Some(zero) = x.zero {
            let sums = w.sums(&mut adder, w_dims.len() - 2, None, shared)?;
            let moved = adder.inferred(Op::Binary(Binary::Mul), &[zero, sums])?;
            sum = adder.inferred(Op::Binary(Binary::Sub), &[sum, moved])?;
        }
        if let Some(other) = w.zero {
            let sums = x.sums(&mut adder, x_dims.len() - 1, x.zero, shared)?;
            let moved = adder.inferred(Op::Binary(Binary::Mul), &[other, sums])?;
            adder.inferred(Op::Binary(Binary::Sub), &[sum, moved])?;
        }
        adder.define(self.result)
    }
}

impl<'g> Operand<'g> {
    /// Constants whose range is that of a byte.
    fn constant(elements: &'g Constant) -> Option<Self> {
        let numbers = integers(elements);
        let (least, most) = (numbers.clone().min()?, numbers.max()?);
        let is_narrow = i64::from(most) - i64::from(least) <= i64::from(u8::MAX)
            && least.checked_add(DISTANCE).is_some();
        is_narrow.then_some(Self::Constant { elements, least })
    }

    /// The bytes and the zero point that a value is computed of, by at most so many nodes.
    fn of(
        graph: &Graph,
        neighbours: &Neighbours<'_>,
        value: ValueId,
        steps: usize,
    ) -> Option<Self> {
        let steps = steps.checked_sub(1)?;
        let node = neighbours.maker(value)?;
        if let NodeKind::Op(Op::Reshape { .. }) = &node.kind {
            return match Self::of(graph, neighbours, node.operands[0], steps)? {
                Self::Bytes { zero: Some(zero), .. } if graph.ty(zero).rank() > 0 => None,
                found => Some(found),
            };
        }
        let compute = loops_of(graph, node).filter(|it| it.reduction.is_none())?;
        let dims = &compute.dims;
        let is_whole = |at: &[Scalar]| (0..dims.len()).map(Scalar::Loop).eq(at.iter().cloned());
        match &compute.body {
            Scalar::Cast(DType::I32, _, from) => {
                let Scalar::Load(0, at) = &**from else { return None };
                let ty = graph.ty(node.operands[0]);
                let is_bytes = matches!(ty.dtype, DType::I8 | DType::U8);
                let value = node.operands[0];
                (is_bytes && is_whole(at) && ty.dims == *dims)
                    .then_some(Self::Bytes { value, zero: None })
            }
            Scalar::Binary(Binary::Sub, from, zero) => {
                let (Scalar::Load(0, at), Scalar::Load(1, zero_at)) = (&**from, &**zero) else {
                    return None;
                };
                let &[from, zero] = &node.operands[..] else { return None };
                let outer = dims.len().checked_sub(zero_at.len())?;
                let broadcasts = zero_at
                    .iter()
                    .zip(outer..)
                    .zip(&graph.ty(zero).dims)
                    .all(|((index, axis), dim)| *index == Scalar::Loop(axis) || dim.is(1));
                let is_whole = is_whole(at) && graph.ty(from).dims == *dims;
                match Self::of(graph, neighbours, from, steps)? {
                    Self::Bytes { value, zero: None } if is_whole && broadcasts => {
                        Some(Self::Bytes { value, zero: Some(zero) })
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The elements as bytes of a type, in a shape, and their zero point.
    fn bytes(
        &self,
        adder: &mut Adder<'_>,
        (to, dims): (DType, &[Dim]),
        constant: impl Fn(ValueId) -> Option<&'g Constant>,
        shared: &mut Constants,
    ) -> Option<Bytes> {
        let (value, zero) = match *self {
            Self::Constant { elements, least } => {
                let first = if to == DType::U8 { 0 } else { -DISTANCE };
                let moved = || {
                    let bytes = integers(elements).map(|number| (number - least + first) as u8);
                    let ty = TensorType { dtype: to, ..elements.ty.clone() };
                    Some(Constant::new(ty, bytes.collect::<Vec<u8>>()))
                };
                let moved = shared.moved.constant(elements, to, moved)?;
                let zero = first - least;
                let zero = (zero != 0).then(|| adder.integer(zero));
                return Some(Bytes::constant(adder, moved, zero));
            }
            Self::Bytes { value, zero } => (value, zero),
        };
        let from = adder.made.ty(value).dtype;
        let (mut value, mut zero, mut elements) = (value, zero, constant(value).cloned());
        if from != to {
            let distance = adder.integer(if to == DType::U8 { DISTANCE } else { -DISTANCE });
            zero = Some(match zero {
                Some(zero) => adder.inferred(Op::Binary(Binary::Add), &[zero, distance])?,
                None => distance,
            });
            if let Some(elements) = &mut elements {
                let moved = || {
                    // 128 is the sign of a byte.
                    let bytes: Vec<u8> = elements.bytes.iter().map(|byte| byte ^ 0x80).collect();
                    Some(Constant::new(TensorType { dtype: to, ..elements.ty.clone() }, bytes))
                };
                *elements = shared.moved.constant(elements, to, moved)?;
            } else {
                let wide = adder.cast(value, DType::I32);
                let moved = adder.inferred(Op::Binary(Binary::Add), &[wide, distance])?;
                value = adder.cast(moved, to);
            }
        }
        if let Some(mut elements) = elements {
            elements.ty = Type::new(to, dims.to_vec()).known()?;
            return Some(Bytes::constant(adder, elements, zero));
        }
        if adder.made.ty(value).dims != dims {
            let ty = Type::new(to, dims.to_vec());
            value = adder.op(Op::Reshape { shape: ty.known()?.shape.to_vec() }, &[value], ty);
        }
        Some(Bytes { value, zero, elements: None })
    }
}

/// Bytes, their zero point, and their elements if they are constant.
struct Bytes {
    value: ValueId,
    zero: Option<ValueId>,
    elements: Option<Constant>,
}

impl Bytes {
    fn constant(adder: &mut Adder<'_>, elements: Constant, zero: Option<ValueId>) -> Self {
        Self { value: adder.constant(elements.clone()), zero, elements: Some(elements) }
    }

    /// The sums of the elements, minus a zero point, along an axis.
    fn sums(
        &self,
        adder: &mut Adder<'_>,
        axis: usize,
        zero: Option<ValueId>,
        shared: &mut Constants,
    ) -> Option<ValueId> {
        let sums = Op::Reduce { kind: Reduction::Sum, axes: vec![axis], keep_dims: true };
        if let (Some(elements), None) = (&self.elements, zero) {
            let sums = || {
                let wide = cast(DType::I32).eval(&[&elements.tensor().ok()?]).ok()?;
                Some(Constant::of(&sums.eval(&[&wide]).ok()?))
            };
            return Some(adder.constant(shared.sums.constant(elements, axis, sums)?));
        }
        let mut wide = adder.cast(self.value, DType::I32);
        if let Some(zero) = zero {
            wide = adder.inferred(Op::Binary(Binary::Sub), &[wide, zero])?;
        }
        adder.inferred(sums, &[wide])
    }
}

/// The elements of a constant of `i32`.
fn integers(constant: &Constant) -> impl Iterator<Item = i32> + Clone {
    let (elements, _) = constant.bytes.as_chunks::<4>();
    elements.iter().map(|bytes| i32::from_le_bytes(*bytes))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{ByteSums, prepare_products};
    use super::*;
    use irc_tensor::Tensor;
    use irc_tl::Builder;
    use std::collections::BTreeMap;

    /// Bytes of all values.
    fn bytes(dtype: DType, shape: impl Into<Vec<i64>>) -> Tensor {
        let shape = shape.into();
        let count = shape.iter().product::<i64>();
        let bytes: Vec<u8> = (0..count).map(|at| (at * 89 + 255) as u8).collect();
        Tensor::from_values(shape, &bytes).unwrap().reinterpret(dtype).unwrap()
    }

    /// Elements minus zero points of a shape.
    fn centred(b: &mut Builder, value: ValueId, zero: Option<&[i64]>) -> ValueId {
        let wide = b.cast(value, DType::I32).unwrap();
        let Some(shape) = zero else { return wide };
        let zeros: Vec<i32> = (0..shape.iter().product()).map(|at| at as i32 * 61 - 30).collect();
        let zero = b.tensor(&Tensor::from_values(shape.to_vec(), &zeros).unwrap());
        b.binary(Binary::Sub, wide, zero).unwrap()
    }

    /// The types of the operands of products, and whether the graph has the values of another.
    fn check(graph: &Graph, inputs: &[(&str, Tensor)]) -> Vec<[DType; 2]> {
        let made = prepare_products(graph, ByteSums::Floats);
        let inputs: BTreeMap<_, _> =
            inputs.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())).collect();
        assert_eq!(made.eval(&inputs).unwrap(), graph.eval(&inputs).unwrap());
        let products = made.nodes.iter().filter_map(|node| match node.kind {
            NodeKind::Op(Op::Matmul { .. }) => {
                Some([0, 1].map(|side| made.ty(node.operands[side]).dtype))
            }
            _ => None,
        });
        products.collect()
    }

    #[test]
    fn products_of_all_signs_and_zero_points_are_those_of_bytes() {
        let rows = [None, Some(&[][..]), Some(&[3, 1][..])];
        let columns = [None, Some(&[][..]), Some(&[6][..]), Some(&[2, 1, 6][..])];
        let dtypes = [DType::U8, DType::I8];
        for (x_type, w_type) in dtypes.iter().flat_map(|x| dtypes.map(|w| (*x, w))) {
            for (zero, other) in rows.iter().flat_map(|zero| columns.map(|other| (zero, other))) {
                for depth in [Dim::Known(4), Dim::symbol("K")] {
                    // Those of open depth become products of `f32`.
                    let products = depth.known().map(|_| [DType::U8, DType::I8]);
                    let mut b = Builder::new();
                    let x = b.input("x", Type::new(x_type, [2.into(), 3.into(), depth.clone()]));
                    let w = b.input("w", Type::new(w_type, [2.into(), depth, 6.into()]));
                    let (x, w) = (centred(&mut b, x, *zero), centred(&mut b, w, other));
                    let product = b.matmul(x, w).unwrap();
                    b.output("y", product);
                    let inputs = [("x", bytes(x_type, [2, 3, 4])), ("w", bytes(w_type, [2, 4, 6]))];
                    assert_eq!(check(&b.finish(), &inputs), products.as_slice());
                }
            }
        }
    }

    #[test]
    fn constants_are_moved_when_a_model_is_compiled() {
        for (dtype, wide, depth) in
            [(DType::U8, false, 8), (DType::U8, true, 6), (DType::I8, true, 8)]
        {
            let mut b = Builder::new();
            let x = b.input("x", Type::new(DType::I8, [Dim::Known(2), 5.into(), depth.into()]));
            let x = centred(&mut b, x, Some(&[]));
            let x = b.reshape(x, &[10.into(), depth.into()]).unwrap();
            let w = bytes(dtype, [depth, 3]);
            let w = match wide {
                true => b.tensor(&cast(DType::I32).eval(&[&w]).unwrap()),
                false => {
                    let w = b.tensor(&w);
                    centred(&mut b, w, None)
                }
            };
            let product = b.matmul(x, w).unwrap();
            b.output("y", product);
            let found = check(&b.finish(), &[("x", bytes(DType::I8, [2, 5, depth]))]);
            assert_eq!(found, [[DType::U8, DType::I8]], "{dtype} {wide} {depth}");
        }
    }

    /// Constants of `u8`, of a depth that is padded, in `i32`.
    fn weights(b: &mut Builder, w: &Constant) -> ValueId {
        let w = b.constant(w.clone());
        centred(b, w, None)
    }

    /// The product of an input with weights.
    fn product(b: &mut Builder, name: &str, w: ValueId) -> ValueId {
        let x = b.input(name, Type::new(DType::U8, [Dim::Known(2), 6.into()]));
        let x = centred(b, x, Some(&[]));
        b.matmul(x, w).unwrap()
    }

    #[test]
    fn users_of_constants_share_what_is_made_of_them() {
        let mut b = Builder::new();
        let w = weights(&mut b, &Constant::of(&bytes(DType::U8, [6, 3])));
        for name in ["x", "z"] {
            let product = product(&mut b, name, w);
            b.output(format!("y_{name}"), product);
        }
        let graph = b.finish();
        let made = prepare_products(&graph, ByteSums::Floats);
        let moved = made.nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Constant(constant) if constant.ty.dtype == DType::I8 => {
                Some(constant.bytes.as_ptr())
            }
            _ => None,
        });
        let moved: Vec<_> = moved.collect();
        assert!(moved.len() == 2 && moved[0] == moved[1], "{moved:?}");
    }

    /// What is made of the constants of a function is not that of the next one, whose constants may have its memory.
    #[test]
    fn constants_of_functions_are_their_own() {
        let mut b = Builder::new();
        for number in 0..16_u8 {
            let w: Vec<u8> = (0..18).map(|at| at * 7 + number * 3).collect();
            let w = Constant::of(&Tensor::from_values([6, 3], &w).unwrap());
            let body = {
                let mut b = Builder::nested("f");
                let w = weights(&mut b, &w);
                let product = product(&mut b, "x", w);
                b.output("y", product);
                std::sync::Arc::new(b.finish())
            };
            let ty = Type::new(DType::I32, [Dim::Known(2), 3.into()]);
            let x = b.input(format!("x{number}"), Type::new(DType::U8, [Dim::Known(2), 6.into()]));
            let kind = NodeKind::Call { name: format!("f{number}").into(), body };
            let result = b.region(kind, &[x], [ty]).unwrap()[0];
            b.output(format!("y{number}"), result);
        }
        let graph = b.finish();
        let inputs: BTreeMap<_, _> =
            (0..16).map(|number| (format!("x{number}"), bytes(DType::U8, [2, 6]))).collect();
        let made = prepare_products(&graph, ByteSums::Floats);
        assert_eq!(made.eval(&inputs).unwrap(), graph.eval(&inputs).unwrap());
    }

    #[test]
    fn other_integers_stay() {
        // A zero point for each element of the depth, constants of more than a byte, and integers.
        for case in 0..3 {
            let mut b = Builder::new();
            let dtype = if case == 2 { DType::I32 } else { DType::U8 };
            let x = b.input("x", Type::new(dtype, [Dim::Known(3), 4.into()]));
            let x = centred(&mut b, x, (case == 0).then_some(&[4][..]));
            let most = if case == 1 { 256 } else { 1 };
            let w: Vec<i32> = (0..8).map(|at| at % 2 * most).collect();
            let w = b.tensor(&Tensor::from_values([4, 2], &w).unwrap());
            let product = b.matmul(x, w).unwrap();
            b.output("y", product);
            let made = b.finish();
            assert!(
                matches!(prepare_products(&made, ByteSums::Floats), std::borrow::Cow::Borrowed(_)),
                "{case}"
            );
        }
    }
}
