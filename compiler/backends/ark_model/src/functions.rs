//! Functions without an op in ARK, composed of other ops.
//!
//! `erf` is formula 7.1.26 of Abramowitz and Stegun, "Handbook of Mathematical Functions" (1964):
//! `1 - (a1 t + a2 t^2 + a3 t^3 + a4 t^4 + a5 t^5) e^(-x^2)` with `t = 1 / (1 + p x)`, for nonnegative
//! `x`, with an error of at most 1.5e-7. It is extended to negative `x` as an odd function.

use crate::memory::Memory;
use irc_ark_format::model::{DataType, OpKind::*, Tensor};

/// The factor `p` of the argument of `t`.
const P: f32 = 0.327_591_1;

/// The coefficients `a1` to `a5` of the powers of `t`.
const A: [f32; 5] = [0.254_829_6, -0.284_496_72, 1.421_413_8, -1.453_152_1, 1.061_405_4];

/// A factor so large that the logistic function of a multiple is 0 or 1, except for numbers close to 0.
const STEEP: f32 = 1e30;

/// Applies a function in single precision to floats of any type: 16-bit floats are converted, so that
/// intermediate results are not rounded.
pub fn in_single(
    memory: &mut Memory,
    x: &Tensor,
    function: impl FnOnce(&mut Memory, &Tensor) -> Tensor,
) -> Tensor {
    if x.dtype == DataType::Fp32 {
        return function(memory, x);
    }
    let wide = memory.op(Cast, &[x], (DataType::Fp32, &x.shape), &[]);
    let result = function(memory, &wide);
    memory.op(Cast, &[&result], (x.dtype, &result.shape), &[])
}

/// `-x`.
pub fn neg(memory: &mut Memory, x: &Tensor) -> Tensor {
    memory.scalar(ScalarMul, x, -1.0)
}

/// `|x|`.
pub fn abs(memory: &mut Memory, x: &Tensor) -> Tensor {
    let positive = memory.unary(Relu, x);
    let negative = neg(memory, x);
    let negative = memory.unary(Relu, &negative);
    memory.binary(Add, &positive, &negative)
}

/// `tanh(x)`.
pub fn tanh(memory: &mut Memory, x: &Tensor) -> Tensor {
    let twice = memory.scalar(ScalarMul, x, 2.0);
    let logistic = memory.unary(Sigmoid, &twice);
    let twice = memory.scalar(ScalarMul, &logistic, 2.0);
    memory.scalar(ScalarAdd, &twice, -1.0)
}

/// The error function, in single precision.
pub fn erf(memory: &mut Memory, x: &Tensor) -> Tensor {
    let size = abs(memory, x);
    let scaled = memory.scalar(ScalarMul, &size, P);
    let below = memory.scalar(ScalarAdd, &scaled, 1.0);
    let one = memory.fill(1.0, x.dtype, &[1]);
    let t = memory.op(Div, &[&one, &below], (x.dtype, &x.shape), &[]);
    let [first, rest @ ..] = A;
    let mut coefficients = rest.into_iter().rev();
    let highest = coefficients.next().unwrap_or(first);
    let mut sum = memory.scalar(ScalarMul, &t, highest);
    for coefficient in coefficients.chain([first]) {
        sum = memory.scalar(ScalarAdd, &sum, coefficient);
        sum = memory.binary(Mul, &sum, &t);
    }
    let square = memory.binary(Mul, &size, &size);
    let square = neg(memory, &square);
    let bell = memory.unary(Exp, &square);
    let tail = memory.binary(Mul, &sum, &bell);
    let tail = neg(memory, &tail);
    let magnitude = memory.scalar(ScalarAdd, &tail, 1.0);
    // -1, 0 or 1, also for infinite operands.
    let side = memory.scalar(ScalarMul, x, STEEP);
    let side = memory.unary(Sigmoid, &side);
    let side = memory.scalar(ScalarMul, &side, 2.0);
    let side = memory.scalar(ScalarAdd, &side, -1.0);
    memory.binary(Mul, &side, &magnitude)
}
