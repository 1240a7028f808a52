//! Windows over the spatial dimensions of a value.

use crate::context::{Context, LowerError};
use crate::ops::pieces::{all, size, within};
use irc_tl::{Dim, Scalar, ValueId};

/// A window over `[batch, channels, ...]`; one entry per spatial dimension.
pub(in crate::ops) struct Window {
    /// Its extents.
    pub kernel: Vec<Dim>,
    /// Its strides.
    pub strides: Vec<i64>,
    /// Its dilations.
    pub dilations: Vec<i64>,
    /// The pads before and after the value.
    pub pads: Vec<[Dim; 2]>,
}

/// The words of `auto_pad`.
pub(super) const AUTO_PADS: [&str; 4] = ["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"];

impl Window {
    /// The window of a node's attributes, over spatial dimensions of these extents.
    pub fn of(cx: &Context<'_>, kernel: Vec<Dim>, extents: &[Dim]) -> Result<Self, LowerError> {
        let rank = extents.len();
        let strides = steps(cx, "strides", rank)?;
        let dilations = steps(cx, "dilations", rank)?;
        let mut window = Self { kernel, strides, dilations, pads: vec![] };
        window.pads = match cx.string_or("auto_pad", "NOTSET")?.as_str() {
            "NOTSET" | "" => given_pads(cx, rank)?,
            "VALID" => vec![[0.into(), 0.into()]; rank],
            "SAME_UPPER" => window.same(extents, false),
            "SAME_LOWER" => window.same(extents, true),
            other => return Err(LowerError::word("auto_pad", &AUTO_PADS, other)),
        };
        Ok(window)
    }

    /// Pads such that there are `extent / stride` windows, rounded up.
    fn same(&self, extents: &[Dim], more_before: bool) -> Vec<[Dim; 2]> {
        let pad = |(axis, extent): (usize, &Dim)| {
            let stride = Dim::Known(self.strides[axis]);
            let starts = extent.ceil_div(&stride) - 1.into();
            let total = (starts * stride + self.reach(axis) - extent.clone()).maximum(&0.into());
            halves(&total, more_before)
        };
        extents.iter().enumerate().map(pad).collect()
    }

    /// The distance from the first to the last element of the window, both included.
    pub fn reach(&self, axis: usize) -> Dim {
        (self.kernel[axis].clone() - 1.into()) * self.dilations[axis].into() + 1.into()
    }

    /// The number of windows along each axis. With `ceil` the last window may be partial, but
    /// it starts within the value or the pads before it.
    pub fn counts(&self, extents: &[Dim], ceil: bool) -> Vec<Dim> {
        let count = |(axis, extent): (usize, &Dim)| {
            let [before, after] = &self.pads[axis];
            let stride = Dim::Known(self.strides[axis]);
            let padded = extent.clone() + before.clone();
            let room = padded.clone() + after.clone() - self.reach(axis);
            let count = if ceil {
                let starts = padded.ceil_div(&stride);
                (room.ceil_div(&stride) + 1.into()).minimum(&starts)
            } else {
                room.floor_div(&stride) + 1.into()
            };
            count.maximum(&0.into())
        };
        extents.iter().enumerate().map(count).collect()
    }

    /// The position of a window's element along an axis, negative or too large in the pads.
    pub fn position(&self, axis: usize, window: Scalar, element: Scalar) -> Scalar {
        let start = times(window, self.strides[axis]);
        let position = start + times(element, self.dilations[axis]);
        if self.pads[axis][0].is(0) { position } else { position - size(&self.pads[axis][0]) }
    }

    /// The positions of elements of windows, and the condition that they are not in the pads. The
    /// windows are counted by the loops from `windows`, their elements by those from `elements`.
    pub fn positions(
        &self,
        extents: &[Dim],
        windows: usize,
        elements: usize,
        ceil: bool,
    ) -> (Vec<Scalar>, Option<Scalar>) {
        let rank = self.kernel.len();
        let at: Vec<Scalar> = (0..rank)
            .map(|axis| {
                self.position(axis, Scalar::Loop(windows + axis), Scalar::Loop(elements + axis))
            })
            .collect();
        let padded = |axis: &usize| ceil || !self.pads[*axis].iter().all(|pad| pad.is(0));
        let conditions = (0..rank)
            .filter(padded)
            .map(|axis| within(&at[axis], Scalar::index(0), size(&extents[axis])));
        let guard = all(conditions.collect::<Vec<_>>());
        (at, guard)
    }

    /// The pads, if they are known.
    pub fn known_pads(&self) -> Option<Vec<[i64; 2]>> {
        let known = |[before, after]: &[Dim; 2]| Some([before.known()?, after.known()?]);
        self.pads.iter().map(known).collect()
    }

    /// Number of elements of the window.
    pub fn elements(&self) -> Dim {
        Dim::product(&self.kernel)
    }
}

/// Splits a total into two halves, of which one may be larger by one.
pub(in crate::ops) fn halves(total: &Dim, more_before: bool) -> [Dim; 2] {
    let less = total.floor_div(&2.into());
    let more = total.clone() - less.clone();
    if more_before { [more, less] } else { [less, more] }
}

/// The kernel shape of the attribute.
pub(in crate::ops) fn kernel_shape(cx: &Context<'_>, rank: usize) -> Result<Vec<Dim>, LowerError> {
    let shape = cx.ints("kernel_shape")?.ok_or_else(|| cx.missing("kernel_shape"))?;
    expect_length("kernel_shape", &shape, rank)?;
    Ok(shape.into_iter().map(Dim::Known).collect())
}

/// An attribute with one positive stride or dilation per spatial dimension.
pub(in crate::ops) fn steps(
    cx: &Context<'_>,
    name: &str,
    rank: usize,
) -> Result<Vec<i64>, LowerError> {
    let steps = cx.ints(name)?.unwrap_or_else(|| vec![1; rank]);
    expect_length(name, &steps, rank)?;
    if steps.iter().any(|step| *step < 1) {
        return Err(LowerError::invalid(format!("expected {name} of at least 1, found {steps:?}")));
    }
    Ok(steps)
}

/// An attribute with a number of groups of channels; 1 by default.
pub(in crate::ops) fn groups(cx: &Context<'_>, name: &str) -> Result<i64, LowerError> {
    let groups = cx.int_or(name, 1)?;
    if groups < 1 {
        return Err(LowerError::invalid(format!("expected {name} of at least 1, found {groups}")));
    }
    Ok(groups)
}

/// The attribute `pads`: first those before all dimensions, then those after.
pub(in crate::ops) fn given_pads(
    cx: &Context<'_>,
    rank: usize,
) -> Result<Vec<[Dim; 2]>, LowerError> {
    let pads = cx.ints("pads")?.unwrap_or_else(|| vec![0; 2 * rank]);
    let pads: Vec<Dim> = pads.into_iter().map(Dim::Known).collect();
    pairs(&pads, rank)
}

/// The pads before and after each dimension, of a list of first those before, then those after.
pub(in crate::ops) fn pairs(pads: &[Dim], rank: usize) -> Result<Vec<[Dim; 2]>, LowerError> {
    expect_length("pads", pads, 2 * rank)?;
    Ok((0..rank).map(|axis| [pads[axis].clone(), pads[rank + axis].clone()]).collect())
}

/// The number of spatial dimensions of `[batch, channels, ...]`.
pub(in crate::ops) fn spatial_rank(cx: &Context<'_>, x: ValueId) -> Result<usize, LowerError> {
    let found = cx.ty(x);
    found
        .rank()
        .checked_sub(2)
        .ok_or_else(|| LowerError::invalid(format!("expected a batch of channels, found {found}")))
}

fn expect_length<T: std::fmt::Debug>(
    name: &str,
    values: &[T],
    expected: usize,
) -> Result<(), LowerError> {
    if values.len() == expected {
        return Ok(());
    }
    let message = format!("expected {expected} entries of {name}, found {values:?}");
    Err(LowerError::invalid(message))
}

/// An index times a stride.
pub(in crate::ops) fn times(index: Scalar, step: i64) -> Scalar {
    if step == 1 { index } else { index * Scalar::index(step) }
}
