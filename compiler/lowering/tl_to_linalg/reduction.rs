//! Reductions: widen, reduce in the compute type, finish, narrow.
use super::{
    Contents, Lowered,
    generic::{Access, Emitter, Loops},
    pointwise::{is_highest_of_softmax, map},
    wide_dims,
};
use crate::attributes::IGNORES_NAN;
use crate::kernel::arithmetic::{binary, cast};
use crate::kernel::element::{Element, Kind};
use irc_mlir::ops::arith;
use irc_mlir::{Attribute, OperationRef, Value, attr, read, ty};
use irc_tl::{Binary, Rounding};

/// Lowers `tl.reduce_*`.
pub fn lower<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    emitter: &Emitter<'c, 'a>,
    operand: &Lowered<'c, 'a>,
    element: Element<'c>,
) -> Result<Contents<'c, 'a>, String> {
    let name = read::op_name(&op);
    let axes = read::integers(&op, "axes").ok_or("lacks its axes")?;
    let mean = name == "tl.reduce_mean";
    let compute = accumulator(emitter, element, mean);
    let input = convert(emitter, operand, element, compute, |scope, x| {
        cast(scope, x, element, compute, Rounding::TowardZero)
    });
    let marks = match is_highest_of_softmax(op) {
        true => vec![(IGNORES_NAN.name(), attr::unit(emitter.context))],
        false => vec![],
    };
    let reduced = reduce(emitter, &input, &axes, (&name, &marks), compute);
    let extent: i64 = axes.iter().filter_map(|axis| operand.shape.get(*axis as usize)).product();
    if !mean && compute == element {
        return Ok(reduced.contents);
    }
    let finished =
        map(emitter, std::slice::from_ref(&reduced), &reduced.shape, element, |scope, x| {
            let mut value: Value<'c, '_> = irc_mlir::rebind(x[0]);
            if mean {
                let count: Value = scope.constant(compute, extent as f64);
                value = binary(scope, Binary::Div, value, count, compute);
            }
            cast(scope, value, compute, element, Rounding::TowardZero)
        });
    Ok(finished)
}

/// The accumulator type of a reduction: the mean of small integers is computed from their exact sum.
fn accumulator<'c>(emitter: &Emitter<'c, '_>, element: Element<'c>, mean: bool) -> Element<'c> {
    match element.kind {
        Kind::Float => element.compute(emitter.context),
        _ if mean => Element { storage: ty::parse(emitter.context, "i64"), bits: 64, ..element },
        _ => element,
    }
}

/// An elementwise conversion; the operand itself if the types are equal.
pub fn convert<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    operand: &Lowered<'c, 'a>,
    from: Element<'c>,
    to: Element<'c>,
    body: impl FnOnce(&crate::kernel::scope::Scope<'c, '_>, Value<'c, '_>) -> Value<'c, 'a>,
) -> Lowered<'c, 'a> {
    if from == to {
        return operand.clone();
    }
    let contents = map(emitter, std::slice::from_ref(operand), &operand.shape, to, |scope, x| {
        body(scope, x[0])
    });
    Lowered { shape: operand.shape.clone(), element: to, contents }
}

fn reduce<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    operand: &Lowered<'c, 'a>,
    axes: &[i64],
    (name, marks): (&str, &[(&'static str, Attribute<'c>)]),
    element: Element<'c>,
) -> Lowered<'c, 'a> {
    let loops = wide_dims(&operand.shape);
    let is_reduced = |dim: usize| axes.contains(&(dim as i64));
    let kept: Vec<usize> = (0..loops.len()).filter(|index| !is_reduced(loops[*index])).collect();
    let reductions: Vec<usize> =
        (0..loops.len()).filter(|index| is_reduced(loops[*index])).collect();
    let kept_shape: Vec<i64> = kept.iter().map(|index| operand.shape[loops[*index]]).collect();
    let tensor = emitter.materialise(operand);
    if reductions.is_empty() {
        return Lowered { shape: kept_shape, element, contents: Contents::Tensor(tensor) };
    }
    let (combiner, identity) = combiner(name, element);
    let init = emitter.fill(&kept_shape, element, identity);
    let input = Access { tensor, loops: (0..loops.len()).collect() };
    let output = Access { tensor: init, loops: kept };
    let loops = Loops { count: loops.len(), reductions };
    let result = emitter.generic(&[input], output, &loops, |scope, x| {
        scope.with(combiner, &[x[1], x[0]], element.storage, marks)
    });
    Lowered { shape: kept_shape, element, contents: Contents::Tensor(result) }
}

fn combiner(name: &str, element: Element<'_>) -> (&'static str, f64) {
    let magnitude = 2f64.powi(element.bits as i32 - i32::from(element.kind == Kind::Signed));
    match (name, element.kind) {
        ("tl.reduce_max", Kind::Float) => (arith::MAXIMUMF, f64::NEG_INFINITY),
        ("tl.reduce_max", Kind::Signed) => (arith::MAXSI, -magnitude),
        ("tl.reduce_max", Kind::Unsigned) => (arith::MAXUI, 0.0),
        ("tl.reduce_min", Kind::Float) => (arith::MINIMUMF, f64::INFINITY),
        // A constant out of range saturates to the maximum of the type.
        ("tl.reduce_min", Kind::Signed) => (arith::MINSI, magnitude),
        ("tl.reduce_min", Kind::Unsigned) => (arith::MINUI, magnitude),
        ("tl.reduce_product", Kind::Float) => (arith::MULF, 1.0),
        ("tl.reduce_product", _) => (arith::MULI, 1.0),
        (_, Kind::Float) => (arith::ADDF, 0.0),
        _ => (arith::ADDI, 0.0),
    }
}
