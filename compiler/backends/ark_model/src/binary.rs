//! Functions of two operands: by ARK's op, or, if one operand is a number, by ops on the other.

use crate::memory::Memory;
use crate::nodes::{Scope, Writer};
use crate::numbers::factor;
use crate::ops::no_op;
use crate::types::{ark_shape, data_type};
use irc_ark_format::model::{OpKind, Tensor};
use irc_ark_frontend::Meaning;
use irc_tl::{Binary, DType, Graph, TensorType, ValueId};

impl Writer {
    /// The box of the result.
    pub fn binary(
        &mut self,
        graph: &Graph,
        function: Binary,
        operands: &[ValueId],
        ty: &TensorType,
        scope: &mut Scope,
    ) -> Result<Tensor, String> {
        let shape = ark_shape(&ty.shape)?;
        let dtype = data_type(ty.dtype)?;
        let [left, right] = [operands[0], operands[1]];
        let numbers = [self.splat(left, scope), self.splat(right, scope)];
        if let Some((number, other, is_left)) = match numbers {
            [None, Some(number)] => Some((number, left, false)),
            [Some(number), None] => Some((number, right, true)),
            _ => None,
        } && let Some(steps) = with_number(function, number, is_left, ty.dtype)
        {
            let mut x = self.tensor(graph, other, scope)?;
            for step in steps {
                x = step.write(&mut self.memory, &x);
            }
            return Ok(if x.shape == shape { x } else { self.memory.copy(&x, &shape) });
        }
        let is_own =
            |meaning: &Meaning| matches!(meaning, Meaning::Binary(own) if *own == function);
        let kind = Meaning::find(is_own).ok_or_else(|| no_op(function.name()))?;
        let mut tensors = vec![];
        for (value, number) in [left, right].into_iter().zip(numbers) {
            tensors.push(match number {
                // One element is enough, because it broadcasts.
                Some(number) => self.number(number, ty.dtype, &[1])?,
                None => self.tensor(graph, value, scope)?,
            });
        }
        Ok(self.memory.op(kind, &[&tensors[0], &tensors[1]], (dtype, &shape), &[]))
    }
}

/// An op on one operand.
#[derive(Clone, Copy)]
enum Step {
    Add(f32),
    Mul(f32),
    Square,
    Cube,
    Unary(OpKind),
}

impl Step {
    fn write(self, memory: &mut Memory, x: &Tensor) -> Tensor {
        match self {
            Self::Add(number) => memory.scalar(OpKind::ScalarAdd, x, number),
            Self::Mul(number) => memory.scalar(OpKind::ScalarMul, x, number),
            Self::Square => memory.binary(OpKind::Mul, x, x),
            Self::Cube => {
                let square = memory.binary(OpKind::Mul, x, x);
                memory.binary(OpKind::Mul, &square, x)
            }
            Self::Unary(kind) => memory.unary(kind, x),
        }
    }
}

/// Ops on one operand that are equivalent to a function of two of which one (the left if `is_left`) is
/// the same number everywhere; `None` if there are none with the same results.
fn with_number(function: Binary, number: f64, is_left: bool, dtype: DType) -> Option<Vec<Step>> {
    let exact = factor(number, dtype).ok()?;
    Some(match (function, is_left) {
        (Binary::Add, _) => vec![Step::Add(exact)],
        (Binary::Mul, _) => vec![Step::Mul(exact)],
        (Binary::Sub, false) => vec![Step::Add(-exact)],
        (Binary::Sub, true) => vec![Step::Mul(-1.0), Step::Add(exact)],
        // Equivalent to multiplying by the reciprocal only for powers of two.
        (Binary::Div, false) if dtype.is_float() => {
            let reciprocal = 1.0 / exact;
            let is_power = exact.to_bits() & 0x007f_ffff == 0 && exact.is_normal();
            let is_held = reciprocal.is_normal()
                && dtype.round_float(reciprocal.into()) == f64::from(reciprocal);
            (is_power && is_held).then(|| vec![Step::Mul(reciprocal)])?
        }
        (Binary::Max, _) if number == 0.0 => vec![Step::Unary(OpKind::Relu)],
        (Binary::Min, _) if number == 0.0 => {
            vec![Step::Mul(-1.0), Step::Unary(OpKind::Relu), Step::Mul(-1.0)]
        }
        (Binary::Pow, false) if dtype.is_float() => match number {
            1.0 => vec![],
            2.0 => vec![Step::Square],
            3.0 => vec![Step::Cube],
            0.5 => vec![Step::Unary(OpKind::Sqrt)],
            -0.5 => vec![Step::Unary(OpKind::Rsqrt)],
            _ => return None,
        },
        _ => return None,
    })
}
