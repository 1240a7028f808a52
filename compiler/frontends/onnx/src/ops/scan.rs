//! Cumulative sums and products.

use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use irc_tl::{Algorithm, Builder, Built, Combine, ValueId};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("CumSum", &[11, 14], |cx| scan(cx, Combine::Sum)),
    Operator::new("CumProd", &[26], |cx| scan(cx, Combine::Product)),
];

fn scan(cx: &mut Context<'_>, combine: Combine) -> Lowered {
    let x = cx.input(0)?;
    let axis = cx.constant_ints(1)?.unwrap_or_default();
    let [axis] = axis[..] else {
        return Err(LowerError::invalid(format!("expected one axis, found {axis:?}")));
    };
    let scan = Algorithm::Scan {
        combine,
        axis: cx.axis(axis, cx.b.rank(x))?,
        reverse: cx.int_or("reverse", 0)? != 0,
        exclusive: cx.int_or("exclusive", 0)? != 0,
    };
    Ok(cx.b.algorithm(scan, &[x])?)
}

/// The sum of every element with all those before it along an axis.
pub(super) fn running_sums(b: &mut Builder, x: ValueId, axis: usize) -> Built {
    let scan = Algorithm::Scan { combine: Combine::Sum, axis, reverse: false, exclusive: false };
    Ok(b.algorithm(scan, &[x])?[0])
}
