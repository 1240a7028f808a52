//! Inverses of matrices.

use super::determinant::{pivot, pivot_row, square_matrices};
use crate::context::{Context, Lowered, one};
use crate::ops::pieces::{size, slice};
use irc_tl::{Builder, Built, Compute, DType, Dim, NodeKind, Scalar, Type, ValueId};

/// Gauss-Jordan elimination with partial pivoting, of the matrices next to identities: one step of a loop per
/// column.
pub(in crate::ops) fn inverse(cx: &mut Context<'_>) -> Lowered {
    let (ty, x, order) = square_matrices(cx)?;
    let both = with_identity(cx.b, x, &order)?;
    let both = eliminate(cx.b, both, &order)?;
    let result = slice(cx.b, both, 2, &order, &order)?;
    let result = cx.b.cast(result, ty.dtype)?;
    one(cx.b.reshape(result, &ty.dims))
}

fn with_identity(b: &mut Builder, x: ValueId, order: &Dim) -> Built {
    let dtype = b.dtype(x);
    let mut dims = b.dims(x);
    dims[2] = order.clone() * 2.into();
    let [matrix, row, column] = [0, 1, 2].map(Scalar::Loop);
    let on = (column.clone() - size(order)).equals(row.clone());
    let identity = on.select(Scalar::float(1.0, dtype), Scalar::float(0.0, dtype));
    let left = column.clone().lt(size(order));
    let body = left.select(Scalar::load(0, [matrix, row, column]), identity);
    b.compute(Compute::map(dims, body), &[x])
}

fn eliminate(b: &mut Builder, x: ValueId, order: &Dim) -> Built {
    let mut body = b.inside();
    let step = body.input("step", Type::new(DType::I64, []));
    let ty = b.ty(x).clone();
    let matrix = body.input("matrix", ty.clone());
    let row = pivot_row(&mut body, matrix, step, order)?;
    let next = reduced(&mut body, [matrix, row, step])?;
    let go_on = body.scalar(1.0, DType::Bool)?;
    body.output("go_on", go_on);
    body.output("next", next);
    let trips = b.sizes(std::slice::from_ref(order), true, DType::I64)?;
    let start = b.scalar(1.0, DType::Bool)?;
    let kind = NodeKind::Loop { body: Box::new(body.finish()), carried: 1 };
    Ok(b.region(kind, &[trips, start, x], [ty])?[0])
}

/// The matrices after swapping in the pivot's row, dividing it by the pivot, and eliminating it from all others.
fn reduced(b: &mut Builder, operands: [ValueId; 3]) -> Built {
    let dims = b.dims(operands[0]);
    let step = || Scalar::load(2, []);
    let (row, column) = (|| Scalar::Loop(1), || Scalar::Loop(2));
    let moved = row().equals(Scalar::load(1, [Scalar::Loop(0)]));
    let at = |column: Scalar| {
        let swapped = Scalar::load(0, [Scalar::Loop(0), step(), column.clone()]);
        moved.clone().select(swapped, Scalar::load(0, [Scalar::Loop(0), row(), column]))
    };
    let divided = pivot(column()) / pivot(step());
    let value = at(column()) - at(step()) * divided.clone();
    let body = row().equals(step()).select(divided, value);
    b.compute(Compute::map(dims, body), &operands)
}
