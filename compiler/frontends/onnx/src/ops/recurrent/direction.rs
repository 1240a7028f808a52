//! One direction of a recurrent network: a loop over time.

use super::activation::Activation;
use super::cell::Step;
use super::{Network, cells};
use crate::ops::pieces::size;
use irc_tl::{Binary, Builder, Built, Compute, DType, Dim, NodeKind, Op, Scalar, Type, ValueId};

/// The parameters of one direction.
pub(super) struct Direction {
    /// Whether it runs from the last step to the first.
    pub backward: bool,
    /// `[gates * hidden, features]`: applied to every step of the input.
    pub w: ValueId,
    /// `[gates * hidden]`: added to every step of the input.
    pub bias: Option<ValueId>,
    /// The weights of every step of the cell.
    pub weights: Vec<ValueId>,
    /// The initial states, `[batch, hidden]`.
    pub states: Vec<ValueId>,
    /// The functions of the cell.
    pub activations: Vec<Activation>,
}

impl Direction {
    /// The steps `[time, batch, hidden]`, in execution order, and the final states.
    pub fn run(&self, b: &mut Builder, network: &Network) -> Built<(ValueId, Vec<ValueId>)> {
        let projected = self.project(b, network)?;
        let mut body = b.inside();
        let step = body.input("step", Type::new(DType::I64, []));
        let mut states = vec![];
        for (index, state) in self.states.iter().enumerate() {
            states.push(body.input(format!("state_{index}"), b.ty(*state).clone()));
        }
        let mut inner = Inner { around: b, body, captured: vec![] };
        let input = inner.capture(projected);
        let lengths = network.lengths.map(|lengths| inner.capture(lengths));
        let weights: Vec<ValueId> =
            self.weights.iter().map(|weight| inner.capture(*weight)).collect();
        let Inner { mut body, captured, .. } = inner;

        let valid = match lengths {
            Some(lengths) => Some(valid(&mut body, network, step, lengths)?),
            None => None,
        };
        let input = self.input(&mut body, network, [input, step], lengths)?;
        let activations = &self.activations;
        let step = Step { input, states: &states, weights: &weights, activations, network };
        let found = network.cell.step(&mut body, &step)?;
        let mut output = found[0];
        let mut next = vec![];
        for (state, found) in states.iter().zip(&found) {
            next.push(match valid {
                Some(valid) => body.select(valid, *found, *state)?,
                None => *found,
            });
        }
        if let Some(valid) = valid {
            let nothing = body.scalar(0.0, body.dtype(output))?;
            output = body.select(valid, output, nothing)?;
        }
        let go_on = body.scalar(1.0, DType::Bool)?;
        body.output("go_on", go_on);
        for (index, state) in next.iter().enumerate() {
            body.output(format!("next_{index}"), *state);
        }
        body.output("output", output);
        self.repeat(b, body, &captured, network)
    }

    /// The loop around its body.
    fn repeat(
        &self,
        b: &mut Builder,
        body: Builder,
        captured: &[ValueId],
        network: &Network,
    ) -> Built<(ValueId, Vec<ValueId>)> {
        let trips = b.sizes(std::slice::from_ref(&network.time), true, DType::I64)?;
        let start = b.scalar(1.0, DType::Bool)?;
        let mut operands = vec![trips, start];
        operands.extend(&self.states);
        operands.extend(captured);
        let mut types: Vec<Type> = self.states.iter().map(|state| b.ty(*state).clone()).collect();
        let step = types[0].clone();
        let dims = [network.time.clone(), network.batch.clone(), network.hidden.clone()];
        types.push(Type::new(step.dtype, dims));
        let carried = self.states.len();
        let kind = NodeKind::Loop { body: Box::new(body.finish()), carried };
        let mut results = b.region(kind, &operands, types)?;
        let sequence = results.split_off(carried)[0];
        Ok((sequence, results))
    }

    /// The part of the gates that does not depend on states, of all steps at once:
    /// `[time, batch, gates * hidden]`.
    fn project(&self, b: &mut Builder, network: &Network) -> Built {
        let features = b.dims(network.x)[2].clone();
        let steps = network.time.clone() * network.batch.clone();
        let rows = b.reshape(network.x, &[steps, features])?;
        let op = Op::Matmul { transpose_lhs: false, transpose_rhs: true };
        let mut gates = b.op(op, &[rows, self.w])?;
        if let Some(bias) = self.bias {
            gates = b.binary(Binary::Add, gates, bias)?;
        }
        let columns = b.dims(gates)[1].clone();
        b.reshape(gates, &[network.time.clone(), network.batch.clone(), columns])
    }

    /// The step of the projected input that this step of the loop reads.
    fn input(
        &self,
        body: &mut Builder,
        network: &Network,
        [input, step]: [ValueId; 2],
        lengths: Option<ValueId>,
    ) -> Built {
        let dims: Vec<Dim> = body.dims(input)[1..].to_vec();
        let mut at = Scalar::load(1, []);
        let mut operands = vec![input, step];
        if self.backward {
            operands.extend(lengths);
            let end = network.length(2, Scalar::Loop(0)).unwrap_or(size(&network.time));
            // Steps beyond a sequence's end read an element that is not used.
            at = (end - Scalar::index(1) - at).max(Scalar::index(0));
        }
        let load = Scalar::load(0, [at, Scalar::Loop(0), Scalar::Loop(1)]);
        body.compute(Compute::map(dims, load), &operands)
    }
}

/// A graph in another, and its captures.
struct Inner<'b> {
    around: &'b Builder,
    body: Builder,
    captured: Vec<ValueId>,
}

impl Inner<'_> {
    fn capture(&mut self, value: ValueId) -> ValueId {
        let name = format!("captured_{}", self.captured.len());
        let (own, operand) = self.body.capture(self.around, value, &name);
        self.captured.extend(operand.then_some(value));
        own
    }
}

/// Which sequences of the batch are long enough for this step: `bool[batch, 1]`.
fn valid(body: &mut Builder, network: &Network, step: ValueId, lengths: ValueId) -> Built {
    let length = Scalar::load(1, [cells()[0].clone()]).cast(DType::I64);
    let holds = Scalar::load(0, []).lt(length);
    body.compute(Compute::map([network.batch.clone(), Dim::Known(1)], holds), &[step, lengths])
}
