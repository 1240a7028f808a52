//! Sums of products of bytes with constants, over images of open size, as sums of `f32`, for processors that do not add
//! products of bytes four at a time.
//!
//! Kernels of open sizes have vectors of `f32` there. A sum of integers is exact there, in any order, if none is above 2^24;
//! a sum that may be is divided into those of some channels each.
use super::{Adder, ByteSums, Shared};
use crate::lowering::compute_to_loops::adds_bytes;
use irc_tensor::TensorType;
use irc_tl::{
    Binary, Combine, Compute, Constant, DType, Dim, Graph, Node, Op, Reduce, Scalar, Type, ValueId,
};

/// Integers up to this one are exact in `f32`.
pub(super) const EXACT: i64 = 1 << 24;

/// The loop over filters.
const FILTERS: usize = 1;

/// Some channels of filters as `f32`, from one to another.
pub(super) type Filters = Shared<[i64; 2]>;

/// A sum of products of bytes of an image and of constant filters.
pub(super) struct Product<'g> {
    compute: Compute,
    over: Vec<Dim>,
    image: ValueId,
    /// The indices of an element of the image.
    at: Vec<Scalar>,
    filters: &'g Constant,
    /// The condition that an element is inside of the image.
    inside: Option<Scalar>,
    /// What the image has outside of it.
    outside: i64,
    result: ValueId,
    node: &'g Node,
}

impl<'g> Product<'g> {
    /// The product that a node computes, if the image has an open size, and if it is not added in bytes. `constant` gives the
    /// constant of a value.
    pub(super) fn of(
        (graph, sums): (&Graph, ByteSums),
        node: &'g Node,
        constant: impl Fn(ValueId) -> Option<&'g Constant>,
    ) -> Option<Self> {
        let (&[image, filters], &[result]) = (&node.operands[..], &node.results[..]) else {
            return None;
        };
        let are_bytes = [image, filters].into_iter().all(|value| is_byte(graph.ty(value).dtype));
        let ty = graph.ty(result);
        if !are_bytes || !super::is_open_image(&ty.dims) || ty.dtype != DType::I32 {
            return None;
        }
        let compute = super::loops_of(graph, node)?;
        let types = [image, filters].map(|value| graph.ty(value));
        if sums == ByteSums::Dots && adds_bytes(&compute, &types) {
            return None;
        }
        let over = compute.reduction.as_ref().filter(|it| it.combine == Combine::Sum)?;
        let over = over.dims.clone();
        // `select(inside, x * w, 0)`, or `select(inside, x, outside) * w`.
        let (inside, product) = selected(&compute.body);
        let Scalar::Binary(Binary::Mul, x, w) = product else { return None };
        let (inside, x) = match inside {
            None => selected(x),
            Some((_, outside)) if outside != 0 => return None,
            inside => (inside, &**x),
        };
        let (inside, outside) =
            inside.map_or((None, 0), |(inside, outside)| (Some(inside), outside));
        let (at, filter) = (byte(x, 0)?, byte(w, 1)?);
        let filters = constant(filters)?;
        // The elements of a filter are read in order.
        let own = (compute.dims.len()..).take(over.len()).map(Scalar::Loop);
        let is_in_order = [Scalar::Loop(FILTERS)].into_iter().chain(own).eq(filter.iter().cloned());
        let shape = filters.ty.shape.iter().map(|extent| Dim::Known(*extent));
        let is_whole = shape.eq(compute.dims.get(FILTERS).into_iter().chain(&over).cloned());
        let (at, inside) = (at.to_vec(), inside.cloned());
        (is_in_order && is_whole && over.len() > 1).then_some(Self {
            compute,
            over,
            image,
            at,
            filters,
            inside,
            outside,
            result,
            node,
        })
    }

    /// Adds nodes that compute the result, if it is exact. Users of the same filters share those of `shared`.
    pub(super) fn write(&self, made: &mut Graph, shared: &mut Filters) -> Option<()> {
        let sizes = self.channels_of_parts(made.ty(self.image).dtype)?;
        let dims = made.ty(self.image).dims.clone();
        let mut adder = Adder::of(made, self.node);
        let mut image = adder.cast(self.image, DType::F32);
        // With zeros outside, what the image has there counts for all elements of a filter.
        if self.outside != 0 {
            let outside = Op::fill(self.outside as f64, [], DType::F32);
            let outside = adder.op(outside, &[], Type::new(DType::F32, []));
            image =
                adder.op(Op::Binary(Binary::Sub), &[image, outside], Type::new(DType::F32, dims));
        }
        let of_result = |dtype| Type::new(dtype, self.compute.dims.clone());
        let mut terms = vec![];
        for from in (0..self.channels()).step_by(sizes as usize) {
            let to = (from + sizes).min(self.channels());
            let filters =
                shared.constant(self.filters, [from, to], || self.filters_of(from, to))?;
            let filters = adder.constant(filters);
            let sum =
                adder.op(Op::compute(self.sum(from, to)), &[image, filters], of_result(DType::F32));
            terms.push(adder.cast(sum, DType::I32));
        }
        if self.outside != 0 {
            let sums = self.elements().map(|filter| filter.iter().sum::<i64>() * self.outside);
            let shape =
                [1, self.filters.ty.shape[0]]
                    .into_iter()
                    .chain(vec![1; self.compute.dims.len() - 2]);
            let ty = TensorType::new(DType::I32, shape.collect::<Vec<_>>());
            let bytes: Vec<u8> = sums.flat_map(|sum| (sum as i32).to_le_bytes()).collect();
            terms.push(adder.constant(Constant::new(ty, bytes)));
        }
        let sum = terms
            .into_iter()
            .reduce(|x, y| adder.op(Op::Binary(Binary::Add), &[x, y], of_result(DType::I32)))?;
        debug_assert!(adder.made.nodes.last().is_some_and(|last| last.results == [sum]));
        adder.define(self.result)
    }

    fn channels(&self) -> i64 {
        self.filters.ty.shape[1]
    }

    /// The elements of each filter.
    fn elements(&self) -> impl Iterator<Item = Vec<i64>> {
        let signed = self.filters.ty.dtype == DType::I8;
        let count: i64 = self.filters.ty.shape[1..].iter().product();
        let value = move |byte: &u8| if signed { i64::from(*byte as i8) } else { i64::from(*byte) };
        let filters = self.filters.bytes.chunks(count.max(1) as usize);
        filters.map(move |filter| filter.iter().map(value).collect())
    }

    /// So many channels that the sum of their products is exact; `None` if that of one is not.
    fn channels_of_parts(&self, dtype: DType) -> Option<i64> {
        let [least, most] = if dtype == DType::I8 { [-128, 127] } else { [0, 255] };
        let largest = (least - self.outside).abs().max((most - self.outside).abs());
        let mut size = self.channels();
        let taps: i64 = self.filters.ty.shape[2..].iter().product();
        loop {
            let part = (size * taps).max(1) as usize;
            let sum = |part: &[i64]| part.iter().map(|element| element.abs()).sum::<i64>();
            let sums =
                self.elements().flat_map(|filter| filter.chunks(part).map(sum).collect::<Vec<_>>());
            match sums.max().unwrap_or(0) * largest <= EXACT {
                true => return Some(size),
                false if size == 1 => return None,
                false => size = (size + 1) / 2,
            }
        }
    }

    /// Some channels of the filters, as `f32`, with the elements of a channel along one axis.
    fn filters_of(&self, from: i64, to: i64) -> Option<Constant> {
        let taps: i64 = self.filters.ty.shape[2..].iter().product();
        let own = usize::try_from(from * taps).ok()?..usize::try_from(to * taps).ok()?;
        let mut bytes = vec![];
        for filter in self.elements() {
            let own = filter.get(own.clone())?;
            bytes.extend(own.iter().flat_map(|element| (*element as f32).to_le_bytes()));
        }
        let mut shape = self.filters.ty.shape.clone();
        shape[1] = to - from;
        if self.joins_taps() {
            shape = vec![shape[0], to - from, taps];
        }
        Some(Constant::new(TensorType::new(DType::F32, shape), bytes))
    }

    /// Whether the loops over the positions of a filter become one: with two of three iterations, the sum might be computed by an
    /// algorithm that is not exact (Winograd's).
    fn joins_taps(&self) -> bool {
        self.over.len() == 3 && self.channels() > 1
    }

    /// The sum over some channels.
    fn sum(&self, from: i64, to: i64) -> Compute {
        let first = self.compute.dims.len();
        let columns = self.over.last().cloned().unwrap_or(Dim::Known(1));
        let moved = |scalar: &Scalar| {
            scalar.replace(&mut |part| match part {
                Scalar::Loop(loop_) if *loop_ == first && from > 0 => {
                    Some(Scalar::Loop(first) + Scalar::index(from))
                }
                Scalar::Loop(loop_) if self.joins_taps() && *loop_ > first => {
                    let function = if *loop_ == first + 1 { Binary::Div } else { Binary::Rem };
                    let columns = Scalar::index(columns.known().unwrap_or(1));
                    Some(Scalar::Loop(first + 1).binary(function, columns))
                }
                _ => None,
            })
        };
        let mut dims = self.over.to_vec();
        dims[0] = Dim::Known(to - from);
        if self.joins_taps() {
            dims = vec![dims[0].clone(), Dim::product(&self.over[1..])];
        }
        let filter = [FILTERS].into_iter().chain(first..first + dims.len()).map(Scalar::Loop);
        let at: Vec<Scalar> = self.at.iter().map(moved).collect();
        let product = Scalar::load(0, at) * Scalar::load(1, filter.collect::<Vec<_>>());
        let body = match &self.inside {
            None => product,
            Some(inside) => moved(inside).select(product, Scalar::number(0, DType::F32)),
        };
        let reduction = Some(Reduce { combine: Combine::Sum, dims });
        Compute { dims: self.compute.dims.clone(), reduction, body }
    }
}

/// What a scalar is where a condition holds, and the integer that it is elsewhere; all of it without one.
fn selected(scalar: &Scalar) -> (Option<(&Scalar, i64)>, &Scalar) {
    if let Scalar::Select(parts) = scalar
        && let [condition, value, Scalar::Int(other, _)] = &**parts
    {
        return (Some((condition, *other)), value);
    }
    (None, scalar)
}

/// The indices of an element of an operand that is converted to `i32`.
fn byte(scalar: &Scalar, of: usize) -> Option<&[Scalar]> {
    let Scalar::Cast(DType::I32, _, element) = scalar else { return None };
    match &**element {
        Scalar::Load(operand, at) if *operand == of => Some(at),
        _ => None,
    }
}

fn is_byte(dtype: DType) -> bool {
    matches!(dtype, DType::U8 | DType::I8)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{ByteSums, prepare_products};
    use super::*;
    use irc_tensor::Tensor;
    use irc_tl::{Builder, NodeKind};
    use std::borrow::Cow;
    use std::collections::BTreeMap;

    /// A convolution of 3 by 3 with an image of open size, which has `outside` around it: in the product, or in the image.
    fn graph(dtype: DType, [filters, channels, each]: [i64; 3], outside: Option<i64>) -> Graph {
        let mut b = Builder::new();
        let [height, width] = ["H", "W"].map(Dim::symbol);
        let dims = [1.into(), channels.into(), height.clone(), width.clone()];
        let x = b.input("x", Type::new(dtype, dims));
        let values: Vec<i8> = (0..filters * channels * 9)
            .map(|index| if index % 7 == 0 { -each as i8 } else { each as i8 })
            .collect();
        let w = Tensor::from_values([filters, channels, 3, 3], &values).unwrap();
        let w = b.constant(Constant::of(&w));
        let index =
            |loop_: usize, tap: usize| Scalar::Loop(loop_) + Scalar::Loop(tap) - Scalar::index(1);
        let within = |at: Scalar, size: &Dim| {
            at.clone().ge(Scalar::index(0)).and(at.lt(Scalar::Size(size.clone())))
        };
        let inside = within(index(2, 5), &height).and(within(index(3, 6), &width));
        let x_at = [Scalar::Loop(0), Scalar::Loop(4), index(2, 5), index(3, 6)];
        let w_at = [1, 4, 5, 6].map(Scalar::Loop);
        let element = Scalar::load(0, x_at).cast(DType::I32);
        let factor = Scalar::load(1, w_at).cast(DType::I32);
        let body = match outside {
            None => inside.select(element * factor, Scalar::Int(0, DType::I32)),
            Some(outside) => inside.select(element, Scalar::Int(outside, DType::I32)) * factor,
        };
        let over =
            Reduce { combine: Combine::Sum, dims: vec![channels.into(), 3.into(), 3.into()] };
        let dims = vec![1.into(), filters.into(), height, width];
        let compute = Compute { dims, reduction: Some(over), body };
        let sum = b.op(Op::compute(compute), &[x, w]).unwrap();
        b.output("y", sum);
        b.finish()
    }

    /// The channels of the sums of a graph.
    fn channels(graph: &Graph) -> Vec<i64> {
        let sums = graph.nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Op(Op::Compute(compute)) => {
                assert_eq!(graph.ty(node.results[0]).dtype, DType::F32);
                compute.reduction.as_ref()?.dims[0].known()
            }
            _ => None,
        });
        sums.collect()
    }

    #[test]
    fn sums_are_exact() {
        let cases = [
            (DType::U8, [2, 3, 50], None, vec![3]),
            (DType::U8, [2, 3, 127], Some(100), vec![3]),
            (DType::I8, [3, 1, 127], Some(-128), vec![1]),
            // 64 * 9 * 127 * 255 is above 2^24.
            (DType::U8, [1, 64, 127], None, vec![32, 32]),
            (DType::U8, [2, 130, 127], Some(7), vec![33, 33, 33, 31]),
        ];
        for (dtype, sizes, outside, parts) in cases {
            let graph = graph(dtype, sizes, outside);
            let made = prepare_products(&graph, ByteSums::Floats);
            assert_eq!(channels(&made), parts, "{sizes:?}");
            let bytes: Vec<u8> =
                (0..sizes[1] * 20).map(|index| (255 - index * 3 % 50) as u8).collect();
            let x = Tensor::from_values([1, sizes[1], 4, 5], &bytes).unwrap();
            let inputs = BTreeMap::from([("x".to_owned(), x.reinterpret(dtype).unwrap())]);
            assert_eq!(made.eval(&inputs).unwrap(), graph.eval(&inputs).unwrap(), "{sizes:?}");
        }
    }

    #[test]
    fn kernels_that_add_bytes_do_so() {
        for (sizes, are_added) in [([8, 16, 3], true), ([8, 3, 3], true), ([8, 6, 3], false)] {
            let graph = graph(DType::U8, sizes, Some(7));
            let made = prepare_products(&graph, ByteSums::Dots);
            assert_eq!(matches!(made, Cow::Borrowed(_)), are_added, "{sizes:?}");
        }
    }

    #[test]
    fn users_of_filters_share_them() {
        let one = graph(DType::U8, [2, 3, 50], None);
        let mut two = one.clone();
        let mut again = two.nodes.last().unwrap().clone();
        again.results = vec![ValueId(two.types.len())];
        two.types.push(two.types[one.nodes.last().unwrap().results[0].0].clone());
        two.outputs.push(("again".to_owned(), again.results[0]));
        two.nodes.push(again);
        let made = match prepare_products(&two, ByteSums::Floats) {
            Cow::Owned(made) => made,
            Cow::Borrowed(_) => panic!("expected floats"),
        };
        let filters = made.nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Constant(constant) => Some(constant.bytes.as_ptr()),
            _ => None,
        });
        let filters: Vec<_> = filters.collect();
        assert!(filters.len() == 2 && filters[0] == filters[1], "{filters:?}");
    }
}
