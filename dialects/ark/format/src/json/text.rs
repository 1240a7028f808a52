//! From text to a tree of values with byte ranges.

use std::borrow::Cow;

use irc_diag::{Diagnostic, Sink, Source};
use jsonc_parser::ast::Value;
use jsonc_parser::errors::ParseError;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::reader::clip;
use super::scan::{MAX_DEPTH, Scan, scan};

/// Most values held as a tree, which takes some hundred bytes for each.
const MAX_VALUES: usize = 4_000_000;

/// The text to parse: the source itself, or a mended copy with the same byte offsets.
///
/// Reports what no JSON parser would place well: encoding, nesting, size, truncation, literals
/// that are no numbers. The last are overwritten with zeros so that the rest can be examined.
pub(crate) fn prepare<'a>(source: &'a Source, sink: &mut Sink) -> Option<Cow<'a, str>> {
    let mut text = Cow::Borrowed(source.text());
    if let Some(at) = source.invalid_utf8() {
        let message = "the file is not UTF-8 text";
        sink.push(
            Diagnostic::error("ark-encoding", message)
                .at(at..at + '\u{fffd}'.len_utf8(), "this byte is not UTF-8")
                .help("save the file as UTF-8"),
        );
    }
    if text.starts_with('\u{feff}') {
        let message = "byte order mark ignored; JSON text has none";
        sink.push(Diagnostic::warning("ark-byte-order-mark", message).at(0..3, ""));
        text.to_mut().replace_range(0..3, "   ");
    }
    let found = scan(&text);
    if !usable(&found, &text, sink) {
        return None;
    }
    for span in &found.non_finite {
        let zeros = format!("0{}", " ".repeat(span.len() - 1));
        let word = &source.text()[span.clone()];
        sink.push(
            Diagnostic::error("ark-non-finite", format!("`{}` is not a finite number", clip(word)))
                .at(span.clone(), "expected a finite number")
                .help("an infinite or undefined constant cannot be stored in this format"),
        );
        text.to_mut().replace_range(span.clone(), &zeros);
    }
    for &at in &found.controls {
        let message = "raw control character in a string";
        sink.push(
            Diagnostic::error("ark-control-character", message)
                .at(at..at + 1, "expected an escape such as `\\n`"),
        );
    }
    Some(text)
}

/// Whether the text can be parsed at all; says why not.
fn usable(found: &Scan, text: &str, sink: &mut Sink) -> bool {
    let len = text.len();
    if let Some(at) = found.too_deep {
        let message = format!("nested more than {MAX_DEPTH} levels deep");
        let finding =
            Diagnostic::error("ark-nesting", message).at(at..at + 1, "one level too deep");
        sink.push(finding.help("the format itself nests twelve levels"));
        return false;
    }
    if let Some(at) = found.stray {
        let len = text[at..].chars().next().map_or(1, char::len_utf8);
        let message = "a character that has no place outside strings";
        let finding = Diagnostic::error("ark-syntax", message);
        sink.push(finding.at(at..at + len, "expected JSON"));
        return false;
    }
    if !found.any {
        let finding = Diagnostic::error("ark-truncated", "the file is empty");
        sink.push(finding.at(0..0, "expected a JSON object"));
        return false;
    }
    let open = found.open_string.or(found.unclosed.last().copied());
    if let Some(open) = open {
        let what = if found.open_string.is_some() { "string" } else { "bracket" };
        let finding = Diagnostic::error("ark-truncated", "the file ends too early")
            .at(len..len, "the text ends here")
            .also(open..open + 1, format!("this {what} is never closed"));
        sink.push(finding.help("the file may have been cut off while it was written or copied"));
        return false;
    }
    if found.values > MAX_VALUES {
        let message = format!("{} values are too many to examine", found.values);
        let finding = Diagnostic::error("ark-too-large", message).at(0..1, "");
        sink.push(finding.with_note(format!("at most {MAX_VALUES} values are examined")));
        return false;
    }
    true
}

/// The tree of `text`, or a finding at its first error of syntax.
pub(crate) fn tree<'a>(text: &'a str, sink: &mut Sink) -> Option<Value<'a>> {
    match parse_to_ast(text, &CollectOptions::default(), &strict_json()) {
        Ok(result) => {
            if result.value.is_none() {
                let finding = Diagnostic::error("ark-syntax", "there is no value in the file");
                sink.push(finding.at(0..0, "expected a JSON object"));
            }
            result.value
        }
        Err(error) => {
            sink.push(syntax_finding(&error));
            None
        }
    }
}

/// Options that hold the parser to RFC 8259.
pub fn strict_json() -> ParseOptions {
    ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
    }
}

fn syntax_finding(error: &ParseError) -> Diagnostic {
    let range = error.range();
    let message = lower_first(&error.kind().to_string());
    Diagnostic::error("ark-syntax", message).at(range.start..range.end, "not JSON from here")
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(bytes: &[u8]) -> Vec<&'static str> {
        let mut sink = Sink::new();
        let source = Source::from_bytes("x", bytes);
        if let Some(text) = prepare(&source, &mut sink) {
            tree(&text, &mut sink);
        }
        sink.diagnostics().iter().map(|diagnostic| diagnostic.code).collect()
    }

    #[test]
    fn each_way_a_text_is_not_json_has_its_code() {
        assert_eq!(codes(b""), ["ark-truncated"]);
        assert_eq!(codes(b"{\"a\": [1,"), ["ark-truncated"]);
        assert_eq!(codes(b"[NaN, Infinity, 1e999]"), ["ark-non-finite"; 3]);
        assert_eq!(codes(b"[1,]"), ["ark-syntax"]);
        assert_eq!(codes(b"[0x10]"), ["ark-syntax"]);
        assert_eq!(codes(b"\x0b"), ["ark-syntax"]);
        assert_eq!(codes("[\u{a0}1]".as_bytes()), ["ark-syntax"]);
        assert_eq!(codes(b"[\"a\tb\"]"), ["ark-control-character"]);
        assert_eq!(codes("\u{feff}[]".as_bytes()), ["ark-byte-order-mark"]);
        assert_eq!(codes(b"[\"\xff\"]"), ["ark-encoding"]);
        assert_eq!(codes("[".repeat(1_000_000).as_bytes()), ["ark-nesting"]);
    }
}
