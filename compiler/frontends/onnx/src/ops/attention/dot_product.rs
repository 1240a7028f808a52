//! Scaled dot-product attention.

use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use crate::ops::pieces::{concat, loops, scale, size, softmax, wide};
use irc_tl::{
    Binary, Builder, Built, Comparison, Compute, DType, Dim, Op, Reduction, Relation, Scalar,
    Unary, ValueId,
};

pub(in crate::ops) const OPERATORS: &[Operator] =
    &[Operator::new("Attention", &[23, 24, 25], attention)];

fn attention(cx: &mut Context<'_>) -> Lowered {
    let [q, k, v] = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let packed = cx.b.rank(q) == 3;
    let q = heads(cx, q, "q_num_heads")?;
    let k = heads(cx, k, "kv_num_heads")?;
    let v = heads(cx, v, "kv_num_heads")?;
    let key = after_past(cx.b, cx.optional(4), k)?;
    let value = after_past(cx.b, cx.optional(5), v)?;
    let dtype = cx.dtype(q);
    let past = cx.optional(4).map_or(0.into(), |past| cx.b.dims(past)[2].clone());

    let whole = [&cx.b.dims(q)[..3], &cx.b.dims(key)[2..3]].concat();
    let arranged = Arrangement::of(cx.b, q, key)?;
    let q = arranged.queries(cx.b, q)?;
    let (k, v) = (arranged.shared(cx.b, key)?, arranged.shared(cx.b, value)?);

    let products = scores(cx.b, q, k, cx.float("scale")?)?;
    let cap = f64::from(cx.float_or("softcap", 0.0)?);
    let capped = if cap == 0.0 { products } else { soft_cap(cx.b, products, cap)? };
    let added = add_mask(cx, &arranged, capped, &whole)?;
    // Whether a key is seen is decided in the type of the softmax, of which attention can be computed at once.
    let precision = precision(cx)?.unwrap_or(dtype);
    let scores = cx.b.cast(added, precision)?;
    let scores = cx.b.cast(scores, wide(precision))?;
    let seen = hide(cx, &arranged, scores, &past)?;
    let is_masked = added != capped || seen != scores;
    let weights = match is_masked {
        true => masked_softmax(cx.b, seen, None)?,
        false => wide_softmax(cx.b, seen)?,
    };
    let weights = cx.b.cast(weights, precision)?;
    let weights = cx.b.cast(weights, dtype)?;
    let shown = match cx.int_or("qk_matmul_output_mode", 0)? {
        0 => products,
        1 => capped,
        2 => hide(cx, &arranged, added, &past)?,
        3 => weights,
        other => {
            let message = format!("expected qk_matmul_output_mode from 0 to 3, found {other}");
            return Err(LowerError::invalid(message));
        }
    };
    let shown = arranged.joined(cx.b, shown, &whole)?;
    let of_weights = cx.b.cast(v, dtype)?;
    let y = weighted(cx.b, weights, of_weights)?;
    let mut y = arranged.joined(cx.b, y, &whole)?;
    if packed {
        y = joined_heads(cx.b, y)?;
    }
    Ok(vec![y, key, value, shown])
}

/// How scores are arranged whose heads of queries, several of them, share a head of keys and values: `[batch, shared heads,
/// heads that share one, queries, keys]`, so that each head of queries has a matrix. Those of one query are the rows of one
/// matrix, `[batch, shared heads, heads that share one, keys]`. Otherwise `[batch, heads, queries, keys]`.
pub(in crate::ops) struct Arrangement {
    /// The heads of keys and those of queries that share one, unless each has its own.
    pub shared: Option<[Dim; 2]>,
    pub is_token: bool,
}

impl Arrangement {
    fn of(b: &mut Builder, queries: ValueId, keys: ValueId) -> Result<Self, LowerError> {
        let (own, keys) = (b.dims(queries), b.dims(keys));
        if own[1] == keys[1] {
            return Ok(Self { shared: None, is_token: false });
        }
        let each = own[1].floor_div(&keys[1]);
        let message = "expected a multiple of the heads of keys and values";
        b.require(&(each.clone() * keys[1].clone()), Relation::Equal, &own[1], message)?;
        Ok(Self { shared: Some([keys[1].clone(), each]), is_token: own[2].is(1) })
    }

    /// Queries, or what has `[batch, heads, queries, ...]` of them.
    pub fn queries(&self, b: &mut Builder, x: ValueId) -> Built {
        let Some(heads) = &self.shared else { return Ok(x) };
        self.with_heads(b, x, heads)
    }

    /// A mask of `[batch, heads, queries, keys]`, of which the first three may be 1 to broadcast.
    fn mask(&self, b: &mut Builder, x: ValueId) -> Built {
        if b.dims(x)[1].is(1) && self.shared.is_some() {
            return self.with_heads(b, x, &[1.into(), 1.into()]);
        }
        self.queries(b, x)
    }

    fn with_heads(&self, b: &mut Builder, x: ValueId, heads: &[Dim; 2]) -> Built {
        let dims = b.dims(x);
        let rest = if self.is_token { &dims[3..] } else { &dims[2..] };
        b.reshape(x, &[&dims[..1], heads, rest].concat())
    }

    /// Keys or values.
    pub fn shared(&self, b: &mut Builder, x: ValueId) -> Built {
        let Some([shared, _]) = &self.shared else { return Ok(x) };
        let mut dims = b.dims(x);
        b.require(&dims[1], Relation::Equal, shared, "expected as many heads of keys and values")?;
        dims[1] = shared.clone();
        if !self.is_token {
            dims.insert(2, 1.into());
        }
        b.reshape(x, &dims)
    }

    /// `[batch, heads, queries, ...]` of what is arranged as scores of `[batch, heads, queries, keys]`.
    fn joined(&self, b: &mut Builder, x: ValueId, whole: &[Dim]) -> Built {
        if self.shared.is_none() {
            return Ok(x);
        }
        let mut dims = b.dims(x);
        let last = dims.split_off(dims.len() - 1);
        b.reshape(x, &[&dims[..1], &whole[1..3], &last].concat())
    }

    /// The batch, head, query and key of a score.
    fn place(&self) -> [Scalar; 4] {
        let (head, query) = match &self.shared {
            None => (Scalar::Loop(1), Scalar::Loop(2)),
            Some([_, each]) => {
                let head = Scalar::Loop(1) * size(each) + Scalar::Loop(2);
                (head, if self.is_token { Scalar::index(0) } else { Scalar::Loop(3) })
            }
        };
        let key = Scalar::Loop(self.rank() - 1);
        [Scalar::Loop(0), head, query, key]
    }

    fn rank(&self) -> usize {
        if self.shared.is_some() && !self.is_token { 5 } else { 4 }
    }
}

/// `[batch, heads, sequence, size]` from a value that may have the heads in its last dimension.
fn heads(cx: &mut Context<'_>, x: ValueId, attribute: &str) -> Result<ValueId, LowerError> {
    let dims = cx.b.dims(x);
    match dims.len() {
        4 => return Ok(x),
        3 => {}
        _ => {
            let found = cx.ty(x);
            return Err(LowerError::invalid(format!("expected rank 3 or 4, found {found}")));
        }
    }
    let count = cx.int(attribute)?.filter(|count| *count > 0);
    let count = count.ok_or_else(|| cx.missing(attribute))?;
    Ok(split_heads(cx.b, x, count)?)
}

/// `[batch, heads, sequence, size]` of `[batch, sequence, heads * size]`.
pub(in crate::ops) fn split_heads(b: &mut Builder, x: ValueId, count: i64) -> Built {
    let dims = b.dims(x);
    let each = dims[2].floor_div(&count.into());
    let split = [dims[0].clone(), dims[1].clone(), count.into(), each];
    let split = b.reshape(x, &split)?;
    b.transpose(split, &[0, 2, 1, 3])
}

/// `[batch, sequence, heads * size]` of `[batch, heads, sequence, size]`.
pub(in crate::ops) fn joined_heads(b: &mut Builder, x: ValueId) -> Built {
    let x = b.transpose(x, &[0, 2, 1, 3])?;
    let dims = b.dims(x);
    let hidden = dims[2].clone() * dims[3].clone();
    b.reshape(x, &[dims[0].clone(), dims[1].clone(), hidden])
}

/// The states before and of this call, along the sequence.
pub(in crate::ops) fn after_past(b: &mut Builder, past: Option<ValueId>, x: ValueId) -> Built {
    match past {
        Some(past) => concat(b, &[past, x], 2),
        None => Ok(x),
    }
}

/// The element type in which the softmax is computed, if the attribute is given.
pub(super) fn precision(cx: &Context<'_>) -> Result<Option<DType>, LowerError> {
    Ok(match cx.int("softmax_precision")? {
        None => None,
        Some(1) => Some(DType::F32),
        Some(10) => Some(DType::F16),
        Some(11) => Some(DType::F64),
        Some(16) => Some(DType::BF16),
        Some(other) => {
            let message = format!("expected a float type as softmax_precision, found {other}");
            return Err(LowerError::invalid(message));
        }
    })
}

/// Softmax in at least single precision.
pub(in crate::ops) fn wide_softmax(b: &mut Builder, x: ValueId) -> Built {
    let dtype = b.dtype(x);
    let x = b.cast(x, wide(dtype))?;
    let weights = softmax(b, x)?;
    b.cast(weights, dtype)
}

/// Softmax of scores that may all be masked: the weights are then zero. A sink is one more score in each row,
/// whose weight is not part of the result; it broadcasts to the rows.
pub(in crate::ops) fn masked_softmax(b: &mut Builder, x: ValueId, sink: Option<ValueId>) -> Built {
    let to = b.dtype(x);
    let x = b.cast(x, wide(to))?;
    let dtype = b.dtype(x);
    let last = [b.rank(x) - 1];
    let lowest = if dtype == DType::F64 { f64::MIN } else { f64::from(f32::MIN) };
    let lowest = b.scalar(lowest, dtype)?;
    let highest = b.reduce(Reduction::Max, x, &last, true)?;
    let sink = sink.map(|sink| b.cast(sink, dtype)).transpose()?;
    let highest = b.binary(Binary::Max, highest, sink.unwrap_or(lowest))?;
    let below = b.binary(Binary::Sub, x, highest)?;
    let powers = b.unary(Unary::Exp, below)?;
    let sum = b.reduce(Reduction::Sum, powers, &last, true)?;
    let sum = match sink {
        Some(sink) => {
            let below = b.binary(Binary::Sub, sink, highest)?;
            let power = b.unary(Unary::Exp, below)?;
            b.binary(Binary::Add, sum, power)?
        }
        None => {
            // A sum that is not zero is at least one.
            let half = b.scalar(0.5, dtype)?;
            b.binary(Binary::Max, sum, half)?
        }
    };
    let weights = b.binary(Binary::Div, powers, sum)?;
    b.cast(weights, to)
}

/// The scaled products of every query with every key: `[batch, heads, queries, keys]`. There may be more dimensions before
/// those of the matrices.
pub(in crate::ops) fn scores(b: &mut Builder, q: ValueId, k: ValueId, by: Option<f32>) -> Built {
    let dtype = b.dtype(q);
    let by = match by {
        Some(by) => b.scalar(f64::from(by), DType::F32)?,
        None => {
            let size = b.dims(q).pop().ok_or("expected a matrix of queries")?;
            let size = b.sizes(&[size], true, DType::I64)?;
            let size = b.cast(size, DType::F32)?;
            b.unary(Unary::Rsqrt, size)?
        }
    };
    let (q, k) = if wide(dtype) == dtype {
        let by = b.cast(by, dtype)?;
        (b.binary(Binary::Mul, q, by)?, k)
    } else {
        // The root of the factor on both sides keeps the product in the range of a small type.
        let root = b.unary(Unary::Sqrt, by)?;
        let root = b.cast(root, dtype)?;
        (b.binary(Binary::Mul, q, root)?, b.binary(Binary::Mul, k, root)?)
    };
    grouped(b, q, k, true)
}

/// The weighted sums of values: `[batch, heads, queries, size]`.
pub(in crate::ops) fn weighted(b: &mut Builder, weights: ValueId, values: ValueId) -> Built {
    grouped(b, weights, values, false)
}

/// A product per head; several heads of `x` may share one of `y`.
fn grouped(b: &mut Builder, x: ValueId, y: ValueId, transpose_rhs: bool) -> Built {
    let (own, shared) = (b.dims(x), b.dims(y));
    let op = Op::Matmul { transpose_lhs: false, transpose_rhs };
    if own[1] == shared[1] {
        return b.op(op, &[x, y]);
    }
    let group = own[1].floor_div(&shared[1]);
    let message = "expected a multiple of the heads of keys and values";
    b.require(&(group.clone() * shared[1].clone()), Relation::Equal, &own[1], message)?;
    let rows = group * own[2].clone();
    let tall = b.reshape(x, &[own[0].clone(), shared[1].clone(), rows, own[3].clone()])?;
    let product = b.op(op, &[tall, y])?;
    let columns = b.dims(product)[3].clone();
    b.reshape(product, &[own[0].clone(), own[1].clone(), own[2].clone(), columns])
}

/// `cap * tanh(x / cap)`.
pub(in crate::ops) fn soft_cap(b: &mut Builder, x: ValueId, cap: f64) -> Built {
    let x = scale(b, x, 1.0 / cap)?;
    let x = b.unary(Unary::Tanh, x)?;
    scale(b, x, cap)
}

/// Scores with the mask that is given, if one is: its sum with them, or minus infinity where it hides a key.
fn add_mask(
    cx: &mut Context<'_>,
    arranged: &Arrangement,
    scores: ValueId,
    whole: &[Dim],
) -> Result<ValueId, LowerError> {
    let Some(given) = cx.optional(3) else { return Ok(scores) };
    let (ty, dtype) = (cx.b.ty(given).clone(), cx.dtype(scores));
    if !has_each_key(&ty.dims, whole) {
        let element = Scalar::load(0, loops(0..arranged.rank()));
        let body = with_mask(cx, arranged, element, given, whole)?;
        let dims = cx.b.dims(scores);
        return Ok(cx.b.compute(Compute::map(dims, body), &[scores, given])?);
    }
    let mut dims = vec![Dim::from(1); 4 - ty.rank()];
    dims.extend(ty.dims);
    let mask = cx.b.reshape(given, &dims)?;
    let mask = arranged.mask(cx.b, mask)?;
    if ty.dtype == DType::Bool {
        let hidden = cx.b.scalar(f64::NEG_INFINITY, dtype)?;
        return Ok(cx.b.select(mask, scores, hidden)?);
    }
    let mask = cx.b.cast(mask, dtype)?;
    Ok(cx.b.binary(Binary::Add, scores, mask)?)
}

/// Whether a mask has a number for each key, and broadcasts to scores of these sizes whatever symbols stand for.
pub(in crate::ops) fn has_each_key(mask: &[Dim], scores: &[Dim]) -> bool {
    let fits = |(own, dim): (&Dim, &Dim)| own == dim || own.is(1);
    mask.len() <= scores.len()
        && mask.iter().rev().zip(scores.iter().rev()).all(fits)
        && mask.last().is_some_and(|last| Some(last) == scores.last())
}

/// Scores that are minus infinity where a query does not see a key: beyond the end of its sequence, or of its window.
fn hide(
    cx: &mut Context<'_>,
    arranged: &Arrangement,
    scores: ValueId,
    past: &Dim,
) -> Result<ValueId, LowerError> {
    let (dims, dtype) = (cx.b.dims(scores), cx.dtype(scores));
    let hidden = || Scalar::float(f64::NEG_INFINITY, dtype);
    let window = Window::of(cx)?;
    let [batch, _, query, key] = arranged.place();
    let mut body = Scalar::load(0, loops(0..arranged.rank()));
    let mut operands = vec![scores];
    let mut offset = size(past);
    if let Some(lengths) = cx.optional(6) {
        let length = Scalar::load(operands.len(), [batch]).cast(DType::I64);
        operands.push(lengths);
        body = key.clone().lt(length.clone()).select(body, hidden());
        if cx.optional(4).is_none() {
            let queries = cx.b.dims(cx.input(0)?);
            offset = length - size(&queries[queries.len() - 2]);
        }
    }
    let keys = &dims[dims.len() - 1];
    let sees_all = arranged.is_token && operands.len() == 1 && *keys == past.clone() + 1.into();
    if sees_all && window.is_causal() {
        return Ok(scores);
    }
    if let Some(seen) = window.sees(&(query + offset), &key) {
        body = seen.select(body, hidden());
    } else if operands.len() == 1 {
        return Ok(scores);
    }
    Ok(cx.b.compute(Compute::map(dims, body), &operands)?)
}

/// How far from a query keys are visible; `None` without a limit.
struct Window {
    before: Option<i64>,
    after: Vec<i64>,
}

impl Window {
    fn of(cx: &Context<'_>) -> Result<Self, LowerError> {
        let side = |name: &str| -> Result<Option<i64>, LowerError> {
            if cx.version < 25 {
                return Ok(None);
            }
            Ok(cx.int(name)?.filter(|size| *size >= 0))
        };
        let causal = (cx.int_or("is_causal", 0)? != 0).then_some(0);
        let after = causal.into_iter().chain(side("right_window_size")?).collect();
        Ok(Self { before: side("left_window_size")?, after })
    }

    /// Whether it hides later keys alone.
    fn is_causal(&self) -> bool {
        self.before.is_none() && self.after.iter().all(|after| *after == 0)
    }

    /// Whether a key is visible from a position; `None` if all are.
    fn sees(&self, position: &Scalar, key: &Scalar) -> Option<Scalar> {
        let key = || key.clone();
        let first = self.before.map(|before| key().ge(position.clone() - Scalar::index(before)));
        let last = self
            .after
            .iter()
            .map(|after| key().compare(Comparison::Le, position.clone() + Scalar::index(*after)));
        first.into_iter().chain(last).reduce(Scalar::and)
    }
}

/// A score with the mask, operand 1, which broadcasts; keys beyond its end are hidden.
fn with_mask(
    cx: &mut Context<'_>,
    arranged: &Arrangement,
    score: Scalar,
    given: ValueId,
    dims: &[Dim],
) -> Result<Scalar, LowerError> {
    let ty = cx.ty(given);
    let Some(new) = 4usize.checked_sub(ty.rank()).filter(|new| *new < 4) else {
        return Err(LowerError::invalid(format!("expected a mask of rank 1 to 4, found {ty}")));
    };
    let may_end = cx.version >= 24;
    let place = arranged.place();
    let mut at = vec![];
    for (axis, own) in ty.dims.iter().enumerate() {
        let index = place[new + axis].clone();
        let last = new + axis == 3;
        let relation = if last && may_end { Relation::AtMost } else { Relation::EqualOrOne };
        cx.b.require(own, relation, &dims[new + axis], "expected a mask that broadcasts")?;
        at.push(match own.known() {
            _ if *own == dims[new + axis] || last && may_end => index,
            Some(1) => Scalar::index(0),
            Some(_) => index,
            None => size(own).equals(Scalar::index(1)).select(Scalar::index(0), index),
        });
    }
    let dtype = cx.dtype(given);
    let element = Scalar::load(1, at);
    let to = score_type(cx)?;
    let hidden = || Scalar::float(f64::NEG_INFINITY, to);
    let value = if dtype == DType::Bool {
        element.select(score, hidden())
    } else {
        score + element.cast(to)
    };
    let columns = &ty.dims[ty.rank() - 1];
    if may_end && *columns != dims[3] {
        let [.., key] = place;
        return Ok(key.lt(size(columns)).select(value, hidden()));
    }
    Ok(value)
}

fn score_type(cx: &Context<'_>) -> Result<DType, LowerError> {
    Ok(cx.dtype(cx.input(0)?))
}
