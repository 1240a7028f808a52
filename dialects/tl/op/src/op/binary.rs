//! Functions of two numbers, as ops on every pair of elements and in the body of a [`Compute`].
//!
//! Adding one takes a row in the table and a row in `compiler/lowering/arithmetic`.

use super::family::{self, Takes, family};
use super::{Attributes, Family, Op, Operands, Row, count};
use crate::general::{join, spread};
use crate::index::{broadcast_strides, positions};
use crate::values::Values;
use crate::{Compute, DType, EvalError, Type, broadcast_shapes};
use irc_tensor::{Tensor, TensorType};

type Function = family::Function<fn(f64, f64) -> f64, fn(i128, i128, DType) -> i128>;

family! {
    /// A function of two numbers of one type, which is also the type of the result.
    Binary of Function, read, example {
        Add "add" "sum": numbers(|x, y| x + y, |x, y, _| x + y),
        Sub "sub" "difference": numbers(|x, y| x - y, |x, y, _| x - y),
        // The product of two u64 may need 128 unsigned bits; the low 64 are still correct.
        Mul "mul" "product": numbers(|x, y| x * y, |x, y, _| x.wrapping_mul(y)),
        // As in NumPy: no processor trap, no poison.
        Div "div" "quotient": numbers(|x, y| x / y, |x, y, _| x.checked_div(y).unwrap_or(0)).work(4)
            .about("Integers truncate toward zero, and give 0 for a divisor of 0."),
        Rem "rem" "what truncating division leaves, of the sign of the left":
            numbers(|x, y| x % y, |x, y, _| x.checked_rem(y).unwrap_or(0)).work(4)
                .about("`x - y * trunc(x / y)`, as `fmod` of C; integers give 0 for a divisor of 0."),
        Mod "mod" "what flooring division leaves, of the sign of the right":
            numbers(modulo, integer_modulo).work(4)
                .about("`x - y * floor(x / y)`; integers give 0 for a divisor of 0."),
        Max "max" "larger of two; NaN if either is": numbers(maximum, |x, y, _| x.max(y)),
        Min "min" "smaller of two; NaN if either is": numbers(minimum, |x, y, _| x.min(y)),
        Pow "pow" "left to the power of right": numbers(f64::powf, |x, y, _| power(x, y)).work(20)
            .about("Of integers, 0 for a negative exponent, but where the left is 1 or -1."),
        And "and" "bitwise and": bits(|x, y, _| x & y),
        Or "or" "bitwise or": bits(|x, y, _| x | y),
        Xor "xor" "bitwise exclusive or": bits(|x, y, _| x ^ y),
        Shl "shl" "left times 2 to the power of right": bits(shift_left).of(Takes::Integers)
            .about("0 from the type's width on."),
        Shr "shr" "left divided by 2 to the power of right, rounded down":
            bits(|x, y, _| x >> y.clamp(0, 127)).of(Takes::Integers)
                .about("Of the sign of the left for signed types."),
    }
}

/// A function of floats and integers.
const fn numbers(float: fn(f64, f64) -> f64, integer: fn(i128, i128, DType) -> i128) -> Function {
    let row = Row {
        operands: Operands::Named(&["lhs", "rhs"]),
        family: Family::Elementwise,
        description: "Operands broadcast to the result's shape as in NumPy; element types are equal.",
        ..Row::new("", "")
    };
    Function { row, takes: Takes::Numbers, float, integer }
}

/// A function of integers and booleans.
const fn bits(integer: fn(i128, i128, DType) -> i128) -> Function {
    numbers(|_, _| unreachable!("`takes` excludes floats"), integer).of(Takes::IntegersAndBool)
}

fn read(function: Binary, _: &Attributes<'_>) -> Result<Op, String> {
    Ok(Op::Binary(function))
}

fn example(function: Binary) -> (Op, Vec<TensorType>) {
    let dtype = if function.takes(DType::F32) { DType::F32 } else { DType::I32 };
    let shapes: [&[i64]; 2] = [&[2, 8], &[8]];
    (Op::Binary(function), shapes.map(|shape| TensorType::new(dtype, shape)).to_vec())
}

impl Binary {
    /// The accepted element types, as a phrase.
    pub fn expected(self) -> String {
        let one = self.function().takes.expected();
        format!("{} operands", one.trim_start_matches("an ").trim_start_matches("a "))
    }

    /// Whether it accepts an element type.
    pub const fn takes(self, dtype: DType) -> bool {
        self.function().takes.takes(dtype)
    }

    /// The value for floats, before rounding to their type.
    pub fn float(self, x: f64, y: f64) -> f64 {
        (self.function().float)(x, y)
    }

    /// The value for integers, before wrapping around.
    pub fn integer(self, x: i128, y: i128, dtype: DType) -> i128 {
        (self.function().integer)(x, y, dtype)
    }
}

fn modulo(x: f64, y: f64) -> f64 {
    let rest = x % y;
    if rest != 0.0 && (rest < 0.0) != (y < 0.0) { rest + y } else { rest }
}

fn integer_modulo(x: i128, y: i128, _: DType) -> i128 {
    let rest = x.checked_rem(y).unwrap_or(0);
    if rest != 0 && (rest < 0) != (y < 0) { rest + y } else { rest }
}

fn shift_left(x: i128, y: i128, dtype: DType) -> i128 {
    if (0..i128::from(dtype.bits())).contains(&y) { x << y } else { 0 }
}

/// Modulo 2^128, so that the low bits are right for any width.
fn power(base: i128, exponent: i128) -> i128 {
    match (base, exponent) {
        (1, _) => 1,
        (-1, odd) => {
            if odd & 1 == 0 {
                1
            } else {
                -1
            }
        }
        (_, negative) if negative < 0 => 0,
        _ => {
            let (mut result, mut square, mut left) = (1i128, base, exponent);
            while left > 0 {
                if left & 1 == 1 {
                    result = result.wrapping_mul(square);
                }
                square = square.wrapping_mul(square);
                left >>= 1;
            }
            result
        }
    }
}

/// The larger; NaN if either is (`f64::max` would ignore it).
pub(crate) fn maximum(left: f64, right: f64) -> f64 {
    if left.is_nan() || left > right { left } else { right }
}

/// The smaller; NaN if either is.
pub(crate) fn minimum(left: f64, right: f64) -> f64 {
    if left.is_nan() || left < right { left } else { right }
}

pub(super) fn infer(operands: &[TensorType], function: &Binary) -> Result<TensorType, String> {
    let [lhs, rhs] = [&operands[0], &operands[1]];
    let dtype = common(lhs, rhs)?;
    if !function.takes(dtype) {
        return Err(format!("expected {}, found {lhs} and {rhs}", function.expected()));
    }
    Ok(TensorType::new(dtype, joined(lhs, rhs)?))
}

/// The common element type.
pub(super) fn common(lhs: &TensorType, rhs: &TensorType) -> Result<DType, String> {
    if lhs.dtype == rhs.dtype {
        return Ok(lhs.dtype);
    }
    Err(format!("expected operands of one element type, found {lhs} and {rhs}"))
}

/// The shape that both broadcast to.
pub(super) fn joined(lhs: &TensorType, rhs: &TensorType) -> Result<Vec<i64>, String> {
    broadcast_shapes(&lhs.shape, &rhs.shape)
        .ok_or_else(|| format!("expected shapes that broadcast together, found {lhs} and {rhs}"))
}

pub(super) fn eval(
    operands: &[&Tensor],
    ty: TensorType,
    function: &Binary,
) -> Result<Tensor, EvalError> {
    let dtype = ty.dtype;
    let pairs = pairs(operands[0], operands[1], &ty);
    let result = match (Values::of(operands[0]), Values::of(operands[1])) {
        (Values::Float(left), Values::Float(right)) => {
            Values::Float(pairs.map(|(l, r)| function.float(left[l], right[r])).collect())
        }
        (Values::Integer(left), Values::Integer(right)) => {
            let values = pairs.map(|(l, r)| function.integer(left[l], right[r], dtype));
            Values::Integer(values.collect())
        }
        _ => unreachable!("inference found one element type"),
    };
    Ok(result.into_tensor(ty)?)
}

/// Linear positions of the operands' elements, for every element of the result.
pub(super) fn pairs(
    lhs: &Tensor,
    rhs: &Tensor,
    ty: &TensorType,
) -> impl Iterator<Item = (usize, usize)> + use<> {
    let places =
        |operand: &Tensor| positions(&ty.shape, &broadcast_strides(operand.shape(), &ty.shape), 0);
    places(lhs).zip(places(rhs))
}

pub(super) fn compute(operands: &[Type], function: &Binary) -> Result<Compute, String> {
    let dims = join(operands).ok_or("expected sizes that broadcast together")?;
    let body = spread(0, operands, &dims).binary(*function, spread(1, operands, &dims));
    Ok(Compute::map(dims, body))
}

pub(super) fn flops(_: &[TensorType], result: &TensorType, _: &Binary) -> u64 {
    count(result)
}

#[cfg(test)]
mod tests {
    use crate::{Binary, Op, Tensor};

    fn apply(op: &Op, lhs: &Tensor, rhs: &Tensor) -> Vec<f64> {
        op.eval(&[lhs, rhs]).expect("good operands").to_f64()
    }

    #[test]
    fn known_values_and_broadcasting() {
        let column = Tensor::from_values([2, 1], &[6.0f32, -8.0]).expect("a tensor");
        let row = Tensor::from_values([2], &[2.0f32, 4.0]).expect("a tensor");
        assert_eq!(apply(&Op::Binary(Binary::Add), &column, &row), [8.0, 10.0, -6.0, -4.0]);
        assert_eq!(apply(&Op::Binary(Binary::Sub), &column, &row), [4.0, 2.0, -10.0, -12.0]);
        assert_eq!(apply(&Op::Binary(Binary::Mul), &column, &row), [12.0, 24.0, -16.0, -32.0]);
        assert_eq!(apply(&Op::Binary(Binary::Div), &column, &row), [3.0, 1.5, -4.0, -2.0]);
        assert_eq!(apply(&Op::Binary(Binary::Max), &column, &row), [6.0, 6.0, 2.0, 4.0]);
    }

    #[test]
    fn integers_wrap_and_truncate() {
        let left = Tensor::from_values([2], &[127i8, -7]).expect("a tensor");
        let right = Tensor::from_values([2], &[2i8, 2]).expect("a tensor");
        assert_eq!(apply(&Op::Binary(Binary::Add), &left, &right), [-127.0, -5.0]);
        assert_eq!(apply(&Op::Binary(Binary::Mul), &left, &right), [-2.0, -14.0]);
        assert_eq!(apply(&Op::Binary(Binary::Div), &left, &right), [63.0, -3.0]);
        let wide = Tensor::from_values([1], &[u64::MAX]).expect("a tensor");
        assert_eq!(apply(&Op::Binary(Binary::Mul), &wide, &wide), [1.0]);
    }

    #[test]
    fn dividing_integers_by_zero_gives_zero() {
        let left = Tensor::from_values([3], &[7i32, 7, i32::MIN]).expect("a tensor");
        let right = Tensor::from_values([3], &[2i32, 0, -1]).expect("a tensor");
        assert_eq!(apply(&Op::Binary(Binary::Div), &left, &right), [3.0, 0.0, f64::from(i32::MIN)]);
    }

    #[test]
    fn maximum_keeps_nan_on_either_side() {
        let nan = Tensor::from_values([1], &[f32::NAN]).expect("a tensor");
        let one = Tensor::from_values([1], &[1.0f32]).expect("a tensor");
        assert!(apply(&Op::Binary(Binary::Max), &nan, &one)[0].is_nan());
        assert!(apply(&Op::Binary(Binary::Max), &one, &nan)[0].is_nan());
    }

    #[test]
    fn mismatched_operands_are_rejected() {
        let floats = Tensor::from_values([2], &[1.0f32, 2.0]).expect("a tensor");
        let three = Tensor::from_values([3], &[1.0f32, 2.0, 3.0]).expect("a tensor");
        let ints = Tensor::from_values([2], &[1i32, 2]).expect("a tensor");
        let message = |rhs: &Tensor| {
            Op::Binary(Binary::Add).eval(&[&floats, rhs]).expect_err("bad").to_string()
        };
        assert_eq!(
            message(&three),
            "add: expected shapes that broadcast together, found f32[2] and f32[3]"
        );
        assert_eq!(
            message(&ints),
            "add: expected operands of one element type, found f32[2] and i32[2]"
        );
    }
}
