//! The values of a listing.

use std::borrow::Cow;
use std::ops::Range;

use irc_diag::Diagnostic;

use crate::Number;

/// A diagnostic on its way to the sink.
pub type BoxedDiagnostic = Box<Diagnostic>;

/// An error at a range of the text.
pub fn error(
    span: Range<usize>,
    code: &'static str,
    message: impl Into<String>,
) -> BoxedDiagnostic {
    Box::new(Diagnostic::error(code, message).at(span, ""))
}

/// A value with its range in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Spanned<'s> {
    /// The value.
    pub value: Value<'s>,
    /// Byte range in the text.
    pub span: Range<usize>,
}

/// A value of a listing.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'s> {
    /// `-3`, `0.5`.
    Number(Number),
    /// `True`, `False`.
    Bool(bool),
    /// `'PE'`.
    Text(&'s str),
    /// `pe_conv`.
    Word(&'s str),
    /// `<DataFmt.INT8: 1>`.
    Named {
        /// Class.
        class: &'s str,
        /// Value.
        name: &'s str,
        /// Number of the value.
        number: i64,
    },
    /// A named value without its number, which no listing has.
    Name(Cow<'s, str>),
    /// `[a, b]`.
    List(Vec<Spanned<'s>>),
    /// `{'a': b}`.
    Dict(Vec<(Spanned<'s>, Spanned<'s>)>),
}

impl<'s> Spanned<'s> {
    /// A value without a text.
    pub fn nowhere(value: Value<'s>) -> Self {
        Self { value, span: 0..0 }
    }
}

impl Value<'_> {
    /// A description for diagnostics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Number(Number::Int(_)) => "an integer",
            Self::Number(Number::Float(_)) => "a number with a point",
            Self::Bool(_) => "a boolean",
            Self::Text(_) => "a text",
            Self::Word(_) => "a bare word",
            Self::Named { .. } | Self::Name(_) => "a named value",
            Self::List(_) => "a list",
            Self::Dict(_) => "a dictionary",
        }
    }
}
