//! Reductions: the combining op, its neutral value, and the reduction of lanes to a scalar.
use super::{
    body::apply,
    error::Result,
    kernel::{Kernel, Origin, Stage, TensorId, argument, name_of},
};
use crate::attributes::ORDERED;
use crate::kernel::emit::{Emit, Lanes};
use irc_mlir::ops::arith;
use irc_mlir::{Attribute, BlockLike, OperationLike, OperationRef, Type, Value, attr};
use melior::ir::attribute::IntegerAttribute;

/// An associative, commutative op through which a region updates its accumulator.
#[derive(Debug, Clone, Copy)]
pub struct Combiner<'c, 'a> {
    op: OperationRef<'c, 'a>,
    /// Whether combining a value twice is the same as once, as with a maximum.
    pub idempotent: bool,
}

/// Whether a tensor depends on a sum or product that the kernel reorders, so that its last bits depend
/// on the order.
pub fn follows_sum<'c: 'a, 'a>(kernel: &Kernel<'c, 'a>, tensor: TensorId) -> bool {
    let (mut seen, mut left) = (vec![], vec![tensor]);
    while let Some(tensor) = left.pop() {
        let Origin::Stage(number) = kernel.tensors[tensor].origin else { continue };
        if seen.contains(&number) {
            continue;
        }
        seen.push(number);
        let stage = &kernel.stages[number];
        let free = |output| Combiner::of(stage, output).is_some_and(|by| !by.idempotent);
        if stage.reduces() && (0..stage.outputs.len()).any(free) {
            return true;
        }
        left.extend(stage.inputs.iter().map(|input| input.tensor));
    }
    false
}

impl<'c: 'a, 'a> Combiner<'c, 'a> {
    /// The combiner of an output: the op that is yielded and is the only user of the accumulator. A stage
    /// whose order is fixed has none.
    pub fn of(stage: &Stage<'c, 'a>, output: usize) -> Option<Self> {
        if ORDERED.is_on(&stage.op) {
            return None;
        }
        let accumulator = argument(stage.op, stage.body, stage.inputs.len() + output).ok()?;
        let [(op, _)] = irc_mlir::uses(accumulator)[..] else { return None };
        let yielded = stage.body.terminator()?.operand(output).ok()?;
        let idempotent = match name_of(op).as_str() {
            arith::ADDF | arith::MULF | arith::ADDI | arith::MULI | arith::XORI => false,
            arith::MAXIMUMF
            | arith::MINIMUMF
            | arith::MAXNUMF
            | arith::MINNUMF
            | arith::MAXSI
            | arith::MINSI
            | arith::MAXUI
            | arith::MINUI
            | arith::ANDI
            | arith::ORI => true,
            _ => return None,
        };
        let result: Value = op.result(0).ok()?.into();
        (result == yielded).then_some(Self { op, idempotent })
    }

    /// The neutral value of the op; for combiners that are not idempotent.
    pub fn neutral(&self, e: Emit<'c, 'a>, element: Type<'c>) -> Attribute<'c> {
        let int = |value| IntegerAttribute::new(element, value).into();
        match name_of(self.op).as_str() {
            arith::ADDF => attr::float(e.context, element, -0.0),
            arith::MULF => attr::float(e.context, element, 1.0),
            arith::MULI => int(1),
            _ => int(0),
        }
    }

    /// Combines two values.
    ///
    /// # Errors
    /// If the op has no form on these lanes.
    pub fn apply(
        &self,
        e: Emit<'c, 'a>,
        a: Value<'c, 'a>,
        b: Value<'c, 'a>,
        lanes: Lanes,
    ) -> Result<Value<'c, 'a>> {
        apply(e, self.op, &name_of(self.op), &[a, b], lanes)
    }

    /// Combines vectors, then their lanes by halves.
    ///
    /// # Errors
    /// As [`Combiner::apply`].
    pub fn fold(
        &self,
        e: Emit<'c, 'a>,
        vectors: &[Value<'c, 'a>],
        element: Type<'c>,
        lanes: Lanes,
    ) -> Result<Value<'c, 'a>> {
        let mut values = vectors.to_vec();
        while values.len() > 1 {
            let pairs = values.chunks(2).map(|pair| match pair {
                [a, b] => self.apply(e, *a, *b, lanes),
                rest => Ok(rest[0]),
            });
            values = pairs.collect::<Result<_>>()?;
        }
        e.by_halves(values[0], element, lanes, |low, high, lanes| self.apply(e, low, high, lanes))
    }
}
