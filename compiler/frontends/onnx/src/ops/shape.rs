//! Shapes as values.

use crate::context::{Context, Lowered, one};
use crate::operator::Operator;
use irc_tl::{DType, Dim};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("Shape", &[1, 13, 15, 19, 21, 23, 24, 25], shape),
    Operator::new("Size", &[1, 13, 19, 21, 23, 24, 25], |cx| {
        let x = cx.input(0)?;
        let count = Dim::product(&cx.b.dims(x));
        one(cx.b.sizes(&[count], true, DType::I64))
    }),
    Operator::new("Reshape", &[1, 5, 13, 14, 19, 21, 23, 24, 25], reshape),
];

fn shape(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let dims = cx.b.dims(x);
    let rank = dims.len() as i64;
    let bound = |value: i64| (if value < 0 { value + rank } else { value }).clamp(0, rank) as usize;
    let start = bound(cx.int_or("start", 0)?);
    let end = bound(cx.int_or("end", rank)?).max(start);
    one(cx.b.sizes(&dims[start..end], false, DType::I64))
}

fn reshape(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let wanted: Vec<Dim> = if cx.version < 5 {
        let shape = cx.ints("shape")?.ok_or_else(|| cx.missing("shape"))?;
        shape.into_iter().map(Dim::Known).collect()
    } else {
        cx.sizes(1)?
    };
    let keep_zero = cx.int_or("allowzero", 0)? != 0;
    let own = cx.b.dims(x);
    let total = Dim::product(&own);
    // The sign of a size read at run time is unknown: -1 and 0 are distinguished then.
    let copied = |(axis, dim): (usize, &Dim)| match own.get(axis) {
        Some(size) if !keep_zero => Dim::if_equal(dim, &0.into(), size, dim),
        _ => dim.clone(),
    };
    let copied: Vec<Dim> = wanted.iter().enumerate().map(copied).collect();
    let dims: Vec<Dim> = (0..copied.len())
        .map(|axis| {
            let others = copied.iter().enumerate().filter(|(other, _)| *other != axis);
            let others = Dim::product(others.map(|(_, dim)| dim));
            let rest = if others.is(0) { Dim::Known(0) } else { total.floor_div(&others) };
            Dim::if_equal(&copied[axis], &(-1).into(), &rest, &copied[axis])
        })
        .collect();
    one(cx.b.reshape(x, &dims))
}
