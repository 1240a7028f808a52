//! `irc check`: every finding of every file.
use crate::{
    console::Console,
    cost,
    input::{self, Content},
    output,
    stop::Stop,
};
use irc::planner::cost::{estimate, table};
use irc_ark_format::{
    model,
    plan::{self, Plan},
};
use irc_diag::{Diagnostic, Sink, Source};
use serde_json::{Value, json};

/// Checks all files, one after the other; an error in one does not hide the next.
pub fn check(console: &Console, arguments: &irc_cli::Check) -> Result<(), Stop> {
    let mut records: Vec<Value> = Vec::new();
    let mut costs: Vec<Value> = Vec::new();
    let mut failed = false;
    for name in &arguments.files {
        match check_file(name, arguments.strict) {
            Ok((source, findings, plan)) => {
                failed |= findings.iter().any(Diagnostic::is_error);
                if arguments.json {
                    let found = irc_diag::to_json(&source, &findings);
                    records.extend(found.as_array().into_iter().flatten().cloned());
                } else {
                    console.findings(&source, &findings);
                }
                let Some(plan) = plan.filter(|_| arguments.cost) else { continue };
                let estimate = estimate(&plan);
                match arguments.json {
                    true => costs.push(cost::record(name, &estimate)),
                    false => output::print(&format!("{name}\n{}", table(&estimate)))?,
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
        let found = Value::Array(records);
        let written =
            if arguments.cost { json!({ "findings": found, "costs": costs }) } else { found };
        output::print(&format!("{written:#}\n"))?;
    }
    if failed { Err(Stop::Reported) } else { Ok(()) }
}

/// The findings in a file, and the plan that it is, if it has no errors.
fn check_file(name: &str, strict: bool) -> Result<(Source, Vec<Diagnostic>, Option<Plan>), Stop> {
    let bytes = input::read(name)?;
    let content = input::content(&bytes);
    let source = input::source(name, &bytes);
    let mut sink = Sink::new();
    let options = model::Options { strict, ..Default::default() };
    let plan = match content {
        Content::Plan => plan::parse(&source, &options, &mut sink),
        Content::Model => {
            model::parse(&source, &options, &mut sink);
            None
        }
        Content::Library => return Err(unknown(name, "a compiled library")),
        Content::Archive => return Err(unknown(name, "a tar archive")),
    };
    Ok((source, sink.into_diagnostics(), plan))
}

fn unknown(name: &str, found: &str) -> Stop {
    Stop::problem(format!("{name}: expected an ARK model or plan, found {found}"))
}
