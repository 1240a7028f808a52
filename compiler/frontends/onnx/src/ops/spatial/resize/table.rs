//! The positions that an axis reads, and their weights, as small tensors.

use super::attributes::{Coordinates, Mode, Options, Rounding};
use super::extents::Resized;
use crate::context::{Context, LowerError};
use crate::ops::pieces::{size, within};
use crate::ops::spatial::grid::cubic;
use irc_tl::{Binary, Builder, Built, Combine, Compute, DType, Dim, Scalar, Unary, ValueId};

/// The interpolation table of an axis.
pub(super) struct Table {
    /// Number of elements per element of the result.
    pub taps: Dim,
    /// Their positions: `i64[result, taps]`.
    pub places: ValueId,
    /// Their weights: `[result, taps]`.
    pub weights: ValueId,
    /// The summand where the region is outside: `[result]`.
    pub outside: Option<ValueId>,
}

/// Computes the table of one axis.
pub(super) struct Tables<'t> {
    pub options: &'t Options,
    pub resized: &'t Resized,
    /// The index among the resized axes.
    pub position: usize,
}

/// All coordinates have this type. In a wider one, coordinates halfway between two elements would not be
/// halfway, as factors such as 1.7 are given in this one.
const PLACE: DType = DType::F32;

fn number(value: f64) -> Scalar {
    Scalar::float(value, PLACE)
}

impl Tables<'_> {
    /// The factor, if it is known.
    fn factor(&self, b: &Builder) -> Built<Option<f64>> {
        let factors = b.constant_of(self.resized.factors)?;
        Ok(factors.map(|factors| factors.get_f64(self.position)))
    }

    /// Whether the axis is unchanged.
    pub fn is_identity(&self, b: &Builder) -> Built<bool> {
        let same = self.own() == self.extent() && self.resized.region.is_none();
        Ok(same && self.factor(b)?.is_none_or(|factor| factor == 1.0))
    }

    /// The repetition count of elements, if the axis is only repeated.
    pub fn repeats(&self, b: &Builder) -> Built<Option<i64>> {
        let options = self.options;
        let simple = matches!(
            (options.coordinates, options.rounding),
            (Coordinates::Asymmetric, Rounding::Floor | Rounding::Away)
                | (Coordinates::HalfPixel, Rounding::PreferFloor | Rounding::PreferCeil)
        );
        let times = match self.factor(b)? {
            Some(factor) => Some(factor as i64).filter(|_| factor.fract() == 0.0),
            None => self.extent().floor_div(self.own()).known(),
        };
        let times = times.filter(|times| *times >= 1 && simple);
        Ok(times.filter(|times| *self.extent() == self.own().clone() * (*times).into()))
    }

    fn own(&self) -> &Dim {
        &self.resized.own[self.position]
    }

    fn extent(&self) -> &Dim {
        &self.resized.extents[self.position]
    }

    /// An op over factors (operand 0) and the region (operand 1).
    fn compute(&self, b: &mut Builder, dims: &[Dim], body: Scalar) -> Built {
        let mut operands = vec![self.resized.factors];
        operands.extend(self.resized.region);
        b.compute(Compute::map(dims, body), &operands)
    }

    fn times(&self) -> Scalar {
        Scalar::load(0, [Scalar::index(self.position as i64)]).cast(PLACE)
    }

    fn length(&self) -> Scalar {
        size(self.own()).cast(PLACE)
    }

    /// The coordinate in the operand of the result element that loop 0 counts.
    fn place(&self) -> Scalar {
        let at = Scalar::Loop(0).cast(PLACE);
        let half = || number(0.5);
        // The requested extent, which is not rounded to an integer.
        let wanted = || self.times() * self.length();
        let middle = |at: Scalar| (at + half()) / self.times() - half();
        match self.options.coordinates {
            Coordinates::HalfPixel => middle(at),
            Coordinates::PytorchHalfPixel => {
                let more = number(1.0).lt(wanted());
                more.select(middle(at), number(0.0))
            }
            Coordinates::HalfPixelSymmetric => {
                let adjusted = size(self.extent()).cast(PLACE) / wanted();
                let centre = self.length() / number(2.0);
                centre * (number(1.0) - adjusted) + middle(at)
            }
            Coordinates::AlignCorners => {
                let steps = wanted() - number(1.0);
                let none = steps.clone().equals(number(0.0));
                let place = at * (self.length() - number(1.0)) / steps;
                none.select(number(0.0), place)
            }
            Coordinates::Asymmetric => at / self.times(),
            Coordinates::HalfPixelForNearest => (at + half()) / self.times(),
            Coordinates::Crop => self.cropped(at),
        }
    }

    fn cropped(&self, at: Scalar) -> Scalar {
        let edge = |part: usize| {
            let index = part * self.resized.axes.len() + self.position;
            Scalar::load(1, [Scalar::index(index as i64)]).cast(PLACE)
        };
        let (start, end) = (edge(0), edge(1));
        let last = || self.length() - number(1.0);
        let steps = size(self.extent()).cast(PLACE) - number(1.0);
        let step = (end.clone() - start.clone()) * last() / steps.clone();
        let many = start.clone() * last() + at * step;
        let alone = number(0.5) * (start + end) * last();
        number(0.0).lt(steps).select(many, alone)
    }

    /// The nearest position of each element of the result: `i64[result]`.
    pub fn nearest(&self, cx: &mut Context<'_>) -> Result<ValueId, LowerError> {
        let place = self.place();
        let floor = |place: Scalar| place.unary(Unary::Floor);
        let ceil = |place: Scalar| place.unary(Unary::Ceil);
        let nearest = match self.options.rounding {
            Rounding::PreferFloor => ceil(place - number(0.5)),
            Rounding::PreferCeil => floor(place + number(0.5)),
            Rounding::Floor => floor(place),
            Rounding::Ceil => ceil(place),
            Rounding::Away => {
                let smaller = self.times().lt(number(1.0));
                smaller.select(ceil(place.clone()), floor(place))
            }
        };
        let body = self.clamped(nearest.cast(DType::I64));
        Ok(self.compute(cx.b, &[self.extent().clone()], body)?)
    }

    /// Where the region's coordinates are outside of the operand, if that is possible: `bool[result]`.
    pub fn outside(&self, cx: &mut Context<'_>) -> Result<Option<ValueId>, LowerError> {
        if self.options.coordinates != Coordinates::Crop {
            return Ok(None);
        }
        let body = self.is_outside();
        Ok(Some(self.compute(cx.b, &[self.extent().clone()], body)?))
    }

    fn is_outside(&self) -> Scalar {
        let last = self.length() - number(1.0);
        let below = self.place().lt(number(0.0));
        below.binary(Binary::Or, last.lt(self.place()))
    }

    fn clamped(&self, index: Scalar) -> Scalar {
        let last = size(&(self.own().clone() - 1.into()));
        index.min(last).max(Scalar::index(0))
    }

    /// The elements around each coordinate, and their weights.
    pub fn weighted(&self, cx: &mut Context<'_>, dtype: DType) -> Result<Table, LowerError> {
        let (first, taps) = self.span(cx)?;
        let dims = [self.extent().clone(), taps.clone()];
        let start = self.place().unary(Unary::Floor).cast(DType::I64);
        let index = start + size(&first) + Scalar::Loop(1);
        let inside = within(&index, Scalar::index(0), size(self.own()));
        let distance = (index.clone().cast(PLACE) - self.place()).unary(Unary::Abs);
        let distance = if self.options.antialias { distance * self.shrunk() } else { distance };
        let mut weight = match self.options.mode {
            Mode::Cubic => cubic(distance, self.options.cubic, PLACE),
            _ => (number(1.0) - distance).max(number(0.0)),
        };
        if self.options.exclude_outside {
            weight = inside.select(weight, number(0.0));
        }
        let places = self.compute(cx.b, &dims, self.clamped(index))?;
        let mut weights = self.compute(cx.b, &dims, weight)?;
        if self.options.exclude_outside || self.options.antialias {
            weights = normalised(cx.b, weights)?;
        }
        let mut outside = None;
        if let Some(found) = self.outside(cx)? {
            let is_outside = || Scalar::load(1, [Scalar::Loop(0)]);
            let own = Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(1)]);
            let kept = is_outside().select(number(0.0), own);
            weights = cx.b.compute(Compute::map(dims.clone(), kept), &[weights, found])?;
            let is_outside = Scalar::load(0, [Scalar::Loop(0)]);
            let instead = Scalar::float(self.options.extrapolation, dtype);
            let body = is_outside.select(instead, Scalar::float(0.0, dtype));
            outside = Some(cx.b.compute(Compute::map(&dims[..1], body), &[found])?);
        }
        let weights = cx.b.cast(weights, dtype)?;
        Ok(Table { taps, places, weights, outside })
    }

    /// The factor when downsampling, else 1: the kernel is widened by its inverse.
    fn shrunk(&self) -> Scalar {
        self.times().min(number(1.0))
    }

    /// The first element with a weight, relative to the one before the coordinate, and the number of them.
    fn span(&self, cx: &mut Context<'_>) -> Result<(Dim, Dim), LowerError> {
        let reach = if self.options.mode == Mode::Cubic { 2 } else { 1 };
        if !self.options.antialias {
            return Ok(((1 - reach).into(), (2 * reach).into()));
        }
        let body = (number(reach as f64) / self.shrunk()).unary(Unary::Ceil).cast(DType::I64);
        let before = self.compute(cx.b, &[], body)?;
        let before = cx.b.elements_or_symbols(before)?[0].clone();
        Ok((Dim::Known(1) - before.clone(), before * 2.into()))
    }
}

/// Normalises every row to the sum 1.
fn normalised(b: &mut Builder, weights: ValueId) -> Built {
    let dims = b.dims(weights);
    let own = || Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(1)]);
    let sum = Compute::reduce(&dims[..1], Combine::Sum, &dims[1..], own());
    let sum = b.compute(sum, &[weights])?;
    let body = own() / Scalar::load(1, [Scalar::Loop(0)]);
    b.compute(Compute::map(dims, body), &[weights, sum])
}
