//! Regular expressions, matched in time linear in the string.

#[cfg(feature = "regex")]
use regex_lite::{Regex, RegexBuilder};

/// A regular expression that a whole string must match. `\d`, `\w`, `\s` and `\b` are of ASCII, as in RE2.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    regex: Regex,
}

/// What stands for an expression in a build without them: none can be made.
#[cfg(not(feature = "regex"))]
#[derive(Debug, Clone)]
enum Regex {}

#[cfg(not(feature = "regex"))]
impl Regex {
    fn is_match(&self, _: &str) -> bool {
        match *self {}
    }
}

/// Compiles an expression.
#[cfg(feature = "regex")]
fn compile(text: &str) -> Result<Regex, String> {
    /// Maximum size in bytes of a compiled expression.
    const MAX_BYTES: usize = 1 << 20;
    let built = RegexBuilder::new(text).size_limit(MAX_BYTES).build();
    built.map_err(|error| format!("invalid regular expression: {error}"))
}

#[cfg(not(feature = "regex"))]
fn compile(_: &str) -> Result<Regex, String> {
    Err("this build of the runtime has no regular expressions (cargo feature `regex`)".to_owned())
}

impl Pattern {
    /// Compiles an expression.
    ///
    /// # Errors
    /// An invalid expression, one of more than a megabyte when compiled, or one that needs tables of
    /// characters outside of ASCII; any expression without the cargo feature `regex`.
    pub fn new(text: &str) -> Result<Self, String> {
        // Alone first: only a whole expression is one in a group.
        compile(text)?;
        if !text.is_ascii() && ignores_case(text) {
            let message = "regular expressions that ignore the case of other than ASCII characters are \
                           not supported";
            return Err(message.to_owned());
        }
        let regex = compile(&format!("\\A(?:{text})\\z"))?;
        Ok(Self { text: text.to_owned(), regex })
    }

    /// Whether a whole string matches; a string that is not UTF-8 does not.
    pub fn matches(&self, text: &[u8]) -> bool {
        std::str::from_utf8(text).is_ok_and(|text| self.regex.is_match(text))
    }

    /// The expression.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

/// Whether a group of flags, as `(?i)`, may contain an `i`.
fn ignores_case(text: &str) -> bool {
    let flags = text.split("(?").skip(1).map(|rest| rest.split([')', ':', '-', '<']).next());
    flags.flatten().any(|flags| flags.contains('i'))
}

#[cfg(all(test, feature = "regex"))]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern).expect("a valid expression").matches(text.as_bytes())
    }

    /// What RE2 finds.
    #[test]
    fn whole_strings_match() {
        assert!(matches("a|b", "a") && !matches("a|b", "ab") && !matches("a|b", ""));
        assert!(matches("", "") && !matches("", "a") && matches("^a$", "a") && matches("\\z", ""));
        assert!(matches("\\d+", "12") && !matches("\\d+", "\u{661}"));
        assert!(matches(".", "\u{e9}") && !matches(".", "\n") && matches("(?s).*", "a\nb"));
        assert!(
            matches("[[:alpha:]]+", "ab") && matches("\\bfoo\\b", "foo") && matches("(?i)A", "a")
        );
        assert!(!Pattern::new(".*").expect("valid").matches(b"a\xff"));
    }

    #[test]
    fn invalid_and_exploding_expressions_are_rejected() {
        for pattern in
            ["(a", "a)(b", "(a)\\1", "a(?=b)", "((a{100}){100}){100}", "(?i)\u{e9}", "\\"]
        {
            assert!(Pattern::new(pattern).is_err(), "{pattern}");
        }
        assert!(Pattern::new(&"(".repeat(100_000)).is_err());
        // Exponential in engines that try every way to match.
        assert!(!matches("(x+x+)+y", &"x".repeat(10_000)));
    }
}
