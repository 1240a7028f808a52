//! Linear models.

use super::labels::Labels;
use super::operator;
use super::rows::rows_of;
use super::scores::{Transform, above, best, complement, opposite};
use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use irc_tl::{Binary, DType, Dim, Relation, Tensor, ValueId};

pub(in super::super) const OPERATORS: &[Operator] = &[
    operator("LinearClassifier", &[1], linear_classifier),
    operator("LinearRegressor", &[1], linear_regressor),
];

/// A list of `f32` constants.
pub(super) fn list(cx: &mut Context<'_>, values: &[f32]) -> Result<ValueId, LowerError> {
    let tensor = Tensor::from_values([values.len() as i64], values);
    Ok(cx.b.tensor(&tensor.map_err(|error| LowerError::invalid(error.to_string()))?))
}

/// `x` times the transpose of a matrix with that many rows, whose elements are given.
pub(super) fn product(
    cx: &mut Context<'_>,
    x: ValueId,
    matrix: &[f32],
    rows: usize,
) -> Result<ValueId, LowerError> {
    let features = cx.b.dims(x)[1].clone();
    if rows == 0 || !matrix.len().is_multiple_of(rows) {
        let found = matrix.len();
        let message = format!("expected {rows} equal rows of coefficients, found {found} numbers");
        return Err(LowerError::invalid(message));
    }
    let columns = Dim::Known((matrix.len() / rows) as i64);
    let message = format!("expected rows of {columns} features");
    cx.b.require(&columns, Relation::Equal, &features, &message)?;
    let matrix = list(cx, matrix)?;
    let matrix = cx.b.reshape(matrix, &[Dim::Known(rows as i64), columns.clone()])?;
    let by_feature = cx.b.transpose(matrix, &[1, 0])?;
    let x = if features == columns {
        x
    } else {
        let rows = cx.b.dims(x)[0].clone();
        cx.b.reshape(x, &[rows, columns])?
    };
    Ok(cx.b.matmul(x, by_feature)?)
}

fn linear_regressor(cx: &mut Context<'_>) -> Lowered {
    let x = rows_of(cx, 0)?;
    let x = cx.b.cast(x, DType::F32)?;
    let transform = Transform::read(cx)?;
    let weights = cx.floats("coefficients")?.ok_or_else(|| cx.missing("coefficients"))?;
    let targets = cx.int_or("targets", 1)?.max(1) as usize;
    let mut scores = product(cx, x, &weights, targets)?;
    // As in ONNX Runtime, other numbers of intercepts are ignored.
    let intercepts = cx.floats("intercepts")?.filter(|list| list.len() == targets);
    if let Some(intercepts) = intercepts {
        let intercepts = list(cx, &intercepts)?;
        scores = cx.b.binary(Binary::Add, scores, intercepts)?;
    }
    Ok(vec![transform.of_targets(cx.b, scores)?])
}

fn linear_classifier(cx: &mut Context<'_>) -> Lowered {
    let x = rows_of(cx, 0)?;
    let x = cx.b.cast(x, DType::F32)?;
    let transform = Transform::read(cx)?;
    let labels = Labels::read(cx, "classlabels_ints")?;
    let weights = cx.floats("coefficients")?.ok_or_else(|| cx.missing("coefficients"))?;
    let intercepts = cx.floats("intercepts")?.filter(|list| !list.is_empty());
    let classes = intercepts.as_ref().map_or(labels.count(), Vec::len);
    if classes != labels.count() && (classes, labels.count()) != (1, 2) {
        let found = labels.count();
        let message = format!("expected labels of {classes} classes, found {found}");
        return Err(LowerError::invalid(message));
    }
    let mut scores = product(cx, x, &weights, classes)?;
    if let Some(intercepts) = intercepts {
        let intercepts = list(cx, &intercepts)?;
        scores = cx.b.binary(Binary::Add, scores, intercepts)?;
    }
    if classes > 1 {
        let class = best(cx.b, scores)?;
        return Ok(vec![labels.of(cx, class)?, transform.of_rows(cx.b, scores)?]);
    }
    let class = above(cx.b, scores, 0.0)?;
    if labels.count() == 1 {
        return Ok(vec![class, transform.of_targets(cx.b, scores)?]);
    }
    let label = labels.of(cx, class)?;
    let both = match transform {
        Transform::Logistic => opposite(cx.b, scores, transform)?,
        Transform::Probit => {
            let scores = transform.of_rows(cx.b, scores)?;
            complement(cx.b, scores)?
        }
        _ => complement(cx.b, scores)?,
    };
    Ok(vec![label, both])
}
