//! Words of texts and of messages.

/// The start of a text that may be long.
pub fn clip(text: &str) -> String {
    const LONG: usize = 60;
    match text.char_indices().nth(LONG) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

/// What a misspelt name was meant to be: the one at most two edits away, whatever the case, when that
/// is less than half of it.
pub fn nearest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    const LONGEST: usize = 32;
    if name.len() > LONGEST {
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
    fn long_texts_are_cut_between_characters() {
        assert_eq!(clip("é"), "é");
        assert_eq!(clip(&"é".repeat(61)), format!("{}…", "é".repeat(60)));
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
