//! `irc-translate`: from a file format to MLIR and back.
use crate::{
    console::Console,
    crash,
    graphs::{self, translate::Written},
    input, irc_main, npu,
    output::{self, Content},
    plan, run,
    stop::Stop,
};
use bytes::Bytes;
use clap::Parser;
use irc::{CompileOptions, lowering::ark_to_plan};
use irc_ark_format::{model, plan as plan_format};
use irc_cli::{Functions, Graphs, Translate};
use irc_diag::{Diagnostic, Source};
use irc_dialects::{ark, common_ir, plan as plan_dialect};
use irc_mlir::{Capture, CapturedDiagnostic, Frame, Module, Severity};
use std::{path::Path, process::ExitCode};

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

/// What is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Mlir,
    Ark,
    Graph(Written),
    Gemini,
}

/// What is written.
enum To {
    Mlir,
    Ark,
    Plan(Box<plan::Options>),
    Graph(Written),
    Gemini,
    Npu,
}

fn translate(console: &Console, arguments: &Translate) -> Result<(), Stop> {
    let to = destination(console, arguments)?;
    let from = origin(arguments)?;
    refuse_without_effect(arguments, from, &to)?;
    output::probe_beside(&arguments.output, &arguments.input)?;
    if from == Origin::Gemini {
        let (bytes, content) = match to {
            To::Npu => npu::translate::program(console, arguments)?,
            To::Gemini => npu::translate::written(console, arguments)?,
            _ => return Err(Stop::not_built("Gemini schedules as MLIR")),
        };
        return output::write(&arguments.output, &bytes, content);
    }
    let bytes = input::read(&arguments.input)?;
    let (bytes, content) = match from {
        Origin::Gemini => unreachable!("translated above"),
        Origin::Graph(written) => from_graph(console, arguments, bytes, written, &to)?,
        Origin::Ark => {
            input::expect_model(&arguments.input, input::content(&bytes))?;
            let source = input::source(&arguments.input, &bytes);
            (from_ark(console, arguments, source, &to)?, Content::Text)
        }
        Origin::Mlir => {
            let source = input::source(&arguments.input, &bytes);
            from_mlir(console, arguments, &source, &bytes, &to)?
        }
    };
    output::write(&arguments.output, &bytes, content)
}

fn origin(arguments: &Translate) -> Result<Origin, Stop> {
    match arguments.import.flag().as_deref() {
        None => Ok(Origin::Mlir),
        Some("--import-ark") => Ok(Origin::Ark),
        Some("--import-common-ir") => Ok(Origin::Graph(Written::CommonIr)),
        Some("--import-onnx") => Ok(Origin::Graph(Written::Onnx)),
        Some("--import-gemini") => Ok(Origin::Gemini),
        Some(flag) => Err(Stop::not_built(flag)),
    }
}

fn destination(console: &Console, arguments: &Translate) -> Result<To, Stop> {
    match arguments.emit.flag().as_deref() {
        None => Ok(To::Mlir),
        Some("--emit-ark") => Ok(To::Ark),
        Some("--emit-common-ir") => Ok(To::Graph(Written::CommonIr)),
        Some("--emit-onnx") => Ok(To::Graph(Written::Onnx)),
        Some("--emit-gemini") => Ok(To::Gemini),
        Some("--emit-npu") => Ok(To::Npu),
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

/// Refuses formats that do not go together, and flags of others.
fn refuse_without_effect(arguments: &Translate, from: Origin, to: &To) -> Result<(), Stop> {
    let is_read = matches!(from, Origin::Graph(_));
    let is_written = matches!(to, To::Graph(_));
    match (from, to) {
        (Origin::Gemini, To::Gemini | To::Npu | To::Mlir) => {}
        (Origin::Gemini, _) | (_, To::Gemini | To::Npu) => {
            return Err(Stop::Usage(
                "NPU programs and Gemini schedules are made of Gemini schedules (--import-gemini)"
                    .into(),
            ));
        }
        (Origin::Graph(_), To::Ark | To::Plan(_)) => {
            return Err(Stop::Usage("ARK models and plans are made of ARK models".into()));
        }
        (Origin::Ark, To::Graph(_)) => {
            return Err(Stop::Usage("Common IR and ONNX are not made of ARK models".into()));
        }
        _ => {}
    }
    if !is_read && !is_written {
        graphs::refuse(&arguments.graphs)?;
    }
    let Graphs { functions, ignore_control_inputs, .. } = arguments.graphs;
    let flags = [
        ("--functions", functions != Functions::Inline),
        ("--ignore-control-inputs", ignore_control_inputs),
    ];
    run::refuse_flags(
        &flags,
        "it is for what computes; common-ir-to-tl has an option of that name",
    )?;
    let flags = [
        ("--form", arguments.writing.form.is_some() && !is_written),
        ("--bundle", arguments.writing.bundle && !is_read && !is_written),
    ];
    run::refuse_flags(&flags, "it is for Common IR and ONNX files")
}

fn from_graph(
    console: &Console,
    arguments: &Translate,
    bytes: Bytes,
    written: Written,
    to: &To,
) -> Result<(Vec<u8>, Content), Stop> {
    let (document, source) = graphs::translate::read(console, arguments, bytes, written)?;
    let context = irc_dialects::new_context();
    let capture = Capture::new(&context);
    let module = graphs::translate::to_dialect(&context, &document);
    let To::Graph(written) = to else {
        let made = module.map(|module| mlir(&module, &arguments.output));
        return told(console, &source, findings(&capture, &source), made);
    };
    let module = module.as_ref().and_then(graph_of);
    let module = told(console, &source, findings(&capture, &source), module)?;
    graphs::translate::emit(console, arguments, module, &source, *written)
}

/// The module of the format that the dialect's says; nothing after a diagnostic.
fn graph_of(module: &Module<'_>) -> Option<irc_common_format::model::Module> {
    let root = common_ir::module_op(module.as_operation()).ok()?;
    Some(common_ir::export(root).ok()?.module)
}

/// MLIR as text with locations, or as bytecode where the suffix says so.
fn mlir(module: &Module<'_>, output: &Path) -> (Vec<u8>, Content) {
    if output.extension().is_some_and(|suffix| suffix == "mlirbc") {
        return (irc_mlir::to_bytecode(module), Content::Binary);
    }
    (irc_mlir::to_text(&module.as_operation(), true).into_bytes(), Content::Text)
}

fn from_ark(
    console: &Console,
    arguments: &Translate,
    source: Source,
    to: &To,
) -> Result<Vec<u8>, Stop> {
    let (session, file) = input::open(console, source.clone(), arguments.strict)?;
    if let To::Plan(options) = to {
        return Ok(plan::plan(console, &source, options)?.into_bytes());
    }
    let text = session
        .stage(file, "import", &CompileOptions::default())
        .map_err(|failure| Stop::failure(source.clone(), failure))?;
    match to {
        To::Ark => {
            let source = Source::new(source.name(), text.clone());
            Ok(from_mlir(console, arguments, &source, text.as_bytes(), to)?.0)
        }
        _ => Ok(text.into_bytes()),
    }
}

fn from_mlir(
    console: &Console,
    arguments: &Translate,
    source: &Source,
    bytes: &[u8],
    to: &To,
) -> Result<(Vec<u8>, Content), Stop> {
    let context = irc_dialects::new_context();
    let capture = Capture::new(&context);
    let module = irc_mlir::parse_bytecode(&context, bytes);
    if let To::Graph(written) = to {
        let module = module.as_ref().and_then(graph_of);
        let module = told(console, source, findings(&capture, source), module)?;
        return graphs::translate::emit(console, arguments, module, source, *written);
    }
    let translated = module.and_then(|module| to_format(&module, to, &arguments.output));
    told(console, source, findings(&capture, source), translated)
}

/// MLIR's diagnostics as findings.
pub fn findings(capture: &Capture<'_>, source: &Source) -> Vec<Diagnostic> {
    capture.take().iter().filter_map(|diagnostic| place(diagnostic, source)).collect()
}

/// What was made, its warnings on the console; or the errors.
pub fn told<T>(
    console: &Console,
    source: &Source,
    findings: Vec<Diagnostic>,
    made: Option<T>,
) -> Result<T, Stop> {
    match made {
        Some(made) => {
            console.findings(source, &findings);
            Ok(made)
        }
        None if findings.iter().any(Diagnostic::is_error) => {
            Err(Stop::Findings(source.clone(), findings))
        }
        None => Err(Stop::Internal("the translation failed without saying why".into())),
    }
}

/// Nothing after a diagnostic.
fn to_format(module: &Module<'_>, to: &To, output: &Path) -> Option<(Vec<u8>, Content)> {
    let text = match to {
        To::Mlir => return Some(mlir(module, output)),
        To::Ark => model::write(&ark::export(module).ok()?),
        To::Plan(options) => {
            let is_model = |op| irc_mlir::read::op_name(op) == "ark.model";
            if irc_mlir::read::body_ops(module.as_operation()).iter().any(is_model) {
                ark_to_plan::run(module, &options.planner).ok()?;
            }
            plan_format::write(&plan_dialect::export(module).ok()?)
        }
        To::Graph(_) | To::Gemini | To::Npu => unreachable!("written of what was read"),
    };
    Some((text.into_bytes(), Content::Text))
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
