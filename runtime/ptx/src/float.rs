//! Floating-point arithmetic with the roundings of PTX.

/// How a result is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, ties to even.
    Nearest,
    /// To the nearest, ties away from zero.
    NearestAway,
    /// Towards zero.
    Zero,
    /// Towards negative infinity.
    Down,
    /// Towards positive infinity.
    Up,
}

/// A binary format of floats: bits of the mantissa without the leading one, and of the exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Bits of the mantissa.
    pub mantissa: u32,
    /// Bits of the exponent.
    pub exponent: u32,
    /// Whether the largest exponent has finite numbers, and no infinity: `e4m3`.
    pub finite: bool,
}

/// IEEE 754 binary16.
pub const F16: Format = Format { mantissa: 10, exponent: 5, finite: false };
/// The upper half of binary32.
pub const BF16: Format = Format { mantissa: 7, exponent: 8, finite: false };
/// binary32 with 10 bits of mantissa; 19 bits.
pub const TF32: Format = Format { mantissa: 10, exponent: 8, finite: false };
/// IEEE 754 binary32.
pub const F32: Format = Format { mantissa: 23, exponent: 8, finite: false };
/// Eight bits, with infinities.
pub const E5M2: Format = Format { mantissa: 2, exponent: 5, finite: false };
/// Eight bits, without infinities.
pub const E4M3: Format = Format { mantissa: 3, exponent: 4, finite: true };

/// Rounds a number to a format, as bits of the format. NaN gives the canonical NaN of PTX.
pub fn round(value: f64, format: Format, rounding: Rounding) -> u32 {
    let Format { mantissa, exponent, finite } = format;
    let sign = u32::from(value.is_sign_negative()) << (mantissa + exponent);
    let all = (1_u32 << exponent) - 1;
    let infinity = all << mantissa;
    let quiet = (1_u32 << (mantissa + exponent)) - 1;
    if value.is_nan() {
        return quiet;
    }
    let largest = if finite { quiet - 1 } else { infinity - 1 };
    let magnitude = value.abs();
    let away = match rounding {
        Rounding::Nearest | Rounding::NearestAway => true,
        Rounding::Zero => false,
        Rounding::Down => value.is_sign_negative(),
        Rounding::Up => value.is_sign_positive(),
    };
    if magnitude.is_infinite() {
        return sign | if finite { quiet } else { infinity };
    }
    if magnitude == 0.0 {
        return sign;
    }
    let bias = (1_i32 << (exponent - 1)) - 1;
    let bits = magnitude.to_bits();
    // Subnormal binary64 numbers are below half of the smallest number of every format here.
    let unbiased = ((bits >> 52) as i32 - 1023).max(-1022);
    let significand = if bits >> 52 == 0 { bits } else { (bits & ((1 << 52) - 1)) | 1 << 52 };
    let scale = unbiased.max(1 - bias);
    // The last bit of the result is worth 2^(scale - mantissa); of `significand`, 2^(unbiased - 52).
    let drop = (scale - mantissa as i32 - unbiased + 52) as u32;
    let (kept, rest, half) = match drop {
        0 => (significand, 0, 1),
        1..=62 => (significand >> drop, significand & ((1 << drop) - 1), 1_u64 << (drop - 1)),
        _ => (0, 1, 2),
    };
    let up = match rounding {
        Rounding::Nearest => rest > half || (rest == half && kept & 1 == 1),
        Rounding::NearestAway => rest >= half,
        _ => away && rest > 0,
    };
    let kept = kept as u32 + u32::from(up && (drop > 0));
    let hidden = 1_u32 << mantissa;
    let result = if kept < hidden { kept } else { ((scale + bias) as u32 - 1) * hidden + kept };
    if result > largest {
        return sign
            | if !away {
                largest
            } else if finite {
                quiet
            } else {
                infinity
            };
    }
    sign | result
}

/// The number that bits of a format represent.
pub fn value(bits: u32, format: Format) -> f64 {
    let Format { mantissa, exponent, finite } = format;
    let sign = if bits >> (mantissa + exponent) & 1 == 1 { -1.0 } else { 1.0 };
    let all = (1_u32 << exponent) - 1;
    let scale = bits >> mantissa & all;
    let fraction = bits & ((1 << mantissa) - 1);
    let bias = (1_i32 << (exponent - 1)) - 1;
    if scale == all && !finite {
        return if fraction == 0 { sign * f64::INFINITY } else { f64::NAN };
    }
    if finite && bits & ((1 << (mantissa + exponent)) - 1) == (1 << (mantissa + exponent)) - 1 {
        return f64::NAN;
    }
    let (significand, power) = match scale {
        0 => (fraction, 1 - bias),
        _ => (fraction | 1 << mantissa, scale as i32 - bias),
    };
    sign * f64::from(significand) * power_of_two(power - mantissa as i32)
}

/// 2^n, for n of normal numbers.
fn power_of_two(n: i32) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// The value of 16 bits of binary16.
#[inline(always)]
pub fn from_f16(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let rest = u32::from(bits & 0x7fff);
    let magnitude = if rest >= 0x7c00 {
        0x7f80_0000 | (rest & 0x3ff) << 13
    } else if rest >= 0x400 {
        (rest << 13) + ((127 - 15) << 23)
    } else {
        (rest as f32 * f32::from_bits(0x3380_0000)).to_bits()
    };
    f32::from_bits(sign | magnitude)
}

/// The value of 16 bits of bfloat16.
#[inline(always)]
pub fn from_bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Rounds to bfloat16.
pub fn to_bf16(value: f32) -> u16 {
    if value.is_nan() {
        return 0x7fff;
    }
    let bits = value.to_bits();
    ((u64::from(bits) + 0x7fff + u64::from(bits >> 16 & 1)) >> 16) as u16
}

/// The sum rounded to the nearest, and the error, exactly.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// A number that rounds as `sum + error` does, in every rounding to a format of at most 51 bits: the last bit
/// is set if the sum is inexact (rounding to odd).
fn sticky(sum: f64, error: f64) -> f64 {
    if error == 0.0 || !sum.is_finite() || sum.to_bits() & 1 == 1 {
        return sum;
    }
    let outward = (error > 0.0) == (sum > 0.0);
    f64::from_bits(if outward { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
}

/// a + b for numbers of at most 32 bits, to be rounded with [`round`].
pub fn add(a: f64, b: f64) -> f64 {
    let (sum, error) = two_sum(a, b);
    sticky(sum, error)
}

/// a * b + c for numbers of at most 32 bits, to be rounded with [`round`].
pub fn multiply_add(a: f64, b: f64, c: f64) -> f64 {
    add(a * b, c)
}

/// a / b for numbers of at most 32 bits, to be rounded with [`round`].
pub fn divide(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if !quotient.is_finite() || quotient == 0.0 || b.is_infinite() {
        return quotient;
    }
    // a - quotient * b has the sign of the error times that of b.
    let rest = (-quotient).mul_add(b, a);
    sticky(quotient, if b > 0.0 { rest } else { -rest })
}

/// The square root of a number of at most 32 bits, to be rounded with [`round`].
pub fn square_root(a: f64) -> f64 {
    let root = a.sqrt();
    if !root.is_finite() || root == 0.0 {
        return root;
    }
    sticky(root, (-root).mul_add(root, a))
}

/// A result in binary64, rounded to the nearest, with the sign of its error, rounded in a direction.
pub fn direct(value: f64, error: f64, rounding: Rounding) -> f64 {
    if !value.is_finite() || error == 0.0 || error.is_nan() {
        return value;
    }
    match rounding {
        Rounding::Zero if value > 0.0 && error < 0.0 => value.next_down(),
        Rounding::Zero if value < 0.0 && error > 0.0 => value.next_up(),
        Rounding::Down if error < 0.0 => value.next_down(),
        Rounding::Up if error > 0.0 => value.next_up(),
        _ => value,
    }
}

/// The error of `a + b` in binary64.
pub fn sum_error(a: f64, b: f64) -> f64 {
    two_sum(a, b).1
}

/// Flushes a subnormal number to zero of the same sign.
#[inline(always)]
pub fn flush(value: f32) -> f32 {
    if value.is_subnormal() { f32::from_bits(value.to_bits() & 0x8000_0000) } else { value }
}

/// Limits to [0, 1]; NaN becomes 0.
#[inline(always)]
pub fn saturate(value: f64) -> f64 {
    // `max` returns the other operand of a NaN, and may return either zero.
    if value > 0.0 { value.min(1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_16_bits_is_itself() {
        for bits in 0..=u16::MAX {
            let wide = from_f16(bits);
            assert_eq!(
                f64::from(wide).to_bits(),
                value(u32::from(bits), F16).to_bits()
                    | if wide.is_nan() { f64::from(wide).to_bits() } else { 0 }
            );
            if !wide.is_nan() {
                assert_eq!(round(f64::from(wide), F16, Rounding::Nearest), u32::from(bits));
                let narrow = from_bf16(bits);
                assert!(narrow.is_nan() || to_bf16(narrow) == bits);
                assert!(
                    narrow.is_nan()
                        || round(f64::from(narrow), BF16, Rounding::Nearest) == u32::from(bits)
                );
            }
        }
    }

    #[test]
    fn rounding_to_binary32_is_that_of_the_processor() {
        let mut state = 1_u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let value = f64::from_bits(((state >> 56) + 1023 - 160) << 52 | state >> 12);
            assert_eq!(round(value, F32, Rounding::Nearest), (value as f32).to_bits(), "{value:e}");
        }
    }

    #[test]
    fn directions_bracket_the_value() {
        let third = 1.0 / 3.0;
        let up = round(third, F16, Rounding::Up);
        assert_eq!(up - 1, round(third, F16, Rounding::Down));
        assert_eq!(round(-third, F16, Rounding::Zero), 0x8000 | (up - 1));
        assert_eq!(round(1e9, F16, Rounding::Zero), 0x7bff);
        assert_eq!(round(1e9, F16, Rounding::Nearest), 0x7c00);
        assert_eq!(round(448.0, E4M3, Rounding::Nearest), 0x7e);
        // 1 + 2^-60 is more than half of the way from 1 to the next number only if the rest is not lost.
        let tie = 1.0 + 2_f64.powi(-11);
        assert_eq!(round(add(tie, 2_f64.powi(-60)), F16, Rounding::Nearest), 0x3c01);
        assert_eq!(round(add(tie, -(2_f64.powi(-60))), F16, Rounding::Nearest), 0x3c00);
    }
}
