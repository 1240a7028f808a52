//! Classification by trees, with the cases of ONNX Runtime.

use super::super::labels::Labels;
use super::super::rows::column;
use super::super::scores::{Transform, above, best, complement, opposite, pair};
use super::{Aggregate, add, base_values, read, scores};
use crate::context::{Context, LowerError, Lowered};
use irc_tl::{Builder, Built, DType, Unary, ValueId};
use std::collections::BTreeSet;

pub(super) fn tree_ensemble_classifier(cx: &mut Context<'_>) -> Lowered {
    let labels = Labels::read(cx, "classlabels_int64s")?;
    let count = labels.count();
    let forest = read::by_tree(cx, "class", count as i64)?;
    let transform = Transform::read(cx)?;
    let base = base_values(cx)?;
    let expected = if count <= 2 { base.len() <= count } else { base.len() == count };
    if !base.is_empty() && !expected {
        let found = base.len();
        let message = format!("expected {count} elements in `base_values`, found {found}");
        return Err(LowerError::invalid(message));
    }
    let classes: BTreeSet<i64> = cx.ints("class_ids")?.unwrap_or_default().into_iter().collect();
    let weights = read::numbers(cx, "class_weights")?.unwrap_or_default();
    let are_positive = weights.iter().all(|weight| *weight >= 0.0);
    // Of two classes, often only one has weights.
    let single = count == 1 || count == 2 && !classes.contains(&1);
    let columns = if single { 1 } else { count as i64 };
    let scores = scores(cx, &forest, columns, Aggregate::Sum)?;
    let case = Case { labels, transform, base, are_positive };
    let (label, scores) = match (count, single) {
        (1, _) => case.one_class(cx, scores)?,
        (2, true) => case.positive_class(cx, scores)?,
        (2, false) => case.two_classes(cx, scores, classes.len() == 1)?,
        _ => case.classes(cx, scores, &classes)?,
    };
    Ok(vec![label, cx.b.cast(scores, DType::F32)?])
}

struct Case {
    labels: Labels,
    transform: Transform,
    base: Vec<f64>,
    are_positive: bool,
}

fn zeros(b: &mut Builder, like: ValueId) -> Built {
    let (dims, dtype) = (b.dims(like), b.dtype(like));
    b.fill(0.0, &dims, dtype)
}

/// The labels and scores of rows.
type Classified = Result<(ValueId, ValueId), LowerError>;

impl Case {
    fn one_class(&self, cx: &mut Context<'_>, scores: ValueId) -> Classified {
        let scores = add(cx.b, scores, &self.base)?;
        let label = self.sign(cx, scores)?;
        Ok((label, self.transform.of_targets(cx.b, scores)?))
    }

    /// Two classes of which only the first has weights: those of the positive class.
    fn positive_class(&self, cx: &mut Context<'_>, score: ValueId) -> Classified {
        let first = self.base.get(..1).unwrap_or_default();
        let score = add(cx.b, score, first)?;
        let label = self.positive(cx, score)?;
        let scores = match (self.base.len(), self.transform) {
            (2, transform) => {
                let none = zeros(cx.b, score)?;
                let both = pair(cx.b, score, none)?;
                transform.of_rows(cx.b, both)?
            }
            (_, Transform::Probit) => {
                let score = self.transform.of_rows(cx.b, score)?;
                complement(cx.b, score)?
            }
            (_, Transform::Logistic) => opposite(cx.b, score, Transform::Logistic)?,
            _ if self.are_positive => complement(cx.b, score)?,
            (_, transform) => opposite(cx.b, score, transform)?,
        };
        Ok((label, scores))
    }

    /// Two classes of which both have weights, or only the second (`binary`).
    fn two_classes(&self, cx: &mut Context<'_>, scores: ValueId, binary: bool) -> Classified {
        let [first, second] = [column(cx.b, scores, 0)?, column(cx.b, scores, 1)?];
        let (first, second) = match self.base[..] {
            [_, base] => {
                let second = add(cx.b, first, &[base])?;
                (cx.b.unary(Unary::Neg, second)?, second)
            }
            _ => (add(cx.b, first, &self.base)?, second),
        };
        // A class without weights has no score.
        let first = if binary { zeros(cx.b, first)? } else { first };
        let label = if binary { self.positive(cx, second)? } else { self.sign(cx, second)? };
        let both = pair(cx.b, first, second)?;
        Ok((label, self.transform.of_rows(cx.b, both)?))
    }

    fn classes(
        &self,
        cx: &mut Context<'_>,
        scores: ValueId,
        classes: &BTreeSet<i64>,
    ) -> Classified {
        let scores = add(cx.b, scores, &self.base)?;
        let mut ranked = scores;
        if self.base.is_empty() && classes.len() < self.labels.count() {
            // Classes without weights are never the best.
            let hidden = |class| if classes.contains(&class) { 0.0 } else { f64::NEG_INFINITY };
            let hidden: Vec<f64> = (0..self.labels.count() as i64).map(hidden).collect();
            ranked = add(cx.b, scores, &hidden)?;
        }
        let class = best(cx.b, ranked)?;
        let label = self.labels.of(cx, class)?;
        Ok((label, self.transform.of_rows(cx.b, scores)?))
    }

    /// The second label if the score of the positive class is above one half, or above 0 if it is not a
    /// probability.
    fn positive(&self, cx: &mut Context<'_>, score: ValueId) -> Result<ValueId, LowerError> {
        let class = above(cx.b, score, if self.are_positive { 0.5 } else { 0.0 })?;
        self.labels.of(cx, class)
    }

    /// 1 or 0 by the sign of a score; labels of strings by position.
    fn sign(&self, cx: &mut Context<'_>, score: ValueId) -> Result<ValueId, LowerError> {
        let class = above(cx.b, score, 0.0)?;
        match self.labels {
            Labels::Ints(_) => Ok(class),
            Labels::Strings(_) => self.labels.of(cx, class),
        }
    }
}
