//! `irc-translate`: from a file format to MLIR and back.
use crate::{
    archive, ark_files,
    console::{Console, usage},
    crash,
    error::Error,
    input::{self, Input},
    located::{diagnostics, report},
    models, npu,
    output::{self, Content},
    plan, target,
    translate_common_ir::{self, Written},
};
use bytes::Bytes;
use irc::{CompileOptions, ImportOptions, Session, lowering::ark_to_plan};
use irc_ark_format::{model, plan as plan_format};
use irc_cli::{Flags, InputKind, TRANSLATIONS, Translate};
use irc_diag::Source;
use irc_dialects::{ark, common_ir, plan as plan_dialect};
use irc_mlir::{Capture, Module, OperationRef};
use std::{path::Path, process::ExitCode};

/// Runs the translation of the arguments.
pub fn main(arguments: &[String]) -> ExitCode {
    let (parsed, flags) = match irc_cli::parse_translate(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return usage(&error),
    };
    let console = Console::new("irc-translate", &parsed.console);
    crash::guard(&console, arguments, || translate(&console, &parsed, &flags))
}

/// The input format.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Mlir,
    Ark,
    Graph(Written),
    Gemini,
    Npu,
}

impl Origin {
    const fn kind(self) -> InputKind {
        match self {
            Self::Mlir => InputKind::Mlir,
            Self::Ark => InputKind::ArkModel,
            Self::Graph(_) => InputKind::CommonIr,
            Self::Gemini => InputKind::Schedule,
            Self::Npu => InputKind::Program,
        }
    }
}

/// The output format.
enum To {
    Mlir,
    Ark,
    Plan(Box<plan::Options>),
    Archive,
    Graph(Written),
    Gemini,
    Npu,
}

impl To {
    /// The translation of a schedule or NPU program, if the output is one of theirs.
    fn scheduled(&self) -> Option<npu::translate::To> {
        match self {
            Self::Mlir => Some(npu::translate::To::Mlir),
            Self::Gemini => Some(npu::translate::To::Schedule),
            Self::Npu => Some(npu::translate::To::Program),
            Self::Ark | Self::Plan(_) | Self::Archive | Self::Graph(_) => None,
        }
    }
}

fn translate(console: &Console, arguments: &Translate, flags: &Flags) -> Result<(), Error> {
    let to = destination(console, arguments)?;
    let from = origin(arguments)?;
    expect_pair(arguments, from, flags)?;
    output::probe_all(flags, Path::to_owned)?;
    if let (Origin::Graph(_), To::Ark | To::Plan(_)) = (from, &to) {
        output::probe_derived(flags, &ark_files::beside_all(&arguments.output))?;
    }
    let (bytes, content) = match (from, to.scheduled()) {
        (Origin::Gemini, Some(to)) => npu::translate::from_schedule(console, arguments, to)?,
        (Origin::Npu, Some(to)) => npu::translate::from_program(console, arguments, to)?,
        _ => of_bytes(console, arguments, from, &to)?,
    };
    output::write(&arguments.output, &bytes, content)
}

/// Translates the bytes of a model, a graph or a module.
fn of_bytes(
    console: &Console,
    arguments: &Translate,
    from: Origin,
    to: &To,
) -> Result<(Vec<u8>, Content), Error> {
    let bytes = input::read(&arguments.input)?;
    let is_npu = matches!(to, To::Gemini | To::Npu);
    let is_model = matches!(from, Origin::Ark | Origin::Graph(_)) || arguments.npu.target.is_some();
    if is_npu && is_model {
        return npu::model::translate(console, arguments, bytes, matches!(to, To::Npu));
    }
    match (from, to) {
        (_, To::Archive) => to_archive(console, arguments, bytes),
        (Origin::Graph(_), To::Ark | To::Plan(_)) => graph_to_ark(console, arguments, bytes, to),
        (Origin::Graph(written), _) => from_graph(console, arguments, bytes, written, to),
        (Origin::Ark, _) => {
            let content = input::Content::of(&bytes);
            if content != input::Content::Model {
                return Err(unexpected(&arguments.input, input::Content::Model, content));
            }
            let input = Input { name: arguments.input.clone(), bytes, content };
            Ok((from_ark(console, arguments, &input, to)?, Content::Text))
        }
        (Origin::Mlir | Origin::Gemini | Origin::Npu, _) => {
            expect_text(&arguments.input, input::Content::Mlir, &bytes)?;
            let source = input::source(&arguments.input, &bytes);
            from_mlir(console, arguments, &source, &bytes, to)
        }
    }
}

/// Rejects files that are certain to be of another format than MLIR, Common IR or ONNX, whose text has no mark.
fn expect_text(name: &str, expected: input::Content, bytes: &[u8]) -> Result<(), Error> {
    use input::Content::{Archive, Frontend, Library, Model, Plan, Schedule};
    match input::Content::of(bytes) {
        found @ (Archive | Frontend | Library | Model | Plan | Schedule) => {
            Err(unexpected(name, expected, found))
        }
        _ => Ok(()),
    }
}

/// The error for a file of another format, with the flag that reads it.
fn unexpected(name: &str, expected: input::Content, found: input::Content) -> Error {
    let problem = input::unexpected(name, expected.words(), found);
    match input::import_flag(found) {
        Some(flag) => problem.help(format!("read it with {flag}")),
        None => problem,
    }
}

fn origin(arguments: &Translate) -> Result<Origin, Error> {
    match arguments.import.flag().as_deref() {
        None => Ok(Origin::Mlir),
        Some("--import-ark") => Ok(Origin::Ark),
        Some("--import-common-ir") => Ok(Origin::Graph(Written::CommonIr)),
        Some("--import-onnx") => Ok(Origin::Graph(Written::Onnx)),
        Some("--import-gemini") => Ok(Origin::Gemini),
        Some("--import-npu") => Ok(Origin::Npu),
        Some(flag) => Err(Error::unimplemented(flag)),
    }
}

fn destination(console: &Console, arguments: &Translate) -> Result<To, Error> {
    match arguments.emit.flag().as_deref() {
        None => Ok(To::Mlir),
        Some("--emit-ark") => Ok(To::Ark),
        Some("--emit-mlf") => Ok(To::Archive),
        Some("--emit-common-ir") => Ok(To::Graph(Written::CommonIr)),
        Some("--emit-onnx") => Ok(To::Graph(Written::Onnx)),
        Some("--emit-gemini") => Ok(To::Gemini),
        Some("--emit-npu") => Ok(To::Npu),
        Some("--emit-plan") => {
            let planning = plan::Planning {
                arch: arguments.arch.as_deref().unwrap_or(target::GPU),
                processors: arguments.processors,
                planner: arguments.planner,
                rules: arguments.config_rules.as_deref(),
            };
            Ok(To::Plan(Box::new(plan::options(console, &planning)?)))
        }
        Some(flag) => Err(Error::unimplemented(flag)),
    }
}

/// Rejects unsupported pairs of formats, and flags that have no effect on them.
fn expect_pair(arguments: &Translate, from: Origin, flags: &Flags) -> Result<(), Error> {
    let to = arguments.emit.flag();
    let to = to.as_deref().unwrap_or("MLIR");
    let kind = from.kind();
    let rejected = TRANSLATIONS.iter().find(|(output, inputs, _)| {
        *output == to && kind != InputKind::Mlir && !inputs.contains(&kind)
    });
    match rejected {
        Some((_, _, why)) => Err(Error::Usage((*why).into())),
        None => flags.expect(&[kind], Some(to)).map_err(Error::Usage),
    }
}

/// Converts a Common IR or ONNX file to an ARK model or plan, and writes the names of its buffers beside
/// it.
fn graph_to_ark(
    console: &Console,
    arguments: &Translate,
    bytes: Bytes,
    to: &To,
) -> Result<(Vec<u8>, Content), Error> {
    let session = Session::new();
    let input = Input { name: arguments.input.clone(), bytes, content: input::Content::Graph };
    let model = models::open(console, &session, &input, &models::options(&arguments.graphs)?)?;
    let ark = model.to_ark()?;
    let text = match to {
        To::Plan(options) => plan::plan_converted(console, &model, &ark, options)?,
        _ => model::write(&ark.model),
    };
    let beside = ark_files::stage_beside(console, &arguments.output, &ark)?;
    beside.into_iter().try_for_each(output::Stream::finish)?;
    Ok((text.into_bytes(), Content::Text))
}

/// Compiles a model of any format to an archive for this machine.
fn to_archive(
    console: &Console,
    arguments: &Translate,
    bytes: Bytes,
) -> Result<(Vec<u8>, Content), Error> {
    let session = Session::new();
    let content = input::Content::of(&bytes);
    let input = Input { name: arguments.input.clone(), bytes, content };
    let options = ImportOptions { strict: arguments.strict, ..models::options(&arguments.graphs)? };
    let model = models::open(console, &session, &input, &options)?;
    let archive = archive::compiled(console, &arguments.output, &model)?;
    Ok((archive, Content::Binary))
}

fn from_graph(
    console: &Console,
    arguments: &Translate,
    bytes: Bytes,
    written: Written,
    to: &To,
) -> Result<(Vec<u8>, Content), Error> {
    if arguments.graphs.format.is_none() {
        expect_text(&arguments.input, input::Content::Graph, &bytes)?;
    }
    let (document, source) = translate_common_ir::read_flagged(console, arguments, bytes, written)?;
    let context = irc_dialects::new_context();
    let capture = Capture::new(&context);
    let module = translate_common_ir::to_dialect(&context, &document);
    let To::Graph(written) = to else {
        let text = module.map(|module| output::mlir(&module, &arguments.output));
        return report(console, diagnostics(&capture, &source), text);
    };
    let module = module.as_ref().and_then(graph_of);
    let module = report(console, diagnostics(&capture, &source), module)?;
    translate_common_ir::emit(console, arguments, module, &source, *written)
}

/// The Common IR or ONNX module of a dialect's module; `None` after a diagnostic.
fn graph_of(module: &Module<'_>) -> Option<irc_common_format::model::Module> {
    let root = common_ir::module_op(module.as_operation()).ok()?;
    Some(common_ir::export(root).ok()?.module)
}

fn from_ark(
    console: &Console,
    arguments: &Translate,
    input: &Input,
    to: &To,
) -> Result<Vec<u8>, Error> {
    let session = Session::new();
    let source = input.source();
    let options = ImportOptions { strict: arguments.strict, ..ImportOptions::default() };
    let model = session.parse(input.shown(), input.bytes.clone(), &options)?;
    let found = model.read_diagnostics();
    if found.iter().any(irc_diag::Diagnostic::is_error) {
        return Err(Error::Diagnostics(source, found));
    }
    console.diagnostics(&source, &found);
    if let To::Plan(options) = to {
        return Ok(plan::plan(console, &source, options)?.into_bytes());
    }
    let text = model.stage("import", CompileOptions::default())?;
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
) -> Result<(Vec<u8>, Content), Error> {
    let context = irc_dialects::new_context();
    let capture = Capture::new(&context);
    let module = irc_mlir::parse_bytecode(&context, bytes);
    if let To::Graph(written) = to {
        let module = module.as_ref().and_then(graph_of);
        let module = report(console, diagnostics(&capture, source), module)?;
        return translate_common_ir::emit(console, arguments, module, source, *written);
    }
    let translated = module.and_then(|module| to_format(&module, to, &arguments.output));
    report(console, diagnostics(&capture, source), translated)
}

/// Returns `None` after a diagnostic.
fn to_format(module: &Module<'_>, to: &To, output: &Path) -> Option<(Vec<u8>, Content)> {
    let text = match to {
        To::Mlir => return Some(output::mlir(module, output)),
        To::Ark => model::write(&ark::export(module).ok()?),
        To::Plan(options) => {
            let is_model = |op: &OperationRef| irc_mlir::read::op_name(op) == "ark.model";
            let ops = irc_mlir::read::body_ops(module.as_operation());
            if ops.iter().any(is_model) {
                ark_to_plan::run(module, &options.planner).ok()?;
            } else if !ops.iter().any(|op| irc_mlir::read::op_name(op) == "plan.program") {
                let message = "a plan is made of one ark.model or plan.program, and the module has neither; \
                               irc compile -o PLAN.json plans modules of the tensor level";
                let _ = irc_mlir::PassError::at(&module.as_operation(), message);
                return None;
            }
            plan_format::write(&plan_dialect::export(module).ok()?)
        }
        To::Gemini => npu::translate::written(module).ok()?,
        To::Npu => return npu::translate::program(module, output).ok(),
        To::Graph(_) | To::Archive => unreachable!("written of what was read"),
    };
    Some((text.into_bytes(), Content::Text))
}
