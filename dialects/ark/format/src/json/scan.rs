//! A lexical scan of a whole text, in constant memory but for what it finds.

use std::ops::Range;

/// Deepest nesting read. The formats themselves need twelve levels.
pub(crate) const MAX_DEPTH: usize = 64;

/// What a scan found.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// `NaN`, `Infinity` and the like outside strings, and numbers beyond a double such as `1e999`.
    pub non_finite: Vec<Range<usize>>,
    /// Raw control characters inside strings.
    pub controls: Vec<usize>,
    /// First character that JSON has no place for outside strings, and that parsers may take for
    /// white space.
    pub stray: Option<usize>,
    /// First bracket deeper than [`MAX_DEPTH`].
    pub too_deep: Option<usize>,
    /// Brackets still open at the end, outermost first.
    pub unclosed: Vec<usize>,
    /// Start of a string still open at the end.
    pub open_string: Option<usize>,
    /// Number of values, counting brackets and commas.
    pub values: usize,
    /// Whether there is anything but white space.
    pub any: bool,
}

/// Words some writers put where JSON has no number.
const NON_FINITE: [&str; 8] =
    ["-Infinity", "+Infinity", "Infinity", "-NaN", "NaN", "nan", "-inf", "inf"];

/// Scans `text`.
pub(crate) fn scan(text: &str) -> Scan {
    let bytes = text.as_bytes();
    let mut found = Scan::default();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        found.any |= !matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        match byte {
            b'"' => match string_end(bytes, at, &mut found.controls) {
                Some(end) => at = end,
                None => {
                    found.open_string = Some(at);
                    return found;
                }
            },
            b'{' | b'[' => {
                found.values += 1;
                found.unclosed.push(at);
                if found.unclosed.len() > MAX_DEPTH {
                    found.too_deep = Some(at);
                    return found;
                }
            }
            b'}' | b']' => drop(found.unclosed.pop()),
            b',' => found.values += 1,
            0x80.. | 0x0b | 0x0c => {
                found.stray.get_or_insert(at);
            }
            b'0'..=b'9' => {
                let end = number_end(bytes, at);
                if overflows(&text[at..end]) {
                    found.non_finite.push(at..end);
                }
                at = end;
                continue;
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'+' => {
                let word = NON_FINITE.iter().find(|word| starts_with_word(&bytes[at..], word));
                if let Some(word) = word {
                    found.non_finite.push(at..at + word.len());
                }
                at = word_end(bytes, at);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Index of the closing quote of the string that opens at `start`.
fn string_end(bytes: &[u8], start: usize, controls: &mut Vec<usize>) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match *bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 1,
            0..=0x1f => controls.push(at),
            _ => {}
        }
        at += 1;
    }
}

fn number_end(bytes: &[u8], start: usize) -> usize {
    let in_number = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    start + bytes[start..].iter().take_while(in_number).count()
}

/// Whether a number is too large for a double; short ones without an exponent are not looked at.
fn overflows(number: &str) -> bool {
    const LONGEST: usize = 308;
    let may = number.len() > LONGEST || number.contains(['e', 'E']);
    may && number.parse::<f64>().is_ok_and(f64::is_infinite)
}

fn starts_with_word(bytes: &[u8], word: &str) -> bool {
    let next = bytes.get(word.len());
    bytes.starts_with(word.as_bytes()) && !next.is_some_and(u8::is_ascii_alphanumeric)
}

/// End of the word at `start`; a sign before a number is a word of its own.
fn word_end(bytes: &[u8], start: usize) -> usize {
    let in_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let is_signed_number =
        !bytes[start].is_ascii_alphabetic() && bytes.get(start + 1).is_some_and(u8::is_ascii_digit);
    match is_signed_number {
        true => start + 1,
        false => start + 1 + bytes[start + 1..].iter().take_while(in_word).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_inside_strings_are_not_numbers() {
        let found = scan(r#"{"NaN": [NaN, -Infinity, "inf", nano]}"#);
        assert_eq!(found.non_finite, [9..12, 14..23]);
        assert!(found.unclosed.is_empty());
    }

    #[test]
    fn numbers_beyond_a_double_are_seen() {
        assert_eq!(scan("[-1e999, 1E308, 0.5e-999]").non_finite, vec![2..7]);
        assert_eq!(scan(&"9".repeat(400)).non_finite, vec![0..400]);
    }

    #[test]
    fn open_brackets_and_strings_are_seen() {
        assert_eq!(scan("[{").unclosed, [0, 1]);
        assert_eq!(scan(r#"["a\""#).open_string, Some(1));
        assert_eq!(scan(&"[".repeat(100_000)).too_deep, Some(MAX_DEPTH));
    }
}
