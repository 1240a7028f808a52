//! Recurrent networks: loops over time around cells.

mod activation;
mod cell;
mod direction;

use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use crate::ops::pieces::{concat, loops, size, slice, squeeze, unsqueeze, wide};
use crate::ops::product::quantized::centred;
use crate::ops::quantise::dynamically_quantised;
use activation::Activation;
use cell::Cell;
use direction::Direction;
use irc_tl::{Binary, Builder, Built, Compute, DType, Dim, Relation, Scalar, ValueId};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("RNN", &[1, 7, 14, 22], |cx| recurrent(cx, Cell::Rnn)),
    Operator::new("GRU", &[1, 3, 7, 14, 22], |cx| {
        let linear_before_reset = cx.version >= 3 && cx.int_or("linear_before_reset", 0)? != 0;
        recurrent(cx, Cell::Gru { linear_before_reset })
    }),
    Operator::new("LSTM", &[1, 7, 14, 22], |cx| {
        let input_forget = cx.int_or("input_forget", 0)? != 0;
        recurrent(cx, Cell::Lstm { input_forget })
    }),
];

/// Parameters that all directions of a node share.
struct Network {
    cell: Cell,
    /// `[time, batch, features]`, in the type of the computation.
    x: ValueId,
    /// The length of each sequence of the batch, if they differ.
    lengths: Option<ValueId>,
    time: Dim,
    batch: Dim,
    hidden: Dim,
    /// The type of operands and results.
    dtype: DType,
    /// Whether the batch comes before time and directions.
    batch_first: bool,
    clip: Option<f64>,
    activations: Vec<Activation>,
    /// Whether each direction runs backward.
    backward: Vec<bool>,
    /// Whether states are quantised before they are multiplied by the weights.
    quantised: bool,
}

fn recurrent(cx: &mut Context<'_>, cell: Cell) -> Lowered {
    let network = Network::of(cx, cell)?;
    network.lower(cx)
}

/// An LSTM whose input and state are quantised before they are multiplied by the weights.
pub(super) fn quantised_lstm(cx: &mut Context<'_>) -> Lowered {
    let input_forget = cx.int_or("input_forget", 0)? != 0;
    let mut network = Network::of(cx, Cell::Lstm { input_forget })?;
    network.x = requantised(cx.b, network.x)?;
    network.quantised = true;
    network.lower(cx)
}

/// The nearest numbers that a quantisation of the whole value has.
fn requantised(b: &mut Builder, x: ValueId) -> Built {
    let [quantised, scale, zero] = dynamically_quantised(b, x)?;
    let number = centred(b, quantised, Some(zero))?;
    let number = b.cast(number, b.dtype(x))?;
    b.binary(Binary::Mul, number, scale)
}

impl Network {
    fn lower(&self, cx: &mut Context<'_>) -> Lowered {
        let mut sequences = vec![];
        let mut last = vec![vec![]; self.cell.states()];
        for index in 0..self.backward.len() {
            let direction = self.direction(cx, index)?;
            let (sequence, states) = direction.run(cx.b, self)?;
            sequences.push(sequence);
            last.iter_mut().zip(states).for_each(|(all, state)| all.push(state));
        }
        let mut results = vec![self.sequence(cx.b, &sequences)?];
        for states in last {
            results.push(self.state(cx.b, &states)?);
        }
        for result in &mut results {
            *result = cx.b.cast(*result, self.dtype)?;
        }
        Ok(results)
    }

    fn of(cx: &mut Context<'_>, cell: Cell) -> Result<Self, LowerError> {
        let backward = match cx.string_or("direction", "forward")?.to_lowercase().as_str() {
            "forward" => vec![false],
            "reverse" => vec![true],
            "bidirectional" => vec![false, true],
            other => {
                let words = ["forward", "reverse", "bidirectional"];
                return Err(LowerError::word("direction", &words, other));
            }
        };
        let batch_first = cx.int_or("layout", 0)? != 0;
        let (x, r) = (cx.input(0)?, cx.input(2)?);
        let (found, weights) = (cx.ty(x), cx.ty(r));
        if found.rank() != 3 || weights.rank() != 3 {
            let message = format!("expected operands of rank 3, found {found} and {weights}");
            return Err(LowerError::invalid(message));
        }
        let x = cx.b.cast(x, wide(found.dtype))?;
        let x = if batch_first { cx.b.transpose(x, &[1, 0, 2])? } else { x };
        let dims = cx.b.dims(x);
        let hidden = weights.dims[2].clone();
        if let Some(stated) = cx.int("hidden_size")? {
            let message = "expected R of hidden_size columns";
            cx.b.require(&hidden, Relation::Equal, &stated.into(), message)?;
        }
        let message = "expected one direction of R per direction";
        cx.b.require(&weights.dims[0], Relation::Equal, &(backward.len() as i64).into(), message)?;
        Ok(Self {
            cell,
            x,
            lengths: cx.optional(4),
            time: dims[0].clone(),
            batch: dims[1].clone(),
            hidden,
            dtype: found.dtype,
            batch_first,
            clip: cx.float("clip")?.filter(|clip| *clip > 0.0).map(f64::from),
            activations: activation::all(cx, cell.activations(), backward.len())?,
            backward,
            quantised: false,
        })
    }

    /// The weights and initial states of a direction.
    fn direction(&self, cx: &mut Context<'_>, index: usize) -> Result<Direction, LowerError> {
        let part = |cx: &mut Context<'_>, input: usize| -> Result<Option<ValueId>, LowerError> {
            let Some(value) = cx.optional(input) else { return Ok(None) };
            let own = slice(cx.b, value, 0, &(index as i64).into(), &1.into())?;
            let own = squeeze(cx.b, own, 0)?;
            Ok(Some(cx.b.cast(own, wide(self.dtype))?))
        };
        let missing = |what: &str| LowerError::invalid(format!("{what} is missing"));
        let w = part(cx, 1)?.ok_or_else(|| missing("W"))?;
        let r = part(cx, 2)?.ok_or_else(|| missing("R"))?;
        let bias = part(cx, 3)?;
        let peepholes = if matches!(self.cell, Cell::Lstm { .. }) { part(cx, 7)? } else { None };
        let mut states = vec![];
        for state in 0..self.cell.states() {
            states.push(self.first(cx, 5 + state, index)?);
        }
        let per_direction = self.cell.activations().len();
        let activations = self.activations[index * per_direction..][..per_direction].to_vec();
        let (bias, weights) = self.cell.weights(cx.b, &self.hidden, r, bias, peepholes)?;
        let backward = self.backward[index];
        Ok(Direction { backward, w, bias, weights, states, activations })
    }

    /// An initial state: `[batch, hidden]`.
    fn first(
        &self,
        cx: &mut Context<'_>,
        input: usize,
        direction: usize,
    ) -> Result<ValueId, LowerError> {
        let Some(value) = cx.optional(input) else {
            let dims = [self.batch.clone(), self.hidden.clone()];
            return Ok(cx.b.fill(0.0, &dims, wide(self.dtype))?);
        };
        let axis = usize::from(self.batch_first);
        let own = slice(cx.b, value, axis, &(direction as i64).into(), &1.into())?;
        let own = cx.b.reshape(own, &[self.batch.clone(), self.hidden.clone()])?;
        Ok(cx.b.cast(own, wide(self.dtype))?)
    }

    /// The states of the directions as one result.
    fn state(&self, b: &mut Builder, states: &[ValueId]) -> Built {
        let axis = usize::from(self.batch_first);
        let mut parts = vec![];
        for state in states {
            parts.push(unsqueeze(b, *state, axis)?);
        }
        concat(b, &parts, axis)
    }

    /// Combines the steps `[time, batch, hidden]` of the directions, which are in execution order,
    /// into one result in the order of time.
    fn sequence(&self, b: &mut Builder, sequences: &[ValueId]) -> Built {
        if let ([sequence], [false], false) = (sequences, &self.backward[..], self.batch_first) {
            return unsqueeze(b, *sequence, 1);
        }
        let directions = Dim::Known(sequences.len() as i64);
        let (dims, [time, direction, batch]) = if self.batch_first {
            let dims = [&self.batch, &self.time, &directions, &self.hidden];
            (dims, [1, 2, 0])
        } else {
            ([&self.time, &directions, &self.batch, &self.hidden], [0, 1, 2])
        };
        let mut operands = sequences.to_vec();
        operands.extend(self.lengths);
        let step = |index: usize| {
            let load = |at| Scalar::load(index, [at, Scalar::Loop(batch), Scalar::Loop(3)]);
            if !self.backward[index] {
                return load(Scalar::Loop(time));
            }
            let Some(length) = self.length(sequences.len(), Scalar::Loop(batch)) else {
                return load(size(&self.time) - Scalar::index(1) - Scalar::Loop(time));
            };
            let inside = Scalar::Loop(time).lt(length.clone());
            let value = load(length - Scalar::index(1) - Scalar::Loop(time));
            inside.select(value, Scalar::number(0, wide(self.dtype)))
        };
        let mut body = step(0);
        if sequences.len() == 2 {
            let first = Scalar::Loop(direction).equals(Scalar::index(0));
            body = first.select(body, step(1));
        }
        b.compute(Compute::map(dims.map(Dim::clone), body), &operands)
    }

    /// The length of a sequence of the batch, where `lengths` is that operand.
    fn length(&self, operand: usize, batch: Scalar) -> Option<Scalar> {
        self.lengths?;
        let length = Scalar::load(operand, [batch]).cast(DType::I64);
        Some(length.min(size(&self.time)))
    }
}

/// All loops of a matrix.
fn cells() -> Vec<Scalar> {
    loops(0..2)
}
