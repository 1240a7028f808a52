//! Ways to split strings.

use crate::{FunctionError, Pattern, Separator, search::Search};
use irc_tensor::{escape, unescape};
use std::num::NonZeroU64;
use std::ops::Range;

/// A way to split a string into parts. All but the first are of characters, and reject strings that are not
/// UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Splitter {
    /// At a delimiter.
    Delimiter(Separator),
    /// At the matches of expressions, of each in turn. Parts of fewer characters than the minimum are dropped. A
    /// match that is empty takes the next character with it.
    Separators(Vec<Pattern>, NonZeroU64),
    /// Into the matches of an expression that have a minimum of characters; after a shorter one the search goes
    /// on at its second character.
    Tokens(Box<Pattern>, NonZeroU64),
    /// Into its characters.
    Characters,
}

impl Splitter {
    /// The expressions.
    pub fn patterns(&self) -> &[Pattern] {
        match self {
            Self::Separators(patterns, _) => patterns,
            Self::Tokens(pattern, _) => std::slice::from_ref(&**pattern),
            Self::Delimiter(_) | Self::Characters => &[],
        }
    }

    /// Searches for the expressions, which split one string after another.
    pub fn searches(&self) -> Vec<Search<'_>> {
        self.patterns().iter().map(Pattern::search).collect()
    }

    /// The parts of a string, by searches for the expressions.
    ///
    /// # Errors
    /// A string that is not UTF-8; a part that is not, as an empty match may be within a character.
    pub fn parts(
        &self,
        searches: &mut [Search<'_>],
        text: &[u8],
    ) -> Result<Vec<Range<usize>>, FunctionError> {
        if let Self::Delimiter(separator) = self {
            return Ok(separator.parts(text));
        }
        let valid = std::str::from_utf8(text).ok();
        let parts = valid.and_then(|text| match self {
            Self::Delimiter(_) => None,
            Self::Separators(_, least) => separated(searches, text, least.get()),
            Self::Tokens(_, least) => {
                searches.iter_mut().next().and_then(|search| tokens(search, text, least.get()))
            }
            Self::Characters => Some(characters(text)),
        });
        parts.ok_or_else(|| FunctionError::not_utf8(text))
    }

    /// The arguments of a function that splits, as [`Splitter::read`] reads them.
    pub fn arguments(&self) -> Vec<String> {
        let (kind, rest) = match self {
            Self::Delimiter(Separator { delimiter, max_parts }) => {
                let most = max_parts.map(|most| most.to_string());
                ("delimiter", [escape(delimiter)].into_iter().chain(most).collect())
            }
            Self::Separators(_, least) => ("separators", vec![least.to_string()]),
            Self::Tokens(_, least) => ("tokens", vec![least.to_string()]),
            Self::Characters => ("characters", vec![]),
        };
        let patterns = self.patterns().iter().map(|pattern| pattern.text().to_owned());
        [kind.to_owned()].into_iter().chain(rest).chain(patterns).collect()
    }

    /// Reads arguments: `delimiter`, the delimiter and the largest number of parts, if any; `separators`, the
    /// least number of characters and expressions; `tokens`, that number and an expression; `characters`.
    ///
    /// # Errors
    /// Other arguments; an expression that `pattern` rejects.
    pub fn read(
        arguments: &[String],
        pattern: &mut dyn FnMut(&str) -> Result<Pattern, String>,
    ) -> Result<Self, String> {
        match arguments {
            [kind, text] if kind == "delimiter" => separator(text, None),
            [kind, text, most] if kind == "delimiter" => separator(text, Some(count(most)?)),
            [kind, least, texts @ ..] if kind == "separators" && !texts.is_empty() => {
                let least = count(least)?;
                let mut patterns = vec![];
                for text in texts {
                    patterns.push(pattern(text)?);
                }
                Ok(Self::Separators(patterns, least))
            }
            [kind, least, text] if kind == "tokens" => {
                let least = count(least)?;
                Ok(Self::Tokens(Box::new(pattern(text)?), least))
            }
            [kind] if kind == "characters" => Ok(Self::Characters),
            _ => Err("expected a way to split strings".to_owned()),
        }
    }
}

fn separator(delimiter: &str, max_parts: Option<u64>) -> Result<Splitter, String> {
    let bytes = unescape(delimiter);
    let delimiter = bytes.ok_or_else(|| "expected an escaped delimiter".to_owned())?;
    Ok(Splitter::Delimiter(Separator { delimiter, max_parts }))
}

fn count<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let count = text.parse().ok().and_then(|count: u64| T::try_from(count).ok());
    count.ok_or_else(|| "expected a number of parts or characters".to_owned())
}

/// Parts between matches of one expression after another.
fn separated(searches: &mut [Search<'_>], text: &str, least: u64) -> Option<Vec<Range<usize>>> {
    let mut parts = vec![Range { start: 0, end: text.len() }];
    for search in searches {
        let whole = std::mem::take(&mut parts);
        for Range { start: offset, end } in whole {
            let text = &text[offset..end];
            let mut start = 0;
            while let Some(found) = search.find(text.as_bytes(), start) {
                if has(text.get(start..found.start)?, least) {
                    parts.push(offset + start..offset + found.start);
                }
                start = if found.is_empty() { after(text, found.start) } else { found.end };
            }
            if start <= text.len() && has(text.get(start..)?, least) {
                parts.push(offset + start..end);
            }
        }
    }
    Some(parts)
}

/// The matches of an expression.
fn tokens(search: &mut Search<'_>, text: &str, least: u64) -> Option<Vec<Range<usize>>> {
    let (mut parts, mut start) = (vec![], 0);
    // No part of a text has more characters.
    if !has(text, least) {
        return Some(parts);
    }
    while let Some(found) = search.find(text.as_bytes(), start) {
        if !found.is_empty() && has(text.get(found.clone())?, least) {
            start = found.end;
            parts.push(found);
        } else {
            start = after(text, found.start);
        }
    }
    Some(parts)
}

fn characters(text: &str) -> Vec<Range<usize>> {
    let (mut parts, mut start) = (vec![], 0);
    while start < text.len() {
        let end = after(text, start);
        parts.push(start..end);
        start = end;
    }
    parts
}

/// Whether a text has so many characters.
fn has(text: &str, least: u64) -> bool {
    // Stops at the last that counts: a long text is not read again for each of its parts.
    let last = usize::try_from(least - 1).unwrap_or(usize::MAX);
    text.chars().nth(last).is_some()
}

/// The position after the character at a position, or after the byte within a character; past the end, if the
/// position is the end.
fn after(text: &str, at: usize) -> usize {
    let next = text.get(at..).and_then(|rest| rest.chars().next());
    at + next.map_or(1, char::len_utf8)
}

#[cfg(all(test, feature = "compile-regex"))]
mod tests {
    use super::*;

    fn split<'t>(splitter: &Splitter, text: &'t str) -> Vec<&'t str> {
        let arguments = splitter.arguments();
        assert_eq!(Splitter::read(&arguments, &mut Pattern::new).as_ref(), Ok(splitter));
        let parts = splitter.parts(&mut splitter.searches(), text.as_bytes()).expect("UTF-8");
        parts.into_iter().map(|part| &text[part]).collect()
    }

    fn splitter(kind: &str, least: u64, patterns: &[&str]) -> Splitter {
        let least = least.to_string();
        let arguments = [kind, &least].into_iter().chain(patterns.iter().copied());
        let arguments: Vec<String> = arguments.map(str::to_owned).collect();
        Splitter::read(&arguments, &mut Pattern::new).expect("a way to split strings")
    }

    /// The results of ONNX Runtime, here and below.
    #[test]
    fn strings_are_split_at_separators() {
        let of = |least: u64, patterns: &[&str], text: &'static str| {
            split(&splitter("separators", least, patterns), text)
        };
        let none: [&str; 0] = [];
        let text = "a bb,ccc;dddd";
        assert_eq!(of(1, &[" ", "[,;]"], text), ["a", "bb", "ccc", "dddd"]);
        assert_eq!(of(2, &[" ", "[,;]"], text), ["bb", "ccc", "dddd"]);
        assert_eq!(of(3, &[" ", "[,;]"], text), ["ccc", "dddd"]);
        assert_eq!(of(2, &[" "], "\u{e9} \u{e9}\u{e9}"), ["\u{e9}\u{e9}"]);
        assert_eq!((of(1, &["x*"], "abc"), of(1, &[","], "")), (none.to_vec(), none.to_vec()));
        assert_eq!(of(1, &["X*"], "aXXbXc"), none);
        // Each part is a text of its own.
        assert_eq!(of(1, &["^a", "^b"], "abb a"), ["b a"]);
    }

    #[test]
    fn strings_are_split_into_tokens() {
        let of = |least: u64, pattern: &str, text: &'static str| {
            split(&splitter("tokens", least, &[pattern]), text)
        };
        let none: [&str; 0] = [];
        assert_eq!(of(1, "a|ab|abc", "ab abc a"), ["ab", "abc", "a"]);
        assert_eq!(of(2, "\\w+|\u{e9}+", "a bb \u{e9}\u{e9}"), ["bb", "\u{e9}\u{e9}"]);
        assert_eq!((of(1, "a*", "baac"), of(3, "ab", "abab")), (vec!["aa"], none.to_vec()));
        assert_eq!(of(2, "\\bba.", "foo-bar baz"), ["bar", "baz"]);
    }

    #[test]
    fn strings_are_split_into_characters() {
        assert_eq!(split(&Splitter::Characters, "a\u{e9}"), ["a", "\u{e9}"]);
        for splitter in [Splitter::Characters, splitter("tokens", 1, &["a"])] {
            let error = splitter.parts(&mut splitter.searches(), b"a\xff").expect_err("not UTF-8");
            assert_eq!(error.to_string(), "the string \"a\u{fffd}\" is not UTF-8");
        }
        assert_eq!(split(&splitter("tokens", 1, &["\\B|b"]), "a\u{e9}b"), ["b"]);
        // The empty match within the character.
        let within = splitter("separators", 1, &["\\B"]);
        assert!(within.parts(&mut within.searches(), "a\u{e9}".as_bytes()).is_err());
    }

    #[test]
    fn other_arguments_are_rejected() {
        for arguments in [
            &[][..],
            &["words"],
            &["delimiter"],
            &["delimiter", ",", "-1"],
            &["separators", "1"],
            &["separators", "0", ","],
            &["tokens", "1"],
            &["tokens", "1", "a", "b"],
            &["tokens", "1", "(a"],
            &["characters", "1"],
        ] {
            let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
            assert!(Splitter::read(&arguments, &mut Pattern::new).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn long_strings_take_linear_time() {
        let text = "ab ".repeat(1 << 18);
        for (splitter, parts) in [
            (splitter("tokens", 1, &["\\w+"]), 1 << 18),
            (splitter("tokens", 3, &["\\w+"]), 0),
            (splitter("tokens", u64::MAX, &["b a"]), 0),
            (splitter("separators", 1, &["a", "b", " "]), 0),
            (splitter("separators", 1, &["\\s"]), 1 << 18),
            (splitter("tokens", 1, &["[^c]*c|[ab ]+c|x"]), 0),
            (Splitter::Characters, 3 << 18),
        ] {
            let found = splitter.parts(&mut splitter.searches(), text.as_bytes());
            assert_eq!(found.expect("parts").len(), parts);
        }
    }
}
