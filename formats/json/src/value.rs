//! Owned JSON values.

use crate::{Member, Node, Value};

/// A JSON value with its key order; a number that is not a 64-bit integer keeps its spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A 64-bit integer in its shortest spelling.
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
    /// The owned value of a node.
    pub fn of(node: &Node<'_>) -> Json {
        match &node.value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(text) => Json::of_number(text),
            Value::String(text) => Json::String(text.as_ref().into()),
            Value::Array(elements) => Json::Array(elements.iter().map(Json::of).collect()),
            Value::Unread(_) => node.with_parts(Json::of),
            Value::Object(members) => {
                let pair =
                    |member: &Member<'_>| (member.key.as_ref().into(), Json::of(&member.value));
                Json::Object(members.iter().map(pair).collect())
            }
        }
    }

    fn of_number(text: &str) -> Json {
        let int = text.parse::<i64>().ok();
        // `-0` is not an integer that prints as it was written.
        match int.filter(|&int| int != 0 || text == "0") {
            Some(int) => Json::Int(int),
            None => Json::Number(Number(text.into())),
        }
    }
}

impl From<Number> for Json {
    fn from(number: Number) -> Json {
        Json::of_number(&number.0)
    }
}

/// A finite number with its spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Number(Box<str>);

impl Number {
    /// The number in the shortest spelling that round-trips; `None` if it is not finite.
    pub fn new(value: f64) -> Option<Number> {
        value.is_finite().then(|| Number(format!("{value:?}").into()))
    }

    /// The number with a spelling; `None` if it is not a finite JSON number.
    pub fn of_text(text: &str) -> Option<Number> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_number = digits.starts_with(|first: char| first.is_ascii_digit())
            && digits
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
        let value = text.parse::<f64>().ok().filter(|_| is_number);
        value.filter(|value| value.is_finite()).map(|_| Number(text.into()))
    }

    /// The number of a node, if it is one.
    pub fn of(node: &Node<'_>) -> Option<Number> {
        node.number().map(|text| Number(text.into()))
    }

    /// Its value, rounded to double precision.
    pub fn value(&self) -> f64 {
        // All constructors have validated the spelling.
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
        let number = |text: &str| Number::of_text(text).expect("a number");
        assert_eq!(Json::from(number("12")), Json::Int(12));
        for text in ["-0", "1.50", "18446744073709551615"] {
            assert_eq!(Json::from(number(text)), Json::Number(number(text)));
        }
        assert_eq!(Number::new(210.0).map(|n| n.text().to_owned()), Some("210.0".into()));
        assert_eq!(Number::new(f64::NAN), None);
    }
}
