//! Reading of both formats: options, diagnostic codes, limits.

use irc_diag::{Diagnostic, Severity, Sink, Source};
use irc_json::{At, Format, Member, Node, Reader};

/// Options of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Unknown keys are errors rather than warnings.
    pub strict: bool,
    /// Also run the checks after parsing.
    pub validate: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { strict: false, validate: true }
    }
}

/// Diagnostic codes and limits of both formats.
pub(crate) static FORMAT: Format = Format {
    levels: Some("ten"),
    // Schedules of hundreds of cores; their elements are read one after another.
    max_bytes: 16 << 30,
    encoding: "gem-encoding",
    byte_order_mark: Some("gem-byte-order-mark"),
    truncated: "gem-truncated",
    number: "gem-number",
    non_finite: "gem-number",
    nesting: "gem-nesting",
    too_large: "gem-too-large",
    wrong_type: "gem-wrong-type",
    range: "gem-range",
    missing_key: "gem-missing-key",
    duplicate_key: "gem-duplicate-key",
    unknown_key: Severity::Warning,
    ..Format::of("gem-syntax")
};

/// The tree of a file; `None` after a diagnostic.
pub fn tree<'t>(source: &'t Source, sink: &mut Sink) -> Option<Node<'t>> {
    irc_json::parse(source, &FORMAT, sink)
}

/// Locates every diagnostic that has a path but no label in the text.
pub fn place(source: &Source, diagnostics: &mut [Diagnostic]) {
    irc_json::place(source.text(), &FORMAT, diagnostics);
}

/// Reports a key that is unknown to the format.
pub(crate) fn unknown(reader: &mut Reader<'_>, member: &Member<'_>, at: &At<'_>, known: &[&str]) {
    let key = irc_diag::clip(&member.key);
    let message = format!("unknown key `{key}` is preserved but not used");
    reader.unknown(member, at, known, ("gem-unknown-key", message));
}

/// Maximum absolute value of integers: above the bits of any memory, but sums do not overflow.
const MAX_INTEGER: u64 = 1 << 48;

/// An integer within the limits of all quantities of the formats.
pub(crate) fn integer(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<i64> {
    let number: i128 = reader.integer(node, at, "an integer")?;
    let fits = i64::try_from(number).ok().filter(|number| number.unsigned_abs() <= MAX_INTEGER);
    if fits.is_none() {
        let message = format!("the number {number} is out of range");
        let label = format!("expected at most {MAX_INTEGER} in absolute value");
        reader.report(Diagnostic::error("gem-range", message), node.span(), at, &label);
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(bytes: &[u8]) -> Option<&'static str> {
        let mut sink = Sink::new();
        tree(&Source::from_bytes("x", bytes), &mut sink);
        sink.diagnostics().first().map(|diagnostic| diagnostic.code)
    }

    #[test]
    fn each_way_a_text_is_not_json_has_its_code() {
        assert_eq!(code(b""), Some("gem-truncated"));
        assert_eq!(code(b"{\"a\": [1,"), Some("gem-truncated"));
        assert_eq!(code(b"{\"a"), Some("gem-truncated"));
        assert_eq!(code(b"[1,]"), Some("gem-syntax"));
        assert_eq!(code(b"[NaN]"), Some("gem-number"));
        assert_eq!(code(b"[1e999]"), Some("gem-number"));
        assert_eq!(code(b"[01]"), Some("gem-number"));
        assert_eq!(code(b"[1.]"), Some("gem-number"));
        assert_eq!(code(b"[-]"), Some("gem-number"));
        assert_eq!(code(b"[\"a\tb\"]"), Some("gem-syntax"));
        assert_eq!(code("[\"\\é\"]".as_bytes()), Some("gem-syntax"));
        assert_eq!(code(b"[\"\\ud800\"]"), Some("gem-syntax"));
        assert_eq!(code("\u{feff}[]".as_bytes()), Some("gem-byte-order-mark"));
        assert_eq!(code(b"[\"\xff\"]"), Some("gem-encoding"));
        assert_eq!(code("[".repeat(1_000_000).as_bytes()), Some("gem-nesting"));
        assert_eq!(code(b" {\"a\": [1, -2.5e-3, \"\\ud83d\\ude00\"]} "), None);
    }
}
