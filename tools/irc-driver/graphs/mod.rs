//! Common IR and ONNX files.
use crate::{console::Console, crash, run::refuse_flags, stop::Stop};
use bytes::Bytes;
use irc::model::graph::{self, Libraries, Read, read};
use irc::{ImportOptions, Model, Session};
use irc_cli::{CompileTo, Functions, Graphs};
use irc_common_format::library::Fetch;
use irc_common_format::{Document, Format};
use irc_diag::{Diagnostic, Severity, Source};
use irc_onnx_ops::{Calls, cases::Values};

pub mod bench;
pub mod check;
pub mod run;
pub mod translate;

/// The form that a flag names.
fn format(flags: &Graphs) -> Result<Format, Stop> {
    let Some(name) = &flags.format else { return Ok(Format::default()) };
    Format::from_name(name).ok_or_else(|| {
        let names = Format::names().join(", ");
        Stop::Usage(format!("--format: expected one of {names}, found {name}"))
    })
}

/// How files are read, by the flags.
fn options(flags: &Graphs) -> Result<ImportOptions, Stop> {
    Ok(ImportOptions {
        format: format(flags)?,
        strict: false,
        library_paths: flags.library_path.clone(),
        fetch: flags.allow_fetch.clone().map(Fetch::into_folder),
        implicit_std: flags.implicit_std,
        calls: match flags.functions {
            Functions::Inline => Calls::Inlined,
            Functions::Outline => Calls::Outlined,
        },
        ignore_control_inputs: flags.ignore_control_inputs,
        shapes: flags.shape.iter().map(|flag| shape(flag)).collect::<Result<_, _>>()?,
        inputs: Values::default(),
    })
}

/// The name and shape of an input, from `data=1x3x224x224`.
fn shape(flag: &str) -> Result<(String, Vec<i64>), Stop> {
    let wrong = || {
        let expected = "expected NAME=SHAPE, as in data=1x3x224x224";
        Stop::Usage(format!("--shape: {expected}, found '{flag}'"))
    };
    let (name, shape) = flag.rsplit_once('=').ok_or_else(wrong)?;
    let extent = |text: &str| text.parse().ok().filter(|extent: &i64| *extent >= 0);
    let extents = shape.split('x').filter(|_| !shape.is_empty()).map(extent);
    let extents: Vec<i64> = extents.collect::<Option<_>>().ok_or_else(wrong)?;
    Ok((name.to_owned(), extents))
}

/// Refuses the flags of these files where there is none.
pub fn refuse(flags: &Graphs) -> Result<(), Stop> {
    let Graphs {
        format: _,
        library_path,
        allow_fetch,
        shape,
        implicit_std,
        compat,
        functions,
        ignore_control_inputs,
    } = flags;
    let flags = [
        ("--library-path", !library_path.is_empty()),
        ("--allow-fetch", allow_fetch.is_some()),
        ("--shape", !shape.is_empty()),
        ("--implicit-std", *implicit_std),
        ("--compat", *compat),
        ("--functions", *functions != Functions::Inline),
        ("--ignore-control-inputs", *ignore_control_inputs),
    ];
    refuse_flags(&flags, "it is for Common IR and ONNX files")
}

/// Refuses flags that say how ARK models are compiled.
pub fn refuse_of_ark(flags: &irc_cli::Compile, keep: bool) -> Result<(), Stop> {
    let irc_cli::Compile { target_cpu: _, results, ark_accumulate, explain_fusion } = flags;
    let flags = [
        ("--results", results.is_some()),
        ("--keep-intermediates", keep),
        ("--ark-accumulate", *ark_accumulate),
        ("--explain-fusion", explain_fusion.is_some()),
    ];
    refuse_flags(&flags, "it is for ARK models")
}

/// Reads a file to be compiled; its warnings are on the console. What only files of Common IR's time
/// break is a warning.
fn open(
    console: &Console,
    name: &str,
    bytes: Bytes,
    options: &ImportOptions,
    libraries: Libraries,
) -> Result<(Document, Source), Stop> {
    let Read { document, source, diagnostics } = read(name, bytes, options, libraries);
    crash::remember(&source);
    match document {
        Some(document) if !diagnostics.iter().any(Diagnostic::is_error) => {
            console.diagnostics(&source, &briefly(diagnostics));
            Ok((document, source))
        }
        _ => Err(Stop::Diagnostics(source, diagnostics)),
    }
}

/// The model of a file that is to be compiled.
pub fn model<'s>(
    console: &Console,
    session: &'s Session,
    arguments: &CompileTo,
    bytes: Bytes,
) -> Result<Model<'s>, Stop> {
    let mut options = options(&arguments.graphs)?;
    let (document, source) = open(console, &arguments.model, bytes, &options, Libraries::Bundled)?;
    options.inputs = run::read(&document, arguments.inputs.as_deref())?;
    import(console, session, &document, source, &options)
}

/// The model that a file is, for the inputs of the options; its warnings are on the console.
pub fn import<'s>(
    console: &Console,
    session: &'s Session,
    document: &Document,
    source: Source,
    options: &ImportOptions,
) -> Result<Model<'s>, Stop> {
    match graph::import(document, options) {
        Ok((imported, warnings)) => {
            console.diagnostics(&source, &warnings);
            Ok(session.import_graph_of(source, imported))
        }
        Err(found) => Err(Stop::Diagnostics(source, found)),
    }
}

/// The first warnings, and how many there are more; `irc check` tells them all, and notes.
fn briefly(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    const MOST: usize = 5;
    diagnostics.retain(|diagnostic| diagnostic.severity != Severity::Note);
    let more = diagnostics.len().saturating_sub(MOST);
    if more > 0 {
        diagnostics.truncate(MOST);
        let last = diagnostics.pop().map(|last| last.help(format!("irc check tells {more} more")));
        diagnostics.extend(last);
    }
    diagnostics
}
