//! Elementwise ops: one generic, one scalar expression.
use super::{
    Contents, Lowered,
    generic::{Access, Emitter, Loops},
    squeezed, wide_dims,
};
use crate::kernel::arithmetic;
use crate::kernel::{element::Element, scope::Scope};
use irc_dialects::tl;
use irc_mlir::ops::arith;
use irc_mlir::{OperationRef, Value};
use irc_tl::Op;

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
    Ok(map(emitter, operands, shape, element, |scope, scalars| {
        scalar(scope, &own, scalars, operands, element)
    }))
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
