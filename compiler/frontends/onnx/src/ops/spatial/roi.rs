//! Pooling of regions of interest.

use super::pool::lowest;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::pieces::{size, wide, within};
use irc_tl::{Combine, Comparison, Compute, DType, Dim, Scalar, Unary, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("MaxRoiPool", &[1, 22], max_roi_pool),
    Operator::new("RoiAlign", &[10, 16, 22], roi_align),
];

/// Loops over the result: region, channel, row, column.
const REGION: usize = 0;
const CHANNEL: usize = 1;

fn operand(cx: &Context<'_>) -> Result<(ValueId, [Dim; 4]), LowerError> {
    let x = cx.input(0)?;
    let ty = cx.ty(x);
    let dims: Result<[Dim; 4], _> = ty.dims.clone().try_into();
    Ok((x, dims.map_err(|_| LowerError::invalid(format!("expected rank 4, found {ty}")))?))
}

fn max_roi_pool(cx: &mut Context<'_>) -> Lowered {
    let (x, own) = operand(cx)?;
    let regions = cx.input(1)?;
    let shape = cx.ints("pooled_shape")?.ok_or_else(|| cx.missing("pooled_shape"))?;
    let [rows, columns] = shape[..] else {
        let message = format!("expected 2 entries of pooled_shape, found {shape:?}");
        return Err(LowerError::invalid(message));
    };
    let by = f64::from(cx.float_or("spatial_scale", 1.0)?);
    let dtype = cx.dtype(x);
    let computed = wide(cx.dtype(regions));
    let number = |value: f64| Scalar::float(value, computed);
    let entry =
        |column: i64| Scalar::load(1, [Scalar::Loop(REGION), Scalar::index(column)]).cast(computed);
    // Halves are rounded away from zero; relevant coordinates are not negative.
    let edge = |column: i64| (entry(column) * number(by) + number(0.5)).unary(Unary::Floor);
    let mut inside: Option<Scalar> = None;
    for (axis, parts) in [rows, columns].into_iter().enumerate() {
        let (start, end) = (edge(2 - axis as i64), edge(4 - axis as i64));
        let extent = (end - start.clone() + number(1.0)).max(number(1.0));
        let step = extent / number(parts as f64);
        let bin = Scalar::Loop(2 + axis).cast(computed);
        let low = (bin.clone() * step.clone()).unary(Unary::Floor) + start.clone();
        let high = ((bin + number(1.0)) * step).unary(Unary::Ceil) + start;
        let limit = size(&own[2 + axis]);
        let bound = |place: Scalar| place.cast(DType::I64).max(Scalar::index(0)).min(limit.clone());
        let here = within(&Scalar::Loop(4 + axis), bound(low), bound(high));
        inside = Some(match inside {
            None => here,
            Some(before) => before.and(here),
        });
    }
    let batch = entry(0).cast(DType::I64);
    let at = [batch, Scalar::Loop(CHANNEL), Scalar::Loop(4), Scalar::Loop(5)];
    let body = match inside {
        Some(inside) => inside.select(Scalar::load(0, at), lowest(dtype)),
        None => Scalar::load(0, at),
    };
    let count = cx.b.dims(regions)[0].clone();
    let dims = [count, own[1].clone(), rows.into(), columns.into()];
    let over = [own[2].clone(), own[3].clone()];
    let highest = Compute::reduce(dims.clone(), Combine::Max, over, body);
    let highest = cx.b.compute(highest, &[x, regions])?;
    // A bin without elements is zero.
    let value = || Scalar::load(0, crate::ops::pieces::loops(0..4));
    let empty = value().equals(lowest(dtype));
    let body = empty.select(Scalar::number(0, dtype), value());
    one(cx.b.compute(Compute::map(dims, body), &[highest]))
}

/// The attributes of a `RoiAlign`.
struct Align {
    /// Rows and columns of the result.
    bins: [i64; 2],
    /// Points per bin along an axis; 0 for one per element.
    ratio: i64,
    scale: f64,
    half_pixel: bool,
    dtype: DType,
}

fn roi_align(cx: &mut Context<'_>) -> Lowered {
    let (x, own) = operand(cx)?;
    let (regions, batches) = (cx.input(1)?, cx.input(2)?);
    let dtype = cx.dtype(x);
    let half_pixel = match cx.string_or("coordinate_transformation_mode", "half_pixel")?.as_str() {
        "half_pixel" => cx.version >= 16,
        "output_half_pixel" => false,
        other => {
            let words = ["half_pixel", "output_half_pixel"];
            return Err(LowerError::word("coordinate_transformation_mode", &words, other));
        }
    };
    let align = Align {
        bins: [cx.int_or("output_height", 1)?, cx.int_or("output_width", 1)?],
        ratio: cx.int_or("sampling_ratio", 0)?,
        scale: f64::from(cx.float_or("spatial_scale", 1.0)?),
        half_pixel,
        dtype: wide(dtype),
    };
    let largest = match cx.string_or("mode", "avg")?.as_str() {
        "avg" => false,
        "max" => true,
        other => return Err(LowerError::word("mode", &["avg", "max"], other)),
    };
    let count = cx.b.dims(regions)[0].clone();
    let points = align.points(cx, regions, &count)?;
    let dims = [count, own[1].clone(), align.bins[0].into(), align.bins[1].into()];
    let result = align.sample(cx, [x, regions, batches], (&own, &dims), &points, largest)?;
    one(cx.b.cast(result, dtype))
}

impl Align {
    fn number(&self, value: f64) -> Scalar {
        Scalar::float(value, self.dtype)
    }

    /// Start and extent of a region along an axis; `regions` is that operand.
    fn region(&self, regions: usize, axis: usize) -> (Scalar, Scalar) {
        let edge = |column: usize| {
            let at = [Scalar::Loop(REGION), Scalar::index(column as i64)];
            let scaled = Scalar::load(regions, at).cast(self.dtype) * self.number(self.scale);
            if self.half_pixel { scaled - self.number(0.5) } else { scaled }
        };
        let (start, end) = (edge(1 - axis), edge(3 - axis));
        let extent = end - start.clone();
        let extent = if self.half_pixel { extent } else { extent.max(self.number(1.0)) };
        (start, extent)
    }

    /// The points per bin along an axis.
    fn ratio(&self, regions: usize, axis: usize) -> Scalar {
        if self.ratio > 0 {
            return Scalar::index(self.ratio);
        }
        let (_, extent) = self.region(regions, axis);
        let step = extent / self.number(self.bins[axis] as f64);
        step.unary(Unary::Ceil).cast(DType::I64)
    }

    /// An upper bound on the points per bin of any region, along each axis.
    fn points(
        &self,
        cx: &mut Context<'_>,
        regions: ValueId,
        count: &Dim,
    ) -> Result<[Dim; 2], LowerError> {
        if self.ratio > 0 {
            return Ok([self.ratio.into(), self.ratio.into()]);
        }
        let mut most = [Dim::Known(0), Dim::Known(0)];
        for (axis, most) in most.iter_mut().enumerate() {
            let body = self.ratio(0, axis).max(Scalar::index(0));
            let each = cx.b.compute(Compute::map([count.clone()], body), &[regions])?;
            let body = Scalar::load(0, [Scalar::Loop(0)]);
            let largest = Compute::reduce([], Combine::Max, [count.clone()], body);
            let largest = cx.b.compute(largest, &[each])?;
            let largest = cx.b.elements_or_symbols(largest)?;
            *most = largest[0].maximum(&0.into());
        }
        Ok(most)
    }

    fn sample(
        &self,
        cx: &mut Context<'_>,
        operands: [ValueId; 3],
        (own, dims): (&[Dim; 4], &[Dim; 4]),
        points: &[Dim; 2],
        largest: bool,
    ) -> Result<ValueId, LowerError> {
        let batch = Scalar::load(2, [Scalar::Loop(REGION)]).cast(DType::I64);
        let mut at = vec![batch, Scalar::Loop(CHANNEL)];
        let mut counted: Option<Scalar> = None;
        let mut weight: Option<Scalar> = None;
        for axis in 0..2 {
            let (start, extent) = self.region(1, axis);
            let step = extent / self.number(self.bins[axis] as f64);
            let bin = Scalar::Loop(2 + axis).cast(self.dtype) * step.clone();
            let point = Scalar::Loop(4 + axis);
            let ratio = self.ratio(1, axis);
            let share = (point.clone().cast(self.dtype) + self.number(0.5)) * step
                / ratio.clone().cast(self.dtype);
            let (index, part, inside) =
                self.corner(start + bin + share, &own[2 + axis], Scalar::Loop(6 + axis));
            at.push(index);
            let here = point.lt(ratio).and(inside);
            counted = Some(counted.map_or(here.clone(), |before| before.and(here)));
            weight = Some(weight.map_or(part.clone(), |before| before * part));
        }
        let value = Scalar::load(0, at).cast(self.dtype);
        let value = weight.map_or(value.clone(), |weight| weight * value);
        let guard = |outside: Scalar| match counted {
            Some(counted) => counted.select(value.clone(), outside),
            None => value.clone(),
        };
        let over = [points[0].clone(), points[1].clone(), 2.into(), 2.into()];
        if largest {
            return self.highest(cx, guard(lowest(self.dtype)), dims, over, &operands);
        }
        let sum = Compute::reduce(dims.clone(), Combine::Sum, over, guard(self.number(0.0)));
        let sum = cx.b.compute(sum, &operands)?;
        let count = (self.ratio(1, 0) * self.ratio(1, 1)).max(Scalar::index(1));
        let body = Scalar::load(0, crate::ops::pieces::loops(0..4)) / count.cast(self.dtype);
        Ok(cx.b.compute(Compute::map(dims.clone(), body), &[sum, operands[1]])?)
    }

    fn highest(
        &self,
        cx: &mut Context<'_>,
        body: Scalar,
        dims: &[Dim; 4],
        over: [Dim; 4],
        operands: &[ValueId],
    ) -> Result<ValueId, LowerError> {
        let highest = Compute::reduce(dims.clone(), Combine::Max, over, body);
        let highest = cx.b.compute(highest, operands)?;
        let value = || Scalar::load(0, crate::ops::pieces::loops(0..4));
        let none = value().equals(lowest(self.dtype));
        let body = none.select(self.number(0.0), value());
        Ok(cx.b.compute(Compute::map(dims.clone(), body), &[highest])?)
    }

    /// One of the two neighbours of a point along an axis, its weight, and whether the point is
    /// within the value or at most one element outside.
    fn corner(&self, point: Scalar, extent: &Dim, which: Scalar) -> (Scalar, Scalar, Scalar) {
        let length = size(extent);
        let last = || length.clone() - Scalar::index(1);
        let beyond = at_most(point.clone(), length.clone().cast(self.dtype));
        let inside = point.clone().ge(self.number(-1.0)).and(beyond);
        let point = point.max(self.number(0.0)).min(last().cast(self.dtype));
        let low = point.clone().unary(Unary::Floor).cast(DType::I64);
        let rest = point - low.clone().cast(self.dtype);
        let first = which.clone().equals(Scalar::index(0));
        let weight = first.select(self.number(1.0) - rest.clone(), rest);
        ((low + which).min(last()), weight, inside)
    }
}

fn at_most(left: Scalar, right: Scalar) -> Scalar {
    left.compare(Comparison::Le, right)
}
