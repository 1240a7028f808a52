//! Convolutions.

use super::pool::Pool;
use super::window::{Window, groups, spatial_rank};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::pieces::{Outside, along, pad, with_extent};
use irc_tl::{Binary, Builder, Built, Combine, Conv, DType, Dim, Reduction, Scalar, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[Operator::new("Conv", &[1, 11, 22], conv)];

fn conv(cx: &mut Context<'_>) -> Lowered {
    let (x, w) = (cx.input(0)?, cx.input(1)?);
    let result = correlate(cx, x, w)?;
    let Some(bias) = cx.optional(2) else { return Ok(vec![result]) };
    let bias = per_channel(cx, bias, result)?;
    one(cx.b.binary(Binary::Add, result, bias))
}

/// Convolution according to the node's attributes.
pub(in crate::ops) fn correlate(
    cx: &mut Context<'_>,
    x: ValueId,
    w: ValueId,
) -> Result<ValueId, LowerError> {
    Correlation::of(cx, x, w, Outside::Number(0))?.sums(cx)
}

/// A convolution of an image with filters.
pub(super) struct Correlation {
    x: ValueId,
    w: ValueId,
    pub(super) window: Window,
    pub(super) groups: i64,
    /// The pads of `x`, and what they are; those that are not known, or whose elements are not, are part of it.
    pads: Vec<[i64; 2]>,
    outside: i64,
}

impl Correlation {
    /// That of the node's attributes.
    pub(super) fn of(
        cx: &mut Context<'_>,
        x: ValueId,
        w: ValueId,
        outside: Outside,
    ) -> Result<Self, LowerError> {
        let rank = spatial_rank(cx, x)?;
        let (dims, filters) = (cx.b.dims(x), cx.b.dims(w));
        if filters.len() != dims.len() {
            let (x, w) = (cx.ty(x), cx.ty(w));
            let message = format!("expected filters of rank {}, found {w} for {x}", rank + 2);
            return Err(LowerError::invalid(message));
        }
        let kernel = filters[2..].to_vec();
        if let Some(stated) = cx.ints("kernel_shape")?
            && stated.iter().map(|size| Dim::Known(*size)).ne(kernel.iter().cloned())
            && kernel.iter().all(|size| size.known().is_some())
        {
            let message = format!("expected kernel_shape {kernel:?}, found {stated:?}");
            return Err(LowerError::invalid(message));
        }
        let mut window = Window::of(cx, kernel, &dims[2..])?;
        let groups = groups(cx, "group")?;
        let message = "expected as many channels as the filters have";
        let channels = filters[1].clone() * groups.into();
        let x = with_extent(cx.b, x, 1, &channels, message)?;
        let each = filters[0].floor_div(&groups.into());
        let message = "expected as many filters for every group";
        let w = with_extent(cx.b, w, 0, &(each * groups.into()), message)?;
        if let (Some(pads), Outside::Number(outside)) = (window.known_pads(), outside) {
            return Ok(Self { x, w, window, groups, pads, outside });
        }
        let x = match window.pads.iter().flatten().all(|pad| pad.is(0)) {
            true => x,
            false => pad(cx.b, x, 2, &window.pads, outside)?,
        };
        window.pads = vec![[0.into(), 0.into()]; rank];
        Ok(Self { x, w, window, groups, pads: vec![[0, 0]; rank], outside: 0 })
    }

    /// The sums of the products.
    pub(super) fn sums(&self, cx: &mut Context<'_>) -> Result<ValueId, LowerError> {
        let (strides, dilations) = (self.window.strides.clone(), self.window.dilations.clone());
        let (pads, groups, outside) = (self.pads.clone(), self.groups, self.outside);
        Ok(cx.b.conv(Conv { strides, dilations, pads, groups, outside }, self.x, self.w)?)
    }

    /// For all filters of one group, the sums of the elements of each window minus a zero point, which the elements outside of
    /// the image are: `[batch, 1, ...]` of `f32`.
    pub(super) fn sums_of_windows(self, b: &mut Builder, zero: Option<ValueId>) -> Built {
        let mut x = b.cast(self.x, DType::F32)?;
        if let Some(zero) = zero {
            let zero = b.cast(zero, DType::F32)?;
            x = b.binary(Binary::Sub, x, zero)?;
        }
        let x = b.reduce(Reduction::Sum, x, &[1], true)?;
        let windows = Pool::over(b, x, self.window, false);
        windows.reduce(b, Combine::Sum, Scalar::number(0, DType::F32), |element| element)
    }
}

/// One element per channel, shaped to broadcast to a batch of channels.
pub(in crate::ops) fn per_channel(
    cx: &mut Context<'_>,
    vector: ValueId,
    of: ValueId,
) -> Result<ValueId, LowerError> {
    let rank = cx.b.rank(of);
    Ok(along(cx.b, vector, 1, rank)?)
}
