//! Losses of classifiers.

use super::formula::{Formula, widened};
use super::softmax::log_softmax;
use crate::context::{Context, LowerError};
use crate::operator::Operator;
use irc_tl::{Builder, Built, Compute, DType, Dim, Reduction, Relation, Scalar, ValueId};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("NegativeLogLikelihoodLoss", &[12, 13, 22], |cx| {
        let x = cx.input(0)?;
        Ok(vec![likelihood(cx, x)?])
    }),
    Operator::new("SoftmaxCrossEntropyLoss", &[12, 13], |cx| {
        let x = cx.input(0)?;
        if cx.b.rank(x) < 2 {
            return Err(no_classes(cx, x));
        }
        let dtype = cx.dtype(x);
        let wide = widened(cx.b, x)?;
        let log = log_softmax(cx.b, wide, &[1])?;
        Ok(vec![likelihood(cx, log)?, cx.b.cast(log, dtype)?])
    }),
];

fn no_classes(cx: &Context<'_>, x: ValueId) -> LowerError {
    LowerError::invalid(format!("expected a batch of classes, found {}", cx.ty(x)))
}

/// `-x[class]` times the weight of the class, reduced as the node requests. The classes are axis 1 of
/// `x`; a target that is no class is ignored.
fn likelihood(cx: &mut Context<'_>, x: ValueId) -> Result<ValueId, LowerError> {
    let (target, weight) = (cx.input(1)?, cx.optional(2));
    let dtype = cx.input(0).map(|x| cx.dtype(x))?;
    let dims = cx.b.dims(target);
    if cx.b.rank(x) != dims.len() + 1 {
        return Err(no_classes(cx, x));
    }
    let expected = cx.b.dims(x);
    let expected = expected.iter().enumerate().filter(|(axis, _)| *axis != 1);
    for (own, (_, other)) in dims.iter().zip(expected) {
        cx.b.require(own, Relation::Equal, other, "expected one target for each sample")?;
    }
    let ignored = cx.int("ignore_index")?;
    let x = widened(cx.b, x)?;
    let weight = weight.map(|weight| widened(cx.b, weight)).transpose()?;
    let weights = weights(cx.b, x, target, weight, ignored)?;
    let chosen = chosen(cx.b, x, target)?;
    let weighted = cx.b.mul(chosen, weights)?;
    let axes: Vec<usize> = (0..dims.len()).collect();
    let loss = match cx.string_or("reduction", "mean")?.as_str() {
        "none" => weighted,
        "sum" => cx.b.reduce(Reduction::Sum, weighted, &axes, false)?,
        "mean" => {
            let sum = cx.b.reduce(Reduction::Sum, weighted, &axes, false)?;
            let count = cx.b.reduce(Reduction::Sum, weights, &axes, false)?;
            cx.b.div(sum, count)?
        }
        other => return Err(LowerError::word("reduction", &["none", "sum", "mean"], other)),
    };
    Ok(cx.b.cast(loss, dtype)?)
}

/// The class of a target, and whether it is in range.
fn class(dims: &[Dim], classes: &Dim, operand: usize) -> (Scalar, Scalar) {
    let at: Vec<Scalar> = (0..dims.len()).map(Scalar::Loop).collect();
    let class = Scalar::load(operand, at).cast(DType::I64);
    let inside = class.clone().ge(Scalar::index(0));
    (class.clone(), inside.and(class.lt(Scalar::Size(classes.clone()))))
}

/// The weight of every sample: 0 for ignored ones.
fn weights(
    b: &mut Builder,
    x: ValueId,
    target: ValueId,
    weight: Option<ValueId>,
    ignored: Option<i64>,
) -> Built {
    let (dims, dtype) = (b.dims(target), b.dtype(x));
    let classes = b.dims(x)[1].clone();
    let (class, inside) = class(&dims, &classes, 0);
    let mut operands = vec![target];
    let mut body = Scalar::number(1, dtype);
    if let Some(weight) = weight {
        let message = "expected a weight for each class";
        let own = Dim::product(&b.dims(weight));
        b.require(&own, Relation::Equal, &classes, message)?;
        operands.push(weight);
        body = Scalar::load(1, [class.clone()]);
    }
    body = inside.select(body, Scalar::number(0, dtype));
    if let Some(ignored) = ignored {
        body = class.equals(Scalar::index(ignored)).select(Scalar::number(0, dtype), body);
    }
    b.compute(Compute::map(dims, body), &operands)
}

/// `-x` at every target.
fn chosen(b: &mut Builder, x: ValueId, target: ValueId) -> Built {
    let (dims, dtype) = (b.dims(target), b.dtype(x));
    let classes = b.dims(x)[1].clone();
    let (class, inside) = class(&dims, &classes, 1);
    let mut at: Vec<Scalar> = (0..dims.len()).map(Scalar::Loop).collect();
    at.insert(1, class);
    let zero = Scalar::number(0, dtype);
    let body = inside.select(Scalar::load(0, at).unary(irc_tl::Unary::Neg), zero);
    b.compute(Compute::map(dims, body), &[x, target])
}
