//! Diagnostics as JSON records.

use serde_json::{Value, json};

use crate::{Diagnostic, Label, Source};

/// The diagnostics as a JSON array; every label also carries its line and column, from one.
pub fn to_json(source: &Source, diagnostics: &[Diagnostic]) -> Value {
    diagnostics.iter().map(|diagnostic| record(source, diagnostic)).collect()
}

fn record(source: &Source, diagnostic: &Diagnostic) -> Value {
    let labels: Vec<Value> =
        diagnostic.labels.iter().map(|label| label_record(source, label)).collect();
    json!({
        "file": source.name(),
        "severity": diagnostic.severity,
        "code": diagnostic.code,
        "message": diagnostic.message,
        "path": diagnostic.path,
        "related": diagnostic.related,
        "labels": labels,
        "notes": diagnostic.notes,
        "help": diagnostic.help,
    })
}

fn label_record(source: &Source, label: &Label) -> Value {
    let (line, column) = source.line_column(label.span.start);
    json!({
        "start": label.span.start,
        "end": label.span.end,
        "line": line,
        "column": column,
        "text": label.text,
        "primary": label.primary,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_carry_line_and_column() {
        let source = Source::new("m.json", "a\nbc");
        let json = to_json(&source, &[Diagnostic::note("c", "m").at(3..4, "here")]);
        assert_eq!(json[0]["labels"][0]["line"], 2);
        assert_eq!(json[0]["labels"][0]["column"], 2);
        assert_eq!(json[0]["severity"], "note");
    }
}
