//! Tokens of PTX text.

use irc_diag::{Diagnostic, Sink, Source, clip};
use std::ops::Range;

/// Bytes of text beyond which a module is rejected.
const MAX_BYTES: usize = 1 << 30;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A name with its dots: `%r1`, `.reg`, `ld.shared::cta.b32`.
    Word,
    /// A number, whose digits are read where it is used.
    Number,
    /// A string, in its quotes.
    String,
    /// Any other character.
    Mark(u8),
    /// The end of the text.
    End,
}

/// A token and its bytes in the text.
#[derive(Debug, Clone, Copy)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Token {
    /// The bytes of the token.
    pub fn span(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The tokens of a text, the last being [`Kind::End`]. Characters that no token starts with are diagnostics.
pub fn tokens(source: &Source, sink: &mut Sink) -> Vec<Token> {
    let text = source.text();
    let bytes = text.as_bytes();
    let mut tokens = Vec::with_capacity(bytes.len().min(MAX_BYTES) / 4);
    if bytes.len() > MAX_BYTES {
        let message = format!("{} bytes of PTX exceed the limit of {MAX_BYTES}", bytes.len());
        sink.push(Diagnostic::error("ptx-limit", message));
        return vec![Token { kind: Kind::End, start: 0, end: 0 }];
    }
    if let Some(at) = source.invalid_utf8() {
        let message = "the text is not UTF-8";
        sink.push(Diagnostic::error("ptx-encoding", message).at(at..at, "the first such byte"));
    }
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let kind = match bytes[at] {
            b' ' | b'\t' | b'\r' | b'\n' => {
                at += 1;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at +=
                    bytes[at..].iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len() - at);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                match text[at + 2..].find("*/") {
                    Some(length) => at += length + 4,
                    None => {
                        let message = "a comment does not end";
                        sink.push(
                            Diagnostic::error("ptx-syntax", message)
                                .at(at..at + 2, "it starts here"),
                        );
                        at = bytes.len();
                    }
                }
                continue;
            }
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' && bytes[at] != b'\n' {
                    at += 1 + usize::from(bytes[at] == b'\\');
                }
                at = (at + 1).min(bytes.len());
                while !text.is_char_boundary(at) {
                    at += 1;
                }
                Kind::String
            }
            b'0'..=b'9' => {
                at = number(bytes, at);
                Kind::Number
            }
            byte if is_word(byte) => {
                at += 1;
                loop {
                    match bytes.get(at) {
                        Some(byte) if is_word(*byte) => at += 1,
                        Some(b':') if bytes.get(at + 1) == Some(&b':') => at += 2,
                        _ => break,
                    }
                }
                Kind::Word
            }
            byte if byte.is_ascii_graphic() => {
                at += 1;
                Kind::Mark(byte)
            }
            _ => {
                let length = text[at..].chars().next().map_or(1, char::len_utf8);
                let character = clip(&text[at..at + length]);
                let message = format!("no token starts with `{character}`");
                sink.push(Diagnostic::error("ptx-syntax", message).at(at..at + length, "here"));
                at += length;
                continue;
            }
        };
        tokens.push(Token { kind, start: start as u32, end: at as u32 });
    }
    let end = bytes.len() as u32;
    tokens.push(Token { kind: Kind::End, start: end, end });
    tokens
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%' | b'.')
}

/// The end of a number that starts at a byte: an exponent of decimal digits may have a sign.
fn number(bytes: &[u8], mut at: usize) -> usize {
    let prefixed = bytes[at] == b'0'
        && matches!(bytes.get(at + 1), Some(b'x' | b'X' | b'f' | b'F' | b'd' | b'D'));
    let mut fraction = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'.' => fraction = true,
            b'+' | b'-' if fraction && !prefixed && matches!(bytes[at - 1], b'e' | b'E') => {}
            byte if byte.is_ascii_alphanumeric() => {}
            _ => break,
        }
        at += 1;
    }
    at
}

/// The value of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// An integer, as 64 bits.
    Integer(u64),
    /// A float of 32 bits.
    F32(f32),
    /// A float of 64 bits.
    F64(f64),
}

/// Reads a number; `None` if it is malformed or exceeds 64 bits.
pub fn read_number(text: &str) -> Option<Number> {
    let hexadecimal = |digits: &str, length: usize| {
        let valid = digits.len() == length && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        valid.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
    };
    match text.as_bytes() {
        [b'0', b'f' | b'F', ..] => {
            return hexadecimal(&text[2..], 8).map(|bits| Number::F32(f32::from_bits(bits as u32)));
        }
        [b'0', b'd' | b'D', ..] => {
            return hexadecimal(&text[2..], 16).map(|bits| Number::F64(f64::from_bits(bits)));
        }
        _ => {}
    }
    let digits = text.strip_suffix(['U', 'u']).unwrap_or(text);
    let integer = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => u64::from_str_radix(&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => u64::from_str_radix(&digits[2..], 2),
        [b'0', _, ..] if !digits.contains(['.', 'e', 'E']) => u64::from_str_radix(digits, 8),
        _ => digits.parse(),
    };
    match integer {
        Ok(value) => Some(Number::Integer(value)),
        Err(_) if text.contains('.') => text.parse().ok().map(Number::F64),
        Err(_) => None,
    }
}
