//! Operators of Common IR's own list that differ from ONNX's.

use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::{ERA, Operator};
use crate::ops::like::like;
use irc_tl::{Binary, Comparison, Dim, Unary};

pub(super) const OPERATORS: &[Operator] = &[
    word("Concatenate", |cx| like(cx, "Concat", 1)),
    word("Dot", dot),
    word("ELU", |cx| like(cx, "Elu", 6)),
    word("GreaterEqual", |cx| like(cx, "GreaterOrEqual", 12)),
    word("LessEqual", |cx| like(cx, "LessOrEqual", 12)),
    word("Maximum", |cx| like(cx, "Max", 8)),
    word("Minimum", |cx| like(cx, "Min", 8)),
    word("Minus", |cx| like(cx, "Sub", 7)),
    word("NotEqual", |cx| {
        let (x, y) = (cx.input(0)?, cx.input(1)?);
        one(cx.b.compare(Comparison::Ne, x, y))
    }),
    word("Plus", |cx| like(cx, "Add", 7)),
    word("ReLU", |cx| {
        let x = cx.input(0)?;
        one(cx.b.unary(Unary::Relu, x))
    }),
    word("SELU", |cx| like(cx, "Selu", 6)),
    word("SoftPlus", |cx| like(cx, "Softplus", 1)),
    word("Square", |cx| {
        let x = cx.input(0)?;
        one(cx.b.binary(Binary::Mul, x, x))
    }),
    word("Time", |cx| like(cx, "Mul", 7)),
];

const fn word(name: &'static str, lower: fn(&mut Context<'_>) -> Lowered) -> Operator {
    Operator::new(name, &[1], lower).in_domain(ERA)
}

/// Contracts the last dimensions of the first operand, `reduction_rank` many, with the first of the second.
fn dot(cx: &mut Context<'_>) -> Lowered {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    let (left, right) = (cx.b.dims(x), cx.b.dims(y));
    let count = usize::try_from(cx.int_or("reduction_rank", 1)?).ok();
    let count = count.filter(|count| *count <= left.len().min(right.len()));
    let count = count.ok_or_else(|| {
        let (x, y) = (cx.b.ty(x), cx.b.ty(y));
        LowerError::invalid(format!("`reduction_rank` does not fit {x} and {y}"))
    })?;
    let (rows, depth) = left.split_at(left.len() - count);
    let (other, columns) = right.split_at(count);
    let x = cx.b.reshape(x, &[Dim::product(rows), Dim::product(depth)])?;
    let y = cx.b.reshape(y, &[Dim::product(other), Dim::product(columns)])?;
    let product = cx.b.matmul(x, y)?;
    one(cx.b.reshape(product, &[rows, columns].concat()))
}
