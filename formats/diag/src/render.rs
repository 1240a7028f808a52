//! Diagnostics as text for people.

use codespan_reporting::diagnostic as report;
use codespan_reporting::term::{self, Config, termcolor};

use crate::{Diagnostic, Severity, Source, printable, view::View};

/// Narrowest window a long source line is clipped to, in bytes.
const MIN_WINDOW: usize = 40;

/// The diagnostics as a terminal shows them, with the source lines they point at.
///
/// `width` is the width of the terminal in columns; longer source lines are clipped to a window
/// round the diagnostic, so no line of the file is ever printed whole when it does not fit.
pub fn render(source: &Source, diagnostics: &[Diagnostic], colour: bool, width: usize) -> String {
    let source = printable::masked(source);
    let clean = diagnostics.iter().map(printable::escape_diagnostic);
    clean.map(|diagnostic| render_one(&source, &diagnostic, colour, width)).collect()
}

fn render_one(source: &Source, diagnostic: &Diagnostic, colour: bool, width: usize) -> String {
    // The gutter and the cut marks take a dozen columns.
    let view = View::new(source, diagnostic, width.saturating_sub(12).max(MIN_WINDOW));
    let report = to_report(source, &view, diagnostic);
    let config = Config { chars: term::Chars::ascii(), ..Config::default() };
    let written = match colour {
        false => term::emit_into_string(&config, &view, &report),
        true => emit_coloured(&config, &view, &report),
    };
    // Emitting fails only when a label lies outside the view, which `place` excludes; the diagnostic
    // must reach the user even so.
    written.unwrap_or_else(|_| plain(source, diagnostic))
}

fn emit_coloured(
    config: &Config,
    view: &View<'_>,
    report: &report::Diagnostic<()>,
) -> Result<String, codespan_reporting::files::Error> {
    let mut writer = termcolor::Ansi::new(Vec::new());
    term::emit_to_write_style(&mut writer, config, view, report)?;
    Ok(String::from_utf8_lossy(&writer.into_inner()).into_owned())
}

fn to_report(source: &Source, view: &View<'_>, diagnostic: &Diagnostic) -> report::Diagnostic<()> {
    let mut notes = vec![];
    let mut labels = vec![];
    for label in &diagnostic.labels {
        let Some(span) = view.place(&label.span) else {
            let (line, column) = source.line_column(label.span.start);
            notes.push(format!("see {}:{line}:{column}: {}", source.name(), label.text));
            continue;
        };
        let placed = match label.primary {
            true => report::Label::primary((), span),
            false => report::Label::secondary((), span),
        };
        labels.push(placed.with_message(&label.text));
    }
    if labels.is_empty() && diagnostic.labels.is_empty() {
        notes.push(format!("in {}", source.name()));
    }
    // The path of a whole document is empty in some formats.
    let path = diagnostic.path.iter().filter(|path| !path.is_empty());
    notes.extend(path.map(|path| format!("at {path}")));
    // With labels, the related places are labels already.
    let related = diagnostic.related.iter().filter(|_| diagnostic.labels.is_empty());
    notes.extend(related.map(|place| format!("see {}: {}", place.path, place.text)));
    notes.extend(diagnostic.notes.iter().map(|note| format!("note: {note}")));
    notes.extend(diagnostic.help.iter().map(|help| format!("help: {help}")));
    report::Diagnostic::new(severity(diagnostic.severity))
        .with_code(diagnostic.code)
        .with_message(&diagnostic.message)
        .with_labels(labels)
        .with_notes(notes)
}

fn severity(severity: Severity) -> report::Severity {
    match severity {
        Severity::Error => report::Severity::Error,
        Severity::Warning => report::Severity::Warning,
        Severity::Note => report::Severity::Note,
    }
}

fn plain(source: &Source, diagnostic: &Diagnostic) -> String {
    format!("{}: [{}] {}\n", source.name(), diagnostic.code, diagnostic.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_shows_its_line_and_help() {
        let source = Source::new("m.json", "{\n  \"Rank\": true\n}\n");
        let diagnostic = Diagnostic::error("ark-wrong-type", "`Rank` must be an integer")
            .at(12..16, "found a boolean")
            .path("$.Rank")
            .help("write 0");
        let text = render(&source, &[diagnostic], false, 100);
        let expected = "\
error[ark-wrong-type]: `Rank` must be an integer
  --> m.json:2:11
  |
2 |   \"Rank\": true
  |           ^^^^ found a boolean
  |
  = at $.Rank
  = help: write 0

";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_huge_line_is_clipped_round_the_caret() {
        let text = format!("{}X{}", "é".repeat(400_000), "b".repeat(400_000));
        let source = Source::new("m.json", text);
        let diagnostic = Diagnostic::error("c", "m").at(800_000..800_001, "here").also(3..4, "far");
        let shown = render(&source, &[diagnostic], false, 100);
        assert!(shown.len() < 600, "{shown}");
        assert!(shown.contains("m.json:1:400001"), "{shown}");
        assert!(shown.contains("see m.json:1:2: far"), "{shown}");
        let caret_line = shown.lines().position(|line| line.contains("^ here"));
        let lines: Vec<&str> = shown.lines().collect();
        let caret = caret_line.expect("a caret line");
        let column = lines[caret].chars().position(|c| c == '^');
        assert_eq!(lines[caret - 1].chars().position(|c| c == 'X'), column);
    }

    #[test]
    fn labels_outside_the_text_do_not_fail() {
        let source = Source::new("empty", "");
        let diagnostic = Diagnostic::error("c", "m").at(7..90, "here");
        assert!(render(&source, &[diagnostic], true, 0).contains("empty"));
    }
}
