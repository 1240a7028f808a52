//! The values of a listing, in Python's syntax.

use std::borrow::Cow;
use std::ops::Range;

use irc_diag::Diagnostic;

use crate::Number;
use crate::field::Field;

/// Maximum nesting of lists and dictionaries; listings have three levels.
const MAX_DEPTH: usize = 8;

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

/// Parses one line.
pub struct Lexer<'s> {
    text: &'s str,
    /// Offset of the line in the whole text.
    base: usize,
    at: usize,
    depth: usize,
}

impl<'s> Lexer<'s> {
    /// A parser of `text`, which starts at byte `base` of the source.
    pub fn new(text: &'s str, base: usize) -> Self {
        Self { text, base, at: 0, depth: 0 }
    }

    /// The whole line as one value.
    pub fn line(mut self) -> Result<Spanned<'s>, BoxedDiagnostic> {
        let value = self.value()?;
        self.skip_spaces();
        match self.at < self.text.len() {
            true => Err(self.expected("the end of the line")),
            false => Ok(value),
        }
    }

    fn value(&mut self) -> Result<Spanned<'s>, BoxedDiagnostic> {
        self.skip_spaces();
        let start = self.at;
        let value = match self.peek() {
            Some(b'[') => Value::List(self.nested(b']', Self::value)?),
            Some(b'{') => Value::Dict(self.nested(b'}', Self::pair)?),
            Some(b'<') => self.named()?,
            Some(b'\'') => self.text()?,
            Some(b'-' | b'0'..=b'9') => Value::Number(self.number()?),
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => match self.word() {
                "True" => Value::Bool(true),
                "False" => Value::Bool(false),
                word => Value::Word(word),
            },
            _ => return Err(self.expected("a value")),
        };
        Ok(Spanned { value, span: self.base + start..self.base + self.at })
    }

    fn pair(&mut self) -> Result<(Spanned<'s>, Spanned<'s>), BoxedDiagnostic> {
        let key = self.value()?;
        self.expect(b':', "`:` after the key")?;
        Ok((key, self.value()?))
    }

    /// Items separated by commas, up to `close`.
    fn nested<T>(
        &mut self,
        close: u8,
        item: impl Fn(&mut Self) -> Result<T, BoxedDiagnostic>,
    ) -> Result<Vec<T>, BoxedDiagnostic> {
        if self.depth == MAX_DEPTH {
            return Err(self.error("npu-limit", "values are nested too deeply"));
        }
        self.depth += 1;
        self.at += 1;
        let mut items = vec![];
        self.skip_spaces();
        while self.peek() != Some(close) {
            items.push(item(self)?);
            self.skip_spaces();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(byte) if byte == close => break,
                _ => return Err(self.expected("`,` or the closing bracket")),
            }
            self.skip_spaces();
        }
        self.at += 1;
        self.depth -= 1;
        Ok(items)
    }

    /// `<Class.NAME: number>`
    fn named(&mut self) -> Result<Value<'s>, BoxedDiagnostic> {
        self.at += 1;
        let class = self.word();
        self.expect(b'.', "`.` after the class of a named value")?;
        let name = self.word();
        self.expect(b':', "`:` after the name of a value")?;
        self.skip_spaces();
        let Number::Int(number) = self.number()? else {
            return Err(self.expected("an integer"));
        };
        self.expect(b'>', "`>` after a named value")?;
        Ok(Value::Named { class, name, number })
    }

    fn text(&mut self) -> Result<Value<'s>, BoxedDiagnostic> {
        let rest = &self.text[self.at + 1..];
        let Some(len) = rest.find('\'') else { return Err(self.expected("a closing `'`")) };
        self.at += len + 2;
        Ok(Value::Text(&rest[..len]))
    }

    fn number(&mut self) -> Result<Number, BoxedDiagnostic> {
        let rest = &self.text[self.at..];
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        let len = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let digits = &rest[..len];
        let number = match digits.contains(['.', 'e', 'E']) {
            false => digits.parse().ok().map(Number::Int),
            true => digits.parse().ok().filter(|value: &f64| value.is_finite()).map(Number::Float),
        };
        let number = number
            .ok_or_else(|| self.error("npu-number", "expected a finite number of 64 bits"))?;
        self.at += len;
        Ok(number)
    }

    fn word(&mut self) -> &'s str {
        let rest = &self.text[self.at..];
        let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let word = &rest[..len.unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    fn expect(&mut self, byte: u8, what: &str) -> Result<(), BoxedDiagnostic> {
        self.skip_spaces();
        match self.peek() == Some(byte) {
            true => self.at += 1,
            false => return Err(self.expected(what)),
        }
        Ok(())
    }

    fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn expected(&self, what: &str) -> BoxedDiagnostic {
        self.error("npu-syntax", &format!("expected {what}"))
    }

    fn error(&self, code: &'static str, message: &str) -> BoxedDiagnostic {
        let len = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        let at = self.base + self.at;
        error(at..at + len, code, message)
    }
}

/// A dictionary whose keys are taken one by one; remaining keys are errors.
pub struct Dict<'v, 's> {
    entries: &'v [(Spanned<'s>, Spanned<'s>)],
    taken: u64,
    span: Range<usize>,
}

impl<'v, 's> Dict<'v, 's> {
    /// The dictionary of a value.
    ///
    /// # Errors
    /// If it is none, if a key is not text, or occurs twice, or there are too many.
    pub fn new(value: &'v Spanned<'s>) -> Result<Self, BoxedDiagnostic> {
        let Value::Dict(entries) = &value.value else {
            let message = format!("expected a dictionary, found {}", value.value.kind());
            return Err(error(value.span.clone(), "npu-wrong-type", message));
        };
        // No instruction has half as many; `taken` has a bit for each.
        if entries.len() > 64 {
            return Err(error(
                value.span.clone(),
                "npu-limit",
                "a dictionary has more than 64 keys",
            ));
        }
        for (i, (key, _)) in entries.iter().enumerate() {
            let Value::Text(name) = key.value else {
                return Err(error(key.span.clone(), "npu-wrong-type", "expected a key in quotes"));
            };
            let same = |entry: &&(Spanned<'_>, _)| matches!(entry.0.value, Value::Text(other) if other == name);
            if let Some(first) = entries[..i].iter().find(same) {
                return Err(error(
                    key.span.clone(),
                    "npu-repeated-key",
                    format!("`{name}` occurs twice"),
                )
                .also(first.0.span.clone(), "first here")
                .into());
            }
        }
        Ok(Self { entries, taken: 0, span: value.span.clone() })
    }

    /// The field with a key.
    ///
    /// # Errors
    /// If the key is missing or its value has another type.
    pub fn take<T: Field>(&mut self, key: &str) -> Result<T, BoxedDiagnostic> {
        T::read(self.entry(key)?)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// If the key is missing.
    pub fn entry(&mut self, key: &str) -> Result<&'v Spanned<'s>, BoxedDiagnostic> {
        let is_key =
            |entry: &(Spanned<'_>, _)| matches!(entry.0.value, Value::Text(name) if name == key);
        let place = self.entries.iter().position(is_key).ok_or_else(|| {
            let end = self.span.end.saturating_sub(1)..self.span.end;
            error(end, "npu-missing-key", format!("`{key}` is missing"))
        })?;
        self.taken |= 1 << place;
        Ok(&self.entries[place].1)
    }

    /// Finishes the dictionary.
    ///
    /// # Errors
    /// If a key was not taken.
    pub fn finish(self) -> Result<(), BoxedDiagnostic> {
        let left = (0..self.entries.len()).find(|i| self.taken >> i & 1 == 0);
        let Some(left) = left else { return Ok(()) };
        let key = &self.entries[left].0;
        let Value::Text(name) = key.value else { return Ok(()) };
        let message = format!("the instruction has no field `{name}`");
        Err(error(key.span.clone(), "npu-unknown-key", message))
    }
}
