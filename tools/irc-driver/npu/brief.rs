//! Summaries of warnings: one line per code.
use crate::console::Console;
use irc_diag::{Diagnostic, Source};

/// Shows the warnings of a file that is an input of another command than `check`: the first of each code in
/// a line, with its location and their number. Machine-readable diagnostics are shown in full.
pub fn brief(console: &Console, source: &Source, diagnostics: &[Diagnostic]) {
    if console.is_json() || diagnostics.is_empty() {
        return console.diagnostics(source, diagnostics);
    }
    console.text(&lines(source, diagnostics));
    console.note("irc check shows all of these warnings");
}

fn lines(source: &Source, diagnostics: &[Diagnostic]) -> String {
    let places = source.lines();
    let is_first = |index: &usize| {
        let same = |other: &Diagnostic| other.code == diagnostics[*index].code;
        diagnostics.iter().position(same) == Some(*index)
    };
    let line = |index: usize| {
        let diagnostic = &diagnostics[index];
        let place = diagnostic.primary_span().map_or(String::new(), |span| {
            let (line, column) = places.line_column(span.start);
            format!(":{line}:{column}")
        });
        // Formats themselves count the locations of a warning, in its last note.
        let note = diagnostic.notes.last().map_or(String::new(), |note| format!("; {note}"));
        let more =
            diagnostics[index + 1..].iter().filter(|other| other.code == diagnostic.code).count();
        let more = if more > 0 { format!("; {more} more like it") } else { String::new() };
        let (name, code, message) = (source.name(), diagnostic.code, &diagnostic.message);
        format!("{name}{place}: warning[{code}]: {message}{note}{more}\n")
    };
    (0..diagnostics.len()).filter(is_first).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_a_kind_are_one_line() {
        let source = Source::new("x.json", "a\nb\nc\n");
        let warning = |at: usize, code| Diagnostic::warning(code, "odd").at(at..at + 1, "");
        let counted = warning(0, "v").with_note("why").with_note("9 places are so");
        let all = [warning(2, "w"), counted, warning(0, "w"), Diagnostic::warning("w", "even")];
        let expected = "x.json:2:1: warning[w]: odd; 2 more like it\n\
                        x.json:1:1: warning[v]: odd; 9 places are so\n";
        assert_eq!(lines(&source, &all), expected);
    }
}
