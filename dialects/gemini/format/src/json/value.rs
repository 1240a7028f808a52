//! JSON values that stand alone.

use super::{Node, Value};

/// A JSON value with its key order; a number that is no 64-bit integer keeps its spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer of 64 bits in its shortest spelling.
    Int(i64),
    /// Any other number.
    Number(Number),
    /// A string.
    String(Box<str>),
    /// An array.
    Array(Vec<Json>),
    /// An object, in the order written.
    Object(Vec<(Box<str>, Json)>),
}

impl Json {
    /// The value of a node, by itself.
    pub(crate) fn of(node: &Node<'_>) -> Json {
        match &node.value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(text) => Json::of_number(text),
            Value::String(text) => Json::String(text.as_ref().into()),
            Value::Array(elements) => Json::Array(elements.iter().map(Json::of).collect()),
            Value::Object(members) => {
                let pair = |member: &super::Member<'_>| {
                    (member.key.as_ref().into(), Json::of(&member.value))
                };
                Json::Object(members.iter().map(pair).collect())
            }
        }
    }

    /// A number as JSON.
    pub(crate) fn number(number: Number) -> Json {
        Json::of_number(&number.0)
    }

    fn of_number(text: &str) -> Json {
        let int = text.parse::<i64>().ok();
        // `-0` is no integer that prints as it was written.
        match int.filter(|&int| int != 0 || text == "0") {
            Some(int) => Json::Int(int),
            None => Json::Number(Number(text.into())),
        }
    }
}

/// A finite number as it was spelt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Number(Box<str>);

impl Number {
    /// The number, in the shortest spelling that gives it back; nothing when it is not finite.
    pub fn new(value: f64) -> Option<Number> {
        value.is_finite().then(|| Number(format!("{value:?}").into()))
    }

    /// A number that the reader has found to be one, as it is spelt.
    pub(crate) fn spelt(text: &str) -> Number {
        Number(text.into())
    }

    /// Its value, rounded to double precision.
    pub fn value(&self) -> f64 {
        // Every way to make a number has seen that it is one.
        self.0.parse().unwrap_or(f64::NAN)
    }

    /// Its spelling.
    pub fn text(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_spelling() {
        assert_eq!(Json::of_number("12"), Json::Int(12));
        assert_eq!(Json::of_number("-0"), Json::Number(Number::spelt("-0")));
        assert_eq!(Json::of_number("1.50"), Json::Number(Number::spelt("1.50")));
        assert_eq!(Number::new(210.0).map(|n| n.text().to_owned()), Some("210.0".into()));
        assert_eq!(Number::new(f64::NAN), None);
    }
}
