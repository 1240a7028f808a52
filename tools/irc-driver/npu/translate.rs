//! `irc-translate` of Gemini schedules and NPU programs.
use super::{Files, ModelOf, assemble, check, frontend, schedule};
use crate::{
    console::Console,
    error::Error,
    input,
    output::{self, Content},
};
use irc::lowering::gemini_to_npu::{self, only};
use irc_cli::Translate;
use irc_diag::{Sink, Source};
use irc_dialects::{gemini, npu};
use irc_gemini_format::{FileKind, Options};
use irc_mlir::{Context, Location, Module, PassError};
use irc_npu::{Fingerprint, Program, binary, listing};
use std::path::Path;

/// The output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// The dialects.
    Mlir,
    /// A schedule.
    Schedule,
    /// A program.
    Program,
}

/// Translates a schedule.
pub fn from_schedule(
    console: &Console,
    arguments: &Translate,
    to: To,
) -> Result<(Vec<u8>, Content), Error> {
    let options = Options { strict: arguments.strict, ..Options::default() };
    let layers = arguments.frontend.as_deref();
    if let To::Program = to {
        return program_of(console, &arguments.input, layers, &options, &arguments.output);
    }
    let (source, schedule) = schedule(console, &arguments.input, &options)?;
    if let To::Schedule = to {
        let text = irc_gemini_format::schedule::write(&schedule);
        return Ok((text.into_bytes(), Content::Text));
    }
    let context = irc_dialects::new_context();
    let module = module(&context, &source);
    append(&context, &module, &source, FileKind::Schedule)?;
    if let Some(path) = layers {
        let (source, _) = frontend(console, &path.to_string_lossy(), &options)?;
        append(&context, &module, &source, FileKind::Frontend)?;
    }
    Ok(output::mlir(&module, &arguments.output))
}

/// The program of a schedule, in the encoding that the suffix of `output` selects.
pub fn to_program(
    console: &Console,
    schedule: &str,
    frontend: Option<&Path>,
    model: Option<ModelOf<'_>>,
    output: &Path,
) -> Result<(Vec<u8>, Content), Error> {
    let calibration = model.map(|of| of.quantising.text()).transpose()?.flatten();
    let files = Files { schedule, frontend, program: None, model };
    let assembled = assemble(console, &files, &Options::default())?;
    let mut program = assembled.program;
    if let Some(model) = &assembled.model {
        let images = assembled.schedule.images() as u64;
        program.model = Some(Fingerprint { calibration, ..model.fingerprint(images) });
    }
    Ok(write(&program, output))
}

fn program_of(
    console: &Console,
    schedule: &str,
    frontend: Option<&Path>,
    options: &Options,
    output: &Path,
) -> Result<(Vec<u8>, Content), Error> {
    let files = Files { schedule, frontend, program: None, model: None };
    Ok(write(&assemble(console, &files, options)?.program, output))
}

/// An empty module with the file's location.
fn module<'c>(context: &'c Context, source: &Source) -> Module<'c> {
    let place = Location::new(context, source.name(), 1, 1);
    Module::new(Location::name(context, "$", place))
}

/// Appends the op of a parsed file.
fn append<'c>(
    context: &'c Context,
    module: &Module<'c>,
    source: &Source,
    kind: FileKind,
) -> Result<(), Error> {
    let mut sink = Sink::new();
    let imported = gemini::import(context, module.body(), source, kind, &mut sink);
    imported.map(|_| ()).ok_or_else(|| Error::Diagnostics(source.clone(), sink.into_diagnostics()))
}

/// A program as a listing, or as binary if the suffix is `.npu`.
pub(super) fn write(program: &Program, output: &Path) -> (Vec<u8>, Content) {
    if output::suffix(output) == Some("npu") {
        return (binary::encode(program), Content::Binary);
    }
    (listing::write(program).into_bytes(), Content::Text)
}

/// Translates a listing, a trace or a binary program to MLIR, or to a program in the other encoding.
pub fn from_program(
    console: &Console,
    arguments: &Translate,
    to: To,
) -> Result<(Vec<u8>, Content), Error> {
    let bytes = input::read(&arguments.input)?;
    let content = input::Content::of(&bytes);
    let (source, program, spans) = check::program(console, &arguments.input, &bytes, content)?;
    if let Some(part) = program.part {
        let name = &arguments.input;
        let message = format!("{name} is part {part} of a model, which only listings state");
        return Err(Error::problem(message));
    }
    if let To::Program = to {
        return Ok(write(&program, &arguments.output));
    }
    let context = irc_dialects::new_context();
    let module = module(&context, &source);
    let lines = source.lines();
    let place = |core: usize, index: usize| {
        let span = spans.get(core, index);
        let (line, column) = lines.line_column(span.map_or(0, |span| span.start));
        Location::new(&context, source.name(), line, column)
    };
    let whole = Location::new(&context, source.name(), 1, 1);
    npu::build(&context, module.body(), &program, whole, &place);
    Ok(output::mlir(&module, &arguments.output))
}

/// The text of the schedule in a module.
///
/// # Errors
/// If the module has no schedule, or several, or an invalid one, after a diagnostic.
pub fn written(module: &Module<'_>) -> Result<String, PassError> {
    let root = module.as_operation();
    let op = only(root, "gemini.schedule")?
        .ok_or_else(|| PassError::at(&root, "expected a gemini.schedule, found none"))?;
    let scheduled = gemini::schedule(op, &Options::default())?;
    Ok(irc_gemini_format::schedule::write(&scheduled.schedule))
}

/// The program of a module, compiled from its schedule if it has one.
///
/// # Errors
/// If the module has no program, or several, or an invalid one, after a diagnostic.
pub fn program(module: &Module<'_>, output: &Path) -> Result<(Vec<u8>, Content), PassError> {
    let root = module.as_operation();
    gemini_to_npu::lower(root)?;
    let op = only(root, "npu.program")?.ok_or_else(|| {
        PassError::at(&root, "expected an npu.program or a gemini.schedule, found none")
    })?;
    Ok(write(&npu::export(op)?.program, output))
}
