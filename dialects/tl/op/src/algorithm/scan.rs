//! Cumulative sums, products and extremes along an axis.

use crate::compute::Number;
use crate::values::Values;
use crate::{Combine, DType, EvalError, Tensor, TensorType, Type};

pub(super) fn infer(axis: usize, operands: &[Type]) -> Result<Vec<Type>, String> {
    let [x] = operands else {
        return Err(format!("expected 1 operand, found {}", operands.len()));
    };
    if axis >= x.rank() || matches!(x.dtype, DType::Bool | DType::String) {
        return Err(format!("expected numbers of rank above {axis}, found {x}"));
    }
    Ok(vec![x.clone()])
}

/// Which elements are combined for an element of the result.
pub(super) struct Order {
    pub(super) axis: usize,
    pub(super) reverse: bool,
    pub(super) exclusive: bool,
}

pub(super) fn eval(
    order: &Order,
    combine: Combine,
    x: &Tensor,
    ty: TensorType,
) -> Result<Vec<Tensor>, EvalError> {
    let function = combine.function();
    // Sums of small floats are those of `f32`, as in a reduction.
    let wide = if ty.dtype.is_float() && ty.dtype.size() < 4 { DType::F32 } else { ty.dtype };
    let start = combine.neutral(wide);
    let values = match (Values::of(x), start) {
        (Values::Float(values), Number::Float(start)) => {
            let joined = |total, value| wide.round_float(function.float(total, value));
            Values::Float(scanned(&values, x.shape(), order, start, joined))
        }
        (Values::Integer(values), Number::Int(start)) => {
            let joined = |total, value| {
                let sum = Number::Int(function.integer(total, value, wide)).rounded(wide);
                let Number::Int(sum) = sum else { unreachable!("an integer stays one") };
                sum
            };
            Values::Integer(scanned(&values, x.shape(), order, start, joined))
        }
        _ => unreachable!("the neutral element has the type of the elements"),
    };
    Ok(vec![values.into_tensor(ty)?])
}

/// For each element, those before it along the axis combined one by one.
fn scanned<T: Copy>(
    values: &[T],
    shape: &[i64],
    order: &Order,
    start: T,
    joined: impl Fn(T, T) -> T,
) -> Vec<T> {
    let Order { axis, reverse, exclusive } = *order;
    let extent = shape[axis] as usize;
    let inner: usize = shape[axis + 1..].iter().map(|size| *size as usize).product();
    let mut result = values.to_vec();
    for first in (0..values.len()).filter(|at| (at / inner).is_multiple_of(extent)) {
        let mut total = start;
        for step in 0..extent {
            let at = first + inner * if reverse { extent - 1 - step } else { step };
            let before = total;
            total = joined(total, values[at]);
            result[at] = if exclusive { before } else { total };
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(x: &Tensor, order: &Order, combine: Combine) -> Vec<f64> {
        eval(order, combine, x, x.ty().clone()).expect("numbers")[0].to_f64()
    }

    #[test]
    fn elements_before_along_an_axis_are_combined() {
        let x = Tensor::from_values([2, 3], &[1i32, 2, 3, 4, 5, 6]).expect("a tensor");
        let order = |axis, reverse, exclusive| Order { axis, reverse, exclusive };
        assert_eq!(scan(&x, &order(0, false, false), Combine::Sum), [1., 2., 3., 5., 7., 9.]);
        assert_eq!(scan(&x, &order(1, false, true), Combine::Product), [1., 1., 2., 1., 4., 20.]);
        assert_eq!(scan(&x, &order(1, true, false), Combine::Sum), [6., 5., 3., 15., 11., 6.]);
        assert_eq!(scan(&x, &order(1, true, true), Combine::Sum), [5., 3., 0., 11., 6., 0.]);
    }

    #[test]
    fn sums_of_halves_are_not_rounded_to_halves_on_the_way() {
        let x = Tensor::from_f64(TensorType::new(DType::F16, [3]), &[2048.0, 1.0, 1.0]);
        let order = Order { axis: 0, reverse: false, exclusive: false };
        assert_eq!(scan(&x.expect("a tensor"), &order, Combine::Sum), [2048.0, 2048.0, 2050.0]);
    }
}
