//! Trees of values with byte ranges.

use std::borrow::Cow;
use std::ops::Range;

/// A value and its byte range in the text.
#[derive(Debug)]
pub struct Node<'t> {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The value.
    pub value: Value<'t>,
}

/// A value that borrows the text.
#[derive(Debug)]
pub enum Value<'t> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as spelled, finite in double precision; `0` replaces one that is not.
    Number(&'t str),
    /// A string, with escapes resolved.
    String(Cow<'t, str>),
    /// An array.
    Array(Vec<Node<'t>>),
    /// An object, in the order written.
    Object(Vec<Member<'t>>),
    /// An object or an array of [`outline`](crate::outline), which has been checked; its parts are read by
    /// [`Node::with_parts`]. The text is that of the whole file.
    Unread(&'t str),
}

/// A key and its value.
#[derive(Debug)]
pub struct Member<'t> {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The key.
    pub key: Cow<'t, str>,
    /// The value.
    pub value: Node<'t>,
}

impl<'t> Node<'t> {
    /// Byte range of the value.
    pub fn span(&self) -> Range<usize> {
        self.start..self.end
    }

    /// Byte range of the opening bracket.
    pub fn open(&self) -> Range<usize> {
        self.start..self.start + 1
    }

    /// Byte range to point at in diagnostics: the whole value if it is short, otherwise the
    /// opening bracket.
    pub fn shown(&self) -> Range<usize> {
        const SHORT: usize = 200;
        let is_nested = matches!(self.value, Value::Array(_) | Value::Object(_) | Value::Unread(_));
        if is_nested && self.span().len() > SHORT { self.open() } else { self.span() }
    }

    /// What `then` returns of the value with its parts, which exist as long as `then` runs if they were
    /// [`Value::Unread`].
    pub fn with_parts<R>(&self, then: impl FnOnce(&Node<'t>) -> R) -> R {
        match self.value {
            Value::Unread(text) => then(&crate::parse::again(text, self.span().start)),
            _ => then(self),
        }
    }

    /// The value of a key, if this is an object with that key; the first if there are several.
    pub fn get(&self, key: &str) -> Option<&Node<'t>> {
        self.members()?.iter().find(|member| member.key == key).map(|member| &member.value)
    }

    /// The members of an object.
    pub fn members(&self) -> Option<&[Member<'t>]> {
        match &self.value {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The elements of an array.
    pub fn elements(&self) -> Option<&[Node<'t>]> {
        match &self.value {
            Value::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The text of a string.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The spelling of a number.
    pub fn number(&self) -> Option<&'t str> {
        match self.value {
            Value::Number(text) => Some(text),
            _ => None,
        }
    }
}

impl Member<'_> {
    /// Byte range of the key.
    pub fn key_span(&self) -> Range<usize> {
        self.start..self.end
    }
}
