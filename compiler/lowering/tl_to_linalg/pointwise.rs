//! Elementwise ops: one generic, one scalar expression.
use super::{
    Contents, Lowered,
    generic::{Access, Emitter, Loops},
    squeezed, wide_dims,
};
use crate::attributes::{AT_LEAST_ONE, NONPOSITIVE};
use crate::kernel::arithmetic;
use crate::kernel::{element::Element, scope::Scope};
use irc_dialects::tl;
use irc_mlir::ops::{arith, math};
use irc_mlir::{OperationLike, OperationRef, Value, ValueLike, attr, read};
use irc_tl::{Binary, DType, Op, Rounding, Unary};

/// Lowers an elementwise op, casts and explicit broadcasts included.
pub fn lower<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    emitter: &Emitter<'c, 'a>,
    operands: &[Lowered<'c, 'a>],
    shape: &[i64],
    element: Element<'c>,
) -> Result<Contents<'c, 'a>, String> {
    let own = tl::op_of(op)?;
    if !own.is_elementwise() {
        return Err("has no lowering to linalg".to_owned());
    }
    let marked = match own {
        Op::Unary(Unary::Exp) if is_distance_below_highest(op) => Some((math::EXP, NONPOSITIVE)),
        Op::Binary(Binary::Div) if is_normalisation(op) => Some((arith::DIVF, AT_LEAST_ONE)),
        _ => None,
    };
    if let Some((name, mark)) = marked {
        let mark = [(mark.name(), attr::unit(emitter.context))];
        return Ok(map(emitter, operands, shape, element, |scope, x| {
            scope.with(name, x, element.storage, &mark)
        }));
    }
    Ok(map(emitter, operands, shape, element, |scope, scalars| {
        scalar(scope, &own, scalars, operands, element)
    }))
}

/// `x`, `y` and `z` of `x * y + z` in `f64`, which an op rounds to `f32`, if `x` is an integer of 8 bits and the others are
/// `f32`, or numbers of it: what they are converted from, or numbers. The product is exact, and the sum is rounded
/// once by a fused multiplication and addition.
pub fn multiplied_and_added<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Option<[Term<'c, 'a>; 3]> {
    let to_single = matches!(tl::op_of(op), Ok(Op::Cast { to: DType::F32, .. }));
    if read::op_name(&op) != "tl.cast" || !to_single {
        return None;
    }
    let sum = operand(op, 0, "tl.add")?;
    let product = operand(sum, 0, "tl.mul")?;
    let term = |of: OperationRef<'c, 'a>, index: usize| -> Option<(Term<'c, 'a>, String)> {
        if let Some(fill) = operand(of, index, "tl.fill") {
            let value = read::float(&fill, "value")?;
            let is_single = f64::from(value as f32) == value;
            return is_single.then(|| (Term::Number(value), "f32".to_owned()));
        }
        let wide = of.operand(index).ok()?;
        let (_, double) = read::tensor_of(wide.r#type())?;
        let from = operand(of, index, "tl.cast")?.operand(0).ok()?;
        let (_, own) = read::tensor_of(from.r#type())?;
        (double.to_string() == "f64").then(|| (Term::Value(from), own.to_string()))
    };
    let [x, y, z] = [term(product, 0)?, term(product, 1)?, term(sum, 1)?];
    let is_exact = ["i8", "ui8"].contains(&x.1.as_str()) && y.1 == "f32" && z.1 == "f32";
    is_exact.then_some([x.0, y.0, z.0])
}

/// A term of a sum, before it is converted.
#[derive(Clone, Copy)]
pub enum Term<'c, 'a> {
    /// A value of the tensor level.
    Value(Value<'c, 'a>),
    /// A number.
    Number(f64),
}

/// `x * y + z` in `f32`, rounded once.
pub fn multiply_add<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    terms: &[Lowered<'c, 'a>; 3],
    shape: &[i64],
    element: Element<'c>,
) -> Contents<'c, 'a> {
    map(emitter, terms, shape, element, |scope, x| {
        let single = |index: usize| -> Value<'c, '_> {
            let own = terms[index].element;
            arithmetic::cast(scope, x[index], own, element, Rounding::TowardZero)
        };
        scope.op(math::FMA, &[single(0), single(1), single(2)], element.storage)
    })
}

/// Whether an op divides by a sum of `e^(x - max x)` that reduces the last axis, which is at least 1.
fn is_normalisation(op: OperationRef<'_, '_>) -> bool {
    let is_sum = || {
        let sum = operand(op, 1, "tl.reduce_sum")?;
        let powers = operand(sum, 0, "tl.exp")?;
        let highest = operand(operand(powers, 0, "tl.sub")?, 1, "tl.reduce_max")?;
        let axes = |op: OperationRef<'_, '_>| read::integers(&op, "axes");
        let rank = read::tensor_of(powers.operand(0).ok()?.r#type())?.0.len() as i64;
        let is_last = axes(sum)? == [rank - 1] && axes(highest)? == [rank - 1];
        Some(is_last && is_distance_below_highest(powers))
    };
    is_sum().unwrap_or(false)
}

/// Whether an op is the maximum of the rows of a softmax alone: what is computed with it is `e^(x - max x)`, and what is
/// computed with these is their sum and quotients by it, so that a NaN among `x` becomes one of the sum.
pub fn is_highest_of_softmax(op: OperationRef<'_, '_>) -> bool {
    let is_distance = |moved: &OperationRef<'_, '_>| {
        let is_subtracted = operand(*moved, 1, "tl.reduce_max") == Some(op);
        let powers = users(*moved, "tl.sub").filter(|_| is_subtracted);
        powers.is_some_and(|powers| powers.into_iter().all(is_power_of_softmax))
    };
    users(op, "tl.reduce_max").is_some_and(|distances| distances.iter().all(is_distance))
}

/// Whether an op is `e^(x - max x)`, and what is computed with it is its sum and quotients by it.
fn is_power_of_softmax(power: OperationRef<'_, '_>) -> bool {
    let is_own = |sum: OperationRef<'_, '_>| operand(sum, 0, "tl.exp") == Some(power);
    let ends = |user: &OperationRef<'_, '_>| match read::op_name(user).as_str() {
        "tl.reduce_sum" => true,
        "tl.div" => {
            is_normalisation(*user) && operand(*user, 1, "tl.reduce_sum").is_some_and(is_own)
        }
        _ => false,
    };
    let users = users(power, "tl.exp");
    is_distance_below_highest(power) && users.is_some_and(|users| users.iter().all(ends))
}

/// The users of the result of an op, at least one, if the op has this name.
fn users<'c, 'a>(op: OperationRef<'c, 'a>, name: &str) -> Option<Vec<OperationRef<'c, 'a>>> {
    if read::op_name(&op) != name {
        return None;
    }
    let users = irc_mlir::uses(Value::from(op.result(0).ok()?));
    let users: Vec<_> = users.into_iter().map(|(user, _)| user).collect();
    (!users.is_empty()).then_some(users)
}

/// Whether the operand of an op is `x - max x`, which is at most zero.
fn is_distance_below_highest(op: OperationRef<'_, '_>) -> bool {
    let found = || {
        let moved = operand(op, 0, "tl.sub")?;
        // Or of them and the maximum of earlier columns.
        let both = operand(moved, 1, "tl.max").and_then(|both| operand(both, 0, "tl.reduce_max"));
        let highest = operand(moved, 1, "tl.reduce_max").or(both)?;
        // Otherwise the maxima may be those of other rows.
        let is_aligned = read::boolean(&highest, "keep_dims")?;
        Some(is_aligned && highest.operand(0).ok()? == moved.operand(0).ok()?)
    };
    found().unwrap_or(false)
}

/// The op of a name that computes an operand.
fn operand<'c, 'a>(
    op: OperationRef<'c, 'a>,
    index: usize,
    name: &str,
) -> Option<OperationRef<'c, 'a>> {
    let found = read::defining_op(op.operand(index).ok()?)?;
    (read::op_name(&found) == name).then_some(found)
}

/// A generic over `shape` whose body is passed one scalar per operand, splats included.
pub fn map<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    operands: &[Lowered<'c, 'a>],
    shape: &[i64],
    element: Element<'c>,
    body: impl FnOnce(&Scope<'c, '_>, &[Value<'c, '_>]) -> Value<'c, 'a>,
) -> Contents<'c, 'a> {
    let loops = wide_dims(shape);
    let mut inputs = Vec::new();
    for operand in operands {
        if let Contents::Tensor(tensor) = operand.contents {
            let shift = shape.len() - operand.shape.len();
            let along = wide_dims(&operand.shape)
                .into_iter()
                .filter_map(|dim| loops.iter().position(|wide| *wide == dim + shift));
            inputs.push(Access { tensor, loops: along.collect() });
        }
    }
    let output = emitter.empty(&squeezed(shape), element);
    let access = Access { tensor: output, loops: (0..loops.len()).collect() };
    let result = emitter.generic(&inputs, access, &Loops::parallel(loops.len()), |scope, given| {
        let mut given = given.iter();
        let scalars: Vec<Value> = operands
            .iter()
            .filter_map(|operand| match operand.contents {
                Contents::Tensor(_) => given.next().copied(),
                Contents::Splat(number) => Some(scope.constant(operand.element, number)),
            })
            .collect();
        body(scope, &scalars)
    });
    Contents::Tensor(result)
}

fn scalar<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    op: &Op,
    x: &[Value<'c, '_>],
    operands: &[Lowered<'c, '_>],
    element: Element<'c>,
) -> Value<'c, 'b> {
    let from = operands[0].element;
    match op {
        Op::Unary(function) => arithmetic::unary(scope, *function, x[0], from),
        Op::Binary(function) => arithmetic::binary(scope, *function, x[0], x[1], from),
        Op::Compare(comparison) => arithmetic::compare(scope, *comparison, x[0], x[1], from),
        Op::Select => scope.op(arith::SELECT, &[x[0], x[1], x[2]], element.storage),
        Op::Cast { rounding, .. } => arithmetic::cast(scope, x[0], from, element, *rounding),
        _ => irc_mlir::rebind(x[0]),
    }
}
