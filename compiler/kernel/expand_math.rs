//! `exp`, `log`, `tanh`, `erf` and similar functions as polynomials in `arith`, on scalars and vectors.
//!
//! Each is within [`MAX_ULP`] units in the last place of the exact `f32` result, denormals and
//! infinities included; the result for NaN is NaN. They assume the default rounding mode and no
//! fast-math flags. The trigonometric and hyperbolic functions, their inverses and `powf` are computed in
//! `f64` (see [`super::expand_wide`]). Functions of `f64` are left to libm, or are those of [`super::expand_double`].
//!
//! Sources: `exp` and `log` follow Cephes `expf`, `logf` (Moshier), `exp` with a polynomial of its own; `erf` is two
//! minimax polynomials; `log1p` Kahan's correction of `log(1 + x)`.
use super::emit::{Emit, Lanes};
use irc_mlir::ops::{arith, math};
use irc_mlir::{Type, TypeLike, Value, ValueLike, attr};

/// The maximum error of all functions here, in units in the last place of the exact result.
pub const MAX_ULP: f64 = 3.0;

/// Emits `name` on `f32` operands; `None` for functions and types that have no expansion.
pub fn expand<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    name: &str,
    operands: &[Value<'c, 'a>],
    element: Type<'c>,
    lanes: Lanes,
) -> Option<Value<'c, 'a>> {
    if !element.is_f32() {
        return None;
    }
    let m = Math { e, lanes, wide: false };
    let x = *operands.first()?;
    if let Some(value) = m.through_f64(name, operands) {
        return Some(value);
    }
    match name {
        math::EXP => Some(m.exp(x)),
        math::EXP2 => Some(m.exp2(x)),
        math::EXPM1 => Some(m.expm1(x)),
        math::LOG => Some(m.log(x)),
        math::LOG2 => Some(m.mul(m.log(x), m.c(std::f64::consts::LOG2_E))),
        math::LOG10 => Some(m.mul(m.log(x), m.c(std::f64::consts::LOG10_E))),
        math::LOG1P => Some(m.log1p(x)),
        math::TANH => Some(m.tanh(x)),
        math::ERF => Some(m.erf(x)),
        math::RSQRT => Some(m.div(m.c(1.0), m.unary(math::SQRT, x))),
        _ => None,
    }
}

/// Emits `exp` of an `f32` that is at most zero, or zero where that is less than `e^-87`; `None` for other types.
pub fn exp_of_nonpositive<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    x: Value<'c, 'a>,
    element: Type<'c>,
    lanes: Lanes,
) -> Option<Value<'c, 'a>> {
    element.is_f32().then(|| Math { e, lanes, wide: false }.exp_of_nonpositive(x))
}

/// `arith.cmpf` predicates.
pub(super) const OEQ: i64 = 1;
pub(super) const OGT: i64 = 2;
pub(super) const OLT: i64 = 4;

/// Added to a float below 2^22 in magnitude, leaves the nearest integer in the low bits.
const MAGIC: f64 = 12_582_912.0;
const LN2_HIGH: f64 = 0.693_359_375;
const LN2_LOW: f64 = -2.121_944_4e-4;

/// The exponent of 1 in its bits.
const EXPONENT_BIAS: f64 = 127.0;

/// `(exp(r) - 1 - r) / r^2` for `|r| <= ln(2) / 2`, highest power first: the error of `exp(r)` is at most `2^-28` of it.
const EXP: [f64; 5] =
    [1.381_454_06e-3, 8.368_745_45e-3, 4.166_838_9e-2, 1.666_652_11e-1, 4.999_999_4e-1];

/// `(log(1 + f) - f + f^2 / 2) / f^3` for `1 + f` in `[sqrt(1/2), sqrt(2))`.
const LOG: [f64; 9] = [
    7.037_683_629_2e-2,
    -1.151_461_031_0e-1,
    1.167_699_874_0e-1,
    -1.242_014_084_6e-1,
    1.424_932_278_7e-1,
    -1.666_805_766_5e-1,
    2.000_071_476_5e-1,
    -2.499_999_399_3e-1,
    3.333_333_117_4e-1,
];

/// Arithmetic on values of one type.
#[derive(Clone, Copy)]
pub(super) struct Math<'c, 'a> {
    pub(super) e: Emit<'c, 'a>,
    pub(super) lanes: Lanes,
    /// Whether this is `f64` instead of `f32`.
    pub(super) wide: bool,
}

/// A power of two and the reduced argument.
struct Reduced<'c, 'a> {
    rest: Value<'c, 'a>,
    scale: Value<'c, 'a>,
}

impl<'c: 'a, 'a> Math<'c, 'a> {
    fn exp(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let x = self.clamp(x, -104.0, 89.0);
        let (bias, power) = self.of_range(x, -80.0);
        let shifted = self.fma(x, self.c(std::f64::consts::LOG2_E), bias);
        let rest = self.rest(x, self.sub(shifted, bias));
        self.mul(self.mul(self.exp_of_rest(rest), self.power_of_two(shifted)), power)
    }

    /// Zero where the result would be no normal number, or nearly: processors take long to make others, as many of those as a
    /// mask hides elements.
    fn exp_of_nonpositive(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let low = self.c(-87.0);
        let is_low = self.compare(OLT, x, low);
        let Reduced { rest, scale } = self.reduce(self.select(is_low, low, x));
        self.select(is_low, self.c(0.0), self.mul(self.exp_of_rest(rest), scale))
    }

    /// `exp2(x) = 2^n * exp((x - n) * ln 2)`; the subtraction is exact.
    fn exp2(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let x = self.clamp(x, -151.0, 129.0);
        let (bias, power) = self.of_range(x, -110.0);
        let shifted = self.add(x, bias);
        let whole = self.sub(shifted, bias);
        let rest = self.mul(self.sub(x, whole), self.c(std::f64::consts::LN_2));
        self.mul(self.mul(self.exp_of_rest(rest), self.power_of_two(shifted)), power)
    }

    /// `expm1(x) = 2^n * expm1(r) + (2^n - 1)`; for large `x` the 1 is negligible, and for small ones the rest.
    fn expm1(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let Reduced { rest, scale } = self.reduce(self.clamp(x, -80.0, 40.0));
        let near = self.fma(self.exp_tail(rest), scale, self.sub(scale, self.c(1.0)));
        // Preserves the sign of a zero.
        let near = self.select(self.compare(OEQ, x, self.c(0.0)), x, near);
        self.select(self.compare(OGT, x, self.c(30.0)), self.exp(x), near)
    }

    /// `exp(r)` for a reduced argument.
    fn exp_of_rest(self, r: Value<'c, 'a>) -> Value<'c, 'a> {
        let one = self.c(1.0);
        self.fma(self.fma(self.polynomial(&EXP, r), r, one), r, one)
    }

    /// `exp(r) - 1` for a reduced argument.
    fn exp_tail(self, r: Value<'c, 'a>) -> Value<'c, 'a> {
        self.fma(self.polynomial(&EXP, r), self.mul(r, r), r)
    }

    /// `x - n ln 2` for the nearest integer `n` to `x / ln 2`, and `2^n`, for `x` from -87 to 87.
    fn reduce(self, x: Value<'c, 'a>) -> Reduced<'c, 'a> {
        let bias = self.c(MAGIC + EXPONENT_BIAS);
        let shifted = self.fma(x, self.c(std::f64::consts::LOG2_E), bias);
        let rest = self.rest(x, self.sub(shifted, bias));
        Reduced { rest, scale: self.power_of_two(shifted) }
    }

    /// `x - n ln 2`.
    fn rest(self, x: Value<'c, 'a>, n: Value<'c, 'a>) -> Value<'c, 'a> {
        let rest = self.fma(n, self.c(-LN2_HIGH), x);
        self.fma(n, self.c(-LN2_LOW), rest)
    }

    /// `2^(k - 127)` for the integer `k` in the low bits of a float, from 1 to 254: its exponent; infinity for 255.
    fn power_of_two(self, shifted: Value<'c, 'a>) -> Value<'c, 'a> {
        self.float_of(self.int(arith::SHLI, self.bits(shifted), self.i(23)))
    }

    /// A power of two by which a result is multiplied last, so that it overflows, or loses bits as a denormal, only then; and what
    /// is added to `n` before [`Self::power_of_two`] gives the quotient of `2^n` by that power.
    fn of_range(self, x: Value<'c, 'a>, low: f64) -> (Value<'c, 'a>, Value<'c, 'a>) {
        let is_low = self.compare(OLT, x, self.c(low));
        let either = |[low, high]: [f64; 2]| self.select(is_low, self.c(low), self.c(high));
        let exponents = [-64, 1];
        let biases = exponents.map(|exponent| MAGIC + EXPONENT_BIAS - f64::from(exponent));
        (either(biases), either(exponents.map(|exponent| f64::from(exponent).exp2())))
    }

    fn log(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let tiny = self.compare(OLT, x, self.c(f64::from(f32::MIN_POSITIVE)));
        let normal = self.select(tiny, self.mul(x, self.c(33_554_432.0)), x);
        let root = self.i(0x3F35_04F3);
        let above = self.int(arith::SUBI, self.bits(normal), root);
        let exponent =
            self.e.op(arith::SITOFP, &[self.int(arith::SHRSI, above, self.i(23))], self.ty());
        let exponent = self.select(tiny, self.sub(exponent, self.c(25.0)), exponent);
        let fraction = self.int(arith::ANDI, above, self.i(0x007F_FFFF));
        let f = self.sub(self.float_of(self.int(arith::ADDI, fraction, root)), self.c(1.0));
        let square = self.mul(f, f);
        let tail = self.mul(self.mul(f, square), self.polynomial(&LOG, f));
        let tail = self.fma(exponent, self.c(LN2_LOW), tail);
        let tail = self.fma(square, self.c(-0.5), tail);
        let log = self.fma(exponent, self.c(LN2_HIGH), self.add(f, tail));
        let infinite = self.compare(OEQ, x, self.c(f64::INFINITY));
        let log = self.select(infinite, x, log);
        let log = self.select(self.compare(OEQ, x, self.c(0.0)), self.c(f64::NEG_INFINITY), log);
        // Unordered or negative: NaN.
        let valid = self.compare(3, x, self.c(0.0));
        self.select(valid, log, self.c(f64::NAN))
    }

    fn log1p(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let one = self.c(1.0);
        let sum = self.add(x, one);
        let log = self.log(sum);
        let corrected = self.mul(log, self.div(x, self.sub(sum, one)));
        let infinite = self.compare(OEQ, sum, self.c(f64::INFINITY));
        let corrected = self.select(infinite, log, corrected);
        self.select(self.compare(OEQ, sum, one), x, corrected)
    }

    /// `tanh(x) = t / (t + 2)` with `t = expm1(2 |x|)`, and the sign of `x`.
    fn tanh(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let magnitude = self.unary(math::ABSF, x);
        let large = self.compare(OGT, magnitude, self.c(10.0));
        let bounded = self.select(large, self.c(10.0), magnitude);
        let Reduced { rest, scale } = self.reduce(self.add(bounded, bounded));
        let t = self.fma(self.exp_tail(rest), scale, self.sub(scale, self.c(1.0)));
        self.e.binary(math::COPYSIGN, self.div(t, self.add(t, self.c(2.0))), x)
    }

    fn erf(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        // From 3.92 on it is 1.
        let t = self.unary(math::ABSF, x);
        let t = self.select(self.compare(OGT, t, self.c(3.92)), self.c(3.92), t);
        let far = self.polynomial(
            &[
                -9.124_661_12e-6,
                2.542_045_51e-5,
                5.166_610_94e-5,
                -3.016_753_76e-4,
                3.911_329_84e-4,
                4.621_669_94e-4,
                -2.963_511_04e-3,
                6.797_654_09e-3,
                -9.904_826_06e-3,
                9.832_995_94e-3,
                -6.535_763_39e-3,
                2.656_193_45e-3,
                9.994_966_98e-1,
            ],
            self.sub(t, self.c(2.46)),
        );
        let far = self.e.binary(math::COPYSIGN, far, x);
        let near = self.polynomial(
            &[
                -5.660_156_6e-4,
                4.924_79e-3,
                -2.671_770_75e-2,
                1.128_041_15e-1,
                -3.761_235_48e-1,
                1.283_791_21e-1,
            ],
            self.mul(x, x),
        );
        let near = self.fma(near, x, x);
        self.select(self.compare(OGT, t, self.c(1.0)), far, near)
    }

    /// `min(max(x, low), high)`; NaN stays NaN.
    pub(super) fn clamp(self, x: Value<'c, 'a>, low: f64, high: f64) -> Value<'c, 'a> {
        let x = self.select(self.compare(OLT, x, self.c(low)), self.c(low), x);
        self.select(self.compare(OGT, x, self.c(high)), self.c(high), x)
    }

    pub(super) fn polynomial(self, coefs: &[f64], x: Value<'c, 'a>) -> Value<'c, 'a> {
        let mut sum = self.c(coefs[0]);
        for coef in &coefs[1..] {
            sum = self.fma(sum, x, self.c(*coef));
        }
        sum
    }

    fn element(self) -> Type<'c> {
        if self.wide { Type::float64(self.e.context) } else { self.e.f32() }
    }
    fn width(self) -> u32 {
        if self.wide { 64 } else { 32 }
    }
    pub(super) fn ty(self) -> Type<'c> {
        self.lanes.of(self.element())
    }
    pub(super) fn c(self, value: f64) -> Value<'c, 'a> {
        self.e.float(value, self.element(), self.lanes)
    }
    pub(super) fn i(self, value: i64) -> Value<'c, 'a> {
        self.e.integer(value, self.width(), self.lanes)
    }
    pub(super) fn add(self, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Value<'c, 'a> {
        self.e.binary(arith::ADDF, a, b)
    }
    pub(super) fn sub(self, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Value<'c, 'a> {
        self.e.binary(arith::SUBF, a, b)
    }
    pub(super) fn mul(self, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Value<'c, 'a> {
        self.e.binary(arith::MULF, a, b)
    }
    pub(super) fn div(self, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Value<'c, 'a> {
        self.e.binary(arith::DIVF, a, b)
    }
    pub(super) fn fma(self, a: Value<'c, 'a>, b: Value<'c, 'a>, c: Value<'c, 'a>) -> Value<'c, 'a> {
        self.e.op(math::FMA, &[a, b, c], self.ty())
    }
    pub(super) fn unary(self, name: &str, x: Value<'c, 'a>) -> Value<'c, 'a> {
        self.e.op(name, &[x], x.r#type())
    }
    pub(super) fn int(self, name: &str, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Value<'c, 'a> {
        self.e.binary(name, a, b)
    }
    pub(super) fn bits(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        self.e.op(arith::BITCAST, &[x], self.lanes.of(self.e.int(self.width())))
    }
    pub(super) fn float_of(self, bits: Value<'c, 'a>) -> Value<'c, 'a> {
        self.e.op(arith::BITCAST, &[bits], self.ty())
    }
    pub(super) fn compare(
        self,
        predicate: i64,
        a: Value<'c, 'a>,
        b: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let spec = self.e.spec(arith::CMPF).operands(&[a, b]);
        let spec = spec.attr("predicate", attr::i64(self.e.context, predicate));
        self.e.value(spec.results(&[self.lanes.of(self.e.int(1))]))
    }
    pub(super) fn select(
        self,
        condition: Value<'c, 'a>,
        a: Value<'c, 'a>,
        b: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        self.e.op(arith::SELECT, &[condition, a, b], a.r#type())
    }
}
