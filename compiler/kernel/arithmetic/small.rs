//! Elements of a byte or less that no processor computes with, as bytes: the conversions of [`irc_tensor`]
//! in integer ops.
use super::predicate;
use crate::kernel::{
    element::{Element, Kind},
    scope::Scope,
};
use irc_mlir::ops::arith;
use irc_mlir::{Type, Value, attr, ty};
use irc_tensor::{SmallFloat, Special};

/// `arith.cmpi` predicates.
const EQ: i64 = 0;
const NE: i64 = 1;
const UGT: i64 = 8;
const ULT: i64 = 6;

/// The number of mantissa bits and the bias of an `f32`, and some of its bit patterns.
const MANTISSA: u32 = 23;
const BIAS: i32 = 127;
const NAN: u32 = 0x7fc0_0000;
const INFINITY: u32 = 0x7f80_0000;
const MAGNITUDE: u32 = 0x7fff_ffff;

/// An 8-bit integer wrapped around to a small type; other values do not change.
pub(crate) fn wrap<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: Value<'c, '_>,
    ty: Element<'c>,
) -> Value<'c, 'b> {
    if ty.small.is_none() || ty.kind == Kind::Float {
        return irc_mlir::rebind(value);
    }
    let byte = |value: u32| -> Value<'c, '_> {
        let value = attr::parse(scope.context, &format!("{value} : i8"));
        scope.with(arith::CONSTANT, &[], ty.storage, &[("value", value)])
    };
    if ty.kind == Kind::Unsigned {
        return scope.op(arith::ANDI, &[value, byte((1 << ty.bits) - 1)], ty.storage);
    }
    let rest = byte(8 - ty.bits);
    let raised: Value = scope.op(arith::SHLI, &[value, rest], ty.storage);
    scope.op(arith::SHRSI, &[raised, rest], ty.storage)
}

/// A small float as an `f32`, which represents it exactly.
pub(super) fn decode<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: Value<'c, '_>,
    from: Element<'c>,
) -> Value<'c, 'b> {
    let words = Words::new(scope);
    let code: Value = scope.op(arith::EXTUI, &[value], words.ty);
    let bits = match from.small.and_then(SmallFloat::of) {
        Some(format) => words.decoded(code, format),
        None => words.decoded_power(code),
    };
    scope.op(arith::BITCAST, &[bits], words.float)
}

/// The small float nearest to an `f32`, ties to even; out-of-range values and NaN are encoded as the
/// type defines.
pub(super) fn encode<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: Value<'c, '_>,
    to: Element<'c>,
) -> Value<'c, 'b> {
    let words = Words::new(scope);
    let bits: Value = scope.op(arith::BITCAST, &[value], words.ty);
    let code = match to.small.and_then(SmallFloat::of) {
        Some(format) => words.encoded(bits, format),
        None => words.encoded_power(bits),
    };
    scope.op(arith::TRUNCI, &[code], to.storage)
}

/// Emits ops on `i32`: the bits of an `f32`, and codes.
struct Words<'s, 'c, 'a> {
    scope: &'s Scope<'c, 'a>,
    ty: Type<'c>,
    float: Type<'c>,
}

impl<'s, 'c, 'a> Words<'s, 'c, 'a> {
    fn new(scope: &'s Scope<'c, 'a>) -> Self {
        let float = Element::f32(scope.context).storage;
        Self { scope, ty: ty::parse(scope.context, "i32"), float }
    }

    fn number(&self, value: u32) -> Value<'c, 's> {
        let value = attr::parse(self.scope.context, &format!("{} : i32", value as i32));
        self.scope.with(arith::CONSTANT, &[], self.ty, &[("value", value)])
    }

    fn op(&self, name: &str, x: Value<'c, '_>, y: Value<'c, '_>) -> Value<'c, 's> {
        self.scope.op(name, &[x, y], self.ty)
    }

    fn with(&self, name: &str, x: Value<'c, '_>, y: u32) -> Value<'c, 's> {
        self.op(name, x, self.number(y))
    }

    fn is(&self, number: i64, x: Value<'c, '_>, y: u32) -> Value<'c, 's> {
        predicate(self.scope, arith::CMPI, number, x, self.number(y))
    }

    fn choose(
        &self,
        condition: Value<'c, '_>,
        yes: Value<'c, '_>,
        no: Value<'c, '_>,
    ) -> Value<'c, 's> {
        self.scope.op(arith::SELECT, &[condition, yes, no], self.ty)
    }

    /// The sum of two `f32`s given as bits.
    fn sum(&self, x: Value<'c, '_>, y: u32) -> Value<'c, 's> {
        let float = |bits: Value<'c, '_>| -> Value<'c, 's> {
            self.scope.op(arith::BITCAST, &[bits], self.float)
        };
        let sum: Value = self.scope.op(arith::ADDF, &[float(x), float(self.number(y))], self.float);
        self.scope.op(arith::BITCAST, &[sum], self.ty)
    }

    fn decoded(&self, code: Value<'c, '_>, format: SmallFloat) -> Value<'c, 's> {
        let size = self.with(arith::ANDI, code, u32::from(format.sign() - 1));
        let raised = self.with(arith::SHLI, size, MANTISSA - format.mantissa);
        let normal = self.with(arith::ADDI, raised, ((BIAS - format.bias) as u32) << MANTISSA);
        // Subnormals: the bits below a power of two with the same last place, minus that power.
        let power = ((BIAS + 1 - format.bias) as u32) << MANTISSA;
        let lifted = self.with(arith::ORI, raised, power);
        let small = self.sum(lifted, power | 1 << 31);
        let is_small = self.is(ULT, size, 1 << format.mantissa);
        let mut bits = self.choose(is_small, small, normal);
        if format.special == Special::Ieee {
            let infinite = self.is(EQ, size, u32::from(format.largest()) + 1);
            bits = self.choose(infinite, self.number(INFINITY), bits);
        }
        let sign = self.with(arith::ANDI, code, u32::from(format.sign()));
        let sign = self.with(arith::SHLI, sign, 31 - format.sign().trailing_zeros());
        let signed = self.op(arith::ORI, bits, sign);
        let is_nan = match format.special {
            Special::Ieee => self.is(UGT, size, u32::from(format.largest()) + 1),
            Special::Last => self.is(EQ, size, u32::from(format.nan())),
            Special::NegativeZero => self.is(EQ, code, u32::from(format.nan())),
            Special::None => return signed,
        };
        self.choose(is_nan, self.number(NAN), signed)
    }

    /// The exponent is already in place; the smallest number is below the normal numbers.
    fn decoded_power(&self, code: Value<'c, '_>) -> Value<'c, 's> {
        let power = self.with(arith::SHLI, code, MANTISSA);
        let power = self.choose(self.is(EQ, code, 0), self.number(1 << (MANTISSA - 1)), power);
        self.choose(self.is(EQ, code, 255), self.number(NAN), power)
    }

    fn encoded(&self, bits: Value<'c, '_>, format: SmallFloat) -> Value<'c, 's> {
        let size = self.with(arith::ANDI, bits, MAGNITUDE);
        let code = self.encoded_size(size, format);
        let outside = self.is(UGT, code, u32::from(format.largest()));
        let code = self.choose(outside, self.number(u32::from(format.overflow_code())), code);
        let sign = self.with(arith::SHRUI, bits, 31);
        let sign = self.with(arith::SHLI, sign, format.sign().trailing_zeros());
        let signed = self.op(arith::ORI, code, sign);
        let signed = match format.special {
            // NaN has no sign.
            Special::Last => self.choose(self.is(EQ, code, u32::from(format.nan())), code, signed),
            // Without a negative zero, values that round to zero are zero.
            Special::NegativeZero => self.choose(self.is(EQ, code, 0), code, signed),
            Special::Ieee | Special::None => signed,
        };
        let is_nan = self.is(UGT, size, INFINITY);
        self.choose(is_nan, self.number(u32::from(format.nan())), signed)
    }

    /// The code of a non-negative number, as if the exponent range were unbounded.
    fn encoded_size(&self, size: Value<'c, '_>, format: SmallFloat) -> Value<'c, 's> {
        let dropped = MANTISSA - format.mantissa;
        let last = self.with(arith::ANDI, self.with(arith::SHRUI, size, dropped), 1);
        let half = self.op(arith::ADDI, last, self.number((1 << (dropped - 1)) - 1));
        let kept = self.with(arith::SHRUI, self.op(arith::ADDI, size, half), dropped);
        let offset = ((BIAS - format.bias) as u32) << format.mantissa;
        let normal = self.with(arith::SUBI, kept, offset);
        // Adding a power of two with the last place of the subnormals rounds to that place.
        let power = ((BIAS + format.least() + MANTISSA as i32) as u32) << MANTISSA;
        let small = self.with(arith::SUBI, self.sum(size, power), power);
        let is_small = self.is(ULT, size, ((BIAS + 1 - format.bias) as u32) << MANTISSA);
        self.choose(is_small, small, normal)
    }

    /// The exponent, rounded up if the mantissa is not zero; the largest code for NaN and infinity.
    fn encoded_power(&self, bits: Value<'c, '_>) -> Value<'c, 's> {
        let size = self.with(arith::ANDI, bits, MAGNITUDE);
        let exponent = self.with(arith::SHRUI, size, MANTISSA);
        let rest = self.with(arith::ANDI, size, (1 << MANTISSA) - 1);
        let rest = self.is(NE, rest, 0);
        let up: Value = self.scope.op(arith::EXTUI, &[rest], self.ty);
        let next = self.op(arith::ADDI, exponent, up);
        let least = self.is(ULT, size, (1 << (MANTISSA - 1)) + 1);
        let code = self.choose(least, self.number(0), next);
        let outside = self.is(UGT, size, INFINITY);
        self.choose(outside, self.number(255), code)
    }
}
