//! `irc-translate`: from a file format to MLIR and back.
use crate::{
    console::Console,
    crash, input, irc_main,
    output::{self, Content},
    plan,
    stop::Stop,
};
use clap::Parser;
use irc::{CompileOptions, lowering::ark_to_plan};
use irc_ark_format::{model, plan as plan_format};
use irc_cli::Translate;
use irc_diag::{Diagnostic, Source};
use irc_dialects::{ark, plan as plan_dialect};
use irc_mlir::{Capture, CapturedDiagnostic, Frame, Module, Severity};
use std::process::ExitCode;

/// Runs the translation that the arguments say.
pub fn main(arguments: &[String]) -> ExitCode {
    let spelt = irc_cli::double_dashes(arguments.iter().cloned());
    let parsed = match Translate::try_parse_from(spelt) {
        Ok(parsed) => parsed,
        Err(error) => return irc_main::usage(&error),
    };
    let console = Console::new("irc-translate", &parsed.console);
    crash::guard(&console, arguments, || translate(&console, &parsed))
}

/// What is written.
enum To {
    Mlir,
    Ark,
    Plan(Box<plan::Options>),
}

fn translate(console: &Console, arguments: &Translate) -> Result<(), Stop> {
    let to = destination(console, arguments)?;
    let import = match arguments.import.flag().as_deref() {
        None => false,
        Some("--import-ark") => true,
        Some(flag) => return Err(Stop::not_built(flag)),
    };
    output::probe_beside(&arguments.output, &arguments.input)?;
    let bytes = input::read(&arguments.input)?;
    let source = input::source(&arguments.input, &bytes);
    let text = if import {
        input::expect_model(&arguments.input, input::content(&bytes))?;
        from_ark(console, source, arguments.strict, &to)?
    } else {
        from_mlir(console, &source, &to)?
    };
    output::write(&arguments.output, text.as_bytes(), Content::Text)
}

fn destination(console: &Console, arguments: &Translate) -> Result<To, Stop> {
    match arguments.emit.flag().as_deref() {
        None => Ok(To::Mlir),
        Some("--emit-ark") => Ok(To::Ark),
        Some("--emit-plan") => {
            let planning = plan::Planning {
                arch: &arguments.arch,
                processors: arguments.processors,
                planner: arguments.planner,
                rules: arguments.config_rules.as_deref(),
            };
            Ok(To::Plan(Box::new(plan::options(console, &planning)?)))
        }
        Some(flag) => Err(Stop::not_built(flag)),
    }
}

fn from_ark(console: &Console, source: Source, strict: bool, to: &To) -> Result<String, Stop> {
    let (session, file) = input::open(console, source.clone(), strict)?;
    if let To::Plan(options) = to {
        return plan::plan(console, &source, options);
    }
    let text = session
        .stage(file, "import", &CompileOptions::default())
        .map_err(|failure| Stop::failure(source.clone(), failure))?;
    match to {
        To::Ark => from_mlir(console, &Source::new(source.name(), text), to),
        _ => Ok(text),
    }
}

fn from_mlir(console: &Console, source: &Source, to: &To) -> Result<String, Stop> {
    let context = irc_dialects::new_context();
    let capture = Capture::new(&context);
    let translated =
        irc_mlir::parse_module(&context, source.text()).and_then(|module| to_format(&module, to));
    let captured = capture.take();
    let findings: Vec<Diagnostic> =
        captured.iter().filter_map(|diagnostic| place(diagnostic, source)).collect();
    match translated {
        Some(text) => {
            console.findings(source, &findings);
            Ok(text)
        }
        None if findings.iter().any(Diagnostic::is_error) => {
            Err(Stop::Findings(source.clone(), findings))
        }
        None => Err(Stop::Internal("the translation failed without saying why".into())),
    }
}

/// Nothing after a diagnostic.
fn to_format(module: &Module<'_>, to: &To) -> Option<String> {
    match to {
        To::Mlir => Some(irc_mlir::to_text(&module.as_operation(), true)),
        To::Ark => Some(model::write(&ark::export(module).ok()?)),
        To::Plan(options) => {
            let is_model = |op| irc_mlir::read::op_name(op) == "ark.model";
            if irc_mlir::read::body_ops(module.as_operation()).iter().any(is_model) {
                ark_to_plan::run(module, &options.planner).ok()?;
            }
            Some(plan_format::write(&plan_dialect::export(module).ok()?))
        }
    }
}

/// MLIR's diagnostic as a finding; notes without an error of their own say nothing here.
fn place(captured: &CapturedDiagnostic, source: &Source) -> Option<Diagnostic> {
    let severity = match captured.severity {
        Severity::Error => irc_diag::Severity::Error,
        Severity::Warning => irc_diag::Severity::Warning,
        Severity::Note | Severity::Remark => return None,
    };
    let mut finding = Diagnostic::new(severity, "mlir", captured.message.clone());
    for frame in &captured.frames {
        match frame {
            Frame::Name(name) if name.starts_with('$') => finding = finding.path(name.clone()),
            Frame::Name(name) => finding = finding.with_note(format!("in {name}")),
            // MLIR calls text that it parses from memory `-`.
            Frame::File { name, line, column } if name == "-" => {
                let offset = offset(source.text(), *line, *column);
                finding = finding.at(offset..offset, "here");
            }
            Frame::File { name, line, column } => {
                finding = finding.with_note(format!("from {name}:{line}:{column}"));
            }
        }
    }
    Some(finding)
}

/// Byte offset of a one-based line and column.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (start + column.saturating_sub(1)).min(text.len())
}
