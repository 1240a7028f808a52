//! The syntax of RE2 (<https://github.com/google/re2/wiki/Syntax>) in that of the crate `regex-syntax`.
//!
//! What is the same stays as it is, errors too. What differs: `\d`, `\s` and `\w` are of ASCII; `\Q…\E`; a brace
//! that is no repetition, and brackets, `&&`, `--` and `~~` in classes, are characters.

/// Names of classes between `[:` and `:]`.
const CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// An expression of RE2 in the syntax of `regex-syntax`.
///
/// # Errors
/// Syntax that RE2 lacks, where the other has another meaning for it.
pub fn translate(pattern: &str) -> Result<String, String> {
    let mut reader = Reader { rest: pattern, out: String::with_capacity(pattern.len()) };
    while let Some(next) = reader.take() {
        match next {
            '\\' => reader.escape()?,
            '[' => reader.class()?,
            '(' => reader.group()?,
            '{' if !is_repetition(reader.rest) => reader.out.push_str("\\{"),
            next => reader.out.push(next),
        }
    }
    Ok(reader.out)
}

struct Reader<'p> {
    rest: &'p str,
    out: String,
}

impl Reader<'_> {
    fn take(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn copy(&mut self, bytes: usize) {
        let (copied, rest) = self.rest.split_at(bytes);
        self.out.push_str(copied);
        self.rest = rest;
    }

    /// Flags of a group; names of groups are copied by the caller.
    fn group(&mut self) -> Result<(), String> {
        self.out.push('(');
        let Some(flags) = self.rest.strip_prefix('?') else { return Ok(()) };
        let mut flags = flags.chars().take_while(|c| c.is_alphabetic() || *c == '-');
        match flags.find(|flag| matches!(flag, 'R' | 'u' | 'x')) {
            Some(flag) => Err(format!("the flag '{flag}' is not supported")),
            None => Ok(()),
        }
    }

    /// After a backslash outside of a class.
    fn escape(&mut self) -> Result<(), String> {
        if let Some(quoted) = self.rest.strip_prefix('Q') {
            let (quoted, rest) = quoted.split_once("\\E").unwrap_or((quoted, ""));
            self.out.push_str(&regex_syntax::escape(quoted));
            self.rest = rest;
            return Ok(());
        }
        let ranges = self.rest.chars().next().and_then(ascii_class);
        if let Some((not, ranges)) = ranges {
            self.out.push_str(&format!("[{not}{ranges}]"));
            self.take();
            return Ok(());
        }
        self.escaped_character()
    }

    /// After a backslash: a character, or a class of Unicode.
    fn escaped_character(&mut self) -> Result<(), String> {
        let Some(next) = self.take() else {
            self.out.push('\\');
            return Ok(());
        };
        match next {
            // The other's boundaries of words.
            '<' | '>' => self.out.push(next),
            '1'..='7' if !self.rest.starts_with(|c| matches!(c, '0'..='7')) => {
                return Err("backreferences are not supported".to_owned());
            }
            next => self.out.extend(['\\', next]),
        }
        if matches!(next, 'p' | 'P' | 'x') && self.rest.starts_with('{') {
            self.copy(self.rest.find('}').map_or(self.rest.len(), |end| end + 1));
        }
        Ok(())
    }

    /// After the bracket that begins a class.
    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.rest.starts_with('^') {
            self.copy(1);
        }
        let mut is_first = true;
        while is_first || !self.rest.starts_with(']') {
            is_first = false;
            if self.named_class()? {
                continue;
            }
            let Some(first) = self.take() else { return Ok(()) };
            let is_character = self.class_character(first)?;
            let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
            if is_character && is_range {
                self.copy(1);
                if let Some(last) = self.take() {
                    self.class_character(last)?;
                }
            }
        }
        self.copy(1);
        Ok(())
    }

    /// A class by its name in a class.
    fn named_class(&mut self) -> Result<bool, String> {
        let Some(rest) = self.rest.strip_prefix("[:") else { return Ok(false) };
        let Some(end) = rest.find(":]") else { return Ok(false) };
        let name = &rest[..end];
        if !CLASSES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(format!("unknown class '[:{name:.20}:]'"));
        }
        self.copy(end + 4);
        Ok(true)
    }

    /// One character in a class, or a class there; whether it may begin a range.
    fn class_character(&mut self, next: char) -> Result<bool, String> {
        if next != '\\' {
            if matches!(next, '[' | ']' | '&' | '~' | '-' | '^') {
                self.out.push('\\');
            }
            self.out.push(next);
            return Ok(true);
        }
        let escaped = self.rest.chars().next();
        if let Some((not, ranges)) = escaped.and_then(ascii_class) {
            self.take();
            match not {
                "" => self.out.push_str(ranges),
                not => self.out.push_str(&format!("[{not}{ranges}]")),
            }
            return Ok(false);
        }
        self.escaped_character()?;
        Ok(!matches!(escaped, Some('p' | 'P')))
    }
}

/// Whether a class is negated, and its ranges.
fn ascii_class(name: char) -> Option<(&'static str, &'static str)> {
    let ranges = match name.to_ascii_lowercase() {
        'd' => "0-9",
        's' => "\\t\\n\\f\\r ",
        'w' => "0-9A-Za-z_",
        _ => return None,
    };
    Some((if name.is_ascii_uppercase() { "^" } else { "" }, ranges))
}

/// Whether a brace before this text begins a repetition: `n}`, `n,}` or `n,m}`.
fn is_repetition(text: &str) -> bool {
    let Some((counts, _)) = text.split_once('}') else { return false };
    let is_count = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    match counts.split_once(',') {
        None => is_count(counts),
        Some((least, most)) => is_count(least) && (most.is_empty() || is_count(most)),
    }
}

#[cfg(test)]
mod tests {
    use super::translate;

    #[test]
    fn what_differs_is_translated() {
        for (re2, other) in [
            ("a{2}{,3}{x}", "a{2}\\{,3}\\{x}"),
            ("\\d\\W[\\s\\D]", "[0-9][^0-9A-Za-z_][\\t\\n\\f\\r [^0-9]]"),
            ("\\Qa.b\\E.\\Q[", "a\\.b.\\["),
            ("[a[b&&c]", "[a\\[b\\&\\&c]"),
            ("[]a][^]a]", "[\\]a][^\\]a]"),
            ("[+--][a-][--a][\\d-z]", "[+-\\-][a\\-][\\--a][0-9\\-z]"),
            ("[[:^alpha:]x][[:]", "[[:^alpha:]x][\\[:]"),
            ("\\<\\x{e9}[\\p{Lu}\\x{41}-\\x{43}]", "<\\x{e9}[\\p{Lu}\\x{41}-\\x{43}]"),
            ("(?i:a)(?P<n>b)", "(?i:a)(?P<n>b)"),
        ] {
            assert_eq!(translate(re2).as_deref(), Ok(other));
        }
        for invalid in ["(?x)a b", "(a)\\1", "[[:foo:]]"] {
            assert!(translate(invalid).is_err(), "{invalid}");
        }
    }
}
