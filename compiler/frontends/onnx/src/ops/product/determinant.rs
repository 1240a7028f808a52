//! Determinants.

use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::pieces::{either, loops, size, wide};
use irc_tl::{
    Builder, Built, Combine, Comparison, Compute, DType, Dim, NodeKind, Relation, Scalar, Type,
    Unary, ValueId,
};

pub(in crate::ops) const OPERATORS: &[Operator] = &[Operator::new("Det", &[11, 22], determinant)];

/// Gaussian elimination with partial pivoting: one step of a loop per column.
fn determinant(cx: &mut Context<'_>) -> Lowered {
    let (ty, x, order) = square_matrices(cx)?;
    let (outer, computed) = (ty.rank() - 2, cx.b.dtype(x));
    let count = Dim::product(&ty.dims[..outer]);
    let first = cx.b.fill(1.0, &[count], computed)?;
    let result = eliminate(cx.b, x, first, &order)?;
    let result = cx.b.cast(result, ty.dtype)?;
    one(cx.b.reshape(result, &ty.dims[..outer]))
}

/// The type of the operand, its square matrices one after another in the type of the arithmetic, and their
/// order.
pub(super) fn square_matrices(cx: &mut Context<'_>) -> Result<(Type, ValueId, Dim), LowerError> {
    let x = cx.input(0)?;
    let ty = cx.ty(x);
    let Some(outer) = ty.rank().checked_sub(2) else {
        return Err(LowerError::invalid(format!("expected matrices, found {ty}")));
    };
    let order = ty.dims[outer].clone();
    let message = "expected square matrices";
    cx.b.require(&order, Relation::Equal, &ty.dims[outer + 1], message)?;
    let x = cx.b.cast(x, wide(ty.dtype))?;
    let x = cx.b.reshape(x, &[Dim::product(&ty.dims[..outer]), order.clone(), order.clone()])?;
    Ok((ty, x, order))
}

fn eliminate(b: &mut Builder, x: ValueId, first: ValueId, order: &Dim) -> Built {
    let mut body = b.inside();
    let step = body.input("step", Type::new(DType::I64, []));
    let (matrix_type, result_type) = (b.ty(x).clone(), b.ty(first).clone());
    let matrix = body.input("matrix", matrix_type.clone());
    let product = body.input("product", result_type.clone());
    let row = pivot_row(&mut body, matrix, step, order)?;
    let next = reduced(&mut body, [matrix, row, step])?;
    let product = multiplied(&mut body, [product, matrix, row, step])?;
    let go_on = body.scalar(1.0, DType::Bool)?;
    body.output("go_on", go_on);
    body.output("next", next);
    body.output("product", product);
    let trips = b.sizes(std::slice::from_ref(order), true, DType::I64)?;
    let start = b.scalar(1.0, DType::Bool)?;
    let kind = NodeKind::Loop { body: Box::new(body.finish()), carried: 2 };
    Ok(b.region(kind, &[trips, start, x, first], [matrix_type, result_type])?[1])
}

/// By matrix, the first row, from the step's on, with the largest element in the step's column; NaN is the
/// largest.
pub(super) fn pivot_row(b: &mut Builder, matrix: ValueId, step: ValueId, order: &Dim) -> Built {
    let dtype = b.dtype(matrix);
    let count = b.dims(matrix)[0].clone();
    let step_now = || Scalar::load(1, []);
    let row = || Scalar::Loop(1);
    let element = || Scalar::load(0, [Scalar::Loop(0), row(), step_now()]).unary(Unary::Abs);
    let below = row().ge(step_now());
    let body = below.clone().select(element(), Scalar::float(-1.0, dtype));
    let highest = Compute::reduce([count.clone()], Combine::Max, [order.clone()], body);
    let highest = b.compute(highest, &[matrix, step])?;
    let is_nan = element().compare(Comparison::Ne, element());
    let found = either(is_nan, element().ge(Scalar::load(2, [Scalar::Loop(0)])));
    let last = size(order) - Scalar::index(1);
    let body = below.and(found).select(row(), last);
    let first = Compute::reduce([count], Combine::Min, [order.clone()], body);
    b.compute(first, &[matrix, step, highest])
}

/// An element of the pivot's row.
pub(super) fn pivot(column: Scalar) -> Scalar {
    Scalar::load(0, [Scalar::Loop(0), Scalar::load(1, [Scalar::Loop(0)]), column])
}

/// The matrices after swapping in the pivot's row and eliminating it from the rows below.
fn reduced(b: &mut Builder, operands: [ValueId; 3]) -> Built {
    let dtype = b.dtype(operands[0]);
    let dims = b.dims(operands[0]);
    let step = || Scalar::load(2, []);
    let row = || Scalar::Loop(1);
    let moved = row().equals(Scalar::load(1, [Scalar::Loop(0)]));
    let at = |column: Scalar| {
        let swapped = Scalar::load(0, [Scalar::Loop(0), step(), column.clone()]);
        moved.clone().select(swapped, Scalar::load(0, [Scalar::Loop(0), row(), column]))
    };
    let zero = || Scalar::float(0.0, dtype);
    let singular = pivot(step()).equals(zero());
    let factor = singular.select(zero(), at(step()) / pivot(step()));
    let value = at(Scalar::Loop(2)) - factor * pivot(Scalar::Loop(2));
    let below = step().lt(row());
    let body = below.select(value, Scalar::load(0, loops(0..3)));
    b.compute(Compute::map(dims, body), &operands)
}

/// The product of the pivots so far, with a sign for every swap.
fn multiplied(b: &mut Builder, operands: [ValueId; 4]) -> Built {
    let dtype = b.dtype(operands[0]);
    let dims = b.dims(operands[0]);
    let row = || Scalar::load(2, [Scalar::Loop(0)]);
    let step = || Scalar::load(3, []);
    let pivot = Scalar::load(1, [Scalar::Loop(0), row(), step()]);
    let swapped = row().compare(Comparison::Ne, step());
    let sign = swapped.select(Scalar::float(-1.0, dtype), Scalar::float(1.0, dtype));
    let body = Scalar::load(0, [Scalar::Loop(0)]) * pivot * sign;
    b.compute(Compute::map(dims, body), &operands)
}
