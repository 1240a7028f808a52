//! The attributes of a resize.

use crate::context::{Context, LowerError};

/// The options of a resize.
pub(super) struct Options {
    pub mode: Mode,
    pub coordinates: Coordinates,
    pub rounding: Rounding,
    /// The parameter of the cubic kernel.
    pub cubic: f64,
    /// Whether elements outside have no weight; otherwise the outermost are repeated.
    pub exclude_outside: bool,
    /// Whether the kernel is widened when downsampling.
    pub antialias: bool,
    /// The value outside of the region.
    pub extrapolation: f64,
}

/// The kind of interpolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Nearest,
    Linear,
    Cubic,
}

/// How a coordinate of the result is mapped to the operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coordinates {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    HalfPixelForNearest,
    Crop,
}

/// The rounding of a coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounding {
    PreferFloor,
    PreferCeil,
    Floor,
    Ceil,
    /// Down when upsampling, up when downsampling.
    Away,
}

impl Options {
    /// The options of nodes before version 11; `smaller` allows downsampling.
    pub fn early(cx: &Context<'_>, smaller: bool) -> Result<Self, LowerError> {
        Ok(Self {
            mode: mode(cx)?,
            coordinates: Coordinates::Asymmetric,
            rounding: if smaller { Rounding::Away } else { Rounding::Floor },
            cubic: -0.75,
            exclude_outside: false,
            antialias: false,
            extrapolation: 0.0,
        })
    }

    /// The options of nodes from version 11 on.
    pub fn of(cx: &Context<'_>) -> Result<Self, LowerError> {
        Ok(Self {
            mode: mode(cx)?,
            coordinates: coordinates(cx)?,
            rounding: rounding(cx)?,
            cubic: f64::from(cx.float_or("cubic_coeff_a", -0.75)?),
            exclude_outside: cx.int_or("exclude_outside", 0)? != 0,
            antialias: cx.int_or("antialias", 0)? != 0,
            extrapolation: f64::from(cx.float_or("extrapolation_value", 0.0)?),
        })
    }
}

fn mode(cx: &Context<'_>) -> Result<Mode, LowerError> {
    match cx.string_or("mode", "nearest")?.as_str() {
        "nearest" => Ok(Mode::Nearest),
        "linear" | "bilinear" => Ok(Mode::Linear),
        "cubic" => Ok(Mode::Cubic),
        other => Err(LowerError::word("mode", &["nearest", "linear", "cubic"], other)),
    }
}

fn coordinates(cx: &Context<'_>) -> Result<Coordinates, LowerError> {
    Ok(match cx.string_or("coordinate_transformation_mode", "half_pixel")?.as_str() {
        "half_pixel" => Coordinates::HalfPixel,
        "half_pixel_symmetric" => Coordinates::HalfPixelSymmetric,
        "pytorch_half_pixel" => Coordinates::PytorchHalfPixel,
        "align_corners" => Coordinates::AlignCorners,
        "asymmetric" => Coordinates::Asymmetric,
        "tf_half_pixel_for_nn" => Coordinates::HalfPixelForNearest,
        "tf_crop_and_resize" => Coordinates::Crop,
        other => {
            let words = [
                "half_pixel",
                "half_pixel_symmetric",
                "pytorch_half_pixel",
                "align_corners",
                "asymmetric",
                "tf_half_pixel_for_nn",
                "tf_crop_and_resize",
            ];
            return Err(LowerError::word("coordinate_transformation_mode", &words, other));
        }
    })
}

fn rounding(cx: &Context<'_>) -> Result<Rounding, LowerError> {
    Ok(match cx.string_or("nearest_mode", "round_prefer_floor")?.as_str() {
        "round_prefer_floor" => Rounding::PreferFloor,
        "round_prefer_ceil" => Rounding::PreferCeil,
        "floor" => Rounding::Floor,
        "ceil" => Rounding::Ceil,
        other => {
            let words = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"];
            return Err(LowerError::word("nearest_mode", &words, other));
        }
    })
}
