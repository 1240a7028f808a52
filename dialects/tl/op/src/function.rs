//! Functions of numbers: what elementwise ops and the bodies of [`Compute`](crate::Compute) apply.

use crate::DType;

/// A function of one number, of the number's own type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unary {
    /// `-x`; floats and integers.
    Neg,
    /// `|x|`; floats and integers.
    Abs,
    /// -1, 0 or 1; NaN of NaN; floats and integers.
    Sign,
    /// `e^x`; floats, as all below that do not say otherwise.
    Exp,
    /// The natural logarithm.
    Log,
    /// `sqrt(x)`.
    Sqrt,
    /// `1 / sqrt(x)`.
    Rsqrt,
    /// Sine, of radians.
    Sin,
    /// Cosine, of radians.
    Cos,
    /// Tangent, of radians.
    Tan,
    /// Inverse sine.
    Asin,
    /// Inverse cosine.
    Acos,
    /// Inverse tangent.
    Atan,
    /// Hyperbolic sine.
    Sinh,
    /// Hyperbolic cosine.
    Cosh,
    /// Hyperbolic tangent.
    Tanh,
    /// Inverse hyperbolic sine.
    Asinh,
    /// Inverse hyperbolic cosine.
    Acosh,
    /// Inverse hyperbolic tangent.
    Atanh,
    /// The error function.
    Erf,
    /// The largest integer that is not larger.
    Floor,
    /// The smallest integer that is not smaller.
    Ceil,
    /// The nearest integer, ties to the even one.
    Round,
    /// Every bit inverted, and the opposite of a `bool`; integers and `bool`.
    Not,
    /// `max(x, 0)`; floats and integers.
    Relu,
    /// `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`. The tanh approximation of Hendrycks and
    /// Gimpel, "Gaussian error linear units" (2016).
    Gelu,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// The nearest number of 10 explicit bits of mantissa (TF32), ties away from zero, as
    /// `cvt.rna.tf32.f32` of PTX; `f32`.
    RoundTf32,
}

impl Unary {
    /// Every function.
    pub const ALL: [Self; 28] = [
        Self::Neg,
        Self::Abs,
        Self::Sign,
        Self::Exp,
        Self::Log,
        Self::Sqrt,
        Self::Rsqrt,
        Self::Sin,
        Self::Cos,
        Self::Tan,
        Self::Asin,
        Self::Acos,
        Self::Atan,
        Self::Sinh,
        Self::Cosh,
        Self::Tanh,
        Self::Asinh,
        Self::Acosh,
        Self::Atanh,
        Self::Erf,
        Self::Floor,
        Self::Ceil,
        Self::Round,
        Self::Not,
        Self::Relu,
        Self::Gelu,
        Self::Sigmoid,
        Self::RoundTf32,
    ];

    /// The name in the IR.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Neg => "neg",
            Self::Abs => "abs",
            Self::Sign => "sign",
            Self::Exp => "exp",
            Self::Log => "log",
            Self::Sqrt => "sqrt",
            Self::Rsqrt => "rsqrt",
            Self::Sin => "sin",
            Self::Cos => "cos",
            Self::Tan => "tan",
            Self::Asin => "asin",
            Self::Acos => "acos",
            Self::Atan => "atan",
            Self::Sinh => "sinh",
            Self::Cosh => "cosh",
            Self::Tanh => "tanh",
            Self::Asinh => "asinh",
            Self::Acosh => "acosh",
            Self::Atanh => "atanh",
            Self::Erf => "erf",
            Self::Floor => "floor",
            Self::Ceil => "ceil",
            Self::Round => "round",
            Self::Not => "not",
            Self::Relu => "relu",
            Self::Gelu => "gelu",
            Self::Sigmoid => "sigmoid",
            Self::RoundTf32 => "round_tf32",
        }
    }

    /// The element types it takes, as a phrase.
    pub const fn expected(self) -> &'static str {
        match self {
            Self::Neg | Self::Abs | Self::Sign | Self::Relu => "a float or integer operand",
            Self::Not => "an integer or bool operand",
            Self::RoundTf32 => "an f32 operand",
            _ => "a float operand",
        }
    }

    /// Whether it takes elements of this type.
    pub const fn takes(self, dtype: DType) -> bool {
        match self {
            Self::Neg | Self::Abs | Self::Sign | Self::Relu => {
                dtype.is_float() || dtype.is_integer()
            }
            Self::Not => !dtype.is_float(),
            Self::RoundTf32 => matches!(dtype, DType::F32),
            _ => dtype.is_float(),
        }
    }

    /// The value for a float, before it is rounded to its type.
    pub fn float(self, x: f64) -> f64 {
        match self {
            Self::Neg => -x,
            Self::Abs => x.abs(),
            Self::Sign if x == 0.0 || x.is_nan() => x,
            Self::Sign => x.signum(),
            Self::Exp => x.exp(),
            Self::Log => x.ln(),
            Self::Sqrt => x.sqrt(),
            Self::Rsqrt => 1.0 / x.sqrt(),
            Self::Sin => x.sin(),
            Self::Cos => x.cos(),
            Self::Tan => x.tan(),
            Self::Asin => x.asin(),
            Self::Acos => x.acos(),
            Self::Atan => x.atan(),
            Self::Sinh => x.sinh(),
            Self::Cosh => x.cosh(),
            Self::Tanh => x.tanh(),
            Self::Asinh => x.asinh(),
            Self::Acosh => x.acosh(),
            Self::Atanh => x.atanh(),
            Self::Erf => libm::erf(x),
            Self::Floor => x.floor(),
            Self::Ceil => x.ceil(),
            Self::Round => x.round_ties_even(),
            // Not `max`, which drops NaN.
            Self::Relu => {
                if x < 0.0 {
                    0.0
                } else {
                    x
                }
            }
            Self::Gelu => gelu(x),
            Self::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Self::RoundTf32 => f64::from(round_tf32(x as f32)),
            Self::Not => unreachable!("`takes` refuses floats"),
        }
    }

    /// The value for an integer, before it wraps around; for a `bool`, 0 or 1.
    pub fn integer(self, x: i128, dtype: DType) -> i128 {
        match self {
            Self::Neg => -x,
            Self::Abs => x.abs(),
            Self::Sign => x.signum(),
            Self::Relu => x.max(0),
            Self::Not if dtype == DType::Bool => i128::from(x == 0),
            Self::Not => !x,
            _ => unreachable!("`takes` refuses integers"),
        }
    }
}

/// Half of the last kept bit is added to the magnitude, which then loses what is below.
fn round_tf32(x: f32) -> f32 {
    const DROPPED: u32 = 13;
    if !x.is_finite() {
        return x;
    }
    let rounded = x.to_bits() + (1 << (DROPPED - 1));
    f32::from_bits(rounded >> DROPPED << DROPPED)
}

/// With `0.5 (1 + tanh(u)) = 1 / (1 + e^-2u)`, which keeps its digits where the tanh is near -1.
fn gelu(x: f64) -> f64 {
    let scale = (2.0 / std::f64::consts::PI).sqrt();
    let u = scale * (x + 0.044_715 * x * x * x);
    x / (1.0 + (-2.0 * u).exp())
}

/// A function of two numbers of one type, which is the result's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Binary {
    /// `x + y`; floats and integers, as all below that do not say otherwise.
    Add,
    /// `x - y`.
    Sub,
    /// `x * y`.
    Mul,
    /// `x / y`; integers truncate toward zero, and give 0 for a divisor of 0.
    Div,
    /// `x - y * trunc(x / y)`, of the sign of `x` (C's `fmod`); integers give 0 for a divisor of 0.
    Rem,
    /// `x - y * floor(x / y)`, of the sign of `y`; integers give 0 for a divisor of 0.
    Mod,
    /// The larger.
    Max,
    /// The smaller.
    Min,
    /// `x^y`; of integers, 0 for a negative `y`, but where `x` is 1 or -1.
    Pow,
    /// Bitwise and; integers and `bool`.
    And,
    /// Bitwise or; integers and `bool`.
    Or,
    /// Bitwise exclusive or; integers and `bool`.
    Xor,
    /// `x * 2^y`, 0 from the type's width on; integers.
    Shl,
    /// `x / 2^y` rounded down, of the sign of `x` for signed types; integers.
    Shr,
}

impl Binary {
    /// Every function.
    pub const ALL: [Self; 14] = [
        Self::Add,
        Self::Sub,
        Self::Mul,
        Self::Div,
        Self::Rem,
        Self::Mod,
        Self::Max,
        Self::Min,
        Self::Pow,
        Self::And,
        Self::Or,
        Self::Xor,
        Self::Shl,
        Self::Shr,
    ];

    /// The name in the IR.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::Div => "div",
            Self::Rem => "rem",
            Self::Mod => "mod",
            Self::Max => "max",
            Self::Min => "min",
            Self::Pow => "pow",
            Self::And => "and",
            Self::Or => "or",
            Self::Xor => "xor",
            Self::Shl => "shl",
            Self::Shr => "shr",
        }
    }

    /// The element types it takes, as a phrase.
    pub const fn expected(self) -> &'static str {
        match self {
            Self::And | Self::Or | Self::Xor => "integer or bool operands",
            Self::Shl | Self::Shr => "integer operands",
            _ => "float or integer operands",
        }
    }

    /// Whether it takes elements of this type.
    pub const fn takes(self, dtype: DType) -> bool {
        match self {
            Self::And | Self::Or | Self::Xor => !dtype.is_float(),
            Self::Shl | Self::Shr => dtype.is_integer(),
            _ => dtype.is_float() || dtype.is_integer(),
        }
    }

    /// The value for floats, before it is rounded to their type.
    pub fn float(self, x: f64, y: f64) -> f64 {
        match self {
            Self::Add => x + y,
            Self::Sub => x - y,
            Self::Mul => x * y,
            Self::Div => x / y,
            Self::Rem => x % y,
            Self::Mod => {
                let rest = x % y;
                if rest != 0.0 && (rest < 0.0) != (y < 0.0) { rest + y } else { rest }
            }
            Self::Max => maximum(x, y),
            Self::Min => minimum(x, y),
            Self::Pow => x.powf(y),
            _ => unreachable!("`takes` refuses floats"),
        }
    }

    /// The value for integers, before it wraps around.
    pub fn integer(self, x: i128, y: i128, dtype: DType) -> i128 {
        let bits = i128::from(dtype.bits());
        match self {
            Self::Add => x + y,
            Self::Sub => x - y,
            // Two u64 may need 128 unsigned bits; the low 64 are right all the same.
            Self::Mul => x.wrapping_mul(y),
            // As NumPy: no processor trap, no poison.
            Self::Div => x.checked_div(y).unwrap_or(0),
            Self::Rem => x.checked_rem(y).unwrap_or(0),
            Self::Mod => {
                let rest = x.checked_rem(y).unwrap_or(0);
                if rest != 0 && (rest < 0) != (y < 0) { rest + y } else { rest }
            }
            Self::Max => x.max(y),
            Self::Min => x.min(y),
            Self::Pow => power(x, y),
            Self::And => x & y,
            Self::Or => x | y,
            Self::Xor => x ^ y,
            Self::Shl if (0..bits).contains(&y) => x << y,
            Self::Shl => 0,
            Self::Shr => x >> y.clamp(0, 127),
        }
    }
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

/// The larger; NaN if either is (`f64::max` would drop it).
pub(crate) fn maximum(left: f64, right: f64) -> f64 {
    if left.is_nan() || left > right { left } else { right }
}

/// The smaller; NaN if either is.
pub(crate) fn minimum(left: f64, right: f64) -> f64 {
    if left.is_nan() || left < right { left } else { right }
}

/// A comparison of two numbers of one type. With NaN only [`Comparison::Ne`] holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Comparison {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

impl Comparison {
    /// Every comparison.
    pub const ALL: [Self; 6] = [Self::Eq, Self::Ne, Self::Lt, Self::Le, Self::Gt, Self::Ge];

    /// The name in the IR.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Lt => "lt",
            Self::Le => "le",
            Self::Gt => "gt",
            Self::Ge => "ge",
        }
    }

    /// Whether it holds.
    pub fn holds<T: PartialOrd>(self, x: T, y: T) -> bool {
        match self {
            Self::Eq => x == y,
            Self::Ne => x != y,
            Self::Lt => x < y,
            Self::Le => x <= y,
            Self::Gt => x > y,
            Self::Ge => x >= y,
        }
    }
}
