//! Typed access to a tree, reporting at the value concerned and going on.

use std::collections::BTreeSet;
use std::ops::Range;

use irc_diag::{Diagnostic, Severity, Sink};
use jsonc_parser::ast::{Object as AstObject, Value};
use jsonc_parser::common::Ranged;

use super::{At, place_in};
use crate::names::nearest;

/// Reads values, reporting what is not as expected; every method returns `None` after reporting.
pub(crate) struct Reader<'s> {
    sink: &'s mut Sink,
    strict: bool,
}

/// An object being read.
pub(crate) struct Object<'t, 'p> {
    object: &'t AstObject<'t>,
    /// Place of the object.
    pub at: &'p At<'p>,
}

impl<'t> Object<'t, '_> {
    /// Value of a key, if present.
    pub fn get(&self, key: &str) -> Option<&'t Value<'t>> {
        self.object.get(key).map(|property| &property.value)
    }

    /// Keys and values in the order written.
    pub fn entries(&self) -> impl Iterator<Item = (&'t str, &'t Value<'t>)> + use<'t> {
        self.object.properties.iter().map(|property| (property.name.as_str(), &property.value))
    }

    /// Where the object opens.
    fn open(&self) -> Range<usize> {
        self.object.range.start..self.object.range.start + 1
    }
}

impl<'s> Reader<'s> {
    /// A reader that reports to `sink`; `strict` makes unknown keys errors.
    pub fn new(sink: &'s mut Sink, strict: bool) -> Self {
        Self { sink, strict }
    }

    /// Reports a finding that has a path, placed at `value`.
    pub fn report(&mut self, finding: Diagnostic, value: &Value<'_>, at: &At<'_>, text: &str) {
        self.report_at(finding, value.start()..value.end(), at, text);
    }

    fn report_at(&mut self, finding: Diagnostic, span: Range<usize>, at: &At<'_>, text: &str) {
        self.sink.push(finding.path(at.to_string()).at(span, text));
    }

    /// Reports a finding where an object opens.
    pub fn report_object(&mut self, finding: Diagnostic, object: &Object<'_, '_>) {
        self.report_at(finding, object.open(), object.at, "");
    }

    /// Reports findings whose paths start at `value`, which stands at `at`.
    pub fn report_within(&mut self, found: Vec<Diagnostic>, value: &Value<'_>, at: &At<'_>) {
        let absolute = |path: &str| format!("{at}{}", path.strip_prefix('$').unwrap_or(path));
        for mut finding in found {
            place_in(value, &mut finding);
            finding.path = finding.path.as_deref().map(absolute);
            finding.related.iter_mut().for_each(|place| place.path = absolute(&place.path));
            self.sink.push(finding);
        }
    }

    /// Reports that an older or newer generation of the format was accepted.
    pub fn accepted(&mut self, message: &str, value: &Value<'_>, at: &At<'_>) {
        self.report(Diagnostic::warning("ark-generation", message), value, at, "");
    }

    /// Reports a value of the wrong type.
    pub fn wrong_type(&mut self, expected: &str, value: &Value<'_>, at: &At<'_>) {
        let found = describe(value);
        let message = format!("expected {expected}, found {found}");
        let label = format!("this is {found}");
        self.report(Diagnostic::error("ark-wrong-type", message), value, at, &label);
    }

    /// The value as an object.
    pub fn object<'t, 'p>(
        &mut self,
        value: &'t Value<'t>,
        at: &'p At<'p>,
    ) -> Option<Object<'t, 'p>> {
        match value {
            Value::Object(object) => Some(Object { object, at }),
            _ => {
                self.wrong_type("an object", value, at);
                None
            }
        }
    }

    /// The elements of an array.
    pub fn array<'t>(&mut self, value: &'t Value<'t>, at: &At<'_>) -> Option<&'t [Value<'t>]> {
        match value {
            Value::Array(array) => Some(&array.elements),
            _ => {
                self.wrong_type("an array", value, at);
                None
            }
        }
    }

    /// The value of a key that must be there.
    pub fn required<'t>(
        &mut self,
        object: &Object<'t, '_>,
        key: &'static str,
    ) -> Option<&'t Value<'t>> {
        let value = object.get(key);
        if value.is_none() {
            self.missing(object, key);
        }
        value
    }

    /// Reports a missing key where its object opens.
    pub fn missing(&mut self, object: &Object<'_, '_>, key: &str) {
        let finding = Diagnostic::error("ark-missing-key", format!("missing key `{key}`"));
        self.report_at(finding, object.open(), object.at, &format!("this object needs `{key}`"));
    }

    /// Reports keys that occur twice, and keys that are not in `known`.
    pub fn check_keys(&mut self, object: &Object<'_, '_>, known: &[&str]) {
        let message = |key: &str| format!("unknown key `{key}` is ignored");
        self.check_known(object, known, "ark-unknown-key", message);
    }

    /// As [`Self::check_keys`], with the code and the message for keys that are not in `known`.
    pub fn check_known(
        &mut self,
        object: &Object<'_, '_>,
        known: &[&str],
        code: &'static str,
        message: impl Fn(&str) -> String,
    ) {
        self.check_duplicates(object);
        for property in &object.object.properties {
            let key = property.name.as_str();
            if known.contains(&key) {
                continue;
            }
            let severity = if self.strict { Severity::Error } else { Severity::Note };
            let mut finding = Diagnostic::new(severity, code, message(&clip(key)));
            if let Some(near) = nearest(key, known.iter().copied()) {
                finding = finding.help(format!("did you mean `{near}`?"));
            }
            let name = &property.name;
            self.report_at(finding, name.start()..name.end(), &object.at.key(key), "");
        }
    }

    /// Reports keys that occur twice.
    pub fn check_duplicates(&mut self, object: &Object<'_, '_>) {
        let mut seen = BTreeSet::new();
        for property in &object.object.properties {
            let key = property.name.as_str();
            if !seen.insert(key) {
                let message = format!("key `{}` occurs twice in one object", clip(key));
                let finding = Diagnostic::error("ark-duplicate-key", message);
                let name = &property.name;
                let label = "the first value would be lost";
                self.report_at(finding, name.start()..name.end(), &object.at.key(key), label);
            }
        }
    }

    /// A string.
    pub fn string<'t>(&mut self, value: &'t Value<'t>, at: &At<'_>) -> Option<&'t str> {
        match value {
            Value::StringLit(literal) => Some(&literal.value),
            _ => {
                self.wrong_type("a string", value, at);
                None
            }
        }
    }

    /// A boolean.
    pub fn boolean(&mut self, value: &Value<'_>, at: &At<'_>) -> Option<bool> {
        match value {
            Value::BooleanLit(literal) => Some(literal.value),
            _ => {
                self.wrong_type("a boolean", value, at);
                None
            }
        }
    }

    /// An integer that fits `T`, described by `expected` when it does not.
    pub fn integer<T: TryFrom<i128>>(
        &mut self,
        value: &Value<'_>,
        at: &At<'_>,
        expected: &str,
    ) -> Option<T> {
        let Value::NumberLit(literal) = value else {
            self.wrong_type(expected, value, at);
            return None;
        };
        let Ok(number) = literal.value.parse::<i128>() else {
            let is_whole = literal.value.bytes().all(|b| b.is_ascii_digit() || b == b'-');
            match is_whole {
                true => self.out_of_range(expected, value, at),
                false => self.wrong_type(expected, value, at),
            }
            return None;
        };
        let fits = T::try_from(number).ok();
        if fits.is_none() {
            self.out_of_range(expected, value, at);
        }
        fits
    }

    fn out_of_range(&mut self, expected: &str, value: &Value<'_>, at: &At<'_>) {
        let message = format!("number out of range, expected {expected}");
        self.report(Diagnostic::error("ark-number-range", message), value, at, "does not fit");
    }

    /// A finite number that fits a 32-bit float.
    pub fn float(&mut self, value: &Value<'_>, at: &At<'_>) -> Option<f32> {
        let expected = "a finite 32-bit float";
        match value {
            Value::NumberLit(literal) => {
                let number = literal.value.parse::<f64>().ok().map(|number| number as f32);
                let finite = number.filter(|number| number.is_finite());
                if finite.is_none() {
                    self.out_of_range(expected, value, at);
                }
                finite
            }
            Value::NullKeyword(_) => {
                let message = "the float is `null`: an infinity or NaN was lost when the file was \
                               written";
                let finding = Diagnostic::error("ark-null-float", message)
                    .help("write the model again with a finite constant");
                self.report(finding, value, at, "expected a finite number");
                None
            }
            _ => {
                self.wrong_type(expected, value, at);
                None
            }
        }
    }

    /// An array of integers.
    pub fn integers<T: TryFrom<i128>>(
        &mut self,
        value: &Value<'_>,
        at: &At<'_>,
        expected: &str,
    ) -> Option<Vec<T>> {
        let Value::Array(array) = value else {
            self.wrong_type("an array of integers", value, at);
            return None;
        };
        let read = |(index, value)| self.integer(value, &at.index(index), expected);
        // All elements are looked at before any failure counts, so that each is reported.
        let all: Vec<Option<T>> = array.elements.iter().enumerate().map(read).collect();
        all.into_iter().collect()
    }
}

/// A value in words.
fn describe(value: &Value<'_>) -> String {
    match value {
        Value::StringLit(literal) => format!("the string \"{}\"", clip(&literal.value)),
        Value::NumberLit(literal) => format!("the number {}", clip(literal.value)),
        Value::BooleanLit(literal) => format!("the boolean {}", literal.value),
        Value::Object(_) => "an object".into(),
        Value::Array(array) => format!("an array of {}", array.elements.len()),
        Value::NullKeyword(_) => "null".into(),
    }
}

/// The start of a text that may be long.
pub(crate) fn clip(text: &str) -> String {
    const LONG: usize = 40;
    match text.char_indices().nth(LONG) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}
