//! The resized axes and their extents.

use super::attributes::{Coordinates, Options};
use crate::context::{Context, LowerError};
use crate::ops::pieces::{size, with_extent};
use irc_tl::{Binary, Compute, DType, Dim, Reduction, Scalar, Tensor, Unary, ValueId};

/// The resized axes; one entry each.
pub(super) struct Resized {
    pub axes: Vec<usize>,
    /// Extents of the operand.
    pub own: Vec<Dim>,
    /// Extents of the result.
    pub extents: Vec<Dim>,
    /// The scale factors: `f64[axes]`.
    pub factors: ValueId,
    /// `[starts..., ends...]` of a region of interest, relative to the extents.
    pub region: Option<ValueId>,
}

impl Resized {
    /// Scales all axes by the factors of an input.
    pub fn by_input(cx: &mut Context<'_>, index: usize) -> Result<Self, LowerError> {
        let (axes, own) = all_axes(cx)?;
        let factors = cx.input(index)?;
        Self::by_factors(cx, axes, own, factors, None)
    }

    /// Scales all axes by known factors.
    pub fn by_numbers(cx: &mut Context<'_>, factors: &[f32]) -> Result<Self, LowerError> {
        let (axes, own) = all_axes(cx)?;
        let tensor = Tensor::from_values([factors.len() as i64], factors);
        let tensor = tensor.map_err(|error| LowerError::invalid(error.to_string()))?;
        let factors = cx.b.tensor(&tensor);
        Self::by_factors(cx, axes, own, factors, None)
    }

    /// Scales the axes of the attribute by input 2, factors, or to input 3, extents.
    pub fn of(cx: &mut Context<'_>, options: &Options) -> Result<Self, LowerError> {
        let (all, extents) = all_axes(cx)?;
        let axes = match cx.ints("axes")? {
            Some(axes) => {
                let axes = axes.iter().map(|axis| cx.axis(*axis, all.len()));
                axes.collect::<Result<Vec<usize>, _>>()?
            }
            None => all,
        };
        let own: Vec<Dim> = axes.iter().map(|axis| extents[*axis].clone()).collect();
        let crops = options.coordinates == Coordinates::Crop;
        let region = if crops { Some(cx.input(1)?) } else { None };
        let given = |cx: &Context<'_>, index: usize| {
            cx.optional(index).filter(|value| !cx.b.ty(*value).elements().is(0))
        };
        match (given(cx, 2), given(cx, 3)) {
            (Some(factors), None) => Self::by_factors(cx, axes, own, factors, region),
            (None, Some(_)) => Self::by_extents(cx, axes, own, region),
            _ => Err(LowerError::invalid("expected either scales or sizes")),
        }
    }

    fn by_factors(
        cx: &mut Context<'_>,
        axes: Vec<usize>,
        own: Vec<Dim>,
        factors: ValueId,
        region: Option<ValueId>,
    ) -> Result<Self, LowerError> {
        let found = cx.ty(factors);
        let message = format!("expected {} scales, found {found}", axes.len());
        if found.rank() != 1 {
            return Err(LowerError::invalid(message));
        }
        let factors = with_extent(cx.b, factors, 0, &(axes.len() as i64).into(), &message)?;
        // In single precision, the precision of the factors.
        let factors = cx.b.cast(factors, DType::F32)?;
        if let (None, Some(extents)) = (region, multiples(cx, &own, factors)?) {
            let factors = cx.b.cast(factors, DType::F64)?;
            return Ok(Self { axes, own, extents, factors, region });
        }
        let lengths = cx.b.sizes(&own, false, DType::I64)?;
        let mut lengths = cx.b.cast(lengths, DType::F32)?;
        if let Some(region) = region {
            let share = share(cx, region, axes.len())?;
            lengths = cx.b.binary(Binary::Mul, lengths, share)?;
        }
        let scaled = cx.b.binary(Binary::Mul, lengths, factors)?;
        let whole = cx.b.unary(Unary::Floor, scaled)?;
        let whole = cx.b.cast(whole, DType::I64)?;
        let extents = cx.b.elements_or_symbols(whole)?;
        let factors = cx.b.cast(factors, DType::F64)?;
        Ok(Self { axes, own, extents, factors, region })
    }

    fn by_extents(
        cx: &mut Context<'_>,
        axes: Vec<usize>,
        own: Vec<Dim>,
        region: Option<ValueId>,
    ) -> Result<Self, LowerError> {
        let wanted = cx.input(3)?;
        let found = cx.ty(wanted);
        let message = format!("expected {} sizes, found {found}", axes.len());
        if found.rank() != 1 {
            return Err(LowerError::invalid(message));
        }
        let wanted = with_extent(cx.b, wanted, 0, &(axes.len() as i64).into(), &message)?;
        let wanted = cx.b.elements_or_symbols(wanted)?;
        let lengths = cx.b.sizes(&own, false, DType::I64)?;
        let lengths = cx.b.cast(lengths, DType::F64)?;
        let sizes = cx.b.sizes(&wanted, false, DType::I64)?;
        let sizes = cx.b.cast(sizes, DType::F64)?;
        let factors = cx.b.binary(Binary::Div, sizes, lengths)?;
        let policy = match cx.string_or("keep_aspect_ratio_policy", "stretch")?.as_str() {
            "stretch" => return Ok(Self { axes, own, extents: wanted, factors, region }),
            "not_larger" => Reduction::Min,
            "not_smaller" => Reduction::Max,
            other => {
                let words = ["stretch", "not_larger", "not_smaller"];
                return Err(LowerError::word("keep_aspect_ratio_policy", &words, other));
            }
        };
        let factor = cx.b.reduce(policy, factors, &[0], true)?;
        let scaled = cx.b.binary(Binary::Mul, lengths, factor)?;
        let half = cx.b.scalar(0.5, DType::F64)?;
        let scaled = cx.b.binary(Binary::Add, scaled, half)?;
        let whole = cx.b.unary(Unary::Floor, scaled)?;
        let whole = cx.b.cast(whole, DType::I64)?;
        let extents = cx.b.elements_or_symbols(whole)?;
        let factors = cx.b.broadcast(factor, &[(axes.len() as i64).into()])?;
        Ok(Self { axes, own, extents, factors, region })
    }
}

fn all_axes(cx: &Context<'_>) -> Result<(Vec<usize>, Vec<Dim>), LowerError> {
    let own = cx.b.dims(cx.input(0)?);
    Ok(((0..own.len()).collect(), own))
}

/// The extents times factors, if these are known integers.
fn multiples(
    cx: &Context<'_>,
    own: &[Dim],
    factors: ValueId,
) -> Result<Option<Vec<Dim>>, LowerError> {
    const LARGEST: f64 = 65536.0;
    let Some(factors) = cx.b.constant_of(factors)? else { return Ok(None) };
    let multiple = |(own, factor): (&Dim, f64)| {
        let is_whole = factor.fract() == 0.0 && (1.0..=LARGEST).contains(&factor);
        is_whole.then(|| own.clone() * (factor as i64).into())
    };
    Ok(own.iter().zip(factors.to_f64()).map(multiple).collect())
}

/// The share of each axis that the region covers: `f32[axes]`.
fn share(cx: &mut Context<'_>, region: ValueId, axes: usize) -> Result<ValueId, LowerError> {
    let edge = |at: Scalar| Scalar::load(0, [at]).cast(DType::F32);
    let count = Dim::Known(axes as i64);
    let body = edge(Scalar::Loop(0) + size(&count)) - edge(Scalar::Loop(0));
    Ok(cx.b.compute(Compute::map([count], body), &[region])?)
}
