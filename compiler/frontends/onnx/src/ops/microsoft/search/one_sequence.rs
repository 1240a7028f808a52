//! Greedy search and sampling: one sequence for each element of the batch.

use super::sampling::Sampling;
use super::{Chosen, goes_on};
use crate::context::LowerError;
use crate::ops::pieces::squeeze;
use crate::ops::reduce::place_of;
use crate::region::Region;
use irc_tl::{Binary, Builder, Comparison, DType, Reduction, ValueId};

/// One sequence for each element of the batch.
#[derive(Clone)]
pub(super) struct OneSequence {
    pub end: i64,
    pub pad: i64,
    /// How tokens are drawn; `None` if the one with the highest score is next.
    pub sampling: Option<Sampling>,
}

impl OneSequence {
    /// The options in the body of a loop.
    pub fn captured(&self, region: &mut Region, around: &Builder) -> Self {
        let sampling = self.sampling.as_ref().map(|own| own.captured(region, around));
        Self { sampling, ..self.clone() }
    }

    /// The next token: one that is drawn, or the one with the highest score, the first of equal ones.
    /// `ended` says which sequences have ended: `bool[batch]`.
    pub fn choose(
        &self,
        b: &mut Builder,
        scores: ValueId,
        ended: ValueId,
        length: ValueId,
    ) -> Result<Chosen, LowerError> {
        let token = match &self.sampling {
            Some(sampling) => sampling.draw(b, scores, length)?,
            None => {
                let place = place_of(b, Reduction::Max, scores, 1, false)?;
                squeeze(b, place, 1)?
            }
        };
        let token = b.cast(token, DType::I32)?;
        let end = b.scalar(self.end as f64, DType::I32)?;
        let ends = b.compare(Comparison::Eq, token, end)?;
        let ended = b.binary(Binary::Or, ended, ends)?;
        let pad = b.scalar(self.pad as f64, DType::I32)?;
        let token = b.select(ended, pad, token)?;
        let goes_on = goes_on(b, ended)?;
        Ok(Chosen { token, from: None, carried: vec![ended], goes_on, scores: None })
    }
}
