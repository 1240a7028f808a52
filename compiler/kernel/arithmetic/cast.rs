//! Conversions between element types.
use super::{
    narrow, predicate, select,
    small::{decode, encode},
    whole, widen, wrap,
};
use crate::kernel::{
    element::{Element, Kind},
    scope::Scope,
};
use irc_mlir::ops::{arith, math};
use irc_mlir::{Value, ty};
use irc_tl::Rounding;

/// `arith.cmpf` predicates.
const OGT: i64 = 2;
const OGE: i64 = 3;
const OLT: i64 = 4;
const UNE: i64 = 13;
const UNO: i64 = 14;

/// The value as another type: values out of range saturate, and NaN becomes 0, as [`irc_tl::Op::Cast`]
/// defines. Every nonzero value is `true`.
pub(crate) fn cast<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: Value<'c, '_>,
    from: Element<'c>,
    to: Element<'c>,
    rounding: Rounding,
) -> Value<'c, 'b> {
    match (from.kind, to.kind) {
        (Kind::Float, Kind::Float) => float_to_float(scope, value, from, to),
        (Kind::Float, _) if to.bits == 1 => {
            let wide: Value = widen(scope, value, from);
            let zero: Value = scope.constant(from.compute(scope.context), 0.0);
            predicate(scope, arith::CMPF, UNE, wide, zero)
        }
        (Kind::Float, _) => float_to_integer(scope, value, from, to, rounding),
        (_, Kind::Float) => integer_to_float(scope, value, from, to),
        _ if from.small.is_some() || to.small.is_some() => {
            let [own, byte] = [from, to].map(|ty| ty.compute(scope.context));
            let value: Value = cast(scope, value, own, byte, rounding);
            wrap(scope, value, to)
        }
        _ if from.bits == to.bits => irc_mlir::rebind(value),
        _ if to.bits == 1 => {
            const NE: i64 = 1;
            let zero: Value = whole(scope, 0, from);
            predicate(scope, arith::CMPI, NE, value, zero)
        }
        _ if from.bits > to.bits => scope.op(arith::TRUNCI, &[value], to.storage),
        (Kind::Signed, _) => scope.op(arith::EXTSI, &[value], to.storage),
        _ => scope.op(arith::EXTUI, &[value], to.storage),
    }
}

fn float_to_float<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: Value<'c, '_>,
    from: Element<'c>,
    to: Element<'c>,
) -> Value<'c, 'b> {
    if from == to {
        return irc_mlir::rebind(value);
    }
    if from.small.is_some() {
        let single: Value = decode(scope, value, from);
        return float_to_float(scope, single, Element::f32(scope.context), to);
    }
    if from.bits == 64 && to.is_narrow_float() {
        let odd: Value = round_to_odd(scope, value);
        return from_single(scope, odd, to);
    }
    // Between 16 and 64 bits through 32: the direct conversion calls a support library.
    let wide: Value = widen(scope, value, from);
    match (from.bits == 64, to.bits) {
        _ if to.is_narrow_float() => from_single(scope, wide, to),
        (true, _) => scope.op(arith::TRUNCF, &[wide], to.storage),
        (false, 64) => scope.op(arith::EXTF, &[wide], to.storage),
        (false, _) => irc_mlir::rebind(wide),
    }
}

/// An `f32` rounded to a narrower type.
fn from_single<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: Value<'c, '_>,
    to: Element<'c>,
) -> Value<'c, 'b> {
    if to.small.is_some() { encode(scope, value, to) } else { narrow(scope, value, to) }
}

/// An `f64` as an `f32` that a second rounding takes to the nearest narrower float: truncated, with the
/// last bit set if it is inexact (Boldo and Melquiond, "Emulation of FMA and correctly rounded
/// sums: proved algorithms using rounding to odd", 2008).
pub(super) fn round_to_odd<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: Value<'c, '_>,
) -> Value<'c, 'b> {
    let single = Element::f32(scope.context);
    let double = ty::parse(scope.context, "f64");
    let word = ty::parse(scope.context, "i32");
    let near: Value = scope.op(arith::TRUNCF, &[value], single.storage);
    let back: Value = scope.op(arith::EXTF, &[near], double);
    let magnitude = |x: Value<'c, '_>| -> Value<'c, '_> { scope.op(math::ABSF, &[x], double) };
    let beyond: Value = predicate(scope, arith::CMPF, OGT, magnitude(back), magnitude(value));
    let inexact: Value = predicate(scope, arith::CMPF, UNE, back, value);
    let bits: Value = scope.op(arith::BITCAST, &[near], word);
    let one = |flag: Value<'c, '_>| -> Value<'c, '_> { scope.op(arith::EXTUI, &[flag], word) };
    let cut: Value = scope.op(arith::SUBI, &[bits, one(beyond)], word);
    let odd: Value = scope.op(arith::ORI, &[cut, one(inexact)], word);
    scope.op(arith::BITCAST, &[odd], single.storage)
}

fn integer_to_float<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: Value<'c, '_>,
    from: Element<'c>,
    to: Element<'c>,
) -> Value<'c, 'b> {
    let name = if from.kind == Kind::Signed { arith::SITOFP } else { arith::UITOFP };
    if to.is_narrow_float() && from.bits >= 32 {
        // An f32 would add a first rounding.
        let double: Value = scope.op(name, &[value], ty::parse(scope.context, "f64"));
        let odd: Value = round_to_odd(scope, double);
        return from_single(scope, odd, to);
    }
    let wide: Value = scope.op(name, &[value], to.compute(scope.context).storage);
    narrow(scope, wide, to)
}

/// Saturates out-of-range values and maps NaN to 0.
/// A float as an integer of at most 16 bits, whose bounds are floats: bounded first, as processors bound floats in one
/// instruction. NaN is less than no number, so that it becomes the lower bound first.
fn float_to_narrow<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: Value<'c, '_>,
    compute: Element<'c>,
    to: Element<'c>,
    bounds: [f64; 2],
) -> Value<'c, 'b> {
    let [low, high]: [Value; 2] = bounds.map(|bound| scope.constant(compute, bound));
    let test = |number: i64, x, bound| -> Value<'c, '_> {
        predicate(scope, arith::CMPF, number, x, bound)
    };
    let least: Value = select(scope, test(OGT, value, low), value, low, compute);
    let bounded: Value = select(scope, test(OLT, least, high), least, high, compute);
    let word = Element { storage: ty::parse(scope.context, "i32"), bits: 32, ..to };
    let whole: Value = scope.op(arith::FPTOSI, &[bounded], word.storage);
    let narrow: Value = scope.op(arith::TRUNCI, &[whole], to.storage);
    if to.kind == Kind::Unsigned {
        return irc_mlir::rebind(narrow);
    }
    let zero: Value = scope.constant(to, 0.0);
    select(scope, test(UNO, value, low), zero, narrow, to)
}

fn float_to_integer<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: Value<'c, '_>,
    from: Element<'c>,
    to: Element<'c>,
    rounding: Rounding,
) -> Value<'c, 'b> {
    let compute = from.compute(scope.context);
    let mut wide: Value = widen(scope, value, from);
    if rounding == Rounding::NearestEven {
        wide = scope.op(math::ROUNDEVEN, &[wide], compute.storage);
    }
    let signed = to.kind == Kind::Signed;
    let magnitude = if signed { to.bits - 1 } else { to.bits };
    let above = 2f64.powi(magnitude as i32);
    let (low, high) = (if signed { -above } else { 0.0 }, above);
    if to.bits <= 16 && to.small.is_none() {
        return float_to_narrow(scope, wide, compute, to, [low, high - 1.0]);
    }
    let name = if signed { arith::FPTOSI } else { arith::FPTOUI };
    let inside: Value = scope.op(name, &[wide], to.storage);
    let test = |number: i64, bound: f64| -> Value<'c, '_> {
        let bound: Value = scope.constant(compute, bound);
        predicate(scope, arith::CMPF, number, wide, bound)
    };
    // Constants saturate as well.
    let (lowest, highest): (Value, Value) = (scope.constant(to, low), scope.constant(to, high));
    let clipped: Value = select(scope, test(OGE, high), highest, inside, to);
    let clipped: Value = select(scope, test(OLT, low), lowest, clipped, to);
    select(scope, test(UNO, 0.0), scope.constant(to, 0.0), clipped, to)
}
