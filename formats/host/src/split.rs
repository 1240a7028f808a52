//! Strings in parts.

use std::ops::Range;

/// How a string is split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Separator {
    /// What stands between two parts; if it is empty, any number of spaces, which parts neither begin nor
    /// end with.
    pub delimiter: Vec<u8>,
    /// Maximum number of parts; the last is then the rest of the string.
    pub max_parts: Option<u64>,
}

impl Separator {
    /// The parts of a string; an empty string has none.
    pub fn parts(&self, text: &[u8]) -> Vec<Range<usize>> {
        if text.is_empty() {
            return vec![];
        }
        let most =
            self.max_parts.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
        match self.delimiter.is_empty() {
            true => words(text, most),
            false => pieces(text, &self.delimiter, most),
        }
    }
}

/// Parts between spaces.
fn words(text: &[u8], most: usize) -> Vec<Range<usize>> {
    let (mut parts, mut at) = (vec![], 0);
    let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    loop {
        at += text[at..end].iter().take_while(|byte| **byte == b' ').count();
        if at >= end {
            return parts;
        }
        let length = text[at..end].iter().take_while(|byte| **byte != b' ').count();
        let part = if parts.len() + 1 >= most { at..end } else { at..at + length };
        at = part.end;
        parts.push(part);
    }
}

/// Parts between delimiters.
fn pieces(text: &[u8], delimiter: &[u8], most: usize) -> Vec<Range<usize>> {
    let failures = failures(delimiter);
    let (mut parts, mut start, mut matched) = (vec![], 0, 0);
    for (at, byte) in text.iter().enumerate() {
        if parts.len() + 1 >= most {
            break;
        }
        while matched > 0 && delimiter[matched] != *byte {
            matched = failures[matched - 1];
        }
        matched += usize::from(delimiter[matched] == *byte);
        if matched == delimiter.len() {
            parts.push(start..at + 1 - delimiter.len());
            (start, matched) = (at + 1, 0);
        }
    }
    parts.push(start..text.len());
    parts
}

/// For each length of a prefix, that of the longest proper prefix that also ends it (Knuth, Morris and
/// Pratt, 1977): a search is linear in the text.
fn failures(pattern: &[u8]) -> Vec<usize> {
    let mut table = vec![0; pattern.len()];
    let mut length = 0;
    for at in 1..pattern.len() {
        while length > 0 && pattern[length] != pattern[at] {
            length = table[length - 1];
        }
        length += usize::from(pattern[length] == pattern[at]);
        table[at] = length;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split<'t>(text: &'t str, delimiter: &str, max_parts: Option<u64>) -> Vec<&'t str> {
        let separator = Separator { delimiter: delimiter.as_bytes().to_vec(), max_parts };
        separator.parts(text.as_bytes()).into_iter().map(|part| &text[part]).collect()
    }

    /// The results of ONNX Runtime.
    #[test]
    fn strings_are_split() {
        let none: [&str; 0] = [];
        assert_eq!(split("  a  b ", "", None), ["a", "b"]);
        assert_eq!((split("", "", None), split(" ", "", None)), (none.to_vec(), none.to_vec()));
        assert_eq!(split("a\tb", "", None), ["a\tb"]);
        assert_eq!(split("a b  c d ", "", Some(3)), ["a", "b", "c d"]);
        assert_eq!(split(" a b ", "", Some(1)), ["a b"]);
        assert_eq!(split("a,b,,c", ",", None), ["a", "b", "", "c"]);
        assert_eq!((split(",", ",", None), split("", ",", None)), (vec!["", ""], none.to_vec()));
        assert_eq!(split("a,b,", ",", Some(2)), ["a", "b,"]);
        assert_eq!(split("a,b", ",", Some(1)), ["a,b"]);
        assert_eq!(split("aXXbXXXc", "XX", None), ["a", "b", "Xc"]);
        assert_eq!(split("aabaaabaab", "aab", None), ["", "a", "", ""]);
    }

    #[test]
    fn long_delimiters_take_linear_time() {
        let text = "a".repeat(1 << 20);
        let delimiter = "a".repeat(1 << 19) + "b";
        assert_eq!(split(&text, &delimiter, None), [text.as_str()]);
    }
}
