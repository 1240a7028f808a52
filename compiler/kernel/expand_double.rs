//! Functions of `f64` in `arith`, for targets without a library of them: GPUs. Hosts call libm.
//!
//! Each is within 3 units in the last place, denormals and infinities included; the result for NaN is NaN.
//! Where the last bits of an argument or of a term count, it is a pair of floats whose sum is the number: arguments of
//! exponentials, logarithms in powers, angles.
//!
//! Sources: sums and products of pairs by Dekker, "A floating-point technique for extending the available precision"
//! (1971), and Knuth; arguments are reduced modulo a quarter turn as by Payne and Hanek, "Radian reduction for
//! trigonometric functions" (1983). Series are Taylor's; those of the inverse functions and of `erf` interpolate at
//! Chebyshev's points.
use super::{
    emit::{Emit, Lanes},
    expand_math::{Math, OEQ, OGT, OLT},
    expand_wide::{MAGIC, OGE},
};
use irc_mlir::Value;
use irc_mlir::ops::{arith, math};
use std::{
    convert::Infallible,
    f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, LOG2_E, LOG10_E, PI},
    ops::Deref,
};

/// Emits `name` on `f64` scalars; `None` for functions that have no expansion.
pub fn expand_double<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    name: &str,
    operands: &[Value<'c, 'a>],
) -> Option<Value<'c, 'a>> {
    let m = Double(Math { e, lanes: Lanes::Scalar, wide: true });
    let (x, y) = (*operands.first()?, *operands.last()?);
    Some(match name {
        math::EXP => m.exp(x),
        math::EXP2 => m.exp2(x),
        math::EXPM1 => m.expm1(x),
        math::LOG => m.log(x),
        math::LOG2 => m.log_of_base(x, (LOG2_E, LOG2_E_LOW)),
        math::LOG10 => m.log_of_base(x, (LOG10_E, LOG10_E_LOW)),
        math::LOG1P => m.log1p(x),
        math::TANH => m.tanh(x),
        math::ERF => m.erf(x),
        math::RSQRT => m.div(m.c(1.0), m.unary(math::SQRT, x)),
        math::SIN => m.sin(x),
        math::COS => m.cos(x),
        math::TAN => m.tan(x),
        math::ASIN => m.asin(x),
        math::ACOS => m.acos(x),
        math::ATAN => m.atan(x),
        math::SINH => m.sinh(x),
        math::COSH => m.cosh(x),
        math::ASINH => m.asinh(x),
        math::ACOSH => m.acosh(x),
        math::ATANH => m.atanh(x),
        math::POWF => m.pow(x, y),
        arith::REMF => m.remainder(x, y),
        _ => return None,
    })
}

/// `ln 2` as a number of 32 bits, so that its product with an exponent is exact, and the rest.
const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// What [`LN_2`], [`LOG2_E`], [`LOG10_E`] and [`FRAC_PI_2`] lack.
const LN_2_LOW: f64 = 2.319_046_813_846_299_6e-17;
const LOG2_E_LOW: f64 = 2.035_527_374_093_103_3e-17;
const LOG10_E_LOW: f64 = 1.098_319_650_216_765e-17;
const PI_2_LOW: f64 = 6.123_233_995_736_766e-17;

/// 64 zeros and 2 / pi, 64 bits at a time.
const TURNS: [u64; 20] = [
    0,
    0xA2F9_836E_4E44_1529,
    0xFC27_57D1_F534_DDC0,
    0xDB62_9599_3C43_9041,
    0xFE51_63AB_DEBB_C561,
    0xB724_6E3A_424D_D2E0,
    0x0649_2EEA_09D1_921C,
    0xFE1D_EB1C_B129_A73E,
    0xE882_35F5_2EBB_4484,
    0xE99C_7026_B45F_7E41,
    0x3991_D639_8353_39F4,
    0x9C84_5F8B_BDF9_283B,
    0x1FF8_97FF_DE05_980F,
    0xEF2F_118B_5A0A_6D1F,
    0x6D36_7ECF_27CB_09B7,
    0x4F46_3F66_9E5F_EA2D,
    0x7527_BAC7_EBE5_F17B,
    0x3D07_39F7_8A52_92EA,
    0x6BFB_5FB1_1F8D_5D08,
    0x5603_3046_FC7B_6BAB,
];

/// `(asin(r) - r) / r^3` for `r^2` up to a quarter, highest power of `r^2` first.
const ASIN: [f64; 13] = [
    0.028_757_851_367_421_566,
    -0.014_851_887_071_247_204,
    0.017_400_879_442_694_02,
    0.005_457_506_718_640_358,
    0.010_322_814_350_185_78,
    0.011_479_177_415_184_906,
    0.013_971_212_973_552_933,
    0.017_352_392_720_869_973,
    0.022_372_172_942_149_89,
    0.030_381_944_138_531_247,
    0.044_642_857_146_355_43,
    0.074_999_999_999_984_33,
    0.166_666_666_666_666_69,
];

/// `(atan(r) - r) / r^3` for `r` up to `tan(pi / 8)`, highest power of `r^2` first.
const ATAN: [f64; 12] = [
    0.016_285_756_855_221_028,
    -0.034_570_561_981_427_744,
    0.045_515_932_206_265_49,
    -0.052_304_542_706_502_44,
    0.058_789_289_978_347_75,
    -0.066_664_248_857_382_55,
    0.076_922_963_750_321_43,
    -0.090_909_087_535_008_77,
    0.111_111_111_051_554_47,
    -0.142_857_142_856_598_28,
    0.199_999_999_999_998_04,
    -0.333_333_333_333_333_3,
];

/// `erfc(r) e^(r^2)` for `r` from 1 to 6, by powers of `(r - 2) / (r + 2)`, highest first.
const ERFC: [f64; 17] = [
    -1.135_257_147_727_362_7e-6,
    1.272_567_661_840_228e-6,
    4.011_749_647_325_067e-6,
    1.305_857_712_227_801_7e-6,
    -1.399_828_377_278_497_6e-5,
    -2.756_220_916_112_935_3e-5,
    2.752_717_555_722_724_6e-5,
    0.000_174_359_474_002_051_57,
    4.355_558_686_575_482e-5,
    -0.000_981_976_941_103_864_2,
    -0.000_847_143_252_991_95,
    0.006_997_461_736_971_578,
    0.003_732_892_404_397_833_6,
    -0.078_978_581_015_706_11,
    0.241_658_194_242_465_85,
    -0.427_185_847_413_958_5,
    0.255_395_676_310_505_75,
];

/// What `2 / sqrt(pi)` is more than 1.
const TWO_BY_ROOT_PI_REST: f64 = 0.128_379_167_095_512_57;

/// From here on `x^2 + 1` is `x^2`.
const LARGE: f64 = 268_435_456.0;

fn factorial(n: u32) -> f64 {
    (1..=n).map(f64::from).product()
}

/// The coefficients `term(last), ..., term(first)`.
fn series(first: u32, last: u32, term: impl Fn(u32) -> f64) -> Vec<f64> {
    (first..=last).rev().map(term).collect()
}

/// 1, -1, 1, ...
fn alternating(n: u32) -> f64 {
    if n.is_multiple_of(2) { 1.0 } else { -1.0 }
}

/// Arithmetic on `f64`.
#[derive(Clone, Copy)]
struct Double<'c, 'a>(Math<'c, 'a>);

/// A number as the sum of two floats, of which the second is at most half a unit in the last place of the first.
type Pair<'c, 'a> = (Value<'c, 'a>, Value<'c, 'a>);

impl<'c, 'a> Deref for Double<'c, 'a> {
    type Target = Math<'c, 'a>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'c: 'a, 'a> Double<'c, 'a> {
    fn negated(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        self.e.op(arith::NEGF, &[x], self.ty())
    }

    fn with_sign_of(self, x: Value<'c, 'a>, of: Value<'c, 'a>) -> Value<'c, 'a> {
        self.e.binary(math::COPYSIGN, x, of)
    }

    fn pair(self, (high, low): (f64, f64)) -> Pair<'c, 'a> {
        (self.c(high), self.c(low))
    }

    /// The sum of two numbers, of which the first is not smaller.
    fn sum_of_ordered(self, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Pair<'c, 'a> {
        let sum = self.add(a, b);
        (sum, self.sub(b, self.sub(sum, a)))
    }

    fn sum(self, a: Pair<'c, 'a>, b: Pair<'c, 'a>) -> Pair<'c, 'a> {
        let sum = self.add(a.0, b.0);
        let second = self.sub(sum, a.0);
        let rest = self.add(self.sub(a.0, self.sub(sum, second)), self.sub(b.0, second));
        self.sum_of_ordered(sum, self.add(rest, self.add(a.1, b.1)))
    }

    fn product(self, a: Pair<'c, 'a>, b: Pair<'c, 'a>) -> Pair<'c, 'a> {
        let product = self.mul(a.0, b.0);
        let rest = self.fma(a.0, b.0, self.negated(product));
        let rest = self.fma(a.1, b.0, self.fma(a.0, b.1, rest));
        self.sum_of_ordered(product, rest)
    }

    /// `2^n` of an integer, if that is a normal number.
    fn power_of_two(self, n: Value<'c, 'a>) -> Value<'c, 'a> {
        let biased = self.int(arith::ADDI, n, self.i(1023));
        self.float_of(self.int(arith::SHLI, biased, self.i(52)))
    }

    /// `x 2^n` of an integer `n` of up to 2000 in magnitude.
    fn scaled(self, x: Value<'c, 'a>, n: Value<'c, 'a>) -> Value<'c, 'a> {
        let half = self.int(arith::SHRSI, n, self.i(1));
        let x = self.mul(x, self.power_of_two(half));
        self.mul(x, self.power_of_two(self.int(arith::SUBI, n, half)))
    }

    /// The integer nearest to a number below 2^51, as a float and as an integer.
    fn nearest(self, shifted: Value<'c, 'a>) -> Pair<'c, 'a> {
        let whole = self.sub(shifted, self.c(MAGIC));
        let bits = self.bits(shifted);
        (whole, self.int(arith::SUBI, bits, self.i(MAGIC.to_bits() as i64)))
    }

    /// `x - n ln 2` for the nearest integer `n` to `x / ln 2`, and `n`.
    fn reduced(self, x: Pair<'c, 'a>) -> (Pair<'c, 'a>, Value<'c, 'a>) {
        let (whole, n) = self.nearest(self.fma(x.0, self.c(LOG2_E), self.c(MAGIC)));
        let high = self.fma(whole, self.c(-LN2_HIGH), x.0);
        let low = self.fma(whole, self.c(-LN2_LOW), x.1);
        (self.sum_of_ordered(high, low), n)
    }

    /// `exp(r) - 1` for a number of up to half of `ln 2`.
    fn exp_tail(self, r: Pair<'c, 'a>) -> Value<'c, 'a> {
        let terms = series(2, 13, |n| 1.0 / factorial(n));
        let tail = self.fma(self.polynomial(&terms, r.0), self.mul(r.0, r.0), r.1);
        self.add(tail, r.0)
    }

    fn exp_of_pair(self, x: Pair<'c, 'a>) -> Value<'c, 'a> {
        let (rest, n) = self.reduced(x);
        self.scaled(self.add(self.exp_tail(rest), self.c(1.0)), n)
    }

    fn exp(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        self.exp_of_pair((self.clamp(x, -746.0, 710.0), self.c(0.0)))
    }

    /// `exp2(x) = 2^n exp((x - n) ln 2)`; the subtraction is exact.
    fn exp2(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let x = self.clamp(x, -1076.0, 1025.0);
        let (whole, n) = self.nearest(self.add(x, self.c(MAGIC)));
        let rest = (self.sub(x, whole), self.c(0.0));
        let rest = self.product(rest, self.pair((LN_2, LN_2_LOW)));
        self.scaled(self.add(self.exp_tail(rest), self.c(1.0)), n)
    }

    /// `exp(x) - 1` for `x` of up to 60 in magnitude.
    fn exp_less_one(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let (rest, n) = self.reduced((x, self.c(0.0)));
        let scale = self.power_of_two(n);
        self.fma(self.exp_tail(rest), scale, self.sub(scale, self.c(1.0)))
    }

    fn expm1(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let near = self.exp_less_one(self.clamp(x, -60.0, 60.0));
        // Preserves the sign of a zero.
        let near = self.select(self.compare(OEQ, x, self.c(0.0)), x, near);
        self.select(self.compare(OGT, x, self.c(50.0)), self.exp(x), near)
    }

    /// `exp(x) / 2` for `x >= 0`, which is finite where `sinh` and `cosh` are.
    fn half_exp(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let (rest, n) = self.reduced((self.clamp(x, 0.0, 712.0), self.c(0.0)));
        let n = self.int(arith::SUBI, n, self.i(1));
        self.scaled(self.add(self.exp_tail(rest), self.c(1.0)), n)
    }

    /// A positive number as `m 2^n` with `m` in `[sqrt(1/2), sqrt(2))`: `m` and `n`.
    fn split(self, x: Value<'c, 'a>) -> Pair<'c, 'a> {
        let tiny = self.compare(OLT, x, self.c(f64::MIN_POSITIVE));
        let normal = self.select(tiny, self.mul(x, self.c(2f64.powi(54))), x);
        let (m, n) = self.significand(normal);
        (m, self.select(tiny, self.sub(n, self.c(54.0)), n))
    }

    /// `log(x) + more` for a positive number and one that is small beside the logarithm.
    fn logarithm_and(self, x: Value<'c, 'a>, more: Value<'c, 'a>) -> Value<'c, 'a> {
        let (m, n) = self.split(x);
        // log(1 + f) = f - f^2 / 2 + s (f^2 / 2 + R(s^2)) with s = f / (2 + f).
        let f = self.sub(m, self.c(1.0));
        let s = self.div(f, self.add(m, self.c(1.0)));
        let z = self.mul(s, s);
        let terms = series(1, 11, |n| 2.0 / f64::from(2 * n + 1));
        let rest = self.mul(self.polynomial(&terms, z), z);
        let half = self.mul(self.mul(f, f), self.c(0.5));
        let low = self.fma(n, self.c(LN2_LOW), more);
        let low = self.fma(s, self.add(half, rest), low);
        self.fma(n, self.c(LN2_HIGH), self.sub(f, self.sub(half, low)))
    }

    /// The logarithm of a positive, finite number, to 100 bits.
    fn logarithm_pair(self, x: Value<'c, 'a>) -> Pair<'c, 'a> {
        let (m, n) = self.split(x);
        // log(m) = 2 s (1 + z / 3 + z^2 / 5 + ...) with s = (m - 1) / (m + 1) and z = s^2.
        let f = self.sub(m, self.c(1.0));
        let d = self.sum((m, self.c(0.0)), self.pair((1.0, 0.0)));
        let high = self.div(f, d.0);
        let less = self.negated(high);
        let rest = self.fma(less, d.1, self.fma(less, d.0, f));
        let s = (high, self.div(rest, d.0));
        let z = self.product(s, s);
        let terms = series(3, 11, |n| 1.0 / f64::from(2 * n + 1));
        let tail = self.mul(self.polynomial(&terms, z.0), z.0);
        let fifth = self.pair((0.2, -1.110_223_024_625_156_6e-17));
        let tail = self.product(z, self.sum(fifth, (tail, self.c(0.0))));
        let third = self.pair((1.0 / 3.0, 1.850_371_707_708_594e-17));
        let tail = self.product(z, self.sum(third, tail));
        let twice = (self.add(s.0, s.0), self.add(s.1, s.1));
        let log = self.sum(twice, self.product(twice, tail));
        let whole = (self.mul(n, self.c(LN2_HIGH)), self.mul(n, self.c(LN2_LOW)));
        self.sum(self.sum_of_ordered(whole.0, whole.1), log)
    }

    /// The logarithm of any number, given that of a positive and finite one.
    fn logarithm_of_any(self, x: Value<'c, 'a>, log: Value<'c, 'a>) -> Value<'c, 'a> {
        let zero = self.c(0.0);
        let log = self.select(self.compare(OEQ, x, self.c(f64::INFINITY)), x, log);
        let log = self.select(self.compare(OEQ, x, zero), self.c(f64::NEG_INFINITY), log);
        self.select(self.compare(OGE, x, zero), log, self.c(f64::NAN))
    }

    fn log(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        self.logarithm_of_any(x, self.logarithm_and(x, self.c(0.0)))
    }

    /// The logarithm to a base, given the reciprocal of that of the base.
    fn log_of_base(self, x: Value<'c, 'a>, reciprocal: (f64, f64)) -> Value<'c, 'a> {
        let log = self.product(self.logarithm_pair(x), self.pair(reciprocal));
        self.logarithm_of_any(x, log.0)
    }

    fn log1p(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let one = self.c(1.0);
        let sum = self.add(x, one);
        // What the sum has lost.
        let lost = self.sub(x, self.sub(sum, one));
        let of_one = self.sub(one, self.sub(sum, x));
        let lost = self.select(self.compare(OGT, x, one), of_one, lost);
        let log = self.logarithm_and(sum, self.div(lost, sum));
        let log = self.logarithm_of_any(sum, log);
        self.select(self.compare(OEQ, sum, one), x, log)
    }

    /// `tanh(x) = t / (t + 2)` with `t = expm1(2 |x|)`, and the sign of `x`.
    fn tanh(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let magnitude = self.unary(math::ABSF, x);
        let large = self.compare(OGT, magnitude, self.c(22.0));
        let bounded = self.select(large, self.c(22.0), magnitude);
        let t = self.exp_less_one(self.add(bounded, bounded));
        self.with_sign_of(self.div(t, self.add(t, self.c(2.0))), x)
    }

    fn erf(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let one = self.c(1.0);
        let magnitude = self.unary(math::ABSF, x);
        let large = self.compare(OGT, magnitude, self.c(6.0));
        let t = self.select(large, self.c(6.0), magnitude);
        let place = self.div(self.sub(t, self.c(2.0)), self.add(t, self.c(2.0)));
        let exp = self.exp(self.negated(self.mul(t, t)));
        let far = self.sub(one, self.mul(exp, self.polynomial(&ERFC, place)));
        let far = self.with_sign_of(far, x);
        let mut terms = series(1, 19, |n| {
            let term = std::f64::consts::FRAC_2_SQRT_PI * alternating(n);
            term / (factorial(n) * f64::from(2 * n + 1))
        });
        terms.push(TWO_BY_ROOT_PI_REST);
        let near = self.fma(self.polynomial(&terms, self.mul(x, x)), x, x);
        self.select(self.compare(OGT, magnitude, one), far, near)
    }

    /// The difference between a number that is not negative and the nearest quarter turn, in radians, and the number of
    /// that quarter in the low two bits of an integer.
    fn quarter(self, x: Value<'c, 'a>) -> (Pair<'c, 'a>, Value<'c, 'a>) {
        let bits = self.bits(x);
        let exponent = self.int(arith::SHRUI, bits, self.i(52));
        let whole = self.int(arith::ANDI, bits, self.i((1 << 52) - 1));
        let whole = self.int(arith::ORI, whole, self.i(1 << 52));
        // x = whole 2^k: the bits of 2 / pi from the place k - 1 behind the point on count, the others give whole turns.
        let place = self.int(arith::SUBI, exponent, self.i(1075 - 62));
        let place = self.int(arith::MAXSI, place, self.i(0));
        let place = self.int(arith::MINSI, place, self.i(1033));
        let mut words = TURNS.map(|word| self.i(word as i64)).to_vec();
        for distance in [16, 8, 4, 2, 1] {
            let is_set = self.has_bit(place, 64 * distance as i64);
            let word = |at: usize| match words.get(at + distance) {
                Some(far) => self.select(is_set, *far, words[at]),
                None => words[at],
            };
            words = (0..distance + 3).map(word).collect();
        }
        let shift = self.int(arith::ANDI, place, self.i(63));
        let back = self.int(arith::SUBI, self.i(63), shift);
        let word = |at: usize| {
            let left = self.int(arith::SHLI, words[at], shift);
            let right = self.int(arith::SHRUI, words[at + 1], self.i(1));
            self.int(arith::ORI, left, self.int(arith::SHRUI, right, back))
        };
        let [first, second, third] = [0, 1, 2].map(word);
        // The product modulo four turns, with 190 bits behind the point.
        let (long, short) = (self.e.int(128), self.e.int(64));
        let long = |x| self.e.op(arith::EXTUI, &[x], long);
        let product = |word| self.int(arith::MULI, long(whole), long(word));
        let low = |x| self.e.op(arith::TRUNCI, &[x], short);
        let high = |x| self.int(arith::SHRUI, x, long(self.i(64)));
        let last = product(third);
        let middle = self.int(arith::ADDI, product(second), high(last));
        let top = self.int(arith::MULI, whole, first);
        let top = self.int(arith::ADDI, top, low(high(middle)));
        let (middle, last) = (low(middle), low(last));
        let behind = |a, b| {
            let carried = self.int(arith::SHRUI, b, self.i(62));
            self.int(arith::ORI, self.int(arith::SHLI, a, self.i(2)), carried)
        };
        let (fraction, rest) = (behind(top, middle), behind(middle, last));
        let quarter = self.int(arith::SHRUI, top, self.i(62));
        let rounded = self.int(arith::SHRUI, fraction, self.i(63));
        let quarter = self.int(arith::ADDI, quarter, rounded);
        // The fraction has a sign, as that of the nearest quarter; its magnitude is not rounded before it is added up.
        let sign = self.int(arith::SHRSI, fraction, self.i(63));
        let [fraction, rest] = [fraction, rest].map(|part| self.int(arith::XORI, part, sign));
        let float = |x| self.e.op(arith::SITOFP, &[x], self.ty());
        let upper = float(self.int(arith::SHRSI, fraction, self.i(11)));
        let lower = float(self.int(arith::ANDI, fraction, self.i(2047)));
        let least = float(self.int(arith::SHRUI, rest, self.i(1)));
        let lower = self.mul(lower, self.c(2f64.powi(-11)));
        let lower = self.fma(least, self.c(2f64.powi(-74)), lower);
        let (upper, lower) = self.sum_of_ordered(upper, lower);
        let unit = self.c(2f64.powi(-53));
        let fraction = (self.mul(upper, unit), self.mul(lower, unit));
        let angle = self.product(fraction, self.pair((FRAC_PI_2, PI_2_LOW)));
        let angle = (self.odd(sign, angle.0), self.odd(sign, angle.1));
        let is_near = self.compare(OLT, x, self.c(FRAC_PI_4));
        let zero = self.c(0.0);
        let angle = (self.select(is_near, x, angle.0), self.select(is_near, zero, angle.1));
        (angle, self.select(is_near, self.i(0), quarter))
    }

    /// Sine and cosine of an angle of at most an eighth of a turn.
    fn near_angles(self, r: Pair<'c, 'a>) -> Pair<'c, 'a> {
        let square = self.mul(r.0, r.0);
        let half = self.mul(square, self.c(0.5));
        let most = self.sub(self.c(1.0), half);
        let terms = series(1, 9, |n| alternating(n) / factorial(2 * n + 1));
        let cube = self.mul(square, r.0);
        let tail = self.fma(cube, self.polynomial(&terms, square), self.mul(r.1, most));
        let sine = self.add(r.0, tail);
        let terms = series(2, 9, |n| alternating(n) / factorial(2 * n));
        let lost = self.sub(self.sub(self.c(1.0), most), half);
        let lost = self.fma(self.negated(r.0), r.1, lost);
        let of_square = self.fma(r.0, r.0, self.negated(square));
        let lost = self.fma(of_square, self.c(-0.5), lost);
        let tail = self.fma(self.mul(square, square), self.polynomial(&terms, square), lost);
        (sine, self.add(most, tail))
    }

    /// Whether a number is finite, and otherwise NaN instead of a value.
    fn if_finite(self, x: Value<'c, 'a>, value: Value<'c, 'a>) -> Value<'c, 'a> {
        self.special(self.unary(math::ABSF, x), self.c(f64::NAN), value)
    }

    /// The sine of an angle, given sine and cosine of the difference to a quarter turn, and its number.
    fn sine_at(self, (sine, cosine): Pair<'c, 'a>, quarter: Value<'c, 'a>) -> Value<'c, 'a> {
        let value = self.select(self.has_bit(quarter, 1), cosine, sine);
        self.select(self.has_bit(quarter, 2), self.negated(value), value)
    }

    /// The value at a number of an odd function, given that at its magnitude and the bits of the number.
    fn odd(self, bits: Value<'c, 'a>, value: Value<'c, 'a>) -> Value<'c, 'a> {
        const LESS: i64 = 2;
        let is_negative = self.e.compare(LESS, bits, self.i(0));
        self.select(is_negative, self.negated(value), value)
    }

    fn sin(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let (angle, quarter) = self.quarter(self.unary(math::ABSF, x));
        let value = self.sine_at(self.near_angles(angle), quarter);
        self.if_finite(x, self.odd(self.bits(x), value))
    }

    fn cos(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let (angle, quarter) = self.quarter(self.unary(math::ABSF, x));
        let next = self.int(arith::ADDI, quarter, self.i(1));
        self.if_finite(x, self.sine_at(self.near_angles(angle), next))
    }

    fn tan(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let (angle, quarter) = self.quarter(self.unary(math::ABSF, x));
        let (sine, cosine) = self.near_angles(angle);
        let is_odd = self.has_bit(quarter, 1);
        let above = self.select(is_odd, self.negated(cosine), sine);
        let value = self.div(above, self.select(is_odd, sine, cosine));
        self.if_finite(x, self.odd(self.bits(x), value))
    }

    /// `asin(r) - r` for `r` with a square of at most a quarter.
    fn asin_tail(self, r: Value<'c, 'a>, square: Value<'c, 'a>) -> Value<'c, 'a> {
        self.mul(self.mul(self.polynomial(&ASIN, square), square), r)
    }

    /// `asin(sqrt((1 - |x|) / 2))`, and whether `|x|` is more than a half.
    fn asin_far(self, x: Value<'c, 'a>) -> Pair<'c, 'a> {
        let magnitude = self.unary(math::ABSF, x);
        let half = self.mul(self.sub(self.c(1.0), magnitude), self.c(0.5));
        let root = self.unary(math::SQRT, half);
        let far = self.add(self.asin_tail(root, half), root);
        (far, self.compare(OGT, magnitude, self.c(0.5)))
    }

    fn asin(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let (far, is_far) = self.asin_far(x);
        let far = self.with_sign_of(self.fma(far, self.c(-2.0), self.c(FRAC_PI_2)), x);
        let near = self.add(self.asin_tail(x, self.mul(x, x)), x);
        self.select(is_far, far, near)
    }

    fn acos(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let (far, is_far) = self.asin_far(x);
        let right = self.add(far, far);
        let left = self.sub(self.c(PI), right);
        let far = self.select(self.compare(OLT, x, self.c(0.0)), left, right);
        let tail = self.asin_tail(x, self.mul(x, x));
        let low = self.sub(x, self.sub(self.c(PI_2_LOW), tail));
        self.select(is_far, far, self.sub(self.c(FRAC_PI_2), low))
    }

    fn atan(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let (near, far) = self.atan_below_one(x, &ATAN);
        let complement = self.sub(self.c(FRAC_PI_2), self.sub(near, self.c(PI_2_LOW)));
        self.with_sign_of(self.select(far, complement, near), x)
    }

    fn sinh(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let terms = series(1, 10, |n| 1.0 / factorial(2 * n + 1));
        let square = self.mul(x, x);
        let near = self.fma(self.mul(self.polynomial(&terms, square), square), x, x);
        let magnitude = self.unary(math::ABSF, x);
        let half = self.half_exp(magnitude);
        let far = self.with_sign_of(self.sub(half, self.div(self.c(0.25), half)), x);
        self.select(self.compare(OLT, magnitude, self.c(1.0)), near, far)
    }

    fn cosh(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let half = self.half_exp(self.unary(math::ABSF, x));
        self.add(half, self.div(self.c(0.25), half))
    }

    /// `log(2 x)` instead of a value for large numbers, and infinity for infinity.
    fn log_of_large(self, x: Value<'c, 'a>, value: Value<'c, 'a>) -> Value<'c, 'a> {
        let twice = self.logarithm_and(x, self.c(LN_2));
        let value = self.select(self.compare(OGT, x, self.c(LARGE)), twice, value);
        self.special(x, x, value)
    }

    /// `log(|x| + sqrt(x^2 + 1))`, with the sign of `x`.
    fn asinh(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let magnitude = self.unary(math::ABSF, x);
        let square = self.mul(x, x);
        let root = self.unary(math::SQRT, self.add(square, self.c(1.0)));
        let more = self.add(magnitude, self.div(square, self.add(root, self.c(1.0))));
        let value = self.log_of_large(magnitude, self.log1p(more));
        self.with_sign_of(value, x)
    }

    /// `log(x + sqrt(x^2 - 1))`.
    fn acosh(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let above = self.sub(x, self.c(1.0));
        let root = self.unary(math::SQRT, self.mul(above, self.add(x, self.c(1.0))));
        let value = self.log_of_large(x, self.log1p(self.add(above, root)));
        self.select(self.compare(OGE, x, self.c(1.0)), value, self.c(f64::NAN))
    }

    /// `log((1 + x) / (1 - x)) / 2`.
    fn atanh(self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let one = self.c(1.0);
        let magnitude = self.unary(math::ABSF, x);
        let more = self.div(self.add(magnitude, magnitude), self.sub(one, magnitude));
        self.with_sign_of(self.mul(self.log1p(more), self.c(0.5)), x)
    }

    /// `e^(y log x)`, with the cases of IEEE 754's `pow`.
    fn pow(self, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        let zero = self.c(0.0);
        let magnitude = self.unary(math::ABSF, x);
        let log = self.logarithm_pair(magnitude);
        let high = self.logarithm_of_any(magnitude, log.0);
        let exponent = self.mul(y, high);
        let rest = self.fma(y, high, self.negated(exponent));
        let rest = self.fma(y, log.1, rest);
        // Beyond the range of the result, and for the logarithms of 0 and infinity, there is no rest.
        let is_within = self.compare(OLT, self.unary(math::ABSF, exponent), self.c(800.0));
        let rest = self.select(is_within, rest, zero);
        let exponent = self.clamp(exponent, -800.0, 800.0);
        self.power_of_any([x, y], self.exp_of_pair((exponent, rest)))
    }

    /// `x - y trunc(x / y)`, exactly: the division of the significands, some bits at a time.
    fn remainder(self, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        const BITS: i64 = 11;
        const GREATER: i64 = 4;
        let parts = |x: Value<'c, 'a>| {
            let bits = self.bits(self.unary(math::ABSF, x));
            let exponent = self.int(arith::SHRUI, bits, self.i(52));
            let fraction = self.int(arith::ANDI, bits, self.i((1 << 52) - 1));
            let is_normal = self.e.compare(GREATER, exponent, self.i(0));
            let implicit = self.select(is_normal, self.i(1 << 52), self.i(0));
            let whole = self.int(arith::ORI, fraction, implicit);
            (whole, self.int(arith::MAXSI, exponent, self.i(1)))
        };
        let ((dividend, from), (divisor, to)) = (parts(x), parts(y));
        let divisor = self.int(arith::MAXSI, divisor, self.i(1));
        let left = self.int(arith::MAXSI, self.int(arith::SUBI, from, to), self.i(0));
        let Ok(rest) = self.e.repeat_while::<Infallible>(&[dividend, left], |e, carried| {
            let m = Self(Math { e, ..self.0 });
            let bits = m.int(arith::MINSI, carried[1], m.i(BITS));
            let rest = m.int(arith::SHLI, carried[0], bits);
            let rest = m.int(arith::REMUI, rest, divisor);
            let left = m.int(arith::SUBI, carried[1], bits);
            Ok((e.compare(GREATER, left, m.i(0)), vec![rest, left]))
        });
        let rest = self.e.op(arith::SITOFP, &[rest[0]], self.ty());
        let value = self.scaled(rest, self.int(arith::SUBI, to, self.i(1075)));
        let [size, by] = [x, y].map(|it| self.unary(math::ABSF, it));
        let value = self.select(self.compare(OLT, size, by), size, value);
        let value = self.with_sign_of(value, x);
        // A divisor that is 0 or NaN, and NaN as the dividend.
        let is_number = self.compare(OGT, by, self.c(0.0));
        self.if_finite(x, self.select(is_number, value, self.c(f64::NAN)))
    }
}
