//! Functions of `f32` that are computed in `f64`: with the additional precision, series and simple
//! formulas are accurate to the last bit or two, for every argument.
//!
//! Sources: arguments are reduced modulo a quarter turn as by Payne and Hanek, "Radian reduction for
//! trigonometric functions" (1983); the inverse trigonometric functions follow Cephes `asinf` and
//! `atanf` (Moshier). The rest are Taylor series.
use super::expand_math::{Math, OEQ, OGT, OLT};
use irc_mlir::ops::{arith, math};
use irc_mlir::{Type, Value};

/// `arith.cmpf` predicates.
pub(super) const OGE: i64 = 3;
const UNE: i64 = 13;
const UNO: i64 = 14;

/// 2 / pi, 24 bits at a time: a product of each with an `f32` is exact in `f64`.
const TURNS: [u32; 9] = [
    0xA2_F983, 0x6E_4E44, 0x15_29FC, 0x27_57D1, 0xF5_34DD, 0xC0_DB62, 0x95_993C, 0x43_9041,
    0xFE_5163,
];

/// Added to a float below 2^51 in magnitude, leaves the nearest integer in the low bits.
pub(super) const MAGIC: f64 = 6_755_399_441_055_744.0;

const ASIN: [f64; 5] = [
    4.216_319_904_8e-2,
    2.418_131_104_9e-2,
    4.547_002_599_8e-2,
    7.495_300_268_6e-2,
    1.666_675_242_2e-1,
];

const ATAN: [f64; 4] =
    [8.053_744_495_38e-2, -1.387_768_560_32e-1, 1.997_771_064_78e-1, -3.333_294_915_39e-1];

impl<'c: 'a, 'a> Math<'c, 'a> {
    /// Evaluates the named function of `f32`s in `f64`; `None` for other functions.
    pub(super) fn through_f64(
        self,
        name: &str,
        operands: &[Value<'c, 'a>],
    ) -> Option<Value<'c, 'a>> {
        let wide = Self { wide: true, ..self };
        let function: fn(Self, &[Value<'c, 'a>]) -> Value<'c, 'a> = match name {
            math::SIN => |m, x| m.sin_cos(x[0]).0,
            math::COS => |m, x| m.sin_cos(x[0]).1,
            math::TAN => |m, x| m.tan(x[0]),
            math::ASIN => |m, x| m.asin(x[0]),
            math::ACOS => |m, x| m.acos(x[0]),
            math::ATAN => |m, x| m.atan(x[0]),
            math::SINH => |m, x| m.sinh(x[0]),
            math::COSH => |m, x| m.cosh(x[0]),
            math::ASINH => |m, x| m.asinh(x[0]),
            math::ACOSH => |m, x| m.acosh(x[0]),
            math::ATANH => |m, x| m.atanh(x[0]),
            math::POWF => |m, x| m.pow(x[0], x[1]),
            _ => return None,
        };
        let widen = |x: &Value<'c, 'a>| self.e.op(arith::EXTF, &[*x], wide.ty());
        let operands: Vec<_> = operands.iter().map(widen).collect();
        let value = function(wide, &operands);
        Some(self.e.op(arith::TRUNCF, &[value], self.ty()))
    }

    /// The difference between an angle and the nearest quarter turn, in radians, and the number of that
    /// quarter in the low two bits of an integer.
    fn quarter(self, x: Value<'c, 'a>) -> (Value<'c, 'a>, Value<'c, 'a>) {
        let (mut rest, mut quarters) = (self.c(0.0), self.c(0.0));
        for (position, digits) in TURNS.into_iter().enumerate() {
            let weight = 2f64.powi(-24 * (position as i32 + 1));
            let part = self.mul(x, self.c(f64::from(digits) * weight));
            // Whole turns are dropped, and the remainder of a part is exact.
            let turns = self.unary(math::ROUNDEVEN, self.mul(part, self.c(0.25)));
            rest = self.add(rest, self.fma(turns, self.c(-4.0), part));
            let whole = self.unary(math::ROUNDEVEN, rest);
            quarters = self.add(quarters, whole);
            rest = self.sub(rest, whole);
        }
        let angle = self.mul(rest, self.c(std::f64::consts::FRAC_PI_2));
        (angle, self.bits(self.add(quarters, self.c(MAGIC))))
    }

    /// Sine and cosine of an angle of at most an eighth of a turn.
    fn near(self, r: Value<'c, 'a>) -> (Value<'c, 'a>, Value<'c, 'a>) {
        let square = self.mul(r, r);
        let series = |from: u32| {
            // 1 / 13!, -1 / 11!, ... or 1 / 12!, -1 / 10!, ...
            let factorial = |n: u32| (1..=n).map(f64::from).product::<f64>();
            let terms = (0..7).rev().map(|term: u32| {
                let sign = if term.is_multiple_of(2) { 1.0 } else { -1.0 };
                sign / factorial(2 * term + from)
            });
            self.polynomial(&terms.collect::<Vec<_>>(), square)
        };
        (self.mul(series(1), r), series(0))
    }

    fn sin_cos(self, x: Value<'c, 'a>) -> (Value<'c, 'a>, Value<'c, 'a>) {
        let (angle, quarter) = self.quarter(x);
        let (sine, cosine) = self.near(angle);
        let at = |quarter| {
            let odd = self.has_bit(quarter, 1);
            let value = self.select(odd, cosine, sine);
            let negated = self.sub(self.c(-0.0), value);
            self.select(self.has_bit(quarter, 2), negated, value)
        };
        (at(quarter), at(self.int(arith::ADDI, quarter, self.i(1))))
    }

    fn tan(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let (angle, quarter) = self.quarter(x);
        let (sine, cosine) = self.near(angle);
        let odd = self.has_bit(quarter, 1);
        let negated = self.sub(self.c(-0.0), cosine);
        self.div(self.select(odd, negated, sine), self.select(odd, sine, cosine))
    }

    /// Whether an integer has any of these bits set.
    pub(super) fn has_bit(self, value: Value<'c, 'a>, bit: i64) -> Value<'c, 'a> {
        let masked = self.int(arith::ANDI, value, self.i(bit));
        let spec = self.e.spec(arith::CMPI).operands(&[masked, self.i(0)]);
        let not_equal = irc_mlir::attr::i64(self.e.context, 1);
        let spec = spec.attr("predicate", not_equal);
        self.e.value(spec.results(&[self.lanes.of(self.e.int(1))]))
    }

    /// `asin(sqrt(square))` for a square of at most a quarter, given the root as well.
    fn asin_near(self, root: Value<'c, 'a>, square: Value<'c, 'a>) -> Value<'c, 'a> {
        self.fma(self.mul(self.polynomial(&ASIN, square), square), root, root)
    }

    /// Parts of the arc sine: `(small, far, |x|)`, where `far` is `asin(sqrt((1 - |x|) / 2))`.
    fn asin_parts(self, x: Value<'c, 'a>) -> (Value<'c, 'a>, Value<'c, 'a>, Value<'c, 'a>) {
        let magnitude = self.unary(math::ABSF, x);
        let half = self.mul(self.sub(self.c(1.0), magnitude), self.c(0.5));
        let far = self.asin_near(self.unary(math::SQRT, half), half);
        (self.asin_near(x, self.mul(x, x)), far, magnitude)
    }

    fn asin(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let (small, far, magnitude) = self.asin_parts(x);
        let large = self.fma(far, self.c(-2.0), self.c(std::f64::consts::FRAC_PI_2));
        let large = self.e.binary(math::COPYSIGN, large, x);
        self.select(self.compare(OGT, magnitude, self.c(0.5)), large, small)
    }

    fn acos(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let (small, far, magnitude) = self.asin_parts(x);
        let right = self.add(far, far);
        let left = self.sub(self.c(std::f64::consts::PI), right);
        let large = self.select(self.compare(OLT, x, self.c(0.0)), left, right);
        let small = self.sub(self.c(std::f64::consts::FRAC_PI_2), small);
        self.select(self.compare(OGT, magnitude, self.c(0.5)), large, small)
    }

    fn atan(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let (near, far) = self.atan_below_one(x, &ATAN);
        let complement = self.sub(self.c(std::f64::consts::FRAC_PI_2), near);
        self.e.binary(math::COPYSIGN, self.select(far, complement, near), x)
    }

    /// The arctangent of the magnitude of a number, or of the reciprocal if it is above 1, and whether it is. Two reductions
    /// bring the argument below `tan(pi / 8)`: the reciprocal, and a rotation by an eighth. `terms` are the coefficients of
    /// `(atan(r) - r) / r^3` there, of the highest power of `r^2` first.
    pub(super) fn atan_below_one(
        self,
        x: Value<'c, 'a>,
        terms: &[f64],
    ) -> (Value<'c, 'a>, Value<'c, 'a>) {
        let one = self.c(1.0);
        let magnitude = self.unary(math::ABSF, x);
        let far = self.compare(OGT, magnitude, one);
        let t = self.select(far, self.div(one, magnitude), magnitude);
        let turned = self.compare(OGT, t, self.c(0.414_213_562_373_095));
        let t = self.select(turned, self.div(self.sub(t, one), self.add(t, one)), t);
        let square = self.mul(t, t);
        let near = self.fma(self.mul(self.polynomial(terms, square), square), t, t);
        let rotated = self.add(near, self.c(std::f64::consts::FRAC_PI_4));
        (self.select(turned, rotated, near), far)
    }

    /// `e^x`; 0 or beyond the range of `f32` for arguments far from 0.
    fn exponential(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let x = self.clamp(x, -200.0, 200.0);
        let shifted = self.fma(x, self.c(std::f64::consts::LOG2_E), self.c(MAGIC));
        let n = self.sub(shifted, self.c(MAGIC));
        let r = self.fma(n, self.c(-std::f64::consts::LN_2), x);
        let terms = (0..=9u32).rev().map(|n| 1.0 / (1..=n).map(f64::from).product::<f64>());
        let series = self.polynomial(&terms.collect::<Vec<_>>(), r);
        let n = self.int(arith::SUBI, self.bits(shifted), self.i(MAGIC.to_bits() as i64));
        let biased = self.int(arith::ADDI, n, self.i(1023));
        self.mul(series, self.float_of(self.int(arith::SHLI, biased, self.i(52))))
    }

    /// A positive, finite and normal number as `m 2^n` with `m` in `[sqrt(1/2), sqrt(2))`: `m` and `n`.
    pub(super) fn significand(self, x: Value<'c, 'a>) -> (Value<'c, 'a>, Value<'c, 'a>) {
        let root = self.i(std::f64::consts::FRAC_1_SQRT_2.to_bits() as i64);
        let above = self.int(arith::SUBI, self.bits(x), root);
        let exponent = self.int(arith::SHRSI, above, self.i(52));
        let fraction = self.int(arith::ANDI, above, self.i((1 << 52) - 1));
        let m = self.float_of(self.int(arith::ADDI, fraction, root));
        let magic = self.i(MAGIC.to_bits() as i64);
        let exponent = self.float_of(self.int(arith::ADDI, exponent, magic));
        (m, self.sub(exponent, self.c(MAGIC)))
    }

    /// The natural logarithm of a positive, finite and normal number.
    fn logarithm(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let (m, exponent) = self.significand(x);
        // log(m) = 2 atanh((m - 1) / (m + 1)).
        let s = self.div(self.sub(m, self.c(1.0)), self.add(m, self.c(1.0)));
        let terms: Vec<_> = (0..8).rev().map(|term| 2.0 / f64::from(2 * term + 1)).collect();
        let series = self.mul(self.polynomial(&terms, self.mul(s, s)), s);
        self.fma(exponent, self.c(std::f64::consts::LN_2), series)
    }

    /// `log(1 + y)` for `y >= 0`.
    fn logarithm_of_more(self, y: Value<'c, 'a>) -> Value<'c, 'a> {
        let series = self.polynomial(&[1.0 / 3.0, -0.5, 1.0], y);
        let far = self.logarithm(self.add(y, self.c(1.0)));
        self.select(self.compare(OLT, y, self.c(1e-4)), self.mul(series, y), far)
    }

    fn sinh(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let terms = (0..7u32).rev();
        let terms = terms.map(|term| 1.0 / (1..=2 * term + 1).map(f64::from).product::<f64>());
        let near = self.polynomial(&terms.collect::<Vec<_>>(), self.mul(x, x));
        let near = self.mul(near, x);
        let e = self.exponential(x);
        let far = self.mul(self.sub(e, self.div(self.c(1.0), e)), self.c(0.5));
        let magnitude = self.unary(math::ABSF, x);
        self.select(self.compare(OLT, magnitude, self.c(1.0)), near, far)
    }

    fn cosh(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let e = self.exponential(x);
        self.mul(self.add(e, self.div(self.c(1.0), e)), self.c(0.5))
    }

    /// `log(|x| + sqrt(x^2 + 1))`, with the sign of `x`.
    fn asinh(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let magnitude = self.unary(math::ABSF, x);
        let square = self.mul(x, x);
        let root = self.unary(math::SQRT, self.add(square, self.c(1.0)));
        let more = self.add(magnitude, self.div(square, self.add(root, self.c(1.0))));
        let value = self.e.binary(math::COPYSIGN, self.logarithm_of_more(more), x);
        self.special(magnitude, x, value)
    }

    /// `log(x + sqrt(x^2 - 1))`.
    fn acosh(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let above = self.sub(x, self.c(1.0));
        let root = self.unary(math::SQRT, self.mul(above, self.add(x, self.c(1.0))));
        let value = self.logarithm_of_more(self.add(above, root));
        let value = self.special(x, x, value);
        let inside = self.compare(OGE, x, self.c(1.0));
        self.select(inside, value, self.c(f64::NAN))
    }

    /// `log((1 + x) / (1 - x)) / 2`.
    fn atanh(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let one = self.c(1.0);
        let magnitude = self.unary(math::ABSF, x);
        let more = self.div(self.add(magnitude, magnitude), self.sub(one, magnitude));
        let value = self.mul(self.logarithm_of_more(more), self.c(0.5));
        let infinite = self.compare(OEQ, magnitude, one);
        let value = self.select(infinite, self.c(f64::INFINITY), value);
        let value = self.e.binary(math::COPYSIGN, value, x);
        let inside = self.compare(5, magnitude, one);
        self.select(inside, value, self.c(f64::NAN))
    }

    /// `value`, or `given` if that is not finite.
    pub(super) fn special(
        self,
        magnitude: Value<'c, 'a>,
        given: Value<'c, 'a>,
        value: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        self.select(self.compare(OLT, magnitude, self.c(f64::INFINITY)), value, given)
    }

    /// `e^(y log x)`, with the cases of IEEE 754's `pow`.
    fn pow(self, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        let magnitude = self.unary(math::ABSF, x);
        let log = self.special(magnitude, magnitude, self.logarithm(magnitude));
        let nothing = self.compare(OEQ, magnitude, self.c(0.0));
        let log = self.select(nothing, self.c(f64::NEG_INFINITY), log);
        self.power_of_any([x, y], self.exponential(self.mul(y, log)))
    }

    /// `x^y`, given `|x|^y` for finite numbers.
    pub(super) fn power_of_any(
        self,
        [x, y]: [Value<'c, 'a>; 2],
        value: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let (zero, one) = (self.c(0.0), self.c(1.0));
        let magnitude = self.unary(math::ABSF, x);
        let is_whole = |y| self.compare(OEQ, self.unary(math::FLOOR, y), y);
        let flag = self.lanes.of(self.e.int(1));
        let both = |a, b| self.e.op(arith::ANDI, &[a, b], flag);
        let half = self.mul(y, self.c(0.5));
        let fraction = self.compare(UNE, self.unary(math::FLOOR, half), half);
        let odd = both(is_whole(y), fraction);
        let negative = self.is_negative(x, flag);
        let negated = self.sub(self.c(-0.0), value);
        let value = self.select(both(negative, odd), negated, value);
        // A root of a finite negative number.
        let below =
            both(self.compare(OLT, x, zero), self.compare(UNE, x, self.c(f64::NEG_INFINITY)));
        let fractional = self.compare(UNE, self.unary(math::FLOOR, y), y);
        let value = self.select(both(below, fractional), self.c(f64::NAN), value);
        let ends = self.compare(OEQ, self.unary(math::ABSF, y), self.c(f64::INFINITY));
        let value = self.select(both(self.compare(OEQ, magnitude, one), ends), one, value);
        let unordered = self.compare(UNO, x, y);
        let value = self.select(unordered, self.c(f64::NAN), value);
        let value = self.select(self.compare(OEQ, x, one), one, value);
        self.select(self.compare(OEQ, y, zero), one, value)
    }

    /// Whether the sign bit is set, also for zeros.
    fn is_negative(self, x: Value<'c, 'a>, flag: Type<'c>) -> Value<'c, 'a> {
        let less = irc_mlir::attr::i64(self.e.context, 2);
        let spec = self.e.spec(arith::CMPI).operands(&[self.bits(x), self.i(0)]);
        self.e.value(spec.attr("predicate", less).results(&[flag]))
    }
}
