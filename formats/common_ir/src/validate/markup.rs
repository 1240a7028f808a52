//! Detects HTML and other markup than Markdown in a text.

/// The first HTML tag or comment outside code spans; autolinks are Markdown.
pub(super) fn html(text: &str) -> Option<String> {
    let prose = prose(text);
    prose.match_indices('<').find_map(|(at, _)| {
        let after = &prose[at..];
        if after.starts_with("<!--") {
            return Some("<!--".to_owned());
        }
        let end = 1 + after[1..].find(['<', '>'])?;
        let is_tag = after[end..].starts_with('>') && is_tag(&after[1..end]);
        is_tag.then(|| after[..=end].to_owned())
    })
}

/// Whether the text between `<` and `>` is a tag: a name, followed by attributes.
fn is_tag(inner: &str) -> bool {
    let name = inner.strip_prefix('/').unwrap_or(inner);
    let length =
        name.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'-').count();
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let rest = &name[length..];
    starts && (rest.is_empty() || rest.starts_with([' ', '\n', '\t', '/']))
}

/// Text that looks like LaTeX or a directive of reStructuredText.
pub(super) fn other_markup(text: &str) -> Option<&'static str> {
    let text = prose(text);
    let is_directive = |line: &str| {
        let rest = line.trim_start().strip_prefix(".. ");
        rest.is_some_and(|rest| rest.split_whitespace().next().is_some_and(|w| w.ends_with("::")))
    };
    if text.lines().any(is_directive) {
        return Some("a directive of reStructuredText");
    }
    let is_command = |part: &str| {
        let name = part.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        name.len() < part.len() && name.starts_with('{')
    };
    text.split('\\').skip(1).any(is_command).then_some("a command of LaTeX")
}

/// The text without code spans and fenced blocks.
fn prose(text: &str) -> String {
    let mut prose = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        let ticks = rest[start..].bytes().take_while(|byte| *byte == b'`').count();
        let inner = &rest[start + ticks..];
        prose.push_str(&rest[..start]);
        match close(inner, ticks) {
            Some(end) => rest = &inner[end..],
            // Without an end it is not code.
            None => {
                prose.push_str(&rest[start..start + ticks]);
                rest = inner;
            }
        }
    }
    prose + rest
}

/// Where a code span with that many ticks ends.
fn close(text: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(start) = text[at..].find('`') {
        let found = text[at + start..].bytes().take_while(|byte| *byte == b'`').count();
        at += start + found;
        if found == ticks {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_distinguished_from_markdown() {
        for text in ["x<y", "a < b > c", "<http://a.b>", "`<b>`", "``<b> ` <i>``", "<a@b.c>", "<"] {
            assert_eq!(html(text), None, "{text}");
        }
        for (text, tag) in [("<b>x</b>", "<b>"), ("x<br/>", "<br/>"), ("<!-- x -->", "<!--")] {
            assert_eq!(html(text).as_deref(), Some(tag));
        }
        assert_eq!(html("``` <b> and <a href='x'>").as_deref(), Some("<b>"));
    }

    #[test]
    fn other_markup_is_distinguished_from_markdown() {
        for text in ["**bold**", "a\\b", "C:\\dir", "`\\textbf{x}`", "a .. b", "x :: y"] {
            assert_eq!(other_markup(text), None, "{text}");
        }
        assert!(other_markup("\\textbf{x}").is_some());
        assert!(other_markup("see\n.. note::\n  x").is_some());
    }
}
