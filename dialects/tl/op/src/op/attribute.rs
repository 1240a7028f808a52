//! Parameters of ops as attributes.

use crate::{TensorType, Type};
use std::fmt;

/// A parameter of an op that is an attribute in MLIR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: AttributeKind,
    /// Whether it is required.
    pub presence: Presence,
}

/// The kind of value of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeKind {
    /// Integers.
    I64s,
    /// Nonnegative integers.
    Indices,
    /// An integer.
    I64,
    /// A nonnegative integer.
    Index,
    /// True or false.
    Bool,
    /// A float.
    F64,
    /// A string.
    Text,
    /// One of these words, as a string.
    Word(&'static [&'static str]),
    /// Strings.
    Texts,
}

/// Whether an attribute is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Required.
    Required,
    /// Optional; the default is not written, so that equal ops print equally.
    FalseByDefault,
    /// Optional.
    Optional,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Integers.
    I64s(Vec<i64>),
    /// An integer.
    I64(i64),
    /// True or false.
    Bool(bool),
    /// A float.
    F64(f64),
    /// A string.
    Text(String),
    /// Strings.
    Texts(Vec<String>),
}

impl Attribute {
    /// A required attribute.
    pub(crate) const fn new(name: &'static str, kind: AttributeKind) -> Self {
        Self { name, kind, presence: Presence::Required }
    }

    /// A flag that is false if omitted.
    pub(crate) const fn flag(name: &'static str) -> Self {
        Self { name, kind: AttributeKind::Bool, presence: Presence::FalseByDefault }
    }

    /// An optional attribute.
    pub(crate) const fn optional(name: &'static str, kind: AttributeKind) -> Self {
        Self { name, kind, presence: Presence::Optional }
    }
}

impl AttributeKind {
    /// The expected kind of value, if the value does not match.
    pub fn mismatch(self, value: Option<&Value>) -> Option<String> {
        let of_kind = match (self, value) {
            (Self::I64s, Some(Value::I64s(_)))
            | (Self::I64, Some(Value::I64(_)))
            | (Self::Bool, Some(Value::Bool(_)))
            | (Self::F64, Some(Value::F64(_)))
            | (Self::Text, Some(Value::Text(_)))
            | (Self::Texts, Some(Value::Texts(_))) => true,
            (Self::Indices, Some(Value::I64s(values))) => {
                if values.iter().any(|value| *value < 0) {
                    return Some("no negative number".into());
                }
                true
            }
            (Self::Index, Some(Value::I64(value))) => *value >= 0,
            (Self::Word(words), Some(Value::Text(found))) => words.contains(&found.as_str()),
            _ => false,
        };
        (!of_kind).then(|| self.to_string())
    }
}

impl fmt::Display for AttributeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::I64s | Self::Indices => "array<i64: ...>",
            Self::I64 => "an integer",
            Self::Index => "an integer from 0",
            Self::Bool => "true or false",
            Self::F64 => "a float",
            Self::Text => "a string",
            Self::Texts => "an array of strings",
            Self::Word(words) => {
                let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
                let [others @ .., last] = &quoted[..] else { return Ok(()) };
                return write!(f, "{} or {last}", others.join(", "));
            }
        })
    }
}

/// The attributes of an op, as its row reads them, and the type of its result.
pub struct Attributes<'a> {
    values: Vec<(&'static str, Value)>,
    result: &'a dyn Fn() -> Result<Type, String>,
}

impl<'a> Attributes<'a> {
    /// Values of the kinds in the row, without the omitted ones.
    pub fn new(
        values: Vec<(&'static str, Value)>,
        result: &'a dyn Fn() -> Result<Type, String>,
    ) -> Self {
        Self { values, result }
    }

    /// The type of the result.
    pub(crate) fn result(&self) -> Result<Type, String> {
        (self.result)()
    }

    /// The type of the result, with static sizes.
    pub(crate) fn known_result(&self) -> Result<TensorType, String> {
        let ty = self.result()?;
        ty.known().ok_or_else(|| format!("expected a result of known sizes, found {ty}"))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.iter().any(|(known, _)| *known == name)
    }

    pub(crate) fn i64s(&self, name: &str) -> Result<Vec<i64>, String> {
        self.find(name, |value| match value {
            Value::I64s(values) => Some(values.clone()),
            _ => None,
        })
    }

    pub(crate) fn indices(&self, name: &str) -> Result<Vec<usize>, String> {
        self.i64s(name)?.into_iter().map(|value| index(name, value)).collect()
    }

    pub(crate) fn i64(&self, name: &str) -> Result<i64, String> {
        self.find(name, |value| match value {
            Value::I64(value) => Some(*value),
            _ => None,
        })
    }

    pub(crate) fn index(&self, name: &str) -> Result<usize, String> {
        index(name, self.i64(name)?)
    }

    pub(crate) fn bool(&self, name: &str) -> Result<bool, String> {
        self.find(name, |value| match value {
            Value::Bool(value) => Some(*value),
            _ => None,
        })
    }

    /// A flag that is false if omitted.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, String> {
        if self.has(name) { self.bool(name) } else { Ok(false) }
    }

    pub(crate) fn f64(&self, name: &str) -> Result<f64, String> {
        self.find(name, |value| match value {
            Value::F64(value) => Some(*value),
            _ => None,
        })
    }

    pub(crate) fn text(&self, name: &str) -> Result<String, String> {
        self.find(name, |value| match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        })
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        self.find(name, |value| match value {
            Value::Texts(texts) => Some(texts.clone()),
            _ => None,
        })
    }

    fn find<T>(&self, name: &str, of_kind: impl Fn(&Value) -> Option<T>) -> Result<T, String> {
        let found = self.values.iter().find(|(known, _)| *known == name);
        let value = found.and_then(|(_, value)| of_kind(value));
        value.ok_or_else(|| format!("{name}: expected another value"))
    }
}

fn index(name: &str, value: i64) -> Result<usize, String> {
    usize::try_from(value)
        .map_err(|_| format!("{name}: expected no negative number, found {value}"))
}

impl From<&[i64]> for Value {
    fn from(values: &[i64]) -> Self {
        Self::I64s(values.to_vec())
    }
}

impl From<&[usize]> for Value {
    fn from(values: &[usize]) -> Self {
        Self::I64s(values.iter().map(|value| *value as i64).collect())
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::I64(value as i64)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
