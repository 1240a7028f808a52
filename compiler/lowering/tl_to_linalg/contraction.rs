//! `tl.matmul`: one contraction with an `f32` accumulator for the narrow floats.
use super::{
    Contents, Lowered,
    generic::{Emitter, Sums},
    quads,
    reduction::convert,
    sums::{sides, sum_of},
};
use crate::kernel::arithmetic::{cast, narrow, widen};
use crate::kernel::element::{Element, Kind};
use crate::kernel::scope::Scope;
use irc_mlir::ops::arith;
use irc_mlir::{OperationRef, Value, read};
use irc_tl::Rounding;

/// Lowers a matmul; the loops are the dimensions of batch, m, n and k that are not 1.
pub fn lower<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    emitter: &Emitter<'c, 'a>,
    operands: &[Lowered<'c, 'a>],
    shape: &[i64],
    element: Element<'c>,
) -> Result<Contents<'c, 'a>, String> {
    let flag = |name| read::boolean(&op, name).unwrap_or(false);
    let rank = shape.len();
    let (lhs, rhs) = (&operands[0], &operands[1]);
    // Logical loops: the result's dims 0..rank, then k.
    let k = rank;
    let lhs_dims = operand_dims(lhs.shape.len(), rank, [rank - 2, k], flag("transpose_lhs"));
    let rhs_dims = operand_dims(rhs.shape.len(), rank, [k, rank - 1], flag("transpose_rhs"));
    let at = |dims: &[usize]| dims.iter().position(|dim| *dim == k);
    if let (Some(unsigned), Some(lhs_k), Some(rhs_k)) =
        (quads::unsigned_of([lhs.element, rhs.element]), at(&lhs_dims), at(&rhs_dims))
        && quads::divides(lhs.shape[lhs_k])
    {
        let (lhs, rhs) = (quads::quads(emitter, lhs, lhs_k), quads::quads(emitter, rhs, rhs_k));
        return Ok(quads::multiply(
            emitter,
            [(&lhs, &lhs_dims), (&rhs, &rhs_dims)],
            shape,
            unsigned,
        ));
    }
    Ok(multiply(emitter, [(lhs, &lhs_dims), (rhs, &rhs_dims)], shape, element))
}

/// The sum of products over the loops of the result and one more; each operand comes with the loop of
/// each of its dimensions.
pub fn multiply<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    operands: [(&Lowered<'c, 'a>, &[usize]); 2],
    shape: &[i64],
    element: Element<'c>,
) -> Contents<'c, 'a> {
    let (inputs, loops) = sides(emitter, operands, shape);
    let elements = operands.map(|(operand, _)| operand.element);
    sum_of_products(emitter, &inputs, elements, &loops, shape, element)
}

/// The sum of products over all loops but those of the result, which come first; `loops` are those whose extent
/// is not 1.
pub fn sum_of_products<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    inputs: &[Sums<'c, 'a>; 2],
    elements: [Element<'c>; 2],
    loops: &[usize],
    shape: &[i64],
    element: Element<'c>,
) -> Contents<'c, 'a> {
    let compute = element.compute(emitter.context);
    let float = element.kind == Kind::Float;
    let (mul, add) = if float { (arith::MULF, arith::ADDF) } else { (arith::MULI, arith::ADDI) };
    let contents = sum_of(emitter, inputs, loops, shape, compute, |scope, x| {
        let a: Value = factor(scope, x[0], elements[0], compute);
        let b: Value = factor(scope, x[1], elements[1], compute);
        let contract = fastmath(scope.context, float);
        let term: Value = scope.with(mul, &[a, b], compute.storage, &contract);
        scope.with(add, &[x[2], term], compute.storage, &contract)
    });
    let wide = Lowered { shape: shape.to_vec(), element: compute, contents };
    convert(emitter, &wide, compute, element, |scope, x| narrow(scope, x, element)).contents
}

/// An element as a factor of a product: bytes of both signs are multiplied in `i32`.
fn factor<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    x: Value<'c, '_>,
    own: Element<'c>,
    compute: Element<'c>,
) -> Value<'c, 'b> {
    match own.kind {
        Kind::Float => widen(scope, x, own),
        _ => cast(scope, x, own, compute, Rounding::TowardZero),
    }
}

/// Allows a product and its sum to become one fused multiply-add.
fn fastmath<'c>(
    context: &'c irc_mlir::Context,
    float: bool,
) -> Vec<(&'static str, irc_mlir::Attribute<'c>)> {
    let contract = || irc_mlir::attr::parse(context, "#arith.fastmath<contract>");
    float.then(|| ("fastmath", contract())).into_iter().collect()
}

/// The logical loop of each dimension of an operand.
fn operand_dims(
    operand_rank: usize,
    rank: usize,
    inner: [usize; 2],
    transposed: bool,
) -> Vec<usize> {
    let batch = operand_rank.saturating_sub(2);
    let mut dims: Vec<usize> = (0..batch).map(|dim| rank - 2 - batch + dim).collect();
    dims.extend(if transposed { [inner[1], inner[0]] } else { inner });
    dims
}
