//! Scores of classes and targets: transforms, and the best class of each row.

use super::super::indexing::{concat, loops};
use crate::context::{Context, LowerError};
use irc_tl::{
    Binary, Builder, Built, Combine, Comparison, Compute, DType, Reduction, Scalar, Unary, ValueId,
};

/// The function of scores that is the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transform {
    None,
    Softmax,
    Logistic,
    SoftmaxZero,
    Probit,
}

impl Transform {
    const ALL: [(&'static str, Self); 5] = [
        ("NONE", Self::None),
        ("SOFTMAX", Self::Softmax),
        ("LOGISTIC", Self::Logistic),
        ("SOFTMAX_ZERO", Self::SoftmaxZero),
        ("PROBIT", Self::Probit),
    ];

    /// The attribute `post_transform`.
    pub(super) fn read(cx: &Context<'_>) -> Result<Self, LowerError> {
        let name = cx.string_or("post_transform", "NONE")?;
        let found = Self::ALL.into_iter().find(|(own, _)| *own == name);
        let unknown = || LowerError::invalid(format!("unknown `post_transform` '{name}'"));
        Ok(found.ok_or_else(unknown)?.1)
    }

    /// The transform with a number.
    pub(super) fn numbered(number: i64) -> Result<Self, LowerError> {
        let found = usize::try_from(number).ok().and_then(|number| Self::ALL.get(number));
        let unknown = || LowerError::invalid(format!("unknown `post_transform` {number}"));
        Ok(found.ok_or_else(unknown)?.1)
    }

    /// The transformed scores of rows of targets. As in ONNX Runtime, a single target is transformed only
    /// by `PROBIT`.
    pub(super) fn of_targets(self, b: &mut Builder, scores: ValueId) -> Built {
        match self {
            Self::Softmax | Self::Logistic | Self::SoftmaxZero if b.dims(scores)[1].is(1) => {
                Ok(scores)
            }
            _ => self.of_rows(b, scores),
        }
    }

    /// The transformed scores of rows.
    pub(super) fn of_rows(self, b: &mut Builder, scores: ValueId) -> Built {
        match self {
            Self::None => Ok(scores),
            Self::Softmax => softmax(b, scores),
            Self::Logistic => b.unary(Unary::Sigmoid, scores),
            Self::SoftmaxZero => softmax_zero(b, scores),
            Self::Probit => probit(b, scores),
        }
    }
}

fn softmax(b: &mut Builder, scores: ValueId) -> Built {
    let most = b.reduce(Reduction::Max, scores, &[1], true)?;
    let shifted = b.binary(Binary::Sub, scores, most)?;
    let powers = b.unary(Unary::Exp, shifted)?;
    let sum = b.reduce(Reduction::Sum, powers, &[1], true)?;
    b.binary(Binary::Div, powers, sum)
}

/// A softmax in which scores near zero stay near zero, and do not count.
fn softmax_zero(b: &mut Builder, scores: ValueId) -> Built {
    let dtype = b.dtype(scores);
    let dims = b.dims(scores);
    let most = b.reduce(Reduction::Max, scores, &[1], true)?;
    let score = || Scalar::load(0, loops(0..2));
    let most_of_row = || Scalar::load(1, [Scalar::Loop(0), Scalar::index(0)]);
    let least = Scalar::float(f64::from(0.000_000_1_f32), dtype);
    let counts = score().unary(Unary::Abs).compare(Comparison::Gt, least);
    let zero = Scalar::float(0.0, dtype);
    let power = (score() - most_of_row()).unary(Unary::Exp);
    let small = score() * (zero.clone() - most_of_row()).unary(Unary::Exp);
    let powers = b.compute(
        Compute::map(dims.clone(), counts.clone().select(power.clone(), small)),
        &[scores, most],
    )?;
    let counted = Compute::map(dims, counts.select(power, zero));
    let counted = b.compute(counted, &[scores, most])?;
    let sum = b.reduce(Reduction::Sum, counted, &[1], true)?;
    b.binary(Binary::Div, powers, sum)
}

/// ONNX Runtime's approximation of the inverse of the normal distribution: `sqrt(2) erfinv(2 p - 1)`, by the
/// formula of S. Winitzki with the constant 0.147.
#[expect(clippy::approx_constant, reason = "the digits of pi that ONNX Runtime uses")]
fn probit(b: &mut Builder, scores: ValueId) -> Built {
    let dtype = b.dtype(scores);
    let (dims, rank) = (b.dims(scores), b.rank(scores));
    let number = |value: f32| Scalar::float(f64::from(value), DType::F32);
    let one = || number(1.0);
    let score = Scalar::load(0, loops(0..rank)).cast(DType::F32);
    let x = number(2.0) * score - one();
    let sign = x.clone().lt(number(0.0)).select(number(-1.0), one());
    let log = ((one() - x.clone()) * (one() + x)).unary(Unary::Log);
    let half = number(2.0 / (3.141_59 * 0.147)) + number(0.5) * log.clone();
    let other = number(1.0 / 0.147) * log;
    let root = (half.clone() * half.clone() - other).unary(Unary::Sqrt) - half;
    let value = number(std::f32::consts::SQRT_2) * (sign * root.unary(Unary::Sqrt));
    b.compute(Compute::map(dims, value.cast(dtype)), &[scores])
}

/// The column of the largest score of each row, the first of equal ones.
pub(super) fn best(b: &mut Builder, scores: ValueId) -> Built {
    let dims = b.dims(scores);
    let (rows, columns) = (dims[0].clone(), dims[1].clone());
    let most = b.reduce(Reduction::Max, scores, &[1], true)?;
    let score = Scalar::load(0, loops(0..2));
    let most_of_row = Scalar::load(1, [Scalar::Loop(0), Scalar::index(0)]);
    let last = Scalar::Size(columns.clone() - 1.into());
    let place = score.equals(most_of_row).select(Scalar::Loop(1), last);
    b.compute(Compute::reduce([rows], Combine::Min, [columns], place), &[scores, most])
}

/// Rows of two numbers from rows of one.
pub(super) fn pair(
    b: &mut Builder,
    first: ValueId,
    second: ValueId,
) -> Result<ValueId, LowerError> {
    concat(b, &[first, second], 1)
}

/// Both scores of two classes from that of the positive class: opposite numbers, or probabilities.
pub(super) fn opposite(
    b: &mut Builder,
    score: ValueId,
    transform: Transform,
) -> Result<ValueId, LowerError> {
    let negative = b.unary(Unary::Neg, score)?;
    let both = pair(b, negative, score)?;
    match transform {
        Transform::Logistic => Ok(Transform::Logistic.of_rows(b, both)?),
        _ => Ok(both),
    }
}

/// Both scores of two classes from the probability of the positive class.
pub(super) fn complement(b: &mut Builder, score: ValueId) -> Result<ValueId, LowerError> {
    let one = b.scalar(1.0, b.dtype(score))?;
    let other = b.binary(Binary::Sub, one, score)?;
    pair(b, other, score)
}

/// Whether the only score of each row is above a threshold, as column 1 or 0.
pub(super) fn above(b: &mut Builder, score: ValueId, threshold: f64) -> Built {
    let (rows, dtype) = (b.dims(score)[0].clone(), b.dtype(score));
    let score_of_row = Scalar::load(0, [Scalar::Loop(0), Scalar::index(0)]);
    let above = score_of_row.compare(Comparison::Gt, Scalar::float(threshold, dtype));
    b.compute(Compute::map([rows], above.cast(DType::I64)), &[score])
}
