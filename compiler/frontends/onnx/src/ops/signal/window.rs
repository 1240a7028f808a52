//! Window functions, and weights of the mel scale.

use crate::context::{Context, LowerError, Lowered, one};
use crate::data::dtype_of;
use crate::operator::Operator;
use crate::ops::pieces::{size, within};
use irc_common_format::model::ElementType;
use irc_tl::{Binary, Compute, DType, Dim, Scalar, Unary, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("BlackmanWindow", &[17], |cx| window(cx, [0.42, 0.5, 0.08])),
    Operator::new("HannWindow", &[17], |cx| window(cx, [0.5, 0.5, 0.0])),
    Operator::new("HammingWindow", &[17], |cx| window(cx, [25.0 / 46.0, 21.0 / 46.0, 0.0])),
    Operator::new("MelWeightMatrix", &[17], mel_weights),
];

/// `a - b cos(x) + c cos(2 x)` over one period.
fn window(cx: &mut Context<'_>, [a, b, c]: [f64; 3]) -> Lowered {
    let sizes = cx.sizes(0)?;
    let [count] = &sizes[..] else {
        return Err(LowerError::invalid(format!("expected one size, found {}", sizes.len())));
    };
    let periodic = cx.int_or("periodic", 1)? != 0;
    let to = output_type(cx)?;
    let steps = if periodic { count.clone() } else { count.clone() - 1.into() };
    let number = |value: f64| Scalar::float(value, DType::F64);
    let turn = number(std::f64::consts::TAU) * Scalar::Loop(0).cast(DType::F64);
    let angle = turn / size(&steps).cast(DType::F64);
    let mut body = number(a) - number(b) * angle.clone().unary(Unary::Cos);
    if c != 0.0 {
        body = body + number(c) * (number(2.0) * angle).unary(Unary::Cos);
    }
    one(cx.b.compute(Compute::map([count.clone()], body.cast(to)), &[]))
}

fn output_type(cx: &Context<'_>) -> Result<DType, LowerError> {
    let code = cx.int_or("output_datatype", 1)?;
    let element = i32::try_from(code).ok().map(ElementType::from_number);
    let found = element.and_then(dtype_of);
    let message = || LowerError::unsupported(format!("elements of type {code} are not supported"));
    found.ok_or_else(message)
}

/// Triangles that are symmetric on the mel scale, as weights of the bins of a spectrum.
fn mel_weights(cx: &mut Context<'_>) -> Lowered {
    let to = output_type(cx)?;
    let mut numbers = vec![];
    for index in 0..3 {
        numbers.extend(cx.sizes(index)?);
    }
    let [bands, length, rate] = &numbers[..] else {
        return Err(LowerError::invalid("expected single numbers of bins, length and rate"));
    };
    let (lower, upper) = (cx.input(3)?, cx.input(4)?);
    let edges = edges(cx, [bands, length, rate], [lower, upper])?;
    let bins = length.floor_div(&2.into()) + 1.into();
    let bin = || Scalar::Loop(0);
    let edge = |offset: i64| Scalar::load(0, [Scalar::Loop(1) + Scalar::index(offset)]);
    let (low, centre, high) = (edge(0), edge(1), edge(2));
    let share = |part: Scalar, whole: Scalar| part.cast(DType::F64) / whole.cast(DType::F64);
    let number = |value: f64| Scalar::float(value, DType::F64);
    let next = centre.clone() + Scalar::index(1);
    let rising = share(bin() - low.clone(), centre.clone() - low.clone());
    // A triangle without a rising side begins at its centre.
    let flat = low.clone().equals(centre.clone());
    let rising = flat.select(number(1.0), rising);
    let rising = within(&bin(), low, next).select(rising, number(0.0));
    let falling = share(high.clone() - bin(), high.clone() - centre.clone());
    let body = within(&bin(), centre, high).select(falling, rising);
    one(cx.b.compute(Compute::map([bins, bands.clone()], body.cast(to)), &[edges]))
}

/// The bins at which triangles begin, peak and end.
fn edges(
    cx: &mut Context<'_>,
    [bands, length, rate]: [&Dim; 3],
    limits: [ValueId; 2],
) -> Result<ValueId, LowerError> {
    let mut operands = vec![];
    for limit in limits {
        operands.push(cx.b.reshape(limit, &[])?);
    }
    let number = |value: f64| Scalar::float(value, DType::F64);
    let ten = std::f64::consts::LN_10;
    let mel = |operand: usize| {
        let hertz = Scalar::load(operand, []).cast(DType::F64);
        let log = (number(1.0) + hertz / number(700.0)).unary(Unary::Log);
        number(2595.0 / ten) * log
    };
    let count = bands.clone() + 2.into();
    let step = (mel(1) - mel(0)) / size(&count).cast(DType::F64);
    let at = Scalar::Loop(0).cast(DType::F64) * step + mel(0);
    let power = number(10.0).binary(Binary::Pow, at / number(2595.0));
    let hertz = number(700.0) * (power - number(1.0));
    let scaled = size(&(length.clone() + 1.into())).cast(DType::F64) * hertz;
    let bin = (scaled / size(rate).cast(DType::F64)).unary(Unary::Floor).cast(DType::I64);
    Ok(cx.b.compute(Compute::map([count], bin), &operands)?)
}
