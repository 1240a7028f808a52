//! Parameters of a JSON format.

use irc_diag::Severity;

/// How a format names what is wrong with the text of its files, and how much of one is read.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// What a text is, in messages.
    pub file: &'static str,
    /// What it holds.
    pub holds: &'static str,
    /// How many levels the format itself needs, in words.
    pub levels: Option<&'static str>,
    /// Deepest nesting read.
    pub max_depth: usize,
    /// Maximum number of values read, each of which takes some fifty bytes as a tree.
    pub max_values: usize,
    /// Maximum number of bytes read; ranges fit in 32 bits.
    pub max_bytes: u32,
    /// Code of bytes that are not UTF-8; the rest is examined.
    pub encoding: &'static str,
    /// Code of the warning that a byte order mark is skipped; without one it is no JSON.
    pub byte_order_mark: Option<&'static str>,
    /// Code of a text that ends too early.
    pub truncated: &'static str,
    /// Code of what else is not JSON.
    pub syntax: &'static str,
    /// Code of a number that is not spelt as JSON does.
    pub number: &'static str,
    /// Code of `NaN` and the like, and of numbers too large for a double; the rest is examined.
    pub non_finite: &'static str,
    /// What to do about those.
    pub non_finite_help: Option<&'static str>,
    /// Code of control characters in strings; the rest is examined.
    pub control_character: &'static str,
    /// Code of nesting that is too deep.
    pub nesting: &'static str,
    /// Code of too many bytes or values.
    pub too_large: &'static str,
    /// Code of a value of another type.
    pub wrong_type: &'static str,
    /// Code of an integer that does not fit.
    pub range: &'static str,
    /// Code of a key that is not there.
    pub missing_key: &'static str,
    /// Code of a key that occurs twice in one object.
    pub duplicate_key: &'static str,
    /// How bad an unknown key is, unless reading is strict: then it is an error.
    pub unknown_key: Severity,
}

impl Format {
    /// A format that has one code for everything: what others differ from.
    pub const fn of(code: &'static str) -> Format {
        Format {
            file: "file",
            holds: "a JSON object",
            levels: None,
            max_depth: 64,
            max_values: 16_000_000,
            max_bytes: 1 << 30,
            encoding: code,
            byte_order_mark: None,
            truncated: code,
            syntax: code,
            number: code,
            non_finite: code,
            non_finite_help: None,
            control_character: code,
            nesting: code,
            too_large: code,
            wrong_type: code,
            range: code,
            missing_key: code,
            duplicate_key: code,
            unknown_key: Severity::Warning,
        }
    }
}
