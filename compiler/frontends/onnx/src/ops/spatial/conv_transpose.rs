//! Transposed convolutions.

use super::columns::overlap;
use super::conv::per_channel;
use super::phases::Phases;
use super::window::{AUTO_PADS, Window, given_pads, groups, halves, pairs, spatial_rank, steps};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::pieces::wide;
use irc_tl::{Binary, BuildError, Builder, Built, Dim, Op, Relation, Rounding, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] =
    &[Operator::new("ConvTranspose", &[1, 11, 22], conv_transpose)];

/// A convolution of [phases](Phases) if the filters are constant. Otherwise, multiplies every element by the filters, as a
/// matrix product; then sums overlapping results.
fn conv_transpose(cx: &mut Context<'_>) -> Lowered {
    transposed(cx, None, cx.optional(2))
}

/// The operator with pads as input 2, and the bias as input 3.
pub(in crate::ops) fn dynamic_pads(cx: &mut Context<'_>) -> Lowered {
    let pads = if cx.optional(2).is_some() { Some(cx.sizes(2)?) } else { None };
    transposed(cx, pads, cx.optional(3))
}

fn transposed(cx: &mut Context<'_>, pads: Option<Vec<Dim>>, bias: Option<ValueId>) -> Lowered {
    let (x, w) = (cx.input(0)?, cx.input(1)?);
    let rank = spatial_rank(cx, x)?;
    let (dims, filters) = (cx.b.dims(x), cx.b.dims(w));
    if filters.len() != dims.len() {
        let (x, w) = (cx.ty(x), cx.ty(w));
        return Err(LowerError::invalid(format!("expected filters of {x}, found {w}")));
    }
    cx.b.require(&dims[1], Relation::Equal, &filters[0], "expected as many filters as channels")?;
    let groups = groups(cx, "group")?;
    let mut window = Window {
        kernel: filters[2..].to_vec(),
        strides: steps(cx, "strides", rank)?,
        dilations: steps(cx, "dilations", rank)?,
        pads: vec![],
    };
    let mut to = vec![dims[0].clone(), filters[1].clone() * groups.into()];
    to.extend(result_extents(cx, &mut window, &dims[2..], pads)?);
    let dtype = cx.dtype(x);
    let x = cx.b.cast(x, wide(dtype))?;
    // Without filters or channels, a filter may be of any size.
    let has_elements = filters.iter().all(|extent| !extent.is(0));
    if has_elements
        && cx.b.is_constant(w)
        && let Some(phases) = Phases::of(&window, &dims[2..], &to[2..], groups)
        && let Some(filters) = cx.b.constant_of(w)?
    {
        let to_wide = Op::Cast { to: wide(dtype), rounding: Rounding::TowardZero };
        let filters = to_wide.eval(&[&filters]).map_err(BuildError::from)?;
        let within = bias.filter(|_| dtype == wide(dtype));
        let result = phases.convolution(cx.b, x, (&filters, within), &to)?;
        let result = cx.b.cast(result, dtype)?;
        return with_bias(cx, result, bias.filter(|_| within.is_none()));
    }
    let w = cx.b.cast(w, wide(dtype))?;
    let columns = products(cx.b, x, w, groups)?;
    let result = overlap(cx.b, columns, &window, &dims[2..], to)?;
    let result = cx.b.cast(result, dtype)?;
    with_bias(cx, result, bias)
}

fn with_bias(cx: &mut Context<'_>, result: ValueId, bias: Option<ValueId>) -> Lowered {
    let Some(bias) = bias else { return Ok(vec![result]) };
    let bias = per_channel(cx, bias, result)?;
    one(cx.b.binary(Binary::Add, result, bias))
}

/// `[batch, groups * filters * taps, elements]` of `x[batch, channels, ...]` and
/// `w[channels, filters, ...]`.
fn products(b: &mut Builder, x: ValueId, w: ValueId, groups: i64) -> Built {
    let (dims, filters) = (b.dims(x), b.dims(w));
    let channels = dims[1].floor_div(&groups.into());
    let space = Dim::product(&dims[2..]);
    let taps = Dim::product(&filters[1..]);
    let x = b.reshape(x, &[dims[0].clone(), groups.into(), channels.clone(), space.clone()])?;
    let w = b.reshape(w, &[groups.into(), channels, taps.clone()])?;
    let columns = b.op(Op::Matmul { transpose_lhs: true, transpose_rhs: false }, &[w, x])?;
    b.reshape(columns, &[dims[0].clone(), taps * groups.into(), space])
}

/// The extents of the result; sets the pads of the window.
fn result_extents(
    cx: &mut Context<'_>,
    window: &mut Window,
    extents: &[Dim],
    pads: Option<Vec<Dim>>,
) -> Result<Vec<Dim>, LowerError> {
    let rank = extents.len();
    let added = cx.ints("output_padding")?.unwrap_or_else(|| vec![0; rank]);
    let mode = cx.string_or("auto_pad", "NOTSET")?;
    let wanted = wanted(cx, window, &mode, extents)?;
    if added.len() != rank {
        let message = format!("expected {rank} entries of output_padding, found {added:?}");
        return Err(LowerError::invalid(message));
    }
    let whole = |axis: usize| {
        let starts = (extents[axis].clone() - 1.into()) * window.strides[axis].into();
        starts + window.reach(axis) + added[axis].into()
    };
    let whole: Vec<Dim> = (0..rank).map(whole).collect();
    if let Some(wanted) = wanted {
        let pad = |(whole, wanted): (&Dim, &Dim)| {
            let total = (whole.clone() - wanted.clone()).maximum(&0.into());
            halves(&total, mode != "SAME_UPPER")
        };
        window.pads = whole.iter().zip(&wanted).map(pad).collect();
        return Ok(wanted);
    }
    window.pads = match pads {
        Some(pads) => pairs(&pads, rank)?,
        None if mode == "VALID" => vec![[0.into(), 0.into()]; rank],
        None => given_pads(cx, rank)?,
    };
    let rest = |axis: usize| {
        let [before, after] = window.pads[axis].clone();
        let rest = whole[axis].clone() - before - after;
        // An extent is not negative, and so is none of its multiples.
        let multiple = extents[axis].clone() * window.strides[axis].into();
        match (rest.clone() - multiple).known() {
            Some(0..) => rest,
            _ => rest.maximum(&0.into()),
        }
    };
    Ok((0..rank).map(rest).collect())
}

/// The extents that the node requests; `None` if they follow from the pads.
fn wanted(
    cx: &Context<'_>,
    window: &Window,
    mode: &str,
    extents: &[Dim],
) -> Result<Option<Vec<Dim>>, LowerError> {
    let rank = extents.len();
    if let Some(shape) = cx.ints("output_shape")?.filter(|shape| !shape.is_empty()) {
        let spatial = shape.len().checked_sub(rank).map(|skip| &shape[skip..]);
        let message = || format!("expected {rank} entries of output_shape, found {shape:?}");
        let spatial = spatial.ok_or_else(|| LowerError::invalid(message()))?;
        return Ok(Some(spatial.iter().map(|size| Dim::Known(*size)).collect()));
    }
    let same = || extents.iter().zip(&window.strides).map(|(size, by)| size.clone() * (*by).into());
    match mode {
        "NOTSET" | "" | "VALID" => Ok(None),
        "SAME_UPPER" | "SAME_LOWER" => Ok(Some(same().collect())),
        other => Err(LowerError::word("auto_pad", &AUTO_PADS, other)),
    }
}
