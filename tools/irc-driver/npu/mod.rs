//! Gemini schedules, frontend files and NPU programs.
use crate::{
    console::Console,
    error::Error,
    input::{self, Content},
    models,
};
use brief::brief;
use irc::NpuValues;
use irc_diag::{Diagnostic, Sink, Source};
use irc_gemini_format::{FileKind, Options, frontend::Frontend, schedule::Schedule};
use irc_npu::Program;
use irc_npu_emit::{FileDiagnostic, KnownLayers};
use std::{path::Path, slice, sync::Arc};

mod batches;
mod brief;
pub mod check;
mod compute;
mod cost;
mod host;
pub mod model;
mod of_model;
pub mod price;
mod reasons;
pub mod simulate;
pub mod translate;
pub mod values;

/// A parser of a format.
type Parse<T> = fn(&Source, &Options, &mut Sink) -> Option<T>;

/// Parses a schedule, and checks the NPU and the tree that it states.
fn parse_schedule(source: &Source, options: &Options, sink: &mut Sink) -> Option<Schedule> {
    let schedule = irc_gemini_format::schedule::parse(source, options, sink)?;
    let mut found = irc::npu::check_stated(&schedule);
    irc_gemini_format::place(source, &mut found);
    let is_valid = found.is_empty();
    sink.extend(found);
    is_valid.then_some(schedule)
}

/// A schedule without errors, with its source; its warnings are on the console.
fn schedule(console: &Console, name: &str, options: &Options) -> Result<(Source, Schedule), Error> {
    read(console, name, Content::Schedule, parse_schedule, options)
}

/// A frontend file without errors, with its source; its warnings are on the console.
fn frontend(console: &Console, name: &str, options: &Options) -> Result<(Source, Frontend), Error> {
    read(console, name, Content::Frontend, irc_gemini_format::frontend::parse, options)
}

fn read<T>(
    console: &Console,
    name: &str,
    expected: Content,
    parse: Parse<T>,
    options: &Options,
) -> Result<(Source, T), Error> {
    let bytes = input::read(name)?;
    let found = input::Content::of(&bytes);
    if found != expected {
        let error = input::unexpected(name, expected.words(), found);
        return Err(match found {
            Content::Listing | Content::Binary => error.help(format!(
                "only a schedule states the times of workloads: use irc simulate SCHEDULE --program {name}, \
                 or read the program with irc-translate --import-npu"
            )),
            _ => error,
        });
    }
    let source = input::source(name, &bytes);
    let mut sink = Sink::new();
    let parsed = parse(&source, options, &mut sink);
    without_errors(console, source, parsed, sink.into_diagnostics())
}

/// The contents of a file, with its warnings on the console; or its errors.
fn without_errors<T>(
    console: &Console,
    source: Source,
    read: Option<T>,
    diagnostics: Vec<Diagnostic>,
) -> Result<(Source, T), Error> {
    match read {
        Some(read) if !diagnostics.iter().any(Diagnostic::is_error) => {
            brief(console, &source, &diagnostics);
            Ok((source, read))
        }
        _ => Err(Error::Diagnostics(source, diagnostics)),
    }
}

/// The schedule of a network, its layers if given, and the program that runs it.
struct Assembled {
    schedule: Schedule,
    frontend: Option<Frontend>,
    program: Program,
    /// The values of the model, if they are requested.
    model: Option<Arc<NpuValues>>,
}

/// The files of a network.
struct Files<'f> {
    schedule: &'f str,
    frontend: Option<&'f Path>,
    program: Option<&'f Path>,
    /// The model that it is a schedule of.
    model: Option<ModelOf<'f>>,
}

/// The model of a schedule.
#[derive(Clone, Copy)]
pub struct ModelOf<'f> {
    /// Its file.
    pub name: &'f str,
    /// The shapes of its inputs.
    pub shapes: &'f [String],
    /// How it is quantised.
    pub quantising: &'f models::Quantising<'f>,
    /// The file with its inputs, if any.
    pub inputs: Option<&'f Path>,
    /// Whether its values are requested.
    pub has_values: bool,
    /// Whether the schedule is of a part of it.
    pub falls_back: bool,
}

/// Reads a schedule, and reads or compiles its program. To compile schedules of one core of other tools, the layers are
/// required. One that irc has written is then that of dialect B of which it was made.
fn assemble(console: &Console, files: &Files<'_>, options: &Options) -> Result<Assembled, Error> {
    let (source, schedule) = schedule(console, files.schedule, options)?;
    let layers = files.frontend.map(|path| frontend(console, &path.to_string_lossy(), options));
    let (layers, frontend) = layers.transpose()?.unzip();
    let named = layers.as_ref().map(Source::name).zip(frontend.as_ref());
    let pair = |named| check::check_pair(&source, &schedule, named);
    let mut diagnostics = named.map(pair).unwrap_or_default();
    let (mut program, mut values) = (None, None);
    if !diagnostics.iter().any(Diagnostic::is_error) {
        program = match files.program {
            Some(path) => Some(runnable_program(console, &path.to_string_lossy())?),
            None => {
                let known = match files.model {
                    None => irc::npu::stated_layers(&schedule),
                    Some(of) => {
                        let (known, found) = model::known(console, files.schedule, &schedule, &of)?;
                        values = found;
                        known
                    }
                };
                let described = (frontend.as_ref(), &known);
                compile(console, &schedule, described, (&source, layers), &mut diagnostics)?
            }
        };
    }
    irc_gemini_format::place(&source, &mut diagnostics);
    let (_, program) = without_errors(console, source, program, diagnostics)?;
    let untiled = irc::npu::untiled(&schedule).filter(|_| frontend.is_none());
    let schedule = untiled.unwrap_or(schedule);
    Ok(Assembled { schedule, frontend, program, model: values })
}

/// The program of a listing, a trace or a binary file without errors.
pub fn read_program(console: &Console, name: &str) -> Result<Program, Error> {
    let bytes = input::read(name)?;
    let (_, program, _) = check::program(console, name, &bytes, input::Content::of(&bytes))?;
    Ok(program)
}

/// The program of a file, which can run.
fn runnable_program(console: &Console, name: &str) -> Result<Program, Error> {
    let bytes = input::read(name)?;
    let content = input::Content::of(&bytes);
    let (source, program, spans) = check::program(console, name, &bytes, content)?;
    let read = (program, spans);
    check::expect_runnable(&source, slice::from_ref(&read))?;
    Ok(read.0)
}

/// The programs of a file, which can run: one, or those of all parts of a model.
pub fn read_programs(console: &Console, name: &str) -> Result<Vec<Program>, Error> {
    let bytes = input::read(name)?;
    let (source, found) = check::programs(console, name, &bytes, input::Content::of(&bytes))?;
    check::expect_runnable(&source, &found)?;
    Ok(found.into_iter().map(|(program, _)| program).collect())
}

/// The program that is compiled from a schedule; `None` after errors. Diagnostics of the frontend file
/// follow those of the schedule.
fn compile(
    console: &Console,
    schedule: &Schedule,
    (frontend, known): (Option<&Frontend>, &KnownLayers),
    (source, layers): (&Source, Option<Source>),
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<Option<Program>, Error> {
    let found = match irc::npu::program(schedule, frontend, known) {
        Ok(program) => return Ok(Some(program)),
        Err(found) => found,
    };
    let (own, mut of_layers) = by_file(found);
    diagnostics.extend(own);
    let Some(layers) = layers.filter(|_| !of_layers.is_empty()) else { return Ok(None) };
    irc_gemini_format::place(source, diagnostics);
    console.diagnostics(source, diagnostics);
    irc_gemini_format::place(&layers, &mut of_layers);
    Err(Error::Diagnostics(layers, of_layers))
}

/// Diagnostics in the schedule, and those in the frontend file.
fn by_file(found: Vec<FileDiagnostic>) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
    let (own, of_layers): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|diagnostic| diagnostic.file == FileKind::Schedule);
    let diagnostics =
        |all: Vec<FileDiagnostic>| all.into_iter().map(|one| one.diagnostic).collect();
    (diagnostics(own), diagnostics(of_layers))
}
