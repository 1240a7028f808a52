//! Sizes as values: evaluates a [`Dim`] for the symbols of a call.
use crate::kernel::emit::Emit;
use crate::lowering::linalg_to_vector::split::Extent;
use irc_mlir::Value;
use irc_mlir::ops::arith;
use irc_tl::{Dim, Factor, SizeFunction};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The values of symbols, as `index`es.
#[derive(Default)]
pub(super) struct Sizes<'c, 'a> {
    symbols: BTreeMap<Arc<str>, Value<'c, 'a>>,
}

impl<'c: 'a, 'a> Sizes<'c, 'a> {
    /// Defines a symbol.
    pub(super) fn define(&mut self, symbol: &Arc<str>, value: Value<'c, 'a>) {
        self.symbols.insert(symbol.clone(), value);
    }

    /// The value of a size, as an `index`.
    pub(super) fn value(&self, e: Emit<'c, 'a>, dim: &Dim) -> Value<'c, 'a> {
        let product = |(by, factors): (i64, &[Factor])| {
            let factors = factors.iter().map(|factor| self.factor(e, factor));
            match factors.reduce(|left, right| e.binary(arith::MULI, left, right)) {
                Some(product) => e.scale(product, by),
                None => e.index(by),
            }
        };
        let terms = dim.terms().into_iter().map(product);
        terms.reduce(|left, right| e.add(left, right)).unwrap_or_else(|| e.index(0))
    }

    /// The same as an extent, which is known if the size is.
    pub(super) fn extent(&self, e: Emit<'c, 'a>, dim: &Dim) -> Extent<'c, 'a> {
        dim.known().map_or_else(|| Extent::Passed(self.value(e, dim)), Extent::Known)
    }

    fn factor(&self, e: Emit<'c, 'a>, factor: &Factor) -> Value<'c, 'a> {
        match factor {
            Factor::Symbol(name) => match self.symbols.get(name) {
                Some(value) => *value,
                None => unreachable!("a kernel takes every symbol of its types and bodies"),
            },
            Factor::Call(function, parts) => {
                let [left, right] = [&parts[0], &parts[1]].map(|part| self.value(e, part));
                call(e, *function, left, right)
            }
            Factor::IfEqual(parts) => {
                let [a, b, x, y] = [0, 1, 2, 3].map(|part| self.value(e, &parts[part]));
                let equal = e.compare(EQ, a, b);
                e.op(arith::SELECT, &[equal, x, y], irc_mlir::ValueLike::r#type(&x))
            }
            Factor::Broadcast(parts) => {
                let extents = parts.iter().map(|part| self.value(e, part));
                let joined = extents.reduce(|joined, extent| {
                    let is_one = e.compare(EQ, joined, e.index(1));
                    let ty = irc_mlir::ValueLike::r#type(&joined);
                    e.op(arith::SELECT, &[is_one, extent, joined], ty)
                });
                joined.unwrap_or_else(|| e.index(1))
            }
        }
    }
}

/// The `arith.cmpi` predicate for equality.
const EQ: i64 = 0;

fn call<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    function: SizeFunction,
    left: Value<'c, 'a>,
    right: Value<'c, 'a>,
) -> Value<'c, 'a> {
    match function {
        SizeFunction::Min => e.min(left, right),
        SizeFunction::Max => e.binary(arith::MAXSI, left, right),
        SizeFunction::FloorDiv => floor_div(e, left, divisor(e, right)),
        SizeFunction::Mod => {
            let right = divisor(e, right);
            let quotient = floor_div(e, left, right);
            let whole = e.binary(arith::MULI, quotient, right);
            e.binary(arith::SUBI, left, whole)
        }
    }
}

/// Division by zero traps, and a size that divides by zero is invalid: here it divides by one.
fn divisor<'c: 'a, 'a>(e: Emit<'c, 'a>, value: Value<'c, 'a>) -> Value<'c, 'a> {
    let zero = e.compare(EQ, value, e.index(0));
    e.op(arith::SELECT, &[zero, e.index(1), value], irc_mlir::ValueLike::r#type(&value))
}

/// The quotient rounded down: one less than the truncated one if the remainder has the other sign.
fn floor_div<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    left: Value<'c, 'a>,
    right: Value<'c, 'a>,
) -> Value<'c, 'a> {
    const NE: i64 = 1;
    const SLT: i64 = 2;
    let zero = e.index(0);
    let quotient = e.binary(arith::DIVSI, left, right);
    let rest = e.binary(arith::REMSI, left, right);
    let inexact = e.compare(NE, rest, zero);
    let differ = e.binary(arith::XORI, e.compare(SLT, rest, zero), e.compare(SLT, right, zero));
    let down = e.binary(arith::ANDI, inexact, differ);
    e.op(
        arith::SELECT,
        &[down, e.offset(quotient, -1), quotient],
        irc_mlir::ValueLike::r#type(&quotient),
    )
}
