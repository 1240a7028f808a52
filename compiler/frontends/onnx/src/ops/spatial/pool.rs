//! Pooling over windows, or over whole channels.

use super::window::{Window, kernel_shape, spatial_rank, times};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::pieces::{either, guarded, loops, size, wide};
use irc_tl::{
    Binary, Builder, Built, Combine, Comparison, Compute, DType, Dim, Reduction, Scalar, Unary,
    ValueId,
};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("MaxPool", &[1, 8, 10, 11, 12, 22], max_pool),
    Operator::new("AveragePool", &[1, 7, 10, 11, 19, 22], average_pool),
    Operator::new("LpPool", &[1, 2, 11, 18, 22], lp_pool),
    Operator::new("GlobalAveragePool", &[1, 22], |cx| global(cx, Reduction::Mean)),
    Operator::new("GlobalMaxPool", &[1, 22], |cx| global(cx, Reduction::Max)),
    Operator::new("GlobalLpPool", &[1, 2, 22], global_lp),
];

/// A window over the value `x`.
pub(super) struct Pool {
    x: ValueId,
    window: Window,
    /// Extents of the spatial dimensions.
    extents: Vec<Dim>,
    /// Extents of the result.
    dims: Vec<Dim>,
    /// Whether the last windows may be partial.
    ceil: bool,
}

impl Pool {
    fn of(cx: &Context<'_>, x: ValueId) -> Result<Self, LowerError> {
        let rank = spatial_rank(cx, x)?;
        let own = cx.b.dims(x);
        let extents = own[2..].to_vec();
        let window = Window::of(cx, kernel_shape(cx, rank)?, &extents)?;
        // The number of windows that `auto_pad` determines is exact.
        let automatic =
            !matches!(cx.string_or("auto_pad", "NOTSET")?.as_str(), "NOTSET" | "VALID" | "");
        let ceil = cx.int_or("ceil_mode", 0)? != 0 && !automatic;
        Ok(Self::over(cx.b, x, window, ceil))
    }

    /// That of a window; the last one along an axis may be partial if `ceil` says so.
    pub(super) fn over(b: &Builder, x: ValueId, window: Window, ceil: bool) -> Self {
        let mut dims = b.dims(x);
        let extents = dims.split_off(2);
        dims.extend(window.counts(&extents, ceil));
        Self { x, window, extents, dims, ceil }
    }

    /// Reduces a function of the elements of every window.
    pub(super) fn reduce(
        &self,
        b: &mut Builder,
        combine: Combine,
        outside: Scalar,
        function: impl Fn(Scalar) -> Scalar,
    ) -> Built {
        let rank = self.dims.len();
        let (at, guard) = self.window.positions(&self.extents, 2, rank, self.ceil);
        let mut from = loops(0..2);
        from.extend(at);
        let body = guarded(guard, function(Scalar::load(0, from)), outside);
        let over = self.window.kernel.clone();
        b.compute(Compute::reduce(self.dims.clone(), combine, over, body), &[self.x])
    }

    /// The number of elements of a window, excluding or including the pads.
    fn count(&self, with_pads: bool) -> Scalar {
        let along = |axis: usize| self.count_along(axis, with_pads);
        (0..self.extents.len()).map(along).reduce(|x, y| x * y).unwrap_or(Scalar::index(1))
    }

    fn count_along(&self, axis: usize, with_pads: bool) -> Scalar {
        let [before, after] = &self.window.pads[axis];
        let dilation = self.window.dilations[axis];
        let start = times(Scalar::Loop(2 + axis), self.window.strides[axis]);
        let steps =
            |distance: Scalar| (distance + Scalar::index(dilation - 1)) / Scalar::index(dilation);
        let mut end = self.extents[axis].clone() + before.clone();
        let mut first = Scalar::index(0);
        if with_pads {
            end = end + after.clone();
        } else {
            first = steps((size(before) - start.clone()).max(Scalar::index(0)));
        }
        let last = steps(size(&end) - start).min(size(&self.window.kernel[axis]));
        (last - first).max(Scalar::index(1))
    }

    /// Whether every window is within the value.
    fn is_inside(&self) -> bool {
        !self.ceil && self.window.pads.iter().flatten().all(|pad| pad.is(0))
    }
}

fn max_pool(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let pool = Pool::of(cx, x)?;
    let lowest = lowest(cx.dtype(pool.x));
    let highest = pool.reduce(cx.b, Combine::Max, lowest, |element| element)?;
    if !cx.is_used(1) {
        return Ok(vec![highest]);
    }
    let by_columns = cx.int_or("storage_order", 0)? != 0;
    let places = places(cx.b, &pool, highest)?;
    let places = if by_columns { column_major(cx.b, &pool, places)? } else { places };
    Ok(vec![highest, places])
}

/// The lowest number of a type; minus infinity for floats.
pub(in crate::ops) fn lowest(dtype: DType) -> Scalar {
    Combine::Max.neutral(dtype).scalar(dtype)
}

/// The index, in the whole value, of the first maximum of each window.
fn places(b: &mut Builder, pool: &Pool, highest: ValueId) -> Built {
    let rank = pool.dims.len();
    let (at, guard) = pool.window.positions(&pool.extents, 2, rank, pool.ceil);
    let mut from = loops(0..2);
    from.extend(at);
    let own = b.dims(pool.x);
    let place = linear(&from, &own);
    let element = Scalar::load(0, from);
    let equal = element.clone().equals(Scalar::load(1, loops(0..rank)));
    // If the maximum is NaN it equals nothing.
    let nan = element.clone().compare(Comparison::Ne, element);
    let none = || Scalar::index(i64::MAX);
    let body = guarded(guard, either(equal, nan).select(place, none()), none());
    let over = pool.window.kernel.clone();
    let found = Compute::reduce(pool.dims.clone(), Combine::Min, over, body);
    b.compute(found, &[pool.x, highest])
}

/// Converts row-major indices to an order in which the first spatial dimension is the fastest.
fn column_major(b: &mut Builder, pool: &Pool, places: ValueId) -> Built {
    let volume = Dim::product(&pool.extents);
    let mut rest = Scalar::load(0, loops(0..pool.dims.len()));
    let channel = rest.clone() / size(&volume);
    let mut place = Scalar::index(0);
    for (axis, extent) in pool.extents.iter().enumerate().rev() {
        let index = rest.clone().binary(Binary::Rem, size(extent));
        let step = Dim::product(&pool.extents[..axis]);
        place = place + index * size(&step);
        rest = rest / size(extent);
    }
    let body = channel * size(&volume) + place;
    b.compute(Compute::map(pool.dims.clone(), body), &[places])
}

/// The row-major position of an index.
pub(in crate::ops) fn linear(at: &[Scalar], dims: &[Dim]) -> Scalar {
    let mut place = Scalar::index(0);
    for (axis, (index, dim)) in at.iter().zip(dims).enumerate() {
        let scaled = if axis == 0 { None } else { Some(place * size(dim)) };
        place = scaled.map_or(index.clone(), |scaled| scaled + index.clone());
    }
    place
}

fn average_pool(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let with_pads = cx.version >= 7 && cx.int_or("count_include_pad", 0)? != 0;
    Ok(vec![averages(cx, x, with_pads)?])
}

/// The mean of every window, with zeros in the pads or without the pads.
pub(in crate::ops) fn averages(
    cx: &mut Context<'_>,
    x: ValueId,
    with_pads: bool,
) -> Result<ValueId, LowerError> {
    let pool = Pool::of(cx, x)?;
    let dtype = cx.dtype(pool.x);
    let computed = wide(dtype);
    let zero = Scalar::number(0, computed);
    let sum = pool.reduce(cx.b, Combine::Sum, zero, |element| element.cast(computed))?;
    let mean = match pool.window.elements().known() {
        Some(count) if pool.is_inside() => {
            let count = cx.b.scalar(count as f64, computed)?;
            cx.b.binary(Binary::Div, sum, count)?
        }
        _ => {
            let sums = Scalar::load(0, loops(0..pool.dims.len()));
            let body = sums / pool.count(with_pads).cast(computed);
            cx.b.compute(Compute::map(pool.dims.clone(), body), &[sum])?
        }
    };
    Ok(cx.b.cast(mean, dtype)?)
}

/// What sums of windows are divided by.
pub(in crate::ops) enum Count {
    /// The number of elements of every window.
    Known(i64),
    /// A value with the number of elements of each window.
    Each(ValueId),
}

/// The sums of windows of integers, and the number of elements of each, with the pads or without; `None` if it is not
/// known.
pub(in crate::ops) fn window_sums(
    cx: &mut Context<'_>,
    x: ValueId,
    with_pads: bool,
) -> Result<Option<(ValueId, Count)>, LowerError> {
    let pool = Pool::of(cx, x)?;
    let count = match pool.window.elements().known() {
        Some(count) if pool.is_inside() || with_pads && !pool.ceil => Count::Known(count),
        Some(_) => {
            let mut dims = vec![Dim::from(1); 2];
            dims.extend_from_slice(&pool.dims[2..]);
            let body = pool.count(with_pads).cast(DType::F32);
            Count::Each(cx.b.compute(Compute::map(dims, body), &[])?)
        }
        None => return Ok(None),
    };
    let zero = Scalar::Int(0, cx.dtype(pool.x));
    Ok(Some((pool.reduce(cx.b, Combine::Sum, zero, |element| element)?, count)))
}

fn lp_pool(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let pool = Pool::of(cx, x)?;
    let p = exponent(cx, 2)?;
    let dtype = cx.dtype(pool.x);
    let computed = wide(dtype);
    let zero = Scalar::number(0, computed);
    let power = |element: Scalar| power(element.cast(computed), p, computed);
    let sum = pool.reduce(cx.b, Combine::Sum, zero, power)?;
    root(cx, sum, p, dtype)
}

fn global(cx: &mut Context<'_>, reduction: Reduction) -> Lowered {
    let x = cx.input(0)?;
    spatial_rank(cx, x)?;
    let axes: Vec<usize> = (2..cx.b.rank(x)).collect();
    one(cx.b.reduce(reduction, x, &axes, true))
}

fn global_lp(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    spatial_rank(cx, x)?;
    let p = exponent(cx, 2)?;
    let dtype = cx.dtype(x);
    let own = cx.b.dims(x);
    let computed = wide(dtype);
    let body = power(Scalar::load(0, loops(0..own.len())).cast(computed), p, computed);
    let powers = cx.b.compute(Compute::map(own.clone(), body), &[x])?;
    let axes: Vec<usize> = (2..own.len()).collect();
    let sum = cx.b.reduce(Reduction::Sum, powers, &axes, true)?;
    root(cx, sum, p, dtype)
}

/// The attribute `p`: an integer from version 2 on.
fn exponent(cx: &Context<'_>, integer_from: i64) -> Result<f64, LowerError> {
    if cx.version < integer_from {
        return Ok(f64::from(cx.float_or("p", 2.0)?));
    }
    Ok(cx.int_or("p", 2)? as f64)
}

/// `|x|^p`.
fn power(x: Scalar, p: f64, dtype: DType) -> Scalar {
    let size = x.clone().unary(Unary::Abs);
    match p {
        1.0 => size,
        2.0 => x.clone() * x,
        _ => size.binary(Binary::Pow, Scalar::float(p, dtype)),
    }
}

/// The `p`-th root of sums.
fn root(cx: &mut Context<'_>, sum: ValueId, p: f64, to: DType) -> Lowered {
    let value = if p == 2.0 {
        cx.b.unary(Unary::Sqrt, sum)?
    } else {
        let power = cx.b.scalar(1.0 / p, cx.dtype(sum))?;
        cx.b.binary(Binary::Pow, sum, power)?
    };
    one(cx.b.cast(value, to))
}
