//! Ensembles of decision trees: tables for a [`Algorithm::TreeEnsemble`], whose code does not depend on the
//! number and depth of trees.

mod classifier;
mod forest;
mod pack;
mod read;
mod tests;

use super::operator;
use super::rows::rows_of;
use super::scores::Transform;
use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use forest::Forest;
use irc_tl::{
    Algorithm, Binary, Builder, Built, Combine, Comparison, Compute, DType, Dim, Number, Relation,
    Scalar, Tensor, TensorType, Unary, ValueId,
};
use pack::Tables;

pub(in super::super) const OPERATORS: &[Operator] = &[
    operator("TreeEnsemble", &[5], tree_ensemble),
    operator("TreeEnsembleClassifier", &[1, 3], classifier::tree_ensemble_classifier),
    operator("TreeEnsembleRegressor", &[1, 3], tree_ensemble_regressor),
];

/// The function that combines the weights of the trees.
#[derive(Clone, Copy, PartialEq)]
enum Aggregate {
    Average,
    Sum,
    Min,
    Max,
}

impl Aggregate {
    const ALL: [(&'static str, Self); 4] =
        [("AVERAGE", Self::Average), ("SUM", Self::Sum), ("MIN", Self::Min), ("MAX", Self::Max)];

    fn named(name: &str) -> Result<Self, LowerError> {
        let found = Self::ALL.into_iter().find(|(own, _)| *own == name);
        let unknown = || LowerError::invalid(format!("no aggregate function '{name}'"));
        Ok(found.ok_or_else(unknown)?.1)
    }

    fn numbered(number: i64) -> Result<Self, LowerError> {
        let found = usize::try_from(number).ok().and_then(|number| Self::ALL.get(number));
        let unknown = || LowerError::invalid(format!("no aggregate function {number}"));
        Ok(found.ok_or_else(unknown)?.1)
    }

    const fn combine(self) -> Combine {
        match self {
            Self::Average | Self::Sum => Combine::Sum,
            Self::Min => Combine::Min,
            Self::Max => Combine::Max,
        }
    }
}

fn tree_ensemble(cx: &mut Context<'_>) -> Lowered {
    let count = targets(cx)?;
    let forest = read::by_position(cx, count)?;
    let how = Aggregate::numbered(cx.int_or("aggregate_function", 1)?)?;
    let transform = Transform::numbered(cx.int_or("post_transform", 0)?)?;
    let scores = scores(cx, &forest, count, how)?;
    let scores = transform.of_targets(cx.b, scores)?;
    let input = cx.input(0)?;
    let dtype = cx.dtype(input);
    Ok(vec![cx.b.cast(scores, dtype)?])
}

fn tree_ensemble_regressor(cx: &mut Context<'_>) -> Lowered {
    let count = targets(cx)?;
    let forest = read::by_tree(cx, "target", count)?;
    let how = Aggregate::named(&cx.string_or("aggregate_function", "SUM")?)?;
    let transform = Transform::read(cx)?;
    let base = base_values(cx)?;
    if !base.is_empty() && base.len() as i64 != count {
        let found = base.len();
        let message = format!("expected {count} elements in `base_values`, found {found}");
        return Err(LowerError::invalid(message));
    }
    let scores = scores(cx, &forest, count, how)?;
    let scores = add(cx.b, scores, &base)?;
    let scores = transform.of_targets(cx.b, scores)?;
    Ok(vec![cx.b.cast(scores, DType::F32)?])
}

fn targets(cx: &Context<'_>) -> Result<i64, LowerError> {
    let count = cx.int("n_targets")?.ok_or_else(|| cx.missing("n_targets"))?;
    if (1..=i64::from(i32::MAX)).contains(&count) {
        return Ok(count);
    }
    Err(LowerError::invalid(format!("expected a positive number of targets, found {count}")))
}

fn base_values(cx: &Context<'_>) -> Result<Vec<f64>, LowerError> {
    Ok(read::numbers(cx, "base_values")?.unwrap_or_default())
}

/// Scores with the base value of each target.
fn add(b: &mut Builder, scores: ValueId, base: &[f64]) -> Result<ValueId, LowerError> {
    if base.is_empty() {
        return Ok(scores);
    }
    let base = floats(b.dtype(scores), base)?;
    let base = b.tensor(&base);
    Ok(b.binary(Binary::Add, scores, base)?)
}

/// The scores of the rows of the first input: `[rows, count]`, of `f64` for features of `f64`, otherwise of
/// `f32`.
fn scores(
    cx: &mut Context<'_>,
    forest: &Forest,
    count: i64,
    how: Aggregate,
) -> Result<ValueId, LowerError> {
    let x = rows_of(cx, 0)?;
    let dtype = if cx.dtype(x) == DType::F64 { DType::F64 } else { DType::F32 };
    let x = cx.b.cast(x, dtype)?;
    let Number::Float(absent) = how.combine().neutral(dtype) else {
        return Err(LowerError::invalid("expected scores that are floats"));
    };
    let tables = Tables::of(forest, count as usize, absent, dtype)?;
    let width = cx.b.dims(x)[1].clone();
    let message = format!("the trees use {} features", tables.features);
    cx.b.require(&Dim::Known(tables.features), Relation::AtMost, &width, &message)?;
    let x = if tables.mirrored { mirror(cx.b, x)? } else { x };
    let list = |values: &[i32]| {
        let tensor = Tensor::from_values([values.len() as i64], values);
        tensor.map_err(|error| LowerError::invalid(error.to_string()))
    };
    let mut operands = vec![x];
    for values in [&tables.nodes, &tables.roots, &tables.starts, &tables.targets] {
        operands.push(cx.b.tensor(&list(values)?));
    }
    operands.push(cx.b.tensor(&floats(dtype, &tables.weights)?));
    let ensemble = Algorithm::TreeEnsemble {
        targets: count.into(),
        combine: how.combine(),
        comparison: tables.comparison,
    };
    let scores = cx.b.algorithm(ensemble, &operands)?[0];
    match how {
        Aggregate::Sum => Ok(scores),
        Aggregate::Average => {
            let count = cx.b.scalar(forest.roots.len() as f64, dtype)?;
            Ok(cx.b.binary(Binary::Div, scores, count)?)
        }
        // A target without weights has no score.
        Aggregate::Min | Aggregate::Max => {
            let (none, zero) = (cx.b.scalar(absent, dtype)?, cx.b.scalar(0.0, dtype)?);
            let empty = cx.b.compare(Comparison::Eq, scores, none)?;
            Ok(cx.b.select(empty, zero, scores)?)
        }
    }
}

/// Rows in which each number is followed by its negation.
fn mirror(b: &mut Builder, x: ValueId) -> Built {
    let dims = b.dims(x);
    let value = Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(1)]);
    let is_own = Scalar::Loop(2).equals(Scalar::index(0));
    let body = is_own.select(value.clone(), value.unary(Unary::Neg));
    let pairs = [dims[0].clone(), dims[1].clone(), 2.into()];
    let pairs = b.compute(Compute::map(pairs, body), &[x])?;
    b.reshape(pairs, &[dims[0].clone(), dims[1].clone() * 2.into()])
}

fn floats(dtype: DType, values: &[f64]) -> Result<Tensor, LowerError> {
    let tensor = Tensor::from_f64(TensorType::new(dtype, [values.len() as i64]), values);
    tensor.map_err(|error| LowerError::invalid(error.to_string()))
}
