//! Common IR and ONNX files.
use crate::{console::Console, crash, input, stop::Stop};
use irc_common_format::{Document, Format, Options};
use irc_diag::{Diagnostic, Sink, Source};
use irc_onnx_ops::{Finding, FindingKind};
use std::path::Path;

pub mod check;
pub mod compile;
pub mod run;

/// The form that a flag names.
pub fn format(name: Option<&str>) -> Result<Format, Stop> {
    let Some(name) = name else { return Ok(Format::default()) };
    Format::from_name(name).ok_or_else(|| {
        let names = Format::names().join(", ");
        Stop::Usage(format!("--format: expected one of {names}, found {name}"))
    })
}

/// Reads a file; its findings come with it. `-` is standard input.
pub fn read(
    name: &str,
    format: Format,
) -> Result<(Option<Document>, Source, Vec<Diagnostic>), Stop> {
    let mut sink = Sink::new();
    let options = Options { format, ..Options::default() };
    let document = if name == "-" {
        irc_common_format::read("<stdin>", input::read(name)?.into(), &options, &mut sink)
    } else {
        irc_common_format::open(Path::new(name), &options, &mut sink)
    };
    let source = document.as_ref().map(|document| document.input.source());
    let source = source.unwrap_or_else(|| Source::new(name, ""));
    crash::remember(&source);
    Ok((document, source, sink.into_diagnostics()))
}

/// Reads a file that has no errors; its warnings are on the console.
pub fn open(console: &Console, name: &str, format: Format) -> Result<(Document, Source), Stop> {
    let (document, source, findings) = read(name, format)?;
    match document {
        Some(document) if !findings.iter().any(Diagnostic::is_error) => {
            console.findings(&source, &findings);
            Ok((document, source))
        }
        _ => Err(Stop::Findings(source, findings)),
    }
}

/// What the importer found, at its place in the file.
pub fn place(document: &Document, found: &[Finding]) -> Vec<Diagnostic> {
    let mut findings: Vec<_> = found.iter().map(diagnostic).collect();
    document.input.place(&mut findings);
    findings
}

fn diagnostic(finding: &Finding) -> Diagnostic {
    let code = match finding.kind {
        FindingKind::UnknownOperator => "onnx-operator",
        FindingKind::Unsupported => "onnx-unsupported",
        FindingKind::Invalid => "onnx-node",
        FindingKind::NeedsValue(_) => "onnx-needs-value",
        FindingKind::NeedsShape(_) => "onnx-needs-shape",
    };
    let message = format!("{}: {}", finding.node, finding.message);
    let diagnostic = Diagnostic::error(code, message).path(finding.path.clone());
    match &finding.kind {
        FindingKind::NeedsValue(inputs) if !inputs.is_empty() => {
            let names = inputs.join(", ");
            diagnostic.help(format!(
                "the program is made for the values of {names}: give them with --inputs"
            ))
        }
        FindingKind::UnknownOperator => diagnostic.help("docs/operators.md lists what is known"),
        _ => diagnostic,
    }
}
