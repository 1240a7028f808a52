//! Random numbers.
//!
//! The format does not specify the generator. Ours is stateless: a number is a function of the
//! seed and of its position in row-major order, so a program returns the same numbers on every run
//! and every machine. The function is the output of SplitMix64 (Steele, Lea and Flood, "Fast
//! splittable pseudorandom number generators", 2014). The default seed of a node is derived from its
//! output's name; the numbers of other systems are not reproduced.

use super::cast::element_type;
use super::formula::{Formula, widened};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_common_format::model::AttributeValue;
use irc_tl::{
    Binary, Builder, Built, Combine, Comparison, Compute, DType, Dim, Scalar, Unary, ValueId,
};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("RandomUniform", &[1, 22], |cx| {
        let (dims, dtype) = stated(cx)?;
        uniform(cx, &dims, dtype)
    }),
    Operator::new("RandomUniformLike", &[1, 22], |cx| {
        let (dims, dtype) = like(cx)?;
        uniform(cx, &dims, dtype)
    }),
    Operator::new("RandomNormal", &[1, 22], |cx| {
        let (dims, dtype) = stated(cx)?;
        normal(cx, &dims, dtype)
    }),
    Operator::new("RandomNormalLike", &[1, 22], |cx| {
        let (dims, dtype) = like(cx)?;
        normal(cx, &dims, dtype)
    }),
    Operator::new("Bernoulli", &[15, 22], bernoulli),
    Operator::new("Multinomial", &[7, 22], multinomial),
    Operator::new("Dropout", &[1, 6, 7, 10, 12, 13, 22], dropout),
];

/// The golden ratio's fraction, and the multipliers of the generator's output function.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const FIRST: u64 = 0xbf58_476d_1ce4_e5b9;
const SECOND: u64 = 0x94d0_49bb_1331_11eb;

fn stated(cx: &Context<'_>) -> Result<(Vec<Dim>, DType), LowerError> {
    let shape = cx.ints("shape")?.ok_or_else(|| cx.missing("shape"))?;
    let dtype = element_type(cx, "dtype")?.unwrap_or(DType::F32);
    Ok((shape.into_iter().map(Dim::Known).collect(), dtype))
}

fn like(cx: &Context<'_>) -> Result<(Vec<Dim>, DType), LowerError> {
    let x = cx.input(0)?;
    let dtype = element_type(cx, "dtype")?.unwrap_or(cx.dtype(x));
    Ok((cx.b.dims(x), dtype))
}

/// The seed of an attribute, or one derived from the name of the node's first output.
fn seed(cx: &Context<'_>) -> Result<u64, LowerError> {
    if let Some(seed) = cx.float("seed")? {
        return Ok(u64::from(seed.to_bits()));
    }
    Ok(default_seed(cx))
}

/// The seed that is derived from the name of the node's first output.
pub(super) fn default_seed(cx: &Context<'_>) -> u64 {
    let name = cx.node.outputs.first().map_or("", String::as_str);
    // FNV-1a.
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, hash)
}

/// Numbers from 0 to 1 (exclusive) as `f32`, of 24 random bits; streams of one seed differ.
fn draws(b: &mut Builder, dims: &[Dim], seed: u64, stream: u64) -> Built {
    let start = seed.wrapping_mul(SECOND).wrapping_add(stream.wrapping_mul(FIRST));
    b.compute(Compute::map(dims.to_vec(), drawn(dims, bits(start))), &[])
}

/// A number for each element of a dimension, as [`draws`] of the seed and the stream, which are `i64` scalars.
pub(super) fn draws_of(b: &mut Builder, dim: &Dim, seed: ValueId, stream: ValueId) -> Built {
    let operand = |number: usize| Scalar::load(number, []).cast(DType::U64);
    let start = operand(0) * bits(SECOND) + operand(1) * bits(FIRST);
    let dims = [dim.clone()];
    b.compute(Compute::map(dims.clone(), drawn(&dims, start)), &[seed, stream])
}

fn bits(value: u64) -> Scalar {
    Scalar::Int(value as i64, DType::U64)
}

/// The number that is drawn for an element.
fn drawn(dims: &[Dim], start: Scalar) -> Scalar {
    let mut place = Scalar::index(0);
    for (axis, dim) in dims.iter().enumerate() {
        place = place * Scalar::Size(dim.clone()) + Scalar::Loop(axis);
    }
    let mut state = (place.cast(DType::U64) + bits(1)) * bits(STEP) + start;
    for (shift, by) in [(30, FIRST), (27, SECOND)] {
        let high = state.clone().binary(Binary::Shr, bits(shift));
        state = state.binary(Binary::Xor, high) * bits(by);
    }
    let high = state.clone().binary(Binary::Shr, bits(31));
    let drawn = state.binary(Binary::Xor, high).binary(Binary::Shr, bits(40));
    let unit = Scalar::float(f64::from(2f32.powi(-24)), DType::F32);
    drawn.cast(DType::F32) * unit
}

fn uniform(cx: &mut Context<'_>, dims: &[Dim], dtype: DType) -> Lowered {
    let (low, high) = (cx.float_or("low", 0.0)?, cx.float_or("high", 1.0)?);
    let (low, high, seed) = (f64::from(low), f64::from(high), seed(cx)?);
    let drawn = draws(cx.b, dims, seed, 0)?;
    let scaled = cx.b.times(drawn, high - low)?;
    let moved = cx.b.plus(scaled, low)?;
    one(cx.b.cast(moved, dtype))
}

/// Box and Muller's transform of two numbers: `sqrt(-2 log(1 - u)) cos(2 pi v)`.
fn normal(cx: &mut Context<'_>, dims: &[Dim], dtype: DType) -> Lowered {
    let (mean, scale) = (cx.float_or("mean", 0.0)?, cx.float_or("scale", 1.0)?);
    let (mean, scale, seed) = (f64::from(mean), f64::from(scale), seed(cx)?);
    let b = &mut *cx.b;
    let (u, v) = (draws(b, dims, seed, 0)?, draws(b, dims, seed, 1)?);
    let negative = b.times(u, -1.0)?;
    let above = b.plus(negative, 1.0)?;
    let log = b.unary(Unary::Log, above)?;
    let square = b.times(log, -2.0)?;
    let radius = b.unary(Unary::Sqrt, square)?;
    let angle = b.times(v, std::f64::consts::TAU)?;
    let cosine = b.unary(Unary::Cos, angle)?;
    let drawn = b.mul(radius, cosine)?;
    let scaled = b.times(drawn, scale)?;
    let moved = b.plus(scaled, mean)?;
    one(b.cast(moved, dtype))
}

/// 1 with the operand's probability, else 0.
fn bernoulli(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let (dims, dtype) = like(cx)?;
    let seed = seed(cx)?;
    let drawn = draws(cx.b, &dims, seed, 0)?;
    let x = cx.b.cast(x, DType::F32)?;
    let hit = cx.b.compare(Comparison::Lt, drawn, x)?;
    one(cx.b.cast(hit, dtype))
}

/// Samples indices along the last axis of `[batch, classes]`, given logarithms of their probabilities.
fn multinomial(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let dtype = element_type(cx, "dtype")?.unwrap_or(DType::I32);
    let (samples, seed) = (cx.int_or("sample_size", 1)?, seed(cx)?);
    let dims = cx.b.dims(x);
    let [batch, classes] = &dims[..] else {
        return Err(LowerError::invalid(format!("expected [batch, classes], found {}", cx.ty(x))));
    };
    let x = widened(cx.b, x)?;
    let chances = super::softmax::softmax(cx.b, x, &[1])?;
    let chances = cx.b.cast(chances, DType::F32)?;
    let upto = running(cx.b, chances, batch, classes)?;
    let dims = [batch.clone(), samples.into()];
    let drawn = draws(cx.b, &dims, seed, 0)?;
    // The drawn class is the number of classes whose cumulative sum is at most the number drawn;
    // the last sum may be below 1 after rounding, and is ignored.
    let at = |column| [Scalar::Loop(0), Scalar::Loop(column)];
    let before = Scalar::load(0, at(2)).compare(Comparison::Le, Scalar::load(1, at(1)));
    let others = (classes.clone() - 1.into()).maximum(&0.into());
    let count = Compute::reduce(dims, Combine::Sum, [others], before.cast(DType::I64));
    let places = cx.b.compute(count, &[upto, drawn])?;
    one(cx.b.cast(places, dtype))
}

/// Cumulative sums over the classes.
fn running(b: &mut Builder, chances: ValueId, batch: &Dim, classes: &Dim) -> Built {
    let inside = Scalar::Loop(2).compare(Comparison::Le, Scalar::Loop(1));
    let chance = Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(2)]);
    let body = inside.select(chance, Scalar::float(0.0, DType::F32));
    let dims = [batch.clone(), classes.clone()];
    b.compute(Compute::reduce(dims, Combine::Sum, [classes.clone()], body), &[chances])
}

/// The identity, except in training, where elements become 0 and the others are scaled up.
///
/// The ratio is an attribute before version 12. Training is given by `is_test` before version 7 and
/// by an input from 12 on; in between there is none.
fn dropout(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let (dims, dtype) = (cx.b.dims(x), cx.dtype(x));
    let mask_type = if cx.version < 10 { dtype } else { DType::Bool };
    let Some([ratio, training]) = dropping(cx)? else {
        return Ok(vec![x, cx.b.fill(1.0, &dims, mask_type)?]);
    };
    let seed = match cx.attribute("seed") {
        Some(AttributeValue::Int(seed)) => *seed as u64,
        _ => seed(cx)?,
    };
    let b = &mut *cx.b;
    let nothing = b.number(0.0, ratio)?;
    let ratio = b.select(training, ratio, nothing)?;
    let drawn = draws(b, &dims, seed, 0)?;
    let kept = b.compare(Comparison::Ge, drawn, ratio)?;
    let wide = widened(b, x)?;
    let unit = b.number(1.0, ratio)?;
    let rest = b.sub(unit, ratio)?;
    let rest = b.cast(rest, b.dtype(wide))?;
    let grown = b.div(wide, rest)?;
    let zero = b.number(0.0, wide)?;
    let result = b.select(kept, grown, zero)?;
    Ok(vec![b.cast(result, dtype)?, b.cast(kept, mask_type)?])
}

/// The ratio, as `f32`, and whether elements are dropped; `None` if it is known that none is.
fn dropping(cx: &mut Context<'_>) -> Result<Option<[ValueId; 2]>, LowerError> {
    if cx.version >= 12 {
        let Some(training) = cx.optional(2) else { return Ok(None) };
        if cx.b.constant_of(training)?.is_some_and(|training| training.to_f64() == [0.0]) {
            return Ok(None);
        }
        let ratio = match cx.optional(1) {
            Some(ratio) => ratio,
            None => cx.b.scalar(0.5, DType::F32)?,
        };
        let (ratio, training) = (cx.b.reshape(ratio, &[])?, cx.b.reshape(training, &[])?);
        return Ok(Some([cx.b.cast(ratio, DType::F32)?, training]));
    }
    let ratio = cx.float_or("ratio", 0.5)?;
    if cx.version >= 7 || cx.int_or("is_test", 0)? != 0 || ratio == 0.0 {
        return Ok(None);
    }
    let ratio = cx.b.scalar(f64::from(ratio), DType::F32)?;
    Ok(Some([ratio, cx.b.scalar(1.0, DType::Bool)?]))
}
