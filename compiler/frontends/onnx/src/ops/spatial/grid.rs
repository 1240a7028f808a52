//! Sampling at the points of a grid.

use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::pieces::{all, loops, size, wide, within};
use irc_tl::{Binary, Combine, Compute, DType, Dim, Relation, Scalar, Unary, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("GridSample", &[16, 20, 22], grid_sample),
    Operator::new("AffineGrid", &[20], affine_grid),
];

/// The options of sampling.
struct Sampling {
    mode: Mode,
    padding: Padding,
    /// Whether -1 and 1 are the centres of the first and last element, rather than their outer edges.
    corners: bool,
    /// Extents of the spatial dimensions.
    extents: Vec<Dim>,
    /// The type of the computation.
    dtype: DType,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Nearest,
    Linear,
    Cubic,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Padding {
    Zeros,
    Border,
    Reflection,
}

fn grid_sample(cx: &mut Context<'_>) -> Lowered {
    let (x, grid) = (cx.input(0)?, cx.input(1)?);
    let (own, points) = (cx.ty(x), cx.ty(grid));
    let rank = own.rank();
    let message = format!("expected a grid of points of {own}, found {points}");
    if rank < 3 || points.rank() != rank {
        return Err(LowerError::invalid(message));
    }
    let axes = Dim::Known(rank as i64 - 2);
    cx.b.require(&points.dims[rank - 1], Relation::Equal, &axes, &message)?;
    cx.b.require(&own.dims[0], Relation::Equal, &points.dims[0], "expected one batch")?;
    let sampling = Sampling {
        mode: mode(cx)?,
        padding: padding(cx)?,
        corners: cx.int_or("align_corners", 0)? != 0,
        extents: own.dims[2..].to_vec(),
        dtype: wide(own.dtype),
    };
    let body = sampling.place(rank, wide(points.dtype));
    let places = cx.b.compute(Compute::map(points.dims.clone(), body), &[grid])?;
    let mut dims = own.dims[..2].to_vec();
    dims.extend_from_slice(&points.dims[1..rank - 1]);
    let sampled = if sampling.mode == Mode::Nearest {
        let at = (0..rank - 2).map(|axis| sampling.coordinate(rank, axis).cast(DType::I64));
        let value = sampling.element(at.collect());
        cx.b.compute(Compute::map(dims, value), &[x, places])?
    } else {
        sampling.weighted(cx, dims, [x, places])?
    };
    one(cx.b.cast(sampled, own.dtype))
}

fn mode(cx: &Context<'_>) -> Result<Mode, LowerError> {
    match cx.string_or("mode", if cx.version < 20 { "bilinear" } else { "linear" })?.as_str() {
        "nearest" => Ok(Mode::Nearest),
        "bilinear" | "linear" => Ok(Mode::Linear),
        "bicubic" | "cubic" => Ok(Mode::Cubic),
        other => Err(LowerError::word("mode", &["nearest", "linear", "cubic"], other)),
    }
}

fn padding(cx: &Context<'_>) -> Result<Padding, LowerError> {
    match cx.string_or("padding_mode", "zeros")?.as_str() {
        "zeros" => Ok(Padding::Zeros),
        "border" => Ok(Padding::Border),
        "reflection" => Ok(Padding::Reflection),
        other => Err(LowerError::word("padding_mode", &["zeros", "border", "reflection"], other)),
    }
}

impl Sampling {
    /// The coordinate along an axis of each number of the grid, in the order of the grid: the
    /// last axis first.
    fn place(&self, rank: usize, dtype: DType) -> Scalar {
        let number = Scalar::load(0, loops(0..rank)).cast(dtype);
        let axis = Scalar::Loop(rank - 1);
        let mut body: Option<Scalar> = None;
        for (position, extent) in self.extents.iter().rev().enumerate() {
            let place = self.place_along(extent, number.clone(), dtype).cast(self.dtype);
            body = Some(match body {
                None => place,
                Some(before) => {
                    let here = axis.clone().equals(Scalar::index(position as i64));
                    here.select(place, before)
                }
            });
        }
        body.unwrap_or(number)
    }

    fn place_along(&self, extent: &Dim, number: Scalar, dtype: DType) -> Scalar {
        let float = |value: f64| Scalar::float(value, dtype);
        let length = size(extent).cast(dtype);
        let one = number + float(1.0);
        let place = if self.corners {
            one / float(2.0) * (length.clone() - float(1.0))
        } else {
            (one * length.clone() - float(1.0)) / float(2.0)
        };
        let place = if self.mode == Mode::Nearest { place.unary(Unary::Round) } else { place };
        let last = length - float(1.0);
        match self.padding {
            // Neighbours outside of the image are replaced by those at the border.
            Padding::Border if self.mode == Mode::Cubic => place,
            Padding::Zeros => place,
            Padding::Border => place.max(float(0.0)).min(last),
            Padding::Reflection => self.reflected(place, last, dtype),
        }
    }

    /// Reflects a coordinate at the edges as often as needed.
    fn reflected(&self, place: Scalar, last: Scalar, dtype: DType) -> Scalar {
        let float = |value: f64| Scalar::float(value, dtype);
        let edge = if self.corners { 0.0 } else { 0.5 };
        let low = float(-edge);
        let range = last + float(2.0 * edge);
        let distance = (place - low.clone()).unary(Unary::Abs);
        // A single element is the only one to sample.
        let none = at_most(range.clone(), float(0.0));
        let period = none.clone().select(float(1.0), range.clone());
        let turns = (distance.clone() / period.clone()).unary(Unary::Floor);
        let rest = distance - turns.clone() * period;
        let even = turns.binary(Binary::Rem, float(2.0)).equals(float(0.0));
        let inside = even.select(rest.clone(), range - rest);
        none.select(float(0.0), inside + low)
    }

    /// The coordinate along a spatial axis that a point of the result samples.
    fn coordinate(&self, rank: usize, axis: usize) -> Scalar {
        let mut at = vec![Scalar::Loop(0)];
        at.extend(loops(2..rank));
        at.push(Scalar::index((rank - 3 - axis) as i64));
        Scalar::load(1, at)
    }

    /// The element at indices that may be out of bounds.
    fn element(&self, at: Vec<Scalar>) -> Scalar {
        let mut inside = vec![];
        let mut from = loops(0..2);
        for (index, extent) in at.into_iter().zip(&self.extents) {
            let last = size(extent) - Scalar::index(1);
            from.push(match self.padding {
                Padding::Zeros => {
                    inside.push(within(&index, Scalar::index(0), size(extent)));
                    index
                }
                Padding::Border => index.max(Scalar::index(0)).min(last),
                Padding::Reflection => {
                    let float = index.cast(DType::F64);
                    let end = last.clone().cast(DType::F64);
                    let reflected = self.reflected(float, end, DType::F64).cast(DType::I64);
                    reflected.max(Scalar::index(0)).min(last)
                }
            });
        }
        let value = Scalar::load(0, from).cast(self.dtype);
        match all(inside) {
            Some(inside) => inside.select(value, Scalar::float(0.0, self.dtype)),
            None => value,
        }
    }

    /// The weighted sum of the elements around each point.
    fn weighted(
        &self,
        cx: &mut Context<'_>,
        dims: Vec<Dim>,
        operands: [ValueId; 2],
    ) -> Result<ValueId, LowerError> {
        let rank = dims.len();
        let (taps, first) = if self.mode == Mode::Cubic { (4, -1) } else { (2, 0) };
        let mut at = vec![];
        let mut weight: Option<Scalar> = None;
        for axis in 0..rank - 2 {
            let place = self.coordinate(rank, axis);
            let start = place.clone().unary(Unary::Floor);
            let tap = Scalar::Loop(rank + axis) + Scalar::index(first);
            let distance =
                (tap.clone().cast(self.dtype) - (place - start.clone())).unary(Unary::Abs);
            let own = self.weight(distance);
            weight = Some(match weight {
                None => own,
                Some(before) => before * own,
            });
            at.push(start.cast(DType::I64) + tap);
        }
        let value = self.element(at);
        let body = match weight {
            Some(weight) => weight * value,
            None => value,
        };
        let over = vec![Dim::Known(taps); rank - 2];
        Ok(cx.b.compute(Compute::reduce(dims, Combine::Sum, over, body), &operands)?)
    }

    /// The weight of an element at a distance.
    fn weight(&self, distance: Scalar) -> Scalar {
        let one = Scalar::float(1.0, self.dtype);
        match self.mode {
            Mode::Cubic => cubic(distance, -0.75, self.dtype),
            _ => one - distance,
        }
    }
}

/// The kernel of cubic convolution (Keys, 1981), for a distance from 0 to 2.
pub(in crate::ops) fn cubic(distance: Scalar, a: f64, dtype: DType) -> Scalar {
    let float = |value: f64| Scalar::float(value, dtype);
    let d = || distance.clone();
    let near = (float(a + 2.0) * d() - float(a + 3.0)) * d() * d() + float(1.0);
    let far = ((float(a) * d() - float(5.0 * a)) * d() + float(8.0 * a)) * d() - float(4.0 * a);
    let beyond = d().lt(float(2.0)).select(far, float(0.0));
    at_most(distance.clone(), float(1.0)).select(near, beyond)
}

fn at_most(left: Scalar, right: Scalar) -> Scalar {
    left.compare(irc_tl::Comparison::Le, right)
}

fn affine_grid(cx: &mut Context<'_>) -> Lowered {
    let theta = cx.input(0)?;
    let ty = cx.ty(theta);
    let sizes = cx.sizes(1)?;
    let spatial = sizes.len().saturating_sub(2);
    let message = format!("expected matrices for {} sizes, found {ty}", sizes.len());
    if ty.rank() != 3 || spatial == 0 {
        return Err(LowerError::invalid(message));
    }
    for (found, expected) in ty.dims[1..].iter().zip([spatial as i64, spatial as i64 + 1]) {
        cx.b.require(found, Relation::Equal, &expected.into(), &message)?;
    }
    cx.b.require(&sizes[0], Relation::Equal, &ty.dims[0], "expected a matrix per batch")?;
    let corners = cx.int_or("align_corners", 0)? != 0;
    let dtype = wide(ty.dtype);
    let row = || Scalar::Loop(spatial + 1);
    let entry = |column: usize| {
        Scalar::load(0, [Scalar::Loop(0), row(), Scalar::index(column as i64)]).cast(dtype)
    };
    let mut body = entry(spatial);
    for (axis, extent) in sizes[2..].iter().enumerate() {
        // The first coordinate is that of the last axis.
        let place = base(extent, Scalar::Loop(1 + axis), corners, dtype);
        body = body + entry(spatial - 1 - axis) * place;
    }
    let mut dims = vec![sizes[0].clone()];
    dims.extend_from_slice(&sizes[2..]);
    dims.push((spatial as i64).into());
    one(cx.b.compute(Compute::map(dims, body.cast(ty.dtype)), &[theta]))
}

/// The normalised coordinate, from -1 to 1, of an index along an axis.
fn base(extent: &Dim, index: Scalar, corners: bool, dtype: DType) -> Scalar {
    let float = |value: f64| Scalar::float(value, dtype);
    let length = size(extent).cast(dtype);
    let index = index.cast(dtype);
    if corners {
        let steps = (length - float(1.0)).max(float(1.0));
        return float(2.0) * index / steps - float(1.0);
    }
    (float(2.0) * index + float(1.0)) / length - float(1.0)
}
