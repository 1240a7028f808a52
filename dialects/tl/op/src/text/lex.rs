//! Tokens of the text form.
use super::TextError;

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name or keyword.
    Word(String),
    /// A quoted symbol.
    Quoted(String),
    /// Digits, with a fraction or an exponent for a float.
    Number(String),
    /// Punctuation.
    Sign(&'static str),
    /// The end of the text.
    End,
}

impl Token {
    /// The token as shown in messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Word(text) | Self::Number(text) => format!("'{text}'"),
            Self::Quoted(text) => format!("symbol '{text}'"),
            Self::Sign(sign) => format!("'{sign}'"),
            Self::End => "the end".into(),
        }
    }
}

/// Longer punctuation first.
const SIGNS: [&str; 18] =
    ["==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "(", ")", "[", "]", ",", ":", "%", "="];

/// The tokens of a text and the column of each, with a final `End`.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, TextError> {
    let chars: Vec<char> = text.chars().collect();
    let mut found = vec![];
    let mut at = 0;
    while at < chars.len() {
        let column = at + 1;
        let start = at;
        let first = chars[at];
        let run = |from: usize, takes: &dyn Fn(char) -> bool| {
            from + chars[from..].iter().take_while(|c| takes(**c)).count()
        };
        let token = if first.is_whitespace() {
            at += 1;
            continue;
        } else if first.is_ascii_digit() {
            at = number_end(&chars, at);
            Token::Number(chars[start..at].iter().collect())
        } else if first.is_alphabetic() || first == '_' {
            at = run(at, &|c| is_name(c));
            Token::Word(chars[start..at].iter().collect())
        } else if first == '\'' {
            let (text, end) = quoted(&chars, at)?;
            at = end;
            Token::Quoted(text)
        } else {
            let sign = SIGNS.into_iter().find(|sign| {
                sign.chars().enumerate().all(|(i, c)| chars.get(start + i) == Some(&c))
            });
            let Some(sign) = sign else {
                let message = format!("expected an expression, found '{first}'");
                return Err(TextError { column, message });
            };
            at += sign.len();
            Token::Sign(sign)
        };
        found.push((column, token));
    }
    found.push((chars.len() + 1, Token::End));
    Ok(found)
}

/// Whether a name may contain the character.
pub(super) fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.')
}

fn number_end(chars: &[char], start: usize) -> usize {
    let digits =
        |from: usize| from + chars[from..].iter().take_while(|c| c.is_ascii_digit()).count();
    let mut end = digits(start);
    if chars.get(end) == Some(&'.') {
        end = digits(end + 1);
    }
    if matches!(chars.get(end), Some('e' | 'E')) {
        let sign = usize::from(matches!(chars.get(end + 1), Some('+' | '-')));
        let last = digits(end + 1 + sign);
        if last > end + 1 + sign {
            end = last;
        }
    }
    end
}

fn quoted(chars: &[char], start: usize) -> Result<(String, usize), TextError> {
    let mut text = String::new();
    let mut at = start + 1;
    while let Some(c) = chars.get(at) {
        match (c, chars.get(at + 1)) {
            ('\'', _) => return Ok((text, at + 1)),
            ('\\', Some(escaped)) => {
                text.push(*escaped);
                at += 2;
            }
            _ => {
                text.push(*c);
                at += 1;
            }
        }
    }
    let message = "expected the symbol to end in a quote, found the end".into();
    Err(TextError { column: start + 1, message })
}
