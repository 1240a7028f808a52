//! Functions of floats, in `f32` or `f64`.
use super::{floored, predicate, select};
use crate::kernel::{element::Element, scope::Scope};
use irc_mlir::ops::{arith, math};
use irc_mlir::{Value, attr, ty};
use irc_tl::{Binary, Comparison, Unary};

/// `arith.cmpf` predicates.
const OEQ: i64 = 1;
const OGT: i64 = 2;
const OGE: i64 = 3;
const OLT: i64 = 4;
const OLE: i64 = 5;
const UNE: i64 = 13;

pub(super) fn compare<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    comparison: Comparison,
    x: Value<'c, '_>,
    y: Value<'c, '_>,
) -> Value<'c, 'b> {
    let number = match comparison {
        Comparison::Eq => OEQ,
        Comparison::Ne => UNE,
        Comparison::Lt => OLT,
        Comparison::Le => OLE,
        Comparison::Gt => OGT,
        Comparison::Ge => OGE,
    };
    predicate(scope, arith::CMPF, number, x, y)
}

pub(super) fn unary<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    function: Unary,
    x: Value<'c, '_>,
    ty: Element<'c>,
) -> Value<'c, 'b> {
    let number = |value: f64| scope.constant(ty, value);
    let op = |name: &str, operands: &[Value<'c, '_>]| scope.op(name, operands, ty.storage);
    match function {
        Unary::Abs => op(math::ABSF, &[x]),
        Unary::Round => op(math::ROUNDEVEN, &[x]),
        Unary::Neg => op(arith::NEGF, &[x]),
        // The sign of NaN and of zeros is the number itself.
        Unary::Sign => {
            let zero: Value = number(0.0);
            let negative: Value = compare(scope, Comparison::Lt, x, zero);
            let sign: Value = select(scope, negative, number(-1.0), x, ty);
            let positive: Value = compare(scope, Comparison::Gt, x, zero);
            select(scope, positive, number(1.0), sign, ty)
        }
        Unary::Rsqrt => op(arith::DIVF, &[number(1.0), op(math::SQRT, &[x])]),
        Unary::Relu => op(arith::MAXIMUMF, &[x, number(0.0)]),
        Unary::RoundTf32 => round_tf32(scope, x, ty),
        Unary::Sigmoid => {
            let e = op(math::EXP, &[op(arith::NEGF, &[x])]);
            op(arith::DIVF, &[number(1.0), op(arith::ADDF, &[number(1.0), e])])
        }
        Unary::Gelu => {
            // 0.5 x (1 + tanh(u)) = x / (1 + e^-2u), which avoids cancellation where the tanh is near -1.
            let square = op(arith::MULF, &[x, x]);
            let cube = op(arith::MULF, &[square, x]);
            let inner = op(arith::ADDF, &[x, op(arith::MULF, &[cube, number(0.044_715)])]);
            let scale = number(-2.0 * (2.0 / std::f64::consts::PI).sqrt());
            let e = op(math::EXP, &[op(arith::MULF, &[inner, scale])]);
            op(arith::DIVF, &[x, op(arith::ADDF, &[number(1.0), e])])
        }
        Unary::Not => unreachable!("`takes` excludes floats"),
        // The function is the op of `math` with its name.
        named => op(&format!("{}{}", math::PREFIX, named.name()), &[x]),
    }
}

pub(super) fn binary<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    function: Binary,
    [x, y]: [Value<'c, '_>; 2],
    ty: Element<'c>,
) -> Value<'c, 'b> {
    let name = match function {
        Binary::Add => arith::ADDF,
        Binary::Sub => arith::SUBF,
        Binary::Mul => arith::MULF,
        Binary::Div => arith::DIVF,
        Binary::Rem => arith::REMF,
        Binary::Max => arith::MAXIMUMF,
        Binary::Min => arith::MINIMUMF,
        Binary::Pow => math::POWF,
        Binary::Mod => return modulo(scope, x, y, ty),
        _ => unreachable!("`takes` excludes floats"),
    };
    scope.op(name, &[x, y], ty.storage)
}

fn modulo<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    x: Value<'c, '_>,
    y: Value<'c, '_>,
    ty: Element<'c>,
) -> Value<'c, 'b> {
    let zero: Value = scope.constant(ty, 0.0);
    let rest: Value = scope.op(arith::REMF, &[x, y], ty.storage);
    floored(scope, arith::ADDF, [rest, y, zero], ty)
}

/// Adds half of the last remaining bit to the bits, and clears those below; infinities and NaN do not
/// change.
fn round_tf32<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    x: Value<'c, '_>,
    ty: Element<'c>,
) -> Value<'c, 'b> {
    let word = ty::parse(scope.context, "i32");
    let number = |text: &str| -> Value<'c, '_> {
        let value = attr::parse(scope.context, &format!("{text} : i32"));
        scope.with(arith::CONSTANT, &[], word, &[("value", value)])
    };
    let int = |name: &str, a: Value<'c, '_>, b: &str| -> Value<'c, '_> {
        scope.op(name, &[a, number(b)], word)
    };
    let bits: Value = scope.op(arith::BITCAST, &[x], word);
    let rounded = int(arith::ANDI, int(arith::ADDI, bits, "4096"), "-8192");
    let rounded: Value = scope.op(arith::BITCAST, &[rounded], ty.storage);
    let magnitude = int(arith::ANDI, bits, "0x7fffffff");
    const SLT: i64 = 2;
    let finite: Value = predicate(scope, arith::CMPI, SLT, magnitude, number("0x7f800000"));
    select(scope, finite, rounded, x, ty)
}
