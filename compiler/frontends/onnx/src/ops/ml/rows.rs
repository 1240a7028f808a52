//! Inputs that are rows of features.

use super::super::indexing::along;
use crate::context::{Context, LowerError};
use irc_tl::{Builder, Built, Dim, ValueId};

/// An input as rows of features; one of rank 1 is a single row.
pub(super) fn rows_of(cx: &mut Context<'_>, input: usize) -> Result<ValueId, LowerError> {
    let x = cx.input(input)?;
    let ty = cx.ty(x);
    match &ty.dims[..] {
        [_, _] => Ok(x),
        [features] => Ok(cx.b.reshape(x, &[Dim::Known(1), features.clone()])?),
        _ => Err(LowerError::invalid(format!("expected rows of features, found {ty}"))),
    }
}

/// As [`rows_of`]; of an input of higher rank, all dimensions but the first are those of the features.
pub(super) fn flat_rows_of(cx: &mut Context<'_>, input: usize) -> Result<ValueId, LowerError> {
    let x = cx.input(input)?;
    let ty = cx.ty(x);
    match &ty.dims[..] {
        [rows, inner @ ..] if inner.len() > 1 => {
            let features = inner.iter().cloned().reduce(|left, right| left * right);
            Ok(cx.b.reshape(x, &[rows.clone(), features.unwrap_or(Dim::Known(1))])?)
        }
        _ => rows_of(cx, input),
    }
}

/// A column of rows, as rows of one number.
pub(super) fn column(b: &mut Builder, rows: ValueId, at: i64) -> Built {
    along(b, rows, 1, at, 1)
}
