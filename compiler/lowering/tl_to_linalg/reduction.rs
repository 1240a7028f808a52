//! Reductions: widen, reduce in the compute type, finish, narrow.
use super::{
    Held, Lowered,
    element::{Element, Kind},
    generic::{Access, Emitter, Loops},
    pointwise::{map, narrow, widen},
    wide_dims,
};
use irc_mlir::{OperationRef, Value, read};

/// Lowers `tl.reduce_*`.
pub fn lower<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    emitter: &Emitter<'c, 'a>,
    operand: &Lowered<'c, 'a>,
    element: Element<'c>,
) -> Result<Held<'c, 'a>, String> {
    let name = read::op_name(&op);
    let axes = read::integers(&op, "axes").ok_or("lacks its axes")?;
    let mean = name == "tl.reduce_mean";
    let compute = element.compute(emitter.context);
    let input = convert(emitter, operand, element, compute, |scope, x| widen(scope, x, element));
    let reduced = reduce(emitter, &input, &axes, &name, compute);
    let extent: i64 = axes.iter().filter_map(|axis| operand.shape.get(*axis as usize)).product();
    let finish = |scope: &super::generic::Scope<'c, '_>, x: Value<'c, '_>| -> Value<'c, 'a> {
        let mut value: Value<'c, '_> = irc_mlir::rebind(x);
        if mean {
            let count: Value = scope.constant(compute, extent as f64);
            let divide = match element.kind {
                Kind::Float => "arith.divf",
                Kind::Signed => "arith.divsi",
                Kind::Unsigned => "arith.divui",
            };
            value = scope.op(divide, &[value, count], compute.storage);
        }
        narrow(scope, value, element)
    };
    if !mean && !element.is_half() {
        return Ok(reduced.held);
    }
    let finished =
        map(emitter, std::slice::from_ref(&reduced), &reduced.shape, element, |scope, x| {
            finish(scope, x[0])
        });
    Ok(finished)
}

/// An element-wise conversion; nothing when the types are equal.
pub fn convert<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    operand: &Lowered<'c, 'a>,
    from: Element<'c>,
    to: Element<'c>,
    body: impl FnOnce(&super::generic::Scope<'c, '_>, Value<'c, '_>) -> Value<'c, 'a>,
) -> Lowered<'c, 'a> {
    if from == to {
        return operand.clone();
    }
    let held = map(emitter, std::slice::from_ref(operand), &operand.shape, to, |scope, x| {
        body(scope, x[0])
    });
    Lowered { shape: operand.shape.clone(), element: to, held }
}

fn reduce<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    operand: &Lowered<'c, 'a>,
    axes: &[i64],
    name: &str,
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
        return Lowered { shape: kept_shape, element, held: Held::Tensor(tensor) };
    }
    let (combiner, identity) = combiner(name, element);
    let init = emitter.fill(&kept_shape, element, identity);
    let input = Access { tensor, loops: (0..loops.len()).collect() };
    let output = Access { tensor: init, loops: kept };
    let loops = Loops { count: loops.len(), reductions };
    let result = emitter.generic(&[input], output, &loops, |scope, x| {
        scope.op(combiner, &[x[1], x[0]], element.storage)
    });
    Lowered { shape: kept_shape, element, held: Held::Tensor(result) }
}

fn combiner(name: &str, element: Element<'_>) -> (&'static str, f64) {
    match (name == "tl.reduce_max", element.kind) {
        (true, Kind::Float) => ("arith.maximumf", f64::NEG_INFINITY),
        (true, Kind::Signed) => ("arith.maxsi", -(2f64.powi(element.bits as i32 - 1))),
        (true, Kind::Unsigned) => ("arith.maxui", 0.0),
        (false, Kind::Float) => ("arith.addf", 0.0),
        (false, _) => ("arith.addi", 0.0),
    }
}
