//! Functions of numbers as scalar `arith` and `math` ops, shared by both lowerings of kernels.
//!
//! Values are of an element's storage type. Floats of 16 bits and fewer are computed in `f32` and
//! rounded once per function; integers below 8 bits are computed in `i8` and wrap around. No op traps,
//! whatever its operands.

mod cast;
mod float;
mod integer;
mod small;

pub(crate) use cast::cast;
pub(crate) use small::wrap;

use super::{
    element::{Element, Kind},
    scope::Scope,
};
use irc_mlir::ops::arith;
use irc_mlir::{Value, attr, ty};
use irc_tl::{Binary, Comparison, Unary};

/// `function(x)` for an `x` of type `ty`.
pub(crate) fn unary<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    function: Unary,
    x: Value<'c, '_>,
    ty: Element<'c>,
) -> Value<'c, 'b> {
    if ty.kind != Kind::Float {
        let value: Value = integer::unary(scope, function, x, ty.compute(scope.context));
        return wrap(scope, value, ty);
    }
    let wide: Value = widen(scope, x, ty);
    let value: Value = float::unary(scope, function, wide, ty.compute(scope.context));
    narrow(scope, value, ty)
}

/// `function(x, y)` for operands of type `ty`.
pub(crate) fn binary<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    function: Binary,
    x: Value<'c, '_>,
    y: Value<'c, '_>,
    ty: Element<'c>,
) -> Value<'c, 'b> {
    if ty.kind != Kind::Float {
        let value: Value = integer::binary(scope, function, [x, y], ty.compute(scope.context));
        return wrap(scope, value, ty);
    }
    let wide: [Value; 2] = [widen(scope, x, ty), widen(scope, y, ty)];
    let value: Value = float::binary(scope, function, wide, ty.compute(scope.context));
    narrow(scope, value, ty)
}

/// Whether the comparison holds, as an `i1`.
pub(crate) fn compare<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    comparison: Comparison,
    x: Value<'c, '_>,
    y: Value<'c, '_>,
    ty: Element<'c>,
) -> Value<'c, 'b> {
    if ty.kind != Kind::Float {
        return integer::compare(scope, comparison, x, y, ty.kind);
    }
    let wide: [Value; 2] = [widen(scope, x, ty), widen(scope, y, ty)];
    float::compare(scope, comparison, wide[0], wide[1])
}

/// Converts to the compute type.
pub(crate) fn widen<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: Value<'c, '_>,
    from: Element<'c>,
) -> Value<'c, 'b> {
    let compute = from.compute(scope.context);
    match from.small {
        Some(_) if from.kind == Kind::Float => {
            let single: Value = small::decode(scope, value, from);
            if compute.bits == 64 {
                scope.op(arith::EXTF, &[single], compute.storage)
            } else {
                irc_mlir::rebind(single)
            }
        }
        None if from.is_half() => scope.op(arith::EXTF, &[value], compute.storage),
        _ => irc_mlir::rebind(value),
    }
}

/// Converts from the compute type, with one rounding.
pub(crate) fn narrow<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: Value<'c, '_>,
    to: Element<'c>,
) -> Value<'c, 'b> {
    match to.small {
        Some(_) if to.kind == Kind::Float => {
            if to.compute(scope.context).bits == 64 {
                let odd: Value = cast::round_to_odd(scope, value);
                small::encode(scope, odd, to)
            } else {
                small::encode(scope, value, to)
            }
        }
        None if to.is_half() => scope.op(arith::TRUNCF, &[value], to.storage),
        _ => irc_mlir::rebind(value),
    }
}

/// An integer constant, truncated to the type.
pub(crate) fn whole<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    value: i64,
    ty: Element<'c>,
) -> Value<'c, 'b> {
    let value = match ty.bits {
        64 => value,
        // As a byte with the value of the number.
        bits if ty.small.is_some() && ty.kind == Kind::Unsigned => value & ((1 << bits) - 1),
        // MLIR requires a sign-extended value; it prints and parses `i1` as `true` and `false`.
        bits => value << (64 - bits) >> (64 - bits),
    };
    let value = melior::ir::attribute::IntegerAttribute::new(ty.storage, value).into();
    scope.with(arith::CONSTANT, &[], ty.storage, &[("value", value)])
}

/// The remainder of a truncating division, moved to the sign of the divisor by `add`.
fn floored<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    add: &str,
    [rest, divisor, zero]: [Value<'c, '_>; 3],
    ty: Element<'c>,
) -> Value<'c, 'b> {
    let flag = ty::parse(scope.context, "i1");
    let some: Value = compare(scope, Comparison::Ne, rest, zero, ty);
    let below: Value = compare(scope, Comparison::Lt, rest, zero, ty);
    let divisor_below: Value = compare(scope, Comparison::Lt, divisor, zero, ty);
    let differ: Value = scope.op(arith::XORI, &[below, divisor_below], flag);
    let moves: Value = scope.op(arith::ANDI, &[some, differ], flag);
    let moved: Value = scope.op(add, &[rest, divisor], ty.storage);
    select(scope, moves, moved, rest, ty)
}

fn select<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    condition: Value<'c, '_>,
    yes: Value<'c, '_>,
    no: Value<'c, '_>,
    ty: Element<'c>,
) -> Value<'c, 'b> {
    scope.op(arith::SELECT, &[condition, yes, no], ty.storage)
}

/// `arith.cmpf` or `arith.cmpi`, with the number of its predicate.
fn predicate<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    name: &str,
    number: i64,
    x: Value<'c, '_>,
    y: Value<'c, '_>,
) -> Value<'c, 'b> {
    let flag = ty::parse(scope.context, "i1");
    let number = attr::i64(scope.context, number);
    scope.with(name, &[x, y], flag, &[("predicate", number)])
}
