//! The cells of recurrent networks: one step.

use super::activation::Activation;
use super::{Network, requantised};
use crate::ops::pieces::slice;
use irc_tl::{Binary, Builder, Built, Dim, Op, Scalar, ValueId};

/// A kind of cell. Gates are concatenated in weights: for a GRU update, reset, hidden; for an LSTM
/// input, output, forget, cell.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cell {
    /// `h = f(x W + h R)`.
    Rnn,
    /// Cho et al., 2014.
    Gru {
        /// Whether the reset gate is applied after the product with the weights.
        linear_before_reset: bool,
    },
    /// Hochreiter and Schmidhuber, 1997, with peepholes of Gers et al., 2002.
    Lstm {
        /// Whether the forget gate is coupled to the input gate.
        input_forget: bool,
    },
}

/// The operands of a step.
pub(super) struct Step<'s> {
    /// The part of the gates that depends on the input.
    pub input: ValueId,
    /// The previous states.
    pub states: &'s [ValueId],
    /// The result of [`Cell::weights`].
    pub weights: &'s [ValueId],
    /// The functions of the cell.
    pub activations: &'s [Activation],
    /// The network.
    pub network: &'s Network,
}

impl Cell {
    /// Number of states.
    pub const fn states(self) -> usize {
        if matches!(self, Self::Lstm { .. }) { 2 } else { 1 }
    }

    /// Names of the default functions.
    pub const fn activations(self) -> &'static [&'static str] {
        match self {
            Self::Rnn => &["tanh"],
            Self::Gru { .. } => &["sigmoid", "tanh"],
            Self::Lstm { .. } => &["sigmoid", "tanh", "tanh"],
        }
    }

    const fn gates(self) -> i64 {
        match self {
            Self::Rnn => 1,
            Self::Gru { .. } => 3,
            Self::Lstm { .. } => 4,
        }
    }

    /// The bias added to the gates of every input, and the operands of every step.
    pub fn weights(
        self,
        b: &mut Builder,
        hidden: &Dim,
        r: ValueId,
        bias: Option<ValueId>,
        peepholes: Option<ValueId>,
    ) -> Built<(Option<ValueId>, Vec<ValueId>)> {
        let gates = hidden.clone() * self.gates().into();
        let (mut of_input, mut of_state) = (None, None);
        if let Some(bias) = bias {
            of_input = Some(slice(b, bias, 0, &0.into(), &gates)?);
            of_state = Some(slice(b, bias, 0, &gates, &gates)?);
        }
        if let Self::Gru { linear_before_reset: true } = self {
            return Ok((of_input, [Some(r), of_state].into_iter().flatten().collect()));
        }
        if let (Some(input), Some(state)) = (of_input, of_state) {
            of_input = Some(b.binary(Binary::Add, input, state)?);
        }
        if let Self::Gru { .. } = self {
            let two = hidden.clone() * 2.into();
            let first = slice(b, r, 0, &0.into(), &two)?;
            let last = slice(b, r, 0, &two, hidden)?;
            return Ok((of_input, vec![first, last]));
        }
        Ok((of_input, [Some(r), peepholes].into_iter().flatten().collect()))
    }

    /// The states after a step; the first is also its output.
    pub fn step(self, b: &mut Builder, step: &Step<'_>) -> Built<Vec<ValueId>> {
        match self {
            Self::Rnn => {
                let gate = step.recur(b, step.input, step.states[0], step.weights[0])?;
                Ok(vec![step.activate(b, 0, gate)?])
            }
            Self::Gru { linear_before_reset: false } => step.gru(b),
            Self::Gru { linear_before_reset: true } => step.linear_gru(b),
            Self::Lstm { input_forget } => step.lstm(b, input_forget),
        }
    }
}

impl Step<'_> {
    fn gru(&self, b: &mut Builder) -> Built<Vec<ValueId>> {
        let h = self.states[0];
        let hidden = &self.network.hidden;
        let two = hidden.clone() * 2.into();
        let gates = slice(b, self.input, 1, &0.into(), &two)?;
        let gates = self.recur(b, gates, h, self.weights[0])?;
        let update = self.gate(b, 0, gates, 0)?;
        let reset = self.gate(b, 0, gates, 1)?;
        let kept = b.binary(Binary::Mul, reset, h)?;
        let candidate = slice(b, self.input, 1, &two, hidden)?;
        let candidate = self.recur(b, candidate, kept, self.weights[1])?;
        let candidate = self.activate(b, 1, candidate)?;
        Ok(vec![mix(b, update, candidate, h)?])
    }

    fn linear_gru(&self, b: &mut Builder) -> Built<Vec<ValueId>> {
        let h = self.states[0];
        let mut recurrent = times(b, h, self.weights[0])?;
        if let Some(bias) = self.weights.get(1) {
            recurrent = b.binary(Binary::Add, recurrent, *bias)?;
        }
        let gates = b.binary(Binary::Add, self.input, recurrent)?;
        let update = self.gate(b, 0, gates, 0)?;
        let reset = self.gate(b, 0, gates, 1)?;
        let own = self.part(b, recurrent, 2)?;
        let kept = b.binary(Binary::Mul, reset, own)?;
        let candidate = self.part(b, self.input, 2)?;
        let candidate = b.binary(Binary::Add, candidate, kept)?;
        let candidate = self.activate(b, 1, candidate)?;
        Ok(vec![mix(b, update, candidate, h)?])
    }

    fn lstm(&self, b: &mut Builder, input_forget: bool) -> Built<Vec<ValueId>> {
        let (h, c) = (self.states[0], self.states[1]);
        let gates = self.recur(b, self.input, h, self.weights[0])?;
        let input = self.part(b, gates, 0)?;
        let input = self.peep(b, input, c, 0)?;
        let input = self.activate(b, 0, input)?;
        let forget = if input_forget {
            let one = b.scalar(1.0, b.dtype(input))?;
            b.binary(Binary::Sub, one, input)?
        } else {
            let forget = self.part(b, gates, 2)?;
            let forget = self.peep(b, forget, c, 2)?;
            self.activate(b, 0, forget)?
        };
        let candidate = self.gate(b, 1, gates, 3)?;
        let kept = b.binary(Binary::Mul, forget, c)?;
        let new = b.binary(Binary::Mul, input, candidate)?;
        let c = b.binary(Binary::Add, kept, new)?;
        let output = self.part(b, gates, 1)?;
        let output = self.peep(b, output, c, 1)?;
        let output = self.activate(b, 0, output)?;
        let shown = self.network_activation(b, 2, c)?;
        Ok(vec![b.binary(Binary::Mul, output, shown)?, c])
    }

    /// `gates + state * weights^T`.
    fn recur(&self, b: &mut Builder, gates: ValueId, state: ValueId, r: ValueId) -> Built {
        let state = if self.network.quantised { requantised(b, state)? } else { state };
        let recurrent = times(b, state, r)?;
        b.binary(Binary::Add, gates, recurrent)
    }

    /// One of the concatenated gates.
    fn part(&self, b: &mut Builder, gates: ValueId, index: i64) -> Built {
        let hidden = &self.network.hidden;
        slice(b, gates, 1, &(hidden.clone() * index.into()), hidden)
    }

    /// A function of one of the gates.
    fn gate(&self, b: &mut Builder, function: usize, gates: ValueId, index: i64) -> Built {
        let part = self.part(b, gates, index)?;
        self.activate(b, function, part)
    }

    /// The function of a gate, clipped.
    fn activate(&self, b: &mut Builder, function: usize, x: ValueId) -> Built {
        let Some(clip) = self.network.clip else {
            return self.network_activation(b, function, x);
        };
        let dims = b.dims(x);
        let number = |value: f64| Scalar::float(value, b.dtype(x));
        let body = Scalar::load(0, super::cells()).max(number(-clip)).min(number(clip));
        let clipped = b.compute(irc_tl::Compute::map(dims, body), &[x])?;
        self.network_activation(b, function, clipped)
    }

    fn network_activation(&self, b: &mut Builder, function: usize, x: ValueId) -> Built {
        self.activations[function].apply(b, x)
    }

    /// A gate with a peephole to the cell state.
    fn peep(&self, b: &mut Builder, gate: ValueId, cell: ValueId, index: i64) -> Built {
        let Some(peepholes) = self.weights.get(1) else { return Ok(gate) };
        let hidden = &self.network.hidden;
        let own = slice(b, *peepholes, 0, &(hidden.clone() * index.into()), hidden)?;
        let seen = b.binary(Binary::Mul, own, cell)?;
        b.binary(Binary::Add, gate, seen)
    }
}

/// `(1 - update) * new + update * old`.
fn mix(b: &mut Builder, update: ValueId, new: ValueId, old: ValueId) -> Built {
    let one = b.scalar(1.0, b.dtype(update))?;
    let rest = b.binary(Binary::Sub, one, update)?;
    let new = b.binary(Binary::Mul, rest, new)?;
    let old = b.binary(Binary::Mul, update, old)?;
    b.binary(Binary::Add, new, old)
}

/// `state * weights^T`.
fn times(b: &mut Builder, state: ValueId, weights: ValueId) -> Built {
    b.op(Op::Matmul { transpose_lhs: false, transpose_rhs: true }, &[state, weights])
}
