//! Correlation with filters ("convolution"), with any number of spatial dimensions.

use super::matmul::{factor, sum_type};
use super::open_rows::is_known;
use super::{Attribute, AttributeKind, Family, Op, Operands, Row, Value, count};
use crate::{
    Combine, Compute, DType, Dim, EvalError, InferError, Scalar, Tensor, TensorType, Type,
};

pub(super) static ROW: Row = Row {
    description: "`strides` and `dilations` have an entry per spatial dimension, `pads` two: elements before and after
`x`, of either sign, which are `outside`, an integer, by default 0. The channels and filters are in `groups` independent parts. The result of `u8` and `i8` is `i32`.",
    operands: Operands::Named(&["x", "w"]),
    attributes: &[
        Attribute::new("strides", AttributeKind::I64s),
        Attribute::new("dilations", AttributeKind::I64s),
        Attribute::new("pads", AttributeKind::I64s),
        Attribute::new("groups", AttributeKind::I64),
        Attribute::optional("outside", AttributeKind::I64),
    ],
    family: Family::Contraction,
    has_schedule: |op, operands| match (op, operands) {
        (Op::Conv(conv), [x, filters]) => conv.has_vectors(filters.shape[0], x.dtype),
        _ => false,
    },
    read: |attributes| {
        let pads = attributes.i64s("pads")?;
        let (pads, []) = pads.as_chunks::<2>() else {
            return Err(format!("pads: expected two numbers per spatial dimension, found {pads:?}"));
        };
        Ok(Op::Conv(Conv {
            strides: attributes.i64s("strides")?,
            dilations: attributes.i64s("dilations")?,
            pads: pads.to_vec(),
            groups: attributes.i64("groups")?,
            outside: if attributes.has("outside") { attributes.i64("outside")? } else { 0 },
        }))
    },
    write: |op| match op {
        Op::Conv(conv) => {
            let mut attributes = vec![
                ("strides", conv.strides[..].into()),
                ("dilations", conv.dilations[..].into()),
                ("pads", conv.pads.as_flattened().into()),
                ("groups", Value::I64(conv.groups)),
            ];
            if conv.outside != 0 {
                attributes.push(("outside", Value::I64(conv.outside)));
            }
            attributes
        }
        _ => vec![],
    },
    example: || {
        let (strides, dilations) = (vec![1, 2], vec![1, 1]);
        let conv = Conv { strides, dilations, pads: vec![[1, 0], [0, 0]], groups: 1, outside: 0 };
        let shapes: [&[i64]; 2] = [&[1, 2, 5, 6], &[4, 2, 3, 3]];
        (Op::Conv(conv), shapes.map(|shape| TensorType::new(DType::F32, shape)).to_vec())
    },
    ..Row::new(
        "conv",
        "correlation of `x[batch, channels, ...]` with filters `w[filters, channels / groups, ...]`",
    )
};

/// How filters move over an operand `x[batch, channels, ...]`; one entry per spatial dimension.
///
/// `result[b, m, o...] = sum over c, k... of x[b, g*C + c, o*stride + k*dilation - pad_before] *
/// w[m, c, k...]` with `g` the group of the filter `m` and `C = channels / groups`; `x` is `outside` where it
/// has no element.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Conv {
    /// Step of the filter; at least 1.
    pub strides: Vec<i64>,
    /// Distance between the filter's taps; at least 1.
    pub dilations: Vec<i64>,
    /// Elements before and after the operand; may be negative.
    pub pads: Vec<[i64; 2]>,
    /// Number of independent groups of channels; at least 1.
    pub groups: i64,
    /// The value of these elements.
    pub outside: i64,
}

/// The minimum number of filters in a group for which a matrix product is faster than a direct sum.
const MIN_FILTERS: i64 = 4;

impl Conv {
    /// Whether images are convolved one at a time, with a schedule in vectors.
    pub(super) fn has_images(&self, x: &Type, w: &Type) -> bool {
        let is_static = x.rank() > 1 && is_known(&x.dims[1..]) && is_known(&w.dims);
        let filters = w.dims.first().and_then(Dim::known);
        is_static && filters.is_some_and(|filters| self.has_vectors(filters, x.dtype))
    }

    /// Whether there is a schedule with vectors for it, given the number of filters and the type of the elements.
    fn has_vectors(&self, filters: i64, dtype: DType) -> bool {
        let is_padded = self.pads.iter().flatten().all(|zeros| *zeros >= 0);
        is_padded && (self.is_product(filters) || matches!(dtype, DType::F32 | DType::U8))
    }

    /// Whether it is computed as a matrix product, given the number of filters; with few in each group, each result
    /// is a sum over the window.
    pub fn is_product(&self, filters: i64) -> bool {
        filters / self.groups >= MIN_FILTERS
    }

    /// The loops of the op.
    pub(crate) fn compute(&self, operands: &[Type]) -> Result<Compute, String> {
        let [x, w] = operands else { return Err("expected 2 operands".into()) };
        self.check(x, w)?;
        let spatial = self.strides.len();
        let kernel = &w.dims[2..];
        let mut dims = vec![x.dims[0].clone(), w.dims[0].clone()];
        for (axis, taps) in kernel.iter().enumerate() {
            dims.push(self.extent(axis, &x.dims[2 + axis], taps));
        }
        let mut over = vec![w.dims[1].clone()];
        over.extend_from_slice(kernel);

        let reduced = |loop_index: usize| Scalar::Loop(2 + spatial + loop_index);
        let filters = w.dims[0].floor_div(&self.groups.into());
        let group = Scalar::Loop(1) / Scalar::Size(filters);
        let mut from = vec![Scalar::Loop(0), group * Scalar::Size(w.dims[1].clone()) + reduced(0)];
        let mut inside: Option<Scalar> = None;
        for axis in 0..spatial {
            let at = Scalar::Loop(2 + axis) * Scalar::index(self.strides[axis])
                + reduced(1 + axis) * Scalar::index(self.dilations[axis])
                - Scalar::index(self.pads[axis][0]);
            if self.pads[axis] != [0, 0] {
                let size = Scalar::Size(x.dims[2 + axis].clone());
                let here = at.clone().ge(Scalar::index(0)).and(at.clone().lt(size));
                inside = Some(inside.map_or(here.clone(), |all| all.and(here)));
            }
            from.push(at);
        }
        let mut tap = vec![Scalar::Loop(1)];
        tap.extend((0..=spatial).map(reduced));
        let filter = factor(Scalar::load(1, tap), w.dtype, x.dtype);
        let element = factor(Scalar::load(0, from), x.dtype, w.dtype);
        let sum = sum_type(x.dtype, w.dtype).unwrap_or(x.dtype);
        let body = match inside {
            None => element * filter,
            Some(inside) if self.outside == 0 => {
                inside.select(element * filter, Scalar::number(0, sum))
            }
            Some(inside) => inside.select(element, Scalar::number(self.outside, sum)) * filter,
        };
        Ok(Compute::reduce(dims, Combine::Sum, over, body))
    }

    /// Extent of a spatial dimension of the result.
    fn extent(&self, axis: usize, size: &Dim, kernel: &Dim) -> Dim {
        let reach = (kernel.clone() - 1.into()) * self.dilations[axis].into();
        let [before, after] = self.pads[axis];
        let room = size.clone() + before.into() + after.into() - reach - 1.into();
        (room.floor_div(&self.strides[axis].into()) + 1.into()).maximum(&0.into())
    }

    /// The channels of the operand that the filters require, and what must be 0: the remainder of the
    /// filters by the groups.
    pub(crate) fn agreement(&self, w: &Type) -> [Dim; 2] {
        let groups = Dim::Known(self.groups);
        [w.dims[1].clone() * groups.clone(), w.dims[0].modulo(&groups)]
    }

    fn check(&self, x: &Type, w: &Type) -> Result<(), String> {
        let spatial = self.strides.len();
        if self.dilations.len() != spatial || self.pads.len() != spatial {
            return Err(format!(
                "expected as many dilations and pads as strides ({spatial}), found {} and {}",
                self.dilations.len(),
                self.pads.len()
            ));
        }
        let sum = sum_type(x.dtype, w.dtype);
        if x.rank() != 2 + spatial || w.rank() != 2 + spatial || sum.is_none() {
            return Err(format!(
                "expected operands of rank {} and one element type, or u8 and i8, found {x} and {w}",
                2 + spatial
            ));
        }
        if self.groups < 1 || self.strides.iter().chain(&self.dilations).any(|step| *step < 1) {
            return Err("expected strides, dilations and groups from 1".into());
        }
        // What is not known statically is checked at run time.
        let [channels, rest] = self.agreement(w);
        let differ = |left: &Dim, right: &Dim| {
            left != right && left.known().is_some() && right.known().is_some()
        };
        if differ(&x.dims[1], &channels) || differ(&rest, &0.into()) {
            return Err(format!(
                "expected {channels} channels and filters in {} groups, found {x} and {w}",
                self.groups
            ));
        }
        Ok(())
    }
}

pub(super) fn infer(operands: &[TensorType], conv: &Conv) -> Result<TensorType, String> {
    let types: Vec<_> = operands.iter().cloned().map(Type::from).collect();
    let ty = conv.compute(&types)?.infer(&types)?;
    ty.known().ok_or_else(|| format!("expected known sizes, found {ty}"))
}

pub(super) fn eval(operands: &[&Tensor], _: TensorType, conv: &Conv) -> Result<Tensor, EvalError> {
    let types: Vec<_> = operands.iter().map(|operand| operand.ty().clone().into()).collect();
    let compute = conv.compute(&types);
    compute.map_err(|message| InferError { op: ROW.name, message })?.eval(operands)
}

pub(super) fn compute(operands: &[Type], conv: &Conv) -> Result<Compute, String> {
    conv.compute(operands)
}

/// Two per multiply-accumulate.
pub(super) fn flops(operands: &[TensorType], result: &TensorType, _: &Conv) -> u64 {
    let taps = count(&operands[1]) / operands[1].shape[0].unsigned_abs().max(1);
    count(result).saturating_mul(taps).saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Op, Tensor, TensorType};

    #[test]
    fn known_values() {
        let x =
            Tensor::from_values([1, 1, 3, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
        let w = Tensor::from_values([1, 1, 2, 2], &[1.0f32, 0.0, 0.0, -1.0]);
        let (x, w) = (x.expect("a tensor"), w.expect("a tensor"));
        let conv = |pads| {
            Op::Conv(Conv {
                strides: vec![2, 2],
                dilations: vec![1, 1],
                pads,
                groups: 1,
                outside: 0,
            })
        };
        let plain = conv(vec![[0, 0]; 2]).eval(&[&x, &w]).expect("it fits");
        assert_eq!((plain.shape(), plain.to_f64()), (&[1, 1, 1, 1][..], vec![-4.0]));
        let padded = conv(vec![[1, 0]; 2]).eval(&[&x, &w]).expect("it fits");
        assert_eq!(padded.to_f64(), [-1.0, -3.0, -7.0, -4.0]);
    }

    #[test]
    fn bytes_of_both_signs_multiply_exactly_beside_an_element_outside() {
        let x = Tensor::from_values([1, 1, 2], &[255u8, 1]).expect("a tensor");
        let w = Tensor::from_values([1, 1, 2], &[-128i8, 127]).expect("a tensor");
        let (strides, dilations, pads) = (vec![1], vec![1], vec![[1, 1]]);
        let conv = Conv { strides, dilations, pads, groups: 1, outside: 129 };
        let result = Op::Conv(conv).eval(&[&x, &w]).expect("it fits");
        let expected = [129 * -128 + 255 * 127, 255 * -128 + 127, -128 + 129 * 127];
        assert_eq!(result.to_f64(), expected.map(f64::from));
        assert_eq!(result.dtype(), DType::I32);
    }

    #[test]
    fn groups_see_their_own_channels() {
        let x = Tensor::from_values([1, 2, 1], &[3.0f32, 5.0]).expect("a tensor");
        let w = Tensor::from_values([4, 1, 1], &[1.0f32, 2.0, 10.0, 20.0]).expect("a tensor");
        let conv = Conv {
            strides: vec![1],
            dilations: vec![1],
            pads: vec![[0, 0]],
            groups: 2,
            outside: 0,
        };
        let result = Op::Conv(conv).eval(&[&x, &w]).expect("it fits");
        assert_eq!(result.to_f64(), [3.0, 6.0, 50.0, 100.0]);
    }

    #[test]
    fn sizes_must_agree() {
        let conv = Conv {
            strides: vec![1],
            dilations: vec![1],
            pads: vec![[0, 0]],
            groups: 2,
            outside: 0,
        };
        let ty = |shape: &[i64]| TensorType::new(DType::F32, shape);
        let error =
            Op::Conv(conv).infer(&[ty(&[1, 3, 5]), ty(&[4, 1, 1])]).expect_err("3 channels");
        assert_eq!(
            error.to_string(),
            "conv: expected 2 channels and filters in 2 groups, found f32[1,3,5] and f32[4,1,1]"
        );
    }
}
