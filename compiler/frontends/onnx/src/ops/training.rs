//! Optimiser steps of gradient descent (`ai.onnx.preview.training`).

use super::indexing::loops;
use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use irc_tl::{Binary, Compute, DType, Relation, Scalar, Unary, ValueId};

const DOMAIN: &str = "ai.onnx.preview.training";

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("Adagrad", &[1], adagrad).in_domain(DOMAIN),
    Operator::new("Adam", &[1], adam).in_domain(DOMAIN),
    Operator::new("Momentum", &[1], momentum).in_domain(DOMAIN),
];

/// A step for one tensor. Operands are the rate and the number of
/// steps so far, which are scalars, then the tensor, its gradient and its states, of one shape.
struct Step {
    operands: Vec<ValueId>,
    rank: usize,
    dtype: DType,
}

impl Step {
    /// The steps of a node; each tensor has the same number of states.
    fn all(cx: &mut Context<'_>, states: usize) -> Result<Vec<Self>, LowerError> {
        let inputs = cx.all_inputs()?;
        let kinds = 2 + states;
        let count = inputs.len().saturating_sub(2) / kinds;
        if count == 0 || inputs.len() != 2 + kinds * count {
            let found = inputs.len();
            let message = format!("expected 2 inputs and {kinds} per tensor, found {found}");
            return Err(LowerError::invalid(message));
        }
        let rate = cx.b.reshape(inputs[0], &[])?;
        let done = cx.b.reshape(inputs[1], &[])?;
        let mut steps = vec![];
        for index in 0..count {
            let mut operands = vec![rate, done];
            operands.extend((0..kinds).map(|kind| inputs[2 + kind * count + index]));
            let (dims, dtype) = (cx.b.dims(operands[2]), cx.b.dtype(operands[2]));
            for other in operands[3..].iter().copied() {
                let own = cx.b.ty(other).clone();
                if own.rank() != dims.len() || own.dtype != dtype {
                    let message = format!("expected a gradient and states like it, found {own}");
                    return Err(LowerError::invalid(message));
                }
                for (left, right) in dims.iter().zip(&own.dims) {
                    cx.b.require(left, Relation::Equal, right, "expected states of one shape")?;
                }
            }
            steps.push(Self { operands, rank: dims.len(), dtype });
        }
        Ok(steps)
    }

    fn rate(&self) -> Scalar {
        Scalar::load(0, []).cast(self.dtype)
    }

    fn done(&self) -> Scalar {
        Scalar::load(1, []).cast(self.dtype)
    }

    /// The tensor, its gradient or a state, in this order.
    fn element(&self, index: usize) -> Scalar {
        Scalar::load(2 + index, loops(0..self.rank))
    }

    fn number(&self, value: f32) -> Scalar {
        Scalar::float(f64::from(value), self.dtype)
    }

    /// The gradient of the tensor with regularisation.
    fn gradient(&self, penalty: f32) -> Scalar {
        self.element(1) + self.number(penalty) * self.element(0)
    }

    fn write(&self, cx: &mut Context<'_>, body: Scalar) -> Result<ValueId, LowerError> {
        let dims = cx.b.dims(self.operands[2]);
        Ok(cx.b.compute(Compute::map(dims, body), &self.operands)?)
    }
}

/// The results grouped by kind, in the order of the node's outputs.
fn by_kind(results: Vec<Vec<ValueId>>) -> Vec<ValueId> {
    let kinds = results.first().map_or(0, Vec::len);
    (0..kinds).flat_map(|kind| results.iter().map(move |result| result[kind])).collect()
}

fn adagrad(cx: &mut Context<'_>) -> Lowered {
    let decay = cx.float_or("decay_factor", 0.0)?;
    let epsilon = cx.float_or("epsilon", 0.0)?;
    let penalty = cx.float_or("norm_coefficient", 0.0)?;
    let mut results = vec![];
    for step in Step::all(cx, 1)? {
        let rate = step.rate() / (step.number(1.0) + step.done() * step.number(decay));
        let gradient = step.gradient(penalty);
        let squares = step.element(2) + gradient.clone() * gradient.clone();
        let scale = squares.clone().unary(Unary::Sqrt) + step.number(epsilon);
        let tensor = step.write(cx, step.element(0) - rate * gradient / scale)?;
        results.push(vec![tensor, step.write(cx, squares)?]);
    }
    Ok(by_kind(results))
}

fn adam(cx: &mut Context<'_>) -> Lowered {
    let (alpha, beta) = (cx.float_or("alpha", 0.9)?, cx.float_or("beta", 0.999)?);
    let epsilon = cx.float_or("epsilon", 0.0)?;
    let penalty = cx.float_or("norm_coefficient", 0.0)?;
    let after = cx.float_or("norm_coefficient_post", 0.0)?;
    let mut results = vec![];
    for step in Step::all(cx, 2)? {
        let one = || step.number(1.0);
        let mixed = |weight: f32, old: Scalar, new: Scalar| {
            step.number(weight) * old + (one() - step.number(weight)) * new
        };
        let gradient = step.gradient(penalty);
        let mean = mixed(alpha, step.element(2), gradient.clone());
        let squares = mixed(beta, step.element(3), gradient.clone() * gradient);
        let scale = squares.clone().unary(Unary::Sqrt) + step.number(epsilon);
        // The weight of the initial states, which are zero.
        let left = |weight: f32| one() - step.number(weight).binary(Binary::Pow, step.done());
        let corrected = step.rate() * left(beta).unary(Unary::Sqrt) / left(alpha);
        let first = step.done().equals(step.number(0.0));
        let rate = first.select(step.rate(), corrected);
        let moved = step.element(0) - rate * mean.clone() / scale;
        let tensor = step.write(cx, (one() - step.number(after)) * moved)?;
        results.push(vec![tensor, step.write(cx, mean)?, step.write(cx, squares)?]);
    }
    Ok(by_kind(results))
}

fn momentum(cx: &mut Context<'_>) -> Lowered {
    let required = |name: &str| cx.float(name)?.ok_or_else(|| cx.missing(name));
    let (alpha, beta) = (required("alpha")?, required("beta")?);
    let penalty = required("norm_coefficient")?;
    let nesterov = match cx.string_or("mode", "")?.as_str() {
        "standard" => false,
        "nesterov" => true,
        other => return Err(LowerError::invalid(format!("unknown mode '{other}'"))),
    };
    let mut results = vec![];
    for step in Step::all(cx, 1)? {
        let first = step.done().equals(step.number(0.0));
        let weight = first.select(step.number(1.0), step.number(beta));
        let gradient = step.gradient(penalty);
        let speed = step.number(alpha) * step.element(2) + weight * gradient.clone();
        let direction = match nesterov {
            true => gradient + step.number(alpha) * speed.clone(),
            false => speed.clone(),
        };
        let tensor = step.write(cx, step.element(0) - step.rate() * direction)?;
        results.push(vec![tensor, step.write(cx, speed)?]);
    }
    Ok(by_kind(results))
}
