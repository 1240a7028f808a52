//! Word splitting and lists of words in messages.

use std::fmt;

/// The start of a text that may be long.
pub fn clip(text: &str) -> Clip<'_> {
    Clip(text)
}

/// A text that shows its start only.
#[derive(Clone, Copy, Debug)]
pub struct Clip<'t>(&'t str);

impl fmt::Display for Clip<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONG: usize = 60;
        let end = self.0.char_indices().nth(LONG).map(|(end, _)| end);
        f.write_str(&self.0[..end.unwrap_or(self.0.len())])?;
        if end.is_some() { f.write_str("…") } else { Ok(()) }
    }
}

/// A number of things: `1 core`, `2 cores`.
pub fn counted<N: PartialEq + From<u8> + fmt::Display>(count: N, noun: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// What a misspelt name was meant to be: the one at most two edits away, whatever the case, when that
/// is less than half of it.
pub fn nearest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    const MAX_LENGTH: usize = 32;
    if name.len() > MAX_LENGTH {
        return None;
    }
    let name = &name.to_lowercase();
    let distance = |near: &'n str| (strsim::levenshtein(&near.to_lowercase(), name), near);
    let (distance, near) = names.into_iter().map(distance).min()?;
    (distance <= 2 && 2 * distance < near.len()).then_some(near)
}

/// Bytes of the literal that a text begins with, its quotes included: it ends at the first such quote
/// that no backslash escapes, or with the text.
pub fn literal_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_thing_has_no_plural() {
        let all = [0_u64, 1, 2].map(|count| counted(count, "core"));
        assert_eq!(all, ["0 cores", "1 core", "2 cores"]);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(clip("é").to_string(), "é");
        assert_eq!(clip(&"é".repeat(61)).to_string(), format!("{}…", "é".repeat(60)));
    }

    #[test]
    fn a_name_is_near_when_little_of_it_differs() {
        assert_eq!(nearest("shap", ["Shape", "Strides"]), Some("Shape"));
        assert_eq!(nearest("ab", ["xy", "abcd"]), None);
        assert_eq!(nearest(&"a".repeat(33), ["a"]), None);
    }

    #[test]
    fn a_literal_ends_at_its_own_quote() {
        assert_eq!(literal_length(r#""a\"b'c"d""#, '"'), 8);
        assert_eq!(literal_length("'é' 'x'", '\''), 4);
        assert_eq!(literal_length("\"open\\\"", '"'), 7);
    }
}
