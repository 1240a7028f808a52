//! Functions of integers and booleans, which wrap around and never trap.
use super::{floored, predicate, select, whole};
use crate::kernel::{
    element::{Element, Kind},
    scope::Scope,
};
use irc_mlir::Value;
use irc_mlir::ops::arith;
use irc_tl::{Binary, Comparison, Unary};

pub(super) fn compare<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    comparison: Comparison,
    x: Value<'c, '_>,
    y: Value<'c, '_>,
    kind: Kind,
) -> Value<'c, 'b> {
    let signed = match comparison {
        Comparison::Eq => 0,
        Comparison::Ne => 1,
        Comparison::Lt => 2,
        Comparison::Le => 3,
        Comparison::Gt => 4,
        Comparison::Ge => 5,
    };
    // The unsigned predicates follow the signed ones.
    let number = if kind == Kind::Unsigned && signed >= 2 { signed + 4 } else { signed };
    predicate(scope, arith::CMPI, number, x, y)
}

pub(super) fn unary<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    function: Unary,
    x: Value<'c, '_>,
    ty: Element<'c>,
) -> Value<'c, 'b> {
    let signed = ty.kind == Kind::Signed;
    let zero: Value = whole(scope, 0, ty);
    let negated = || -> Value<'c, '_> { scope.op(arith::SUBI, &[zero, x], ty.storage) };
    let below = || -> Value<'c, '_> { compare(scope, Comparison::Lt, x, zero, ty.kind) };
    match function {
        Unary::Neg => irc_mlir::rebind(negated()),
        Unary::Abs if signed => select(scope, below(), negated(), x, ty),
        Unary::Abs => irc_mlir::rebind(x),
        Unary::Sign => {
            let above: Value = compare(scope, Comparison::Gt, x, zero, ty.kind);
            let sign: Value = select(scope, above, whole(scope, 1, ty), zero, ty);
            if !signed {
                return irc_mlir::rebind(sign);
            }
            select(scope, below(), whole(scope, -1, ty), sign, ty)
        }
        Unary::Relu if signed => scope.op(arith::MAXSI, &[x, zero], ty.storage),
        Unary::Relu => irc_mlir::rebind(x),
        Unary::Not => scope.op(arith::XORI, &[x, whole(scope, -1, ty)], ty.storage),
        _ => unreachable!("`takes` excludes integers"),
    }
}

pub(super) fn binary<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    function: Binary,
    [x, y]: [Value<'c, '_>; 2],
    ty: Element<'c>,
) -> Value<'c, 'b> {
    let signed = ty.kind == Kind::Signed;
    let name = match function {
        Binary::Add => arith::ADDI,
        Binary::Sub => arith::SUBI,
        Binary::Mul => arith::MULI,
        Binary::Max if signed => arith::MAXSI,
        Binary::Max => arith::MAXUI,
        Binary::Min if signed => arith::MINSI,
        Binary::Min => arith::MINUI,
        Binary::And => arith::ANDI,
        Binary::Or => arith::ORI,
        Binary::Xor => arith::XORI,
        Binary::Div => return divide(scope, x, y, ty),
        Binary::Rem => return remainder(scope, x, y, ty),
        Binary::Mod => return modulo(scope, x, y, ty),
        Binary::Shl => return shift_left(scope, x, y, ty),
        Binary::Shr => return shift_right(scope, x, y, ty),
        Binary::Pow => return power(scope, x, y, ty),
    };
    scope.op(name, &[x, y], ty.storage)
}

/// 0 for a divisor of 0; the one quotient that overflows wraps around.
fn divide<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    x: Value<'c, '_>,
    y: Value<'c, '_>,
    ty: Element<'c>,
) -> Value<'c, 'b> {
    let (one, zero): (Value, Value) = (whole(scope, 1, ty), whole(scope, 0, ty));
    let is = |value: Value<'c, '_>| -> Value<'c, '_> {
        compare(scope, Comparison::Eq, y, value, ty.kind)
    };
    let by_zero = is(zero);
    let safe: Value = select(scope, by_zero, one, y, ty);
    if ty.kind == Kind::Unsigned {
        let quotient: Value = scope.op(arith::DIVUI, &[x, safe], ty.storage);
        return select(scope, by_zero, zero, quotient, ty);
    }
    let by_minus_one = is(whole(scope, -1, ty));
    let safe: Value = select(scope, by_minus_one, one, safe, ty);
    let quotient: Value = scope.op(arith::DIVSI, &[x, safe], ty.storage);
    let negated: Value = scope.op(arith::SUBI, &[zero, x], ty.storage);
    let quotient: Value = select(scope, by_minus_one, negated, quotient, ty);
    select(scope, by_zero, zero, quotient, ty)
}

/// 0 for a divisor of 0, which is replaced by 1, as is -1: the remainder is then 0.
fn remainder<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    x: Value<'c, '_>,
    y: Value<'c, '_>,
    ty: Element<'c>,
) -> Value<'c, 'b> {
    let one: Value = whole(scope, 1, ty);
    let is = |value: i64| -> Value<'c, '_> {
        compare(scope, Comparison::Eq, y, whole(scope, value, ty), ty.kind)
    };
    let safe: Value = select(scope, is(0), one, y, ty);
    if ty.kind == Kind::Unsigned {
        return scope.op(arith::REMUI, &[x, safe], ty.storage);
    }
    let safe: Value = select(scope, is(-1), one, safe, ty);
    scope.op(arith::REMSI, &[x, safe], ty.storage)
}

fn modulo<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    x: Value<'c, '_>,
    y: Value<'c, '_>,
    ty: Element<'c>,
) -> Value<'c, 'b> {
    let rest: Value = remainder(scope, x, y, ty);
    if ty.kind == Kind::Unsigned {
        return irc_mlir::rebind(rest);
    }
    let zero: Value = whole(scope, 0, ty);
    floored(scope, arith::ADDI, [rest, y, zero], ty)
}

/// 0 for amounts of at least the width, which include negative amounts, as unsigned numbers.
fn shift_left<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    x: Value<'c, '_>,
    y: Value<'c, '_>,
    ty: Element<'c>,
) -> Value<'c, 'b> {
    let width: Value = whole(scope, i64::from(ty.bits), ty);
    let inside: Value = compare(scope, Comparison::Lt, y, width, Kind::Unsigned);
    let shifted: Value = scope.op(arith::SHLI, &[x, y], ty.storage);
    select(scope, inside, shifted, whole(scope, 0, ty), ty)
}

/// Negative amounts shift by 0, amounts of at least the width by all bits.
fn shift_right<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    x: Value<'c, '_>,
    y: Value<'c, '_>,
    ty: Element<'c>,
) -> Value<'c, 'b> {
    let last: Value = whole(scope, i64::from(ty.bits) - 1, ty);
    if ty.kind == Kind::Unsigned {
        let inside: Value = compare(scope, Comparison::Le, y, last, ty.kind);
        let shifted: Value = scope.op(arith::SHRUI, &[x, y], ty.storage);
        return select(scope, inside, shifted, whole(scope, 0, ty), ty);
    }
    let amount: Value = scope.op(arith::MAXSI, &[y, whole(scope, 0, ty)], ty.storage);
    let amount: Value = scope.op(arith::MINSI, &[amount, last], ty.storage);
    scope.op(arith::SHRSI, &[x, amount], ty.storage)
}

/// By squaring, one step per bit of the exponent. For a negative exponent 0, except for bases 1 and -1.
fn power<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    x: Value<'c, '_>,
    y: Value<'c, '_>,
    ty: Element<'c>,
) -> Value<'c, 'b> {
    let signed = ty.kind == Kind::Signed;
    let (one, zero): (Value, Value) = (whole(scope, 1, ty), whole(scope, 0, ty));
    let mul = |a: Value<'c, '_>, b: Value<'c, '_>| -> Value<'c, '_> {
        scope.op(arith::MULI, &[a, b], ty.storage)
    };
    let (mut result, mut square): (Value, Value) = (one, irc_mlir::rebind(x));
    for bit in 0..ty.bits - u32::from(signed) {
        let mask: Value = whole(scope, 1i64 << bit, ty);
        let masked: Value = scope.op(arith::ANDI, &[y, mask], ty.storage);
        let set: Value = compare(scope, Comparison::Ne, masked, zero, ty.kind);
        result = select(scope, set, mul(result, square), result, ty);
        square = mul(square, square);
    }
    if !signed {
        return irc_mlir::rebind(result);
    }
    let is = |value: i64| -> Value<'c, '_> {
        compare(scope, Comparison::Eq, x, whole(scope, value, ty), ty.kind)
    };
    let low: Value = scope.op(arith::ANDI, &[y, one], ty.storage);
    let odd: Value = compare(scope, Comparison::Ne, low, zero, ty.kind);
    let turned: Value = select(scope, odd, whole(scope, -1, ty), one, ty);
    let inverse: Value = select(scope, is(-1), turned, zero, ty);
    let inverse: Value = select(scope, is(1), one, inverse, ty);
    let negative: Value = compare(scope, Comparison::Lt, y, zero, ty.kind);
    select(scope, negative, inverse, result, ty)
}
