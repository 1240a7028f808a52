//! Labels of classes.

use super::super::indexing::inside;
use crate::context::{Context, LowerError};
use bytes::Bytes;
use irc_tl::{Compute, Dim, Scalar, ValueId};

/// The labels of classes.
pub(super) enum Labels {
    Ints(Vec<i64>),
    Strings(Vec<Bytes>),
}

impl Labels {
    /// Labels from the attribute of integers, or from `classlabels_strings`.
    pub(super) fn read(cx: &Context<'_>, ints: &str) -> Result<Self, LowerError> {
        if let Some(strings) = cx.texts("classlabels_strings")?.filter(|list| !list.is_empty()) {
            return Ok(Self::Strings(strings));
        }
        let ints_of_classes = cx.ints(ints)?.filter(|list| !list.is_empty());
        Ok(Self::Ints(ints_of_classes.ok_or_else(|| cx.missing(ints))?))
    }

    /// The number of classes.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Ints(labels) => labels.len(),
            Self::Strings(labels) => labels.len(),
        }
    }

    /// The labels of classes given by position.
    pub(super) fn of(&self, cx: &mut Context<'_>, classes: ValueId) -> Result<ValueId, LowerError> {
        let table = self.table(cx)?;
        let class = Scalar::load(0, [Scalar::Loop(0)]);
        let class = inside(class, &Dim::Known(self.count() as i64));
        let rows = cx.b.dims(classes);
        Ok(cx.b.compute(Compute::map(rows, Scalar::load(1, [class])), &[classes, table])?)
    }

    /// The labels as a constant.
    pub(super) fn table(&self, cx: &mut Context<'_>) -> Result<ValueId, LowerError> {
        Ok(match self {
            Self::Ints(labels) => cx.b.integers(labels)?,
            Self::Strings(labels) => cx.b.strings(labels)?,
        })
    }

    /// # Errors
    /// If a label occurs twice.
    pub(super) fn expect_distinct(&self) -> Result<(), LowerError> {
        let mut labels: Vec<String> = match self {
            Self::Ints(labels) => labels.iter().map(i64::to_string).collect(),
            Self::Strings(labels) => {
                labels.iter().map(|label| String::from_utf8_lossy(label).into_owned()).collect()
            }
        };
        labels.sort_unstable();
        match labels.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(LowerError::invalid(format!(
                "expected distinct labels, found {} twice",
                pair[0]
            ))),
            None => Ok(()),
        }
    }
}
