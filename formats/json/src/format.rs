//! Parameters of a JSON format.

use irc_diag::Severity;

/// Diagnostic codes of a format, and limits on its files.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Name of a text of the format, in messages.
    pub file: &'static str,
    /// Description of the outermost value.
    pub holds: &'static str,
    /// How many levels the format itself needs, in words.
    pub levels: Option<&'static str>,
    /// Maximum nesting.
    pub max_depth: usize,
    /// Maximum number of values, each of which takes some fifty bytes in a tree.
    pub max_values: usize,
    /// Maximum number of bytes.
    pub max_bytes: u64,
    /// Code of bytes that are not UTF-8; parsing continues.
    pub encoding: &'static str,
    /// Code of the warning about a skipped byte order mark; if `None`, it is invalid.
    pub byte_order_mark: Option<&'static str>,
    /// Code of a text that ends too early.
    pub truncated: &'static str,
    /// Code of other syntax errors.
    pub syntax: &'static str,
    /// Code of a number that is not spelled as in JSON.
    pub number: &'static str,
    /// Code of `NaN` and the like, and of numbers too large for a double; parsing continues.
    pub non_finite: &'static str,
    /// Help for those.
    pub non_finite_help: Option<&'static str>,
    /// Code of control characters in strings; parsing continues.
    pub control_character: &'static str,
    /// Code of excessive nesting.
    pub nesting: &'static str,
    /// Code of too many bytes or values.
    pub too_large: &'static str,
    /// Code of a value of another type.
    pub wrong_type: &'static str,
    /// Code of an integer that does not fit.
    pub range: &'static str,
    /// Code of a missing key.
    pub missing_key: &'static str,
    /// Code of a key that occurs twice in one object.
    pub duplicate_key: &'static str,
    /// Severity of an unknown key, unless reading is strict: then it is an error.
    pub unknown_key: Severity,
}

impl Format {
    /// A format with one code for everything, as a base for others.
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
