//! Linear attention: a state per head, updated by every token, instead of all scores.

use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use crate::ops::pieces::{loops, size};
use irc_tl::{
    Builder, Built, Combine, Compute, DType, Dim, NodeKind, Scalar, Type, Unary, ValueId,
};

pub(in crate::ops) const OPERATORS: &[Operator] =
    &[Operator::new("LinearAttention", &[27], linear_attention)];

/// The state and the sums have this type.
const COMPUTED: DType = DType::F32;

/// The sizes of a node, and its update rule.
struct Recurrence {
    batch: Dim,
    time: Dim,
    query_heads: i64,
    heads: i64,
    key: Dim,
    value: Dim,
    /// The factor of the result; `None` for `1 / sqrt(key)`.
    scale: Option<f64>,
    /// The decay, and its size per head: one, or one per element of a key.
    decay: Option<(ValueId, Dim)>,
    /// The update rate, and its size: one per head, or one.
    beta: Option<(ValueId, Dim)>,
}

fn linear_attention(cx: &mut Context<'_>) -> Lowered {
    let [q, k, v] = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let recurrence = Recurrence::of(cx, [q, k, v])?;
    let (dtype, state_type) = match cx.optional(3) {
        Some(past) => (cx.dtype(q), cx.dtype(past)),
        None => (cx.dtype(q), cx.dtype(q)),
    };
    let state = match cx.optional(3) {
        Some(past) => cx.b.cast(past, COMPUTED)?,
        None => cx.b.fill(0.0, &recurrence.state_dims(), COMPUTED)?,
    };
    let (steps, state) = recurrence.run(cx.b, [q, k, v], state)?;
    // `[time, batch, heads, value]` to `[batch, time, heads * value]`.
    let steps = cx.b.transpose(steps, &[1, 0, 2, 3])?;
    let hidden = recurrence.value.clone() * recurrence.query_heads.into();
    let y = cx.b.reshape(steps, &[recurrence.batch.clone(), recurrence.time.clone(), hidden])?;
    Ok(vec![cx.b.cast(y, dtype)?, cx.b.cast(state, state_type)?])
}

impl Recurrence {
    fn of(cx: &Context<'_>, [q, k, v]: [ValueId; 3]) -> Result<Self, LowerError> {
        for value in [q, k, v] {
            if cx.b.rank(value) != 3 {
                let found = cx.ty(value);
                return Err(LowerError::invalid(format!("expected rank 3, found {found}")));
            }
        }
        let rule = cx.string_or("update_rule", "gated_delta")?;
        let (decays, corrects) = match rule.as_str() {
            "linear" => (false, false),
            "gated" => (true, false),
            "delta" => (false, true),
            "gated_delta" => (true, true),
            other => {
                let words = ["linear", "gated", "delta", "gated_delta"];
                return Err(LowerError::word("update_rule", &words, other));
            }
        };
        let count = |name: &str| -> Result<i64, LowerError> {
            let count = cx.int(name)?.filter(|count| *count > 0);
            count.ok_or_else(|| cx.missing(name))
        };
        let (query_heads, heads) = (count("q_num_heads")?, count("kv_num_heads")?);
        if query_heads % heads != 0 {
            let message = format!("expected q_num_heads in groups of {heads}, found {query_heads}");
            return Err(LowerError::invalid(message));
        }
        let dims = cx.b.dims(q);
        let packed = |input: usize| -> Result<(ValueId, Dim), LowerError> {
            let value = cx.input(input)?;
            let ty = cx.ty(value);
            let message = || LowerError::invalid(format!("expected rank 3, found {ty}"));
            let last = ty.dims.get(2).filter(|_| ty.rank() == 3).ok_or_else(message)?;
            Ok((value, last.clone()))
        };
        let decay = if decays { Some(packed(4)?) } else { None };
        let decay = decay.map(|(decay, last)| (decay, last.floor_div(&heads.into())));
        let beta = if corrects { Some(packed(5)?) } else { None };
        Ok(Self {
            batch: dims[0].clone(),
            time: dims[1].clone(),
            query_heads,
            heads,
            key: dims[2].floor_div(&query_heads.into()),
            value: cx.b.dims(v)[2].floor_div(&heads.into()),
            scale: Some(f64::from(cx.float_or("scale", 0.0)?)).filter(|scale| *scale != 0.0),
            decay,
            beta,
        })
    }

    fn state_dims(&self) -> [Dim; 4] {
        [self.batch.clone(), self.heads.into(), self.key.clone(), self.value.clone()]
    }

    /// The results of all steps, `[time, batch, heads, value]`, and the last state.
    fn run(
        &self,
        b: &mut Builder,
        [q, k, v]: [ValueId; 3],
        state: ValueId,
    ) -> Built<(ValueId, ValueId)> {
        let mut body = b.inside();
        let step = body.input("step", Type::new(DType::I64, []));
        let carried = body.input("state", b.ty(state).clone());
        let mut captured = vec![];
        let mut capture = |body: &mut Builder, value: ValueId| {
            let (own, operand) = body.capture(b, value, &format!("captured_{}", captured.len()));
            captured.extend(operand.then_some(value));
            own
        };
        let [q, k, v] = [q, k, v].map(|value| capture(&mut body, value));
        let decay = self.decay.as_ref().map(|(decay, _)| capture(&mut body, *decay));
        let beta = self.beta.as_ref().map(|(beta, _)| capture(&mut body, *beta));

        let decayed = match decay {
            Some(decay) => self.decayed(&mut body, [carried, decay, step])?,
            None => carried,
        };
        let written = match beta {
            Some(beta) => self.correction(&mut body, [decayed, k, v, beta, step])?,
            None => self.token(&mut body, [v, step])?,
        };
        let next = self.updated(&mut body, [decayed, k, written, step])?;
        let output = self.read(&mut body, [next, q, step])?;
        let go_on = body.scalar(1.0, DType::Bool)?;
        body.output("go_on", go_on);
        body.output("next", next);
        body.output("output", output);

        let trips = b.sizes(std::slice::from_ref(&self.time), true, DType::I64)?;
        let start = b.scalar(1.0, DType::Bool)?;
        let mut operands = vec![trips, start, state];
        operands.extend(captured);
        let heads = self.query_heads.into();
        let dims = [self.time.clone(), self.batch.clone(), heads, self.value.clone()];
        let types = [b.ty(state).clone(), Type::new(COMPUTED, dims)];
        let kind = NodeKind::Loop { body: Box::new(body.finish()), carried: 1 };
        let results = b.region(kind, &operands, types)?;
        Ok((results[1], results[0]))
    }

    /// The element of a packed operand, `[batch, time, heads * size]`, at the step that operand
    /// `step` holds.
    fn packed(&self, operand: usize, step: usize, head: Scalar, each: &Dim, at: Scalar) -> Scalar {
        let index = head * size(each) + at;
        let from = [Scalar::Loop(0), Scalar::load(step, []), index];
        Scalar::load(operand, from).cast(COMPUTED)
    }

    /// `exp(decay) * state`.
    fn decayed(&self, b: &mut Builder, operands: [ValueId; 3]) -> Built {
        let (head, key) = (Scalar::Loop(1), Scalar::Loop(2));
        let each = self.decay.as_ref().map_or(&self.key, |(_, each)| each);
        let decay = self.packed(1, 2, head, each, key.min(size(each) - Scalar::index(1)));
        let body = decay.unary(Unary::Exp) * Scalar::load(0, loops(0..4));
        b.compute(Compute::map(self.state_dims(), body), &operands)
    }

    /// `v` at the step: `[batch, heads, value]`.
    fn token(&self, b: &mut Builder, operands: [ValueId; 2]) -> Built {
        let dims = [self.batch.clone(), self.heads.into(), self.value.clone()];
        let body = self.packed(0, 1, Scalar::Loop(1), &self.value, Scalar::Loop(2));
        b.compute(Compute::map(dims, body), &operands)
    }

    /// `beta * (v - state^T k)`: `[batch, heads, value]`.
    fn correction(&self, b: &mut Builder, [state, k, v, beta, step]: [ValueId; 5]) -> Built {
        let dims = [self.batch.clone(), self.heads.into(), self.value.clone()];
        let head = || Scalar::Loop(1);
        let key = self.packed(1, 2, head(), &self.key, Scalar::Loop(3));
        let at = [Scalar::Loop(0), head(), Scalar::Loop(3), Scalar::Loop(2)];
        let body = Scalar::load(0, at) * key;
        let found = Compute::reduce(dims.clone(), Combine::Sum, [self.key.clone()], body);
        let found = b.compute(found, &[state, k, step])?;
        let of_head = match &self.beta {
            Some((_, count)) => head().min(size(count) - Scalar::index(1)),
            None => head(),
        };
        let beta_now = self.packed(2, 3, of_head, &1.into(), Scalar::index(0));
        let value = self.packed(1, 3, head(), &self.value, Scalar::Loop(2));
        let body = beta_now * (value - Scalar::load(0, loops(0..3)));
        b.compute(Compute::map(dims, body), &[found, v, beta, step])
    }

    /// `state + k * written^T`.
    fn updated(&self, b: &mut Builder, operands: [ValueId; 4]) -> Built {
        let key = self.packed(1, 3, Scalar::Loop(1), &self.key, Scalar::Loop(2));
        let written = Scalar::load(2, [Scalar::Loop(0), Scalar::Loop(1), Scalar::Loop(3)]);
        let body = Scalar::load(0, loops(0..4)) + key * written;
        b.compute(Compute::map(self.state_dims(), body), &operands)
    }

    /// `scale * q^T state`: `[batch, query heads, value]`.
    fn read(&self, b: &mut Builder, operands: [ValueId; 3]) -> Built {
        let dims = [self.batch.clone(), self.query_heads.into(), self.value.clone()];
        let key = || Scalar::Loop(3);
        let head = Scalar::Loop(1) / Scalar::index(self.query_heads / self.heads);
        let query = self.packed(1, 2, Scalar::Loop(1), &self.key, key());
        let state = Scalar::load(0, [Scalar::Loop(0), head, key(), Scalar::Loop(2)]);
        let sum = Compute::reduce(dims.clone(), Combine::Sum, [self.key.clone()], query * state);
        let sum = b.compute(sum, &operands)?;
        let by = match self.scale {
            Some(scale) => Scalar::float(scale, COMPUTED),
            None => size(&self.key).cast(COMPUTED).unary(Unary::Rsqrt),
        };
        b.compute(Compute::map(dims, by * Scalar::load(0, loops(0..3))), &[sum])
    }
}
