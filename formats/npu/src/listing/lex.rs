//! Parses the values of a listing, which are in Python's syntax.

use crate::Number;
use crate::value::{BoxedDiagnostic, Spanned, Value, error};

/// Maximum nesting of lists and dictionaries; listings have three levels.
const MAX_DEPTH: usize = 8;

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
