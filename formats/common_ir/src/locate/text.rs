//! Protobuf's text format as a tree with byte ranges.
//!
//! Only the structure of the text is parsed here, leniently: the parser has already accepted it, or
//! reports its errors.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use irc_diag::literal_length;
use prost_reflect::FieldDescriptor;

use super::Tree;
use crate::schema::{LimitError, MAX_DEPTH, MAX_ITEMS};

/// Start and end of a message, the name of a field, and the indices of its values among the fields.
type Memo = (Range<usize>, String, Rc<Vec<usize>>);

/// A text file.
pub(crate) struct Text<'a> {
    text: &'a str,
    root: Entry<'a>,
    /// The last long list, as for binary files.
    memo: RefCell<Option<Memo>>,
}

/// A field.
#[derive(Default)]
pub(crate) struct Entry<'a> {
    name: &'a str,
    /// From the name to the end of the value.
    span: Range<usize>,
    /// The value alone.
    value: Range<usize>,
    fields: Vec<Entry<'a>>,
}

impl<'a> Text<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        let mut lexer = Lexer { text, at: 0 };
        let mut root = Entry { span: 0..text.len(), value: 0..text.len(), ..Entry::default() };
        lexer.fields(&mut root.fields, 0);
        Self { text, root, memo: RefCell::default() }
    }

    fn places(&self, entry: &Entry<'_>, name: &str) -> Rc<Vec<usize>> {
        if let Some((span, known, places)) = &*self.memo.borrow()
            && (span, known.as_str()) == (&entry.span, name)
        {
            return places.clone();
        }
        let fields = entry.fields.iter().enumerate();
        let places = fields.filter(|(_, field)| field.name == name).map(|(at, _)| at);
        let places: Rc<Vec<usize>> = Rc::new(places.collect());
        // Short lists are found again as fast, and should not evict a long one.
        const SHORT: usize = 64;
        if places.len() > SHORT {
            *self.memo.borrow_mut() = Some((entry.span.clone(), name.to_owned(), places.clone()));
        }
        places
    }
}

/// Names of the fields of the outermost message; empty if the text does not start like one.
pub(crate) fn names(text: &str) -> Vec<&str> {
    Text::parse(text).root.fields.iter().map(|field| field.name).collect()
}

impl<'a> Tree for Text<'a> {
    type Node<'t>
        = &'t Entry<'a>
    where
        Self: 't;

    fn root(&self) -> &Entry<'a> {
        &self.root
    }

    fn children<'t>(&'t self, node: &&'t Entry<'a>, field: &FieldDescriptor) -> Vec<&'t Entry<'a>> {
        self.places(node, field.name()).iter().map(|place| &node.fields[*place]).collect()
    }

    fn child<'t>(
        &'t self,
        node: &&'t Entry<'a>,
        field: &FieldDescriptor,
        index: usize,
    ) -> Result<&'t Entry<'a>, usize> {
        let places = self.places(node, field.name());
        places.get(index).map(|place| &node.fields[*place]).ok_or(places.len())
    }

    fn span(&self, node: &&Entry<'a>) -> Range<usize> {
        node.span.clone()
    }

    fn text<'t>(&'t self, node: &&'t Entry<'a>) -> Option<Cow<'t, str>> {
        // Names with escapes are not unescaped: the enclosing message is found instead.
        let literal = &self.text[node.value.clone()];
        Some(Cow::Borrowed(literal.trim_matches(['"', '\''])))
    }
}

/// The first limit that the text exceeds.
pub(crate) fn excess(text: &str) -> Option<LimitError> {
    let mut lexer = Lexer { text, at: 0 };
    let (mut depth, mut tokens) = (0_usize, 0_usize);
    while let Some(token) = lexer.next() {
        tokens += 1;
        match &text[token.clone()] {
            "{" | "<" | "[" => depth += 1,
            "}" | ">" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Some(LimitError::Depth(token.start));
        }
        // A field has a name, a mark and a value.
        if tokens / 3 > MAX_ITEMS {
            return Some(LimitError::Items(token.start));
        }
    }
    None
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    /// The next token: a bracket or other mark, a string, or a run of anything else.
    fn next(&mut self) -> Option<Range<usize>> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        let length = match first {
            '"' | '\'' => literal_length(rest, first),
            c if is_mark(c) => 1,
            _ => rest.find(ends_word).unwrap_or(rest.len()).max(first.len_utf8()),
        };
        let start = self.at;
        self.at += length;
        Some(start..self.at)
    }

    fn peek(&self) -> Option<&'a str> {
        let mut ahead = Lexer { text: self.text, at: self.at };
        ahead.next().map(|token| &self.text[token])
    }

    fn skip_space(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            self.at += rest.len() - rest.trim_start().len();
            if !self.text[self.at..].starts_with('#') {
                return;
            }
            let rest = &self.text[self.at..];
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }

    /// Fields up to the closing bracket, which is consumed.
    fn fields(&mut self, fields: &mut Vec<Entry<'a>>, depth: usize) {
        while let Some(token) = self.next() {
            match &self.text[token.clone()] {
                "}" | ">" => return,
                "," | ";" => {}
                name => {
                    if self.peek() == Some(":") {
                        self.next();
                    }
                    self.value(name, token.start, fields, depth);
                }
            }
        }
    }

    /// The value of a field, or each of a list.
    fn value(&mut self, name: &'a str, start: usize, fields: &mut Vec<Entry<'a>>, depth: usize) {
        let Some(token) = self.next() else { return };
        let mut inner = vec![];
        match &self.text[token.clone()] {
            "{" | "<" if depth < MAX_DEPTH => self.fields(&mut inner, depth + 1),
            "[" if depth < MAX_DEPTH => {
                while let Some(next) = self.peek() {
                    match next {
                        "]" => {
                            self.next();
                            return;
                        }
                        "," => drop(self.next()),
                        _ => {
                            self.skip_space();
                            let element = self.at;
                            self.value(name, element, fields, depth + 1);
                        }
                    }
                }
                return;
            }
            string if string.starts_with(['"', '\'']) => {
                while self.peek().is_some_and(|next| next.starts_with(['"', '\''])) {
                    self.next();
                }
            }
            "-" => drop(self.next()),
            _ => {}
        }
        let value = token.start..self.at;
        fields.push(Entry { name, span: start..self.at, value, fields: inner });
    }
}

fn is_mark(c: char) -> bool {
    matches!(c, '{' | '}' | '<' | '>' | '[' | ']' | ':' | ',' | ';' | '-')
}

fn ends_word(c: char) -> bool {
    is_mark(c) || c.is_whitespace() || matches!(c, '"' | '\'' | '#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_count_outside_strings_and_comments() {
        let expected = LimitError::Depth(2 * MAX_DEPTH + 1);
        assert_eq!(excess(&"a{".repeat(200)), Some(expected));
        assert_eq!(excess(&format!("a: '{}' # {}", "{".repeat(200), "{".repeat(200))), None);
    }

    #[test]
    fn fields_have_their_range() {
        let text = "a: [1, -2] b { c: 'x' \"y\" } b < c: 3 >";
        let tree = Text::parse(text);
        let spans: Vec<&str> = tree.root.fields.iter().map(|f| &text[f.span.clone()]).collect();
        assert_eq!(spans, ["1", "-2", "b { c: 'x' \"y\" }", "b < c: 3 >"]);
        assert_eq!(tree.root.fields[2].fields[0].name, "c");
    }
}
