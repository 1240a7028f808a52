//! Text from files made safe for terminals: control characters could move the cursor or worse.

use std::borrow::Cow;

use crate::{Diagnostic, Source};

/// Control characters as escapes: `\u{1b}`.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unprintable) {
        return text.into();
    }
    let escape = |c: char| match is_unprintable(c) {
        true => c.escape_unicode().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escape).collect::<String>().into()
}

/// The source with each control character replaced by one of the same length, so that spans stay.
pub fn masked(source: &Source) -> Cow<'_, Source> {
    if !source.text().contains(is_unprintable) && !source.name().contains(is_unprintable) {
        return Cow::Borrowed(source);
    }
    let mask = |c: char| match (is_unprintable(c), c.len_utf8()) {
        (false, _) => c,
        (true, 1) => '?',
        (true, _) => '\u{bf}',
    };
    let text: String = source.text().chars().map(mask).collect();
    Cow::Owned(Source::new(escaped(source.name()), text))
}

/// The diagnostic with every text escaped.
pub fn escape_diagnostic(diagnostic: &Diagnostic) -> Diagnostic {
    let mut clean = diagnostic.clone();
    let texts = std::iter::once(&mut clean.message)
        .chain(clean.labels.iter_mut().map(|label| &mut label.text))
        .chain(&mut clean.path)
        .chain(clean.related.iter_mut().flat_map(|place| [&mut place.path, &mut place.text]))
        .chain(&mut clean.notes)
        .chain(&mut clean.help);
    for text in texts {
        if text.contains(is_unprintable) {
            *text = escaped(text).into_owned();
        }
    }
    clean
}

fn is_unprintable(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\r' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render;

    #[test]
    fn no_escape_sequence_reaches_the_terminal() {
        let source = Source::new("m.json", "{\"Type\": \"\u{1b}]0;x\u{7}\u{9b}\"}");
        let diagnostic =
            Diagnostic::error("c", "unknown op type `\u{1b}]0;x\u{7}`").at(9..12, "\u{7}");
        let text = render(&source, &[diagnostic], false, 100);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{text:?}");
        assert!(text.contains(r"`\u{1b}]0;x\u{7}`"), "{text}");
        assert!(text.contains("m.json:1:10"), "{text}");
    }
}
