//! Cumulative sums and products.

use super::formula::widened;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{Builder, Built, Combine, Comparison, Compute, Dim, Scalar, ValueId};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("CumSum", &[11, 14], |cx| scan(cx, Combine::Sum)),
    Operator::new("CumProd", &[26], |cx| scan(cx, Combine::Product)),
];

/// Axes of at most this extent, and those of unknown extent, are reduced anew for every element.
const SHORT: i64 = 32;

/// The options of a scan.
#[derive(Clone, Copy)]
struct Scan {
    combine: Combine,
    axis: usize,
    /// From the end.
    reverse: bool,
    /// Excluding the element itself.
    exclusive: bool,
}

fn scan(cx: &mut Context<'_>, combine: Combine) -> Lowered {
    let x = cx.input(0)?;
    let axis = cx.constant_ints(1)?.unwrap_or_default();
    let [axis] = axis[..] else {
        return Err(LowerError::invalid(format!("expected one axis, found {axis:?}")));
    };
    let scan = Scan {
        combine,
        axis: cx.axis(axis, cx.b.rank(x))?,
        reverse: cx.int_or("reverse", 0)? != 0,
        exclusive: cx.int_or("exclusive", 0)? != 0,
    };
    let dtype = cx.dtype(x);
    let wide = widened(cx.b, x)?;
    let result = scan.of(cx.b, wide)?;
    one(cx.b.cast(result, dtype))
}

/// The sum of every element with all those before it along an axis.
pub(super) fn running_sums(b: &mut Builder, x: ValueId, axis: usize) -> Built {
    Scan { combine: Combine::Sum, axis, reverse: false, exclusive: false }.of(b, x)
}

impl Scan {
    fn of(self, b: &mut Builder, x: ValueId) -> Built {
        match b.dims(x)[self.axis].known() {
            Some(extent) if extent > SHORT => self.doubling(b, x, extent),
            _ => self.direct(b, x),
        }
    }

    /// Reduces every element with all those before it.
    fn direct(self, b: &mut Builder, x: ValueId) -> Built {
        let dims = b.dims(x);
        let (here, other) = (Scalar::Loop(self.axis), Scalar::Loop(dims.len()));
        let (from, to) = if self.reverse { (here, other.clone()) } else { (other.clone(), here) };
        let how = if self.exclusive { Comparison::Lt } else { Comparison::Le };
        let inside = from.compare(how, to);
        let body = inside.select(self.element(&dims, other), self.neutral(b, x));
        let over = [dims[self.axis].clone()];
        b.compute(Compute::reduce(dims, self.combine, over, body), &[x])
    }

    /// Combines elements at distances 1, 2, 4, ...: as many steps as the extent has bits.
    fn doubling(self, b: &mut Builder, x: ValueId, extent: i64) -> Built {
        let mut result = if self.exclusive { self.moved(b, x, 1, false)? } else { x };
        let mut distance = 1;
        while distance < extent {
            result = self.moved(b, result, distance, true)?;
            distance *= 2;
        }
        Ok(result)
    }

    /// The element at a distance before, combined with the element itself or alone.
    fn moved(self, b: &mut Builder, x: ValueId, distance: i64, join: bool) -> Built {
        let dims = b.dims(x);
        let distance = Scalar::index(distance);
        let (here, end) = (Scalar::Loop(self.axis), Scalar::Size(dims[self.axis].clone()));
        let (from, inside) = if self.reverse {
            let from = here + distance;
            (from.clone(), from.lt(end))
        } else {
            let from = here - distance;
            (from.clone(), from.ge(Scalar::index(0)))
        };
        let before = inside.select(self.element(&dims, from), self.neutral(b, x));
        let own = self.element(&dims, Scalar::Loop(self.axis));
        let body = if join { own.binary(self.combine.function(), before) } else { before };
        b.compute(Compute::map(dims, body), &[x])
    }

    fn element(self, dims: &[Dim], place: Scalar) -> Scalar {
        let mut at: Vec<Scalar> = (0..dims.len()).map(Scalar::Loop).collect();
        at[self.axis] = place;
        Scalar::load(0, at)
    }

    fn neutral(self, b: &Builder, x: ValueId) -> Scalar {
        Scalar::number(i64::from(self.combine == Combine::Product), b.dtype(x))
    }
}
