//! Parts of images.

use super::operator;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::indexing::inside;
use crate::ops::like::like;
use crate::ops::pieces::{size, wide};
use irc_tl::{Comparison, Compute, DType, Dim, Relation, Scalar, Unary, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("CropAndResize", crop_and_resize),
    operator("GridSample", |cx| like(cx, "GridSample", 16)),
    operator("UnfoldTensor", unfold),
];

/// The sampling of regions whose corners are the centres of the first and last result.
struct Crop {
    /// Rows and columns of the images.
    image: [Dim; 2],
    /// Rows and columns of the result.
    crop: [Dim; 2],
    nearest: bool,
    dtype: DType,
}

fn crop_and_resize(cx: &mut Context<'_>) -> Lowered {
    let [x, regions, batches] = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let (ty, found) = (cx.ty(x), cx.ty(regions));
    let (4, 2) = (ty.rank(), found.rank()) else {
        let message = format!("expected images and regions, found {ty} and {found}");
        return Err(LowerError::invalid(message));
    };
    cx.b.require(&found.dims[1], Relation::Equal, &4.into(), "expected 4 edges of regions")?;
    let crops = cx.sizes(3)?;
    let [rows, columns] = &crops[..] else {
        let message = format!("expected a height and a width, found {}", crops.len());
        return Err(LowerError::invalid(message));
    };
    for crop in [rows, columns] {
        cx.b.require(&1.into(), Relation::AtMost, crop, "expected crops of at least one pixel")?;
    }
    let nearest = match cx.string_or("mode", "bilinear")?.as_str() {
        "bilinear" => false,
        "nearest" => true,
        other => {
            let message = format!("expected mode bilinear or nearest, found {other}");
            return Err(LowerError::invalid(message));
        }
    };
    let crop = Crop {
        image: [ty.dims[2].clone(), ty.dims[3].clone()],
        crop: [rows.clone(), columns.clone()],
        nearest,
        dtype: wide(ty.dtype),
    };
    let outside = f64::from(cx.float_or("extrapolation_value", 0.0)?);
    let body = crop.body(&ty.dims[0], outside).cast(ty.dtype);
    let dims = [found.dims[0].clone(), ty.dims[1].clone(), rows.clone(), columns.clone()];
    one(cx.b.compute(Compute::map(dims, body), &[x, regions, batches]))
}

impl Crop {
    fn body(&self, batch: &Dim, outside: f64) -> Scalar {
        let image = inside(Scalar::load(2, [Scalar::Loop(0)]).cast(DType::I64), batch);
        let [y, x] = [0, 1].map(|axis| self.place(axis));
        let last = |axis: usize| self.last(axis);
        let zero = || self.number(0.0);
        let within = |place: &Scalar, axis: usize| {
            let before = place.clone().compare(Comparison::Le, last(axis));
            place.clone().ge(zero()).and(before)
        };
        let valid = within(&y, 0).and(within(&x, 1));
        let element = |y: &Scalar, x: &Scalar| {
            let at = |place: &Scalar, axis: usize| {
                inside(place.clone().cast(DType::I64), &self.image[axis])
            };
            let at = vec![image.clone(), Scalar::Loop(1), at(y, 0), at(x, 1)];
            Scalar::load(0, at).cast(self.dtype)
        };
        let value = if self.nearest {
            // Halves are rounded up; places are not negative.
            let round = |place: &Scalar| (place.clone() + self.number(0.5)).unary(Unary::Floor);
            element(&round(&y), &round(&x))
        } else {
            let floor = |place: &Scalar| place.clone().unary(Unary::Floor);
            let ceil = |place: &Scalar| place.clone().unary(Unary::Ceil);
            let part = x.clone() - floor(&x);
            let row = |y: &Scalar| {
                let (left, right) = (element(y, &floor(&x)), element(y, &ceil(&x)));
                left.clone() + (right - left) * part.clone()
            };
            let (top, bottom) = (row(&floor(&y)), row(&ceil(&y)));
            top.clone() + (bottom - top) * (y.clone() - floor(&y))
        };
        valid.select(value, self.number(outside))
    }

    fn number(&self, value: f64) -> Scalar {
        Scalar::float(value, self.dtype)
    }

    /// The last index along an axis.
    fn last(&self, axis: usize) -> Scalar {
        (size(&self.image[axis]) - Scalar::index(1)).cast(self.dtype)
    }

    /// The place in the image along an axis of an element of the result.
    fn place(&self, axis: usize) -> Scalar {
        let edge = |column: usize| {
            let at = [Scalar::Loop(0), Scalar::index(column as i64)];
            Scalar::load(1, at).cast(self.dtype)
        };
        let (start, end) = (|| edge(axis), || edge(axis + 2));
        let several = Scalar::index(1).lt(size(&self.crop[axis]));
        let steps = size(&self.crop[axis]) - Scalar::index(1);
        let step = (end() - start()) * self.last(axis) / steps.cast(self.dtype);
        let along = start() * self.last(axis) + Scalar::Loop(2 + axis).cast(self.dtype) * step;
        let middle = (start() + end()) * self.number(0.5) * self.last(axis);
        several.select(along, middle)
    }
}

/// All slices of a size along a dimension, at steps, as a new last dimension.
fn unfold(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let mut dims = cx.b.dims(x);
    let axis = cx.axis(cx.int_or("dim", -1)?, dims.len())?;
    let (length, step) =
        (cx.int("size")?.ok_or_else(|| cx.missing("size"))?, cx.int_or("step", 1)?);
    if length < 1 || step < 1 {
        let message = format!("expected a size and a step from 1 on, found {length} and {step}");
        return Err(LowerError::invalid(message));
    }
    let message = "expected slices of at most the dimension's size";
    cx.b.require(&length.into(), Relation::AtMost, &dims[axis], message)?;
    let mut at = crate::ops::pieces::loops(0..dims.len());
    at[axis] = Scalar::Loop(axis) * Scalar::index(step) + Scalar::Loop(dims.len());
    dims[axis] = (dims[axis].clone() - length.into()).floor_div(&step.into()) + 1.into();
    dims.push(length.into());
    let body: Scalar = Scalar::load(0, at);
    let operands: [ValueId; 1] = [x];
    one(cx.b.compute(Compute::map(dims, body), &operands))
}
