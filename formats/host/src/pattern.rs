//! Regular expressions, matched in time linear in the string.
//!
//! They have the syntax and the meaning of RE2. The compiler compiles them; a compiled program contains their
//! automata, so that its host needs no more than [`Search`].

use crate::automaton::Automaton;
use crate::search::Search;

/// A regular expression. `\d`, `\w`, `\s` and `\b` are of ASCII, as in RE2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    automaton: Automaton,
}

impl Pattern {
    /// Compiles an expression.
    ///
    /// # Errors
    /// An expression that is invalid, not supported, or of more than a megabyte when compiled; any expression
    /// without the cargo feature `compile-regex`.
    pub fn new(text: &str) -> Result<Self, String> {
        let automaton = compile(text)?;
        Ok(Self { text: text.to_owned(), automaton })
    }

    /// An expression with the text of its automaton; `None` if that is no automaton.
    pub fn compiled(text: &str, automaton: &str) -> Option<Self> {
        let automaton = Automaton::read(automaton)?;
        Some(Self { text: text.to_owned(), automaton })
    }

    /// The expression.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its automaton.
    pub const fn automaton(&self) -> &Automaton {
        &self.automaton
    }

    /// A search for matches.
    pub fn search(&self) -> Search<'_> {
        Search::new(&self.automaton)
    }
}

#[cfg(feature = "compile-regex")]
use crate::compile::compile;

#[cfg(not(feature = "compile-regex"))]
fn compile(_: &str) -> Result<Automaton, String> {
    let message = "this build does not compile regular expressions (cargo feature `compile-regex`)";
    Err(message.to_owned())
}

#[cfg(all(test, feature = "compile-regex"))]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        let pattern = Pattern::new(pattern).expect("a valid expression");
        let automaton = pattern.automaton().to_string();
        assert_eq!(Pattern::compiled(pattern.text(), &automaton).as_ref(), Some(&pattern));
        pattern.search().accepts(text.as_bytes())
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
        assert!(matches("(?i)\u{e9}k", "\u{c9}\u{212a}") && !matches("(?i)\u{e9}", "e"));
        assert!(matches("\\pL+\\p{Greek}", "\u{e9}\u{3b1}") && !matches("\\pL", "1"));
        assert!(matches("\\s", " ") && !matches("\\s", "\u{b}") && !matches("\\W", "\u{e9}\u{e9}"));
        assert!(matches("a{2}{,3}[[]", "aa{,3}[") && matches("\\Q[a\\E\\101", "[aA"));
        assert!(matches("(?m)^a$\n^b$", "a\nb") && !matches("a$\n^b", "a\nb"));
    }

    #[test]
    fn the_first_longest_match_is_found() {
        let find = |pattern: &str, text: &str| {
            Pattern::new(pattern).expect("valid").search().find(text.as_bytes(), 0)
        };
        assert_eq!(find("a|ab|abc", "xabcd"), Some(1..4));
        assert_eq!(find("a+?", "baaa"), Some(1..4));
        assert_eq!(find("\\bb", "ab b"), Some(3..4));
        assert_eq!(find("[^a]", "a\u{e9}"), Some(1..3));
    }

    #[test]
    fn invalid_and_exploding_expressions_are_rejected() {
        for pattern in [
            "(a",
            "a)(b",
            "(a)\\1",
            "a(?=b)",
            "((a{100}){100}){100}",
            "\\",
            "(?x)a",
            "*",
            "[b-a]",
            "[[:foo:]]",
            "\\pX",
            "[",
            "(?<=a)b",
            "a{4294967296}",
        ] {
            let error = Pattern::new(pattern).expect_err(pattern);
            assert!(error.starts_with("invalid regular expression: "), "{error}");
        }
        assert!(Pattern::new(&"(".repeat(100_000)).is_err());
        assert!(Pattern::new(&"(".repeat(10_000)).is_err());
        assert!(matches("(?:){4000000000}", ""));
        // Exponential in engines that try every way to match.
        assert!(!matches("(x+x+)+y", &"x".repeat(10_000)));
    }
}
