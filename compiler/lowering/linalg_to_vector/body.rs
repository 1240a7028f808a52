//! Evaluates the region of a stage on scalars or vectors.
use super::{
    error::{LowerError, Result},
    kernel::{argument, constant_of, name_of, operand, result_of},
};
use crate::attributes::{AT_LEAST_ONE, IGNORES_NAN, NONPOSITIVE};
use crate::kernel::{
    emit::{Emit, Lanes, is_float, is_half},
    expand_math,
};
use irc_mlir::ops::{arith, linalg, math, tensor};
use irc_mlir::{
    BlockLike, BlockRef, OperationLike, OperationRef, Type, TypeLike, Value, ValueLike, attr,
};
use melior::ir::attribute::FloatAttribute;

/// The queries of a region about the loops around it.
pub trait Surroundings<'c, 'a> {
    /// The induction variable of a loop of the op, per lane.
    fn index(&self, op: OperationRef<'c, 'a>, dim: usize) -> Result<Value<'c, 'a>>;
    /// `tensor.extract` at the given indices.
    fn extract(&self, op: OperationRef<'c, 'a>, indices: &[Value<'c, 'a>])
    -> Result<Value<'c, 'a>>;
}

/// The value of an argument of the region.
#[derive(Clone, Copy)]
pub struct Argument<'c, 'a> {
    /// The value.
    pub value: Value<'c, 'a>,
    /// Whether it is invariant in the innermost loop and derived from a sum whose last bits depend on
    /// its order.
    pub near: bool,
}

/// Emits the ops of `block` with its arguments replaced; returns the yielded values.
///
/// # Errors
/// At an op without a vector form.
pub fn evaluate<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    stage: OperationRef<'c, 'a>,
    block: BlockRef<'c, 'a>,
    arguments: &[Argument<'c, 'a>],
    lanes: Lanes,
    around: &dyn Surroundings<'c, 'a>,
) -> Result<Vec<Value<'c, 'a>>> {
    let mut known: Vec<(Value, Value)> = vec![];
    // Values of the region that are the same in every lane and every iteration of the loop, and whose last
    // bits depend on the order of a sum.
    let mut near: Vec<Value> = vec![];
    for (index, given) in arguments.iter().enumerate() {
        let from = argument(stage, block, index)?;
        known.push((from, given.value));
        near.extend(given.near.then_some(from));
    }
    let mut next = block.first_operation();
    while let Some(op) = next {
        let operands = op
            .operands()
            .map(|value| lookup(e, op, value, &known, lanes))
            .collect::<Result<Vec<_>>>()?;
        let e = e.at(op.location());
        match name_of(op).as_str() {
            linalg::YIELD => return Ok(operands),
            linalg::INDEX => known.push((result_of(op)?, around.index(op, loop_number(op)?)?)),
            tensor::EXTRACT => known.push((result_of(op)?, around.extract(op, &operands[1..])?)),
            arith::CONSTANT => {}
            arith::DIVF if divides_by_near(op, &near, lanes) => {
                let is_scaled = !AT_LEAST_ONE.is_on(&op);
                known.push((result_of(op)?, divide(e, operands[0], operands[1], is_scaled, lanes)));
            }
            name => known.push((result_of(op)?, apply(e, op, name, &operands, lanes)?)),
        }
        let known_near = |value: Value| near.contains(&value);
        if op.operands().any(known_near)
            && op.operands().all(|value| near.contains(&value) || constant_of(value).is_some())
        {
            near.extend(op.results().map(Value::from));
        }
        next = op.next_in_block();
    }
    Err(LowerError::at(stage, "expected the region to end in 'linalg.yield'"))
}

/// Whether this is an `f32` division in vectors with a loop-invariant divisor whose last bits are as
/// uncertain as those of a product with its reciprocal. Other quotients are exact: rounding them to
/// integers would expose the difference.
fn divides_by_near<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    near: &[Value<'c, 'a>],
    lanes: Lanes,
) -> bool {
    let is = |index: usize| op.operand(index).is_ok_and(|value| near.contains(&value));
    lanes != Lanes::Scalar && is(1) && !is(0) && result_of(op).is_ok_and(|v| v.r#type().is_f32())
}

/// `x / d` as a product with the reciprocal of `d`, which the compiler moves out of the loop; within
/// 1.5 units in the last place. A power of two keeps the reciprocal of a tiny or huge `d` finite; a divisor of
/// at least 1 is a sum of powers that are at most 1, and needs none.
pub fn divide<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    x: Value<'c, 'a>,
    d: Value<'c, 'a>,
    is_scaled: bool,
    lanes: Lanes,
) -> Value<'c, 'a> {
    let constant = |exponent: i32| e.float(2f64.powi(exponent), e.f32(), lanes);
    if !is_scaled {
        return e.binary(arith::MULF, x, e.binary(arith::DIVF, constant(0), d));
    }
    let magnitude = e.op(math::ABSF, &[d], d.r#type());
    let compare = |predicate, bound| {
        let spec = e.spec(arith::CMPF).operands(&[magnitude, bound]);
        let spec = spec.attr("predicate", attr::i64(e.context, predicate));
        e.value(spec.results(&[lanes.of(e.int(1))]))
    };
    let select = |condition, a, b| e.op(arith::SELECT, &[condition, a, b], d.r#type());
    let scale = select(compare(4, constant(-100)), constant(64), constant(0));
    let scale = select(compare(2, constant(100)), constant(-64), scale);
    let reciprocal = e.binary(arith::DIVF, constant(0), e.binary(arith::MULF, d, scale));
    e.binary(arith::MULF, e.binary(arith::MULF, x, scale), reciprocal)
}

fn lookup<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    op: OperationRef<'c, 'a>,
    value: Value<'c, 'a>,
    known: &[(Value<'c, 'a>, Value<'c, 'a>)],
    lanes: Lanes,
) -> Result<Value<'c, 'a>> {
    if let Some((_, found)) = known.iter().find(|(from, _)| *from == value) {
        return Ok(*found);
    }
    if let Some(scalar) = constant_of(value) {
        return Ok(e.constant(scalar, value.r#type(), lanes));
    }
    if name_of(op) == tensor::EXTRACT {
        return Ok(value);
    }
    Err(LowerError::at(op, "operand is neither computed in the region nor a constant"))
}

fn loop_number<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Result<usize> {
    let fail = || LowerError::at(op, "expected a loop number in 'dim'");
    let dim = op.attribute("dim").map_err(|_| fail())?;
    let dim = melior::ir::attribute::IntegerAttribute::try_from(dim).map_err(|_| fail())?;
    Ok(dim.value() as usize)
}

/// Emits one scalar op of a region on `lanes`; 16-bit floats are computed in `f32` with one rounding.
///
/// # Errors
/// If the op is not elementwise.
pub fn apply<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    op: OperationRef<'c, 'a>,
    name: &str,
    operands: &[Value<'c, 'a>],
    lanes: Lanes,
) -> Result<Value<'c, 'a>> {
    if !(name.starts_with(arith::PREFIX) || name.starts_with(math::PREFIX))
        || op.result_count() != 1
    {
        return Err(LowerError::at(op, "expected an elementwise arith or math op in the region"));
    }
    let result = result_of(op)?.r#type();
    if is_cast(name) {
        return cast(e, op, name, operands[0], result, lanes);
    }
    let source = operand(op, op.operand_count() - 1)?.r#type();
    let widen = is_half(source) && name != arith::SELECT;
    let operands: Vec<Value> = operands
        .iter()
        .map(|value| if widen { convert(e, arith::EXTF, *value, e.f32(), lanes) } else { *value })
        .collect();
    let computed = if widen && is_half(result) { e.f32() } else { result };
    if name == math::EXP
        && NONPOSITIVE.is_on(&op)
        && let Some(value) = expand_math::exp_of_nonpositive(e, operands[0], computed, lanes)
    {
        return Ok(narrow(e, value, computed, result, lanes));
    }
    if let Some(value) = expand_math::expand(e, name, &operands, computed, lanes) {
        return Ok(narrow(e, value, computed, result, lanes));
    }
    if matches!(name, arith::MAXIMUMF | arith::MINIMUMF) {
        let is_number = |index: usize| op.operand(index).is_ok_and(is_number);
        let (a, b) = (operands[0], operands[1]);
        let larger = name == arith::MAXIMUMF;
        // Without NaN, an accumulator, the first operand, is one of what it is compared with.
        let value = if IGNORES_NAN.is_on(&op) || is_number(1) {
            ordered_extremum(e, larger, [b, a], computed, lanes)
        } else if is_number(0) {
            ordered_extremum(e, larger, [a, b], computed, lanes)
        } else {
            extremum(e, larger, [a, b], computed, lanes)
        };
        return Ok(narrow(e, value, computed, result, lanes));
    }
    let mut spec = e.spec(name).operands(&operands).results(&[lanes.of(computed)]);
    for (key, value) in op.attributes() {
        spec = spec.attr(key.as_string_ref().as_str().unwrap_or_default(), value);
    }
    Ok(narrow(e, e.value(spec), computed, result, lanes))
}

/// Whether a value is a constant other than NaN.
fn is_number(value: Value<'_, '_>) -> bool {
    constant_of(value)
        .and_then(|scalar| FloatAttribute::try_from(scalar).ok())
        .is_some_and(|float| !float.value().is_nan())
}

/// The maximum or minimum of two floats, NaN if either is; zeros of either sign are equal. On x86 one blend and one maximum; in
/// the other order, LLVM 22 would make a comparison of what is the maximum.
pub fn extremum<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    larger: bool,
    [a, b]: [Value<'c, 'a>; 2],
    element: Type<'c>,
    lanes: Lanes,
) -> Value<'c, 'a> {
    let unordered = last_nan(e, b, a, element, lanes);
    ordered_extremum(e, larger, [b, unordered], element, lanes)
}

/// A float if it is NaN, otherwise another.
fn last_nan<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    value: Value<'c, 'a>,
    other: Value<'c, 'a>,
    element: Type<'c>,
    lanes: Lanes,
) -> Value<'c, 'a> {
    // UNO.
    select(e, 14, [value, value], [value, other], element, lanes)
}

/// The first of two floats if it is larger, or smaller, and otherwise the second, also beside NaN: one maximum on x86.
pub fn ordered_extremum<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    larger: bool,
    pair: [Value<'c, 'a>; 2],
    element: Type<'c>,
    lanes: Lanes,
) -> Value<'c, 'a> {
    // OGT or OLT.
    select(e, if larger { 2 } else { 4 }, pair, pair, element, lanes)
}

/// One of two values by a comparison, given as an `arith.cmpf` predicate number.
fn select<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    predicate: i64,
    compared: [Value<'c, 'a>; 2],
    [then, or]: [Value<'c, 'a>; 2],
    element: Type<'c>,
    lanes: Lanes,
) -> Value<'c, 'a> {
    let spec = e.spec(arith::CMPF).operands(&compared);
    let spec = spec.attr("predicate", attr::i64(e.context, predicate));
    let condition = e.value(spec.results(&[lanes.of(e.int(1))]));
    e.op(arith::SELECT, &[condition, then, or], lanes.of(element))
}

fn narrow<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    value: Value<'c, 'a>,
    from: Type<'c>,
    to: Type<'c>,
    lanes: Lanes,
) -> Value<'c, 'a> {
    if from == to { value } else { convert(e, arith::TRUNCF, value, to, lanes) }
}

/// Emits a one-operand conversion to `element`.
pub fn convert<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    name: &str,
    value: Value<'c, 'a>,
    element: Type<'c>,
    lanes: Lanes,
) -> Value<'c, 'a> {
    e.op(name, &[value], lanes.of(element))
}

fn is_cast(name: &str) -> bool {
    matches!(
        name,
        arith::EXTF
            | arith::TRUNCF
            | arith::EXTSI
            | arith::EXTUI
            | arith::TRUNCI
            | arith::SITOFP
            | arith::UITOFP
            | arith::FPTOSI
            | arith::FPTOUI
            | arith::BITCAST
            | arith::INDEX_CAST
            | arith::INDEX_CASTUI
    )
}

/// Conversions between integers and 16-bit floats go through `f32`.
fn cast<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    op: OperationRef<'c, 'a>,
    name: &str,
    value: Value<'c, 'a>,
    result: Type<'c>,
    lanes: Lanes,
) -> Result<Value<'c, 'a>> {
    let source = operand(op, 0)?.r#type();
    let to_float = matches!(name, arith::SITOFP | arith::UITOFP);
    let from_float = matches!(name, arith::FPTOSI | arith::FPTOUI);
    if to_float && is_half(result) {
        let wide = convert(e, name, value, e.f32(), lanes);
        return Ok(convert(e, arith::TRUNCF, wide, result, lanes));
    }
    if from_float && is_half(source) {
        let wide = convert(e, arith::EXTF, value, e.f32(), lanes);
        return Ok(convert(e, name, wide, result, lanes));
    }
    debug_assert!(is_float(source) || !from_float, "the verifier checks conversions");
    Ok(convert(e, name, value, result, lanes))
}
