//! Comparisons of two numbers, as ops on every pair of elements and in the body of a [`Compute`].

use super::binary::{common, joined, pairs};
use super::family::{self, Takes, family};
use super::{Attributes, Family, Op, Operands, Row, count};
use crate::general::{join, spread};
use crate::values::Values;
use crate::{Compute, DType, EvalError, Type};
use irc_tensor::{Tensor, TensorType};
use std::cmp::Ordering;

type Function = family::Function<fn(Option<Ordering>) -> bool, ()>;

family! {
    /// A comparison of two numbers of one type. With NaN only [`Comparison::Ne`] holds.
    Comparison of Function, read, example {
        Eq "eq" "whether two are equal": holds(|order| matches!(order, Some(Ordering::Equal))),
        Ne "ne" "whether two differ": holds(|order| !matches!(order, Some(Ordering::Equal))),
        Lt "lt" "whether the left is less": holds(|order| matches!(order, Some(Ordering::Less))),
        Le "le" "whether the left is less or equal":
            holds(|order| matches!(order, Some(Ordering::Less | Ordering::Equal))),
        Gt "gt" "whether the left is greater":
            holds(|order| matches!(order, Some(Ordering::Greater))),
        Ge "ge" "whether the left is greater or equal":
            holds(|order| matches!(order, Some(Ordering::Greater | Ordering::Equal))),
    }
}

const fn holds(float: fn(Option<Ordering>) -> bool) -> Function {
    let row = Row {
        operands: Operands::Named(&["lhs", "rhs"]),
        family: Family::Elementwise,
        description: "The result is `i1`. Operands broadcast as in NumPy; element types are equal. With NaN only `ne`
holds.",
        ..Row::new("", "")
    };
    Function { row, takes: Takes::Numbers, float, integer: () }
}

fn read(comparison: Comparison, _: &Attributes<'_>) -> Result<Op, String> {
    Ok(Op::Compare(comparison))
}

fn example(comparison: Comparison) -> (Op, Vec<TensorType>) {
    (Op::Compare(comparison), vec![TensorType::new(DType::F32, [2, 8]); 2])
}

impl Comparison {
    /// Whether the comparison holds.
    pub fn holds<T: PartialOrd>(self, x: T, y: T) -> bool {
        (self.function().float)(x.partial_cmp(&y))
    }

    /// Fails for a type without this comparison: strings are equal or differ, but have no order.
    pub(crate) fn expect(self, dtype: DType) -> Result<(), String> {
        if dtype != DType::String || matches!(self, Self::Eq | Self::Ne) {
            return Ok(());
        }
        Err(format!("expected numbers, found {dtype}"))
    }
}

pub(super) fn infer(
    operands: &[TensorType],
    comparison: &Comparison,
) -> Result<TensorType, String> {
    let [lhs, rhs] = [&operands[0], &operands[1]];
    comparison.expect(common(lhs, rhs)?)?;
    Ok(TensorType::new(DType::Bool, joined(lhs, rhs)?))
}

pub(super) fn eval(
    operands: &[&Tensor],
    ty: TensorType,
    comparison: &Comparison,
) -> Result<Tensor, EvalError> {
    let pairs = pairs(operands[0], operands[1], &ty);
    let result: Vec<i128> = match (Values::of(operands[0]), Values::of(operands[1])) {
        (Values::Float(left), Values::Float(right)) => {
            pairs.map(|(l, r)| i128::from(comparison.holds(left[l], right[r]))).collect()
        }
        (Values::Integer(left), Values::Integer(right)) => {
            pairs.map(|(l, r)| i128::from(comparison.holds(left[l], right[r]))).collect()
        }
        _ => unreachable!("inference found one element type"),
    };
    Ok(Values::Integer(result).into_tensor(ty)?)
}

pub(super) fn compute(operands: &[Type], comparison: &Comparison) -> Result<Compute, String> {
    let dims = join(operands).ok_or("expected sizes that broadcast together")?;
    let (x, y) = (spread(0, operands, &dims), spread(1, operands, &dims));
    Ok(Compute::map(dims, x.compare(*comparison, y)))
}

pub(super) fn flops(_: &[TensorType], result: &TensorType, _: &Comparison) -> u64 {
    count(result)
}
