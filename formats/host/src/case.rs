//! Upper and lower case: one character for one, as C's `towupper` and `towlower`.

/// A string in lower case; unchanged if it is not UTF-8.
pub fn lower(text: &[u8]) -> Vec<u8> {
    // The only character whose full mapping is longer than its simple one.
    mapped(text, &|c| c.to_lowercase().next().unwrap_or(c))
}

/// A string in upper case; unchanged if it is not UTF-8.
pub fn upper(text: &[u8]) -> Vec<u8> {
    mapped(text, &|c| {
        let mut upper = c.to_uppercase();
        match (upper.next(), upper.next()) {
            (Some(upper), None) => upper,
            _ => title(c),
        }
    })
}

fn mapped(text: &[u8], map: &dyn Fn(char) -> char) -> Vec<u8> {
    match std::str::from_utf8(text) {
        Ok(text) => text.chars().map(map).collect::<String>().into_bytes(),
        Err(_) => text.to_vec(),
    }
}

/// The simple mapping of characters whose full mapping is several: Greek letters with an iota below have
/// capitals of their own; all others have none.
fn title(c: char) -> char {
    let by = match c {
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => 8,
        '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => 9,
        _ => 0,
    };
    char::from_u32(u32::from(c) + by).unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of ONNX Runtime's StringNormalizer.
    #[test]
    fn one_character_becomes_one() {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("utf-8");
        let mixed = "a\u{c0}\u{df} \u{149} \u{fb01} \u{130} \u{131} \u{1c4}";
        assert_eq!(
            text(upper(mixed.as_bytes())),
            "A\u{c0}\u{df} \u{149} \u{fb01} \u{130} I \u{1c4}"
        );
        assert_eq!(
            text(lower(mixed.as_bytes())),
            "a\u{e0}\u{df} \u{149} \u{fb01} i \u{131} \u{1c6}"
        );
        assert_eq!(text(lower("\u{391}\u{3a3}".as_bytes())), "\u{3b1}\u{3c3}");
        assert_eq!(text(upper("\u{1f80}\u{1fb3}".as_bytes())), "\u{1f88}\u{1fbc}");
        assert_eq!(upper(b"a\xff"), b"a\xff");
    }
}
