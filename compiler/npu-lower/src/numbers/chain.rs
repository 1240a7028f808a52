//! Functions of each element, from a result back to what it is computed of.

use crate::layers::Trace;
use irc_tensor::Tensor;
use irc_tl::{Binary, Comparison, DType, Op, Rounding, Unary, ValueId};

/// A step of a function.
#[derive(Clone, Debug)]
pub enum Step {
    /// A function with a constant, which is the right operand unless the order does not matter.
    Constant(Binary, Constant),
    /// A conversion.
    Cast {
        /// From this type.
        from: DType,
        /// To this type.
        to: DType,
        /// How.
        rounding: Rounding,
    },
    /// The nearest integer, ties to even.
    Round,
    /// Negative values become 0.
    Relu,
    /// A product with one number for each row and column.
    Windows(Vec<f64>),
}

/// A constant operand.
#[derive(Clone, Debug)]
pub enum Constant {
    /// Its elements: one, or one for each output channel.
    Known(Vec<f64>),
    /// An input of the graph.
    Input(String),
}

impl Constant {
    /// The element of a channel.
    pub fn of(&self, channel: usize) -> Option<f64> {
        match self {
            Self::Known(all) if all.len() > 1 => all.get(channel).copied(),
            other => other.single(),
        }
    }

    /// The only element.
    pub fn single(&self) -> Option<f64> {
        match self {
            Self::Known(all) if all.iter().all(|element| *element == all[0]) => {
                all.first().copied()
            }
            _ => None,
        }
    }
}

/// The steps from a value to `to`, in the order in which they are computed.
pub struct Chain {
    /// The first value that is not such a step.
    pub from: ValueId,
    /// The steps.
    pub steps: Vec<Step>,
    /// The result of each step.
    values: Vec<ValueId>,
}

impl Chain {
    /// The steps before `to`, back to one of `ends` or to a value that is something else.
    pub fn of(trace: &Trace<'_>, to: ValueId, ends: &[ValueId]) -> Self {
        let (mut steps, mut values) = (vec![], vec![]);
        let mut at = to;
        while !ends.contains(&at) {
            let Some((before, step)) = step(trace, at) else { break };
            if let Some(step) = step {
                steps.push(step);
                values.push(at);
            }
            at = before;
        }
        steps.reverse();
        values.reverse();
        Self { from: at, steps, values }
    }

    /// Removes the first steps.
    pub fn cut(&mut self, count: usize) {
        if let Some(last) = count.checked_sub(1).and_then(|last| self.values.get(last)) {
            self.from = *last;
            self.steps.drain(..count);
            self.values.drain(..count);
        }
    }
}

/// The operand of a step, and the step if it is not only a movement.
fn step(trace: &Trace<'_>, value: ValueId) -> Option<(ValueId, Option<Step>)> {
    let (op, operands) = trace.op(value)?;
    Some(match op {
        Op::Reshape { .. } | Op::Transpose { .. } => (operands[0], None),
        Op::Cast { to, rounding } => {
            let from = trace.graph.ty(operands[0]).dtype;
            (operands[0], Some(Step::Cast { from, to: *to, rounding: *rounding }))
        }
        Op::Unary(Unary::Round) => (operands[0], Some(Step::Round)),
        Op::Unary(Unary::Relu) => (operands[0], Some(Step::Relu)),
        Op::Binary(function) => {
            let &[left, right] = operands else { return None };
            if let (Binary::Mul, Some(factors)) = (function, windows(trace, right)) {
                return Some((left, Some(Step::Windows(factors))));
            }
            let commutes =
                matches!(function, Binary::Add | Binary::Mul | Binary::Max | Binary::Min);
            let (rest, constant) = match constant(trace, right) {
                Some(constant) => (left, constant),
                None if commutes => (right, constant(trace, left)?),
                None => return None,
            };
            (rest, Some(Step::Constant(*function, constant)))
        }
        // The larger of a value and 0.
        Op::Select => {
            let &[condition, yes, no] = operands else { return None };
            let (Op::Compare(Comparison::Gt), &[left, right]) = trace.op(condition)? else {
                return None;
            };
            let is_zero = |value: ValueId| trace.number(value) == Some(0.0);
            if left != yes || !is_zero(right) || !is_zero(no) {
                return None;
            }
            (yes, Some(Step::Relu))
        }
        _ => return None,
    })
}

/// The elements of a constant that differ from row to row and column to column, and not otherwise.
fn windows(trace: &Trace<'_>, value: ValueId) -> Option<Vec<f64>> {
    let tensor = trace.constant(value)?;
    let [outer @ .., rows, columns] = tensor.shape() else { return None };
    let is_wide = *rows > 1 && *columns > 1 && outer.iter().all(|extent| *extent == 1);
    is_wide.then(|| tensor.to_f64())
}

/// The constant that a value is: elements along one dimension at most, or an input that may have been reshaped.
fn constant(trace: &Trace<'_>, value: ValueId) -> Option<Constant> {
    if let Some(tensor) = trace.constant(value) {
        let wide = tensor.shape().iter().filter(|extent| **extent != 1).count();
        return (wide <= 1).then(|| Constant::Known(tensor.to_f64()));
    }
    input(trace, value).map(Constant::Input)
}

/// The name of the input that a value is, up to its shape and type, if no layer reads it as an activation.
pub fn input(trace: &Trace<'_>, value: ValueId) -> Option<String> {
    let mut at = value;
    while let Some((Op::Reshape { .. } | Op::Cast { .. }, operands)) = trace.op(at) {
        at = operands[0];
    }
    let mut inputs = trace.graph.inputs.iter();
    let (name, _) = inputs.find(|(_, input)| *input == at && trace.parameters.contains(input))?;
    Some(name.clone())
}

/// Elements as `f32[K]`.
pub fn floats(values: &[f64], count: usize) -> Result<Tensor, String> {
    let values: Vec<f32> = spread(values, count)?.into_iter().map(|value| value as f32).collect();
    Tensor::from_values([count as i64], &values).map_err(|error| error.to_string())
}

/// One element for each of `count`.
pub fn spread(values: &[f64], count: usize) -> Result<Vec<f64>, String> {
    match values {
        [one] => Ok(vec![*one; count]),
        all if all.len() == count => Ok(all.to_vec()),
        all => Err(format!("{} constants for {count} channels", all.len())),
    }
}
