//! `irc check`: every finding of every file.
use crate::{
    console::Console,
    input::{self, Content},
    output,
    stop::Stop,
};
use irc_ark_format::{model, plan};
use irc_diag::{Diagnostic, Sink, Source};
use serde_json::Value;

/// Checks all files, one after the other; an error in one does not hide the next.
pub fn check(console: &Console, arguments: &irc_cli::Check) -> Result<(), Stop> {
    let mut records: Vec<Value> = Vec::new();
    let mut failed = false;
    for name in &arguments.files {
        match check_file(name, arguments.strict) {
            Ok((source, findings)) => {
                failed |= findings.iter().any(Diagnostic::is_error);
                if arguments.json {
                    let found = irc_diag::to_json(&source, &findings);
                    records.extend(found.as_array().into_iter().flatten().cloned());
                } else {
                    console.findings(&source, &findings);
                }
            }
            Err(Stop::Problem { message, help }) => {
                failed = true;
                console.error(&message, help.as_deref());
            }
            Err(other) => return Err(other),
        }
    }
    if arguments.json {
        output::print(&format!("{:#}\n", Value::Array(records)))?;
    }
    if failed { Err(Stop::Reported) } else { Ok(()) }
}

fn check_file(name: &str, strict: bool) -> Result<(Source, Vec<Diagnostic>), Stop> {
    let bytes = input::read(name)?;
    let content = input::content(&bytes);
    let source = input::source(name, &bytes);
    let mut sink = Sink::new();
    let options = model::Options { strict, ..Default::default() };
    match content {
        Content::Plan => drop(plan::parse(&source, &options, &mut sink)),
        Content::Model => drop(model::parse(&source, &options, &mut sink)),
        Content::Library => return Err(unknown(name, "a compiled library")),
        Content::Archive => return Err(unknown(name, "a tar archive")),
    }
    Ok((source, sink.into_diagnostics()))
}

fn unknown(name: &str, found: &str) -> Stop {
    Stop::problem(format!("{name}: expected an ARK model or plan, found {found}"))
}
