//! Functions of every element.

use crate::context::{Context, Lowered, one};
use crate::operator::Operator;
use irc_tl::{Binary, Unary};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("Add", &[7, 13, 14], |cx| binary(cx, Binary::Add)),
    Operator::new("Mul", &[7, 13, 14], |cx| binary(cx, Binary::Mul)),
    Operator::new("Identity", &[1, 13, 14, 16, 19, 21, 23, 24, 25], |cx| cx.pass_on(0)),
    Operator::new("Neg", &[6, 13], |cx| unary(cx, Unary::Neg)),
    Operator::new("Relu", &[6, 13, 14], |cx| unary(cx, Unary::Relu)),
];

fn unary(cx: &mut Context<'_>, function: Unary) -> Lowered {
    let x = cx.input(0)?;
    one(cx.b.unary(function, x))
}

fn binary(cx: &mut Context<'_>, function: Binary) -> Lowered {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    one(cx.b.binary(function, x, y))
}
