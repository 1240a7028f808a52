//! Common IR and ONNX files.
use crate::{console::Console, crash, run::refuse_flags, stop::Stop};
use bytes::Bytes;
use irc_cli::{Functions, Graphs};
use irc_common_format::library::{Fetch, LoadOptions, bundle, load};
use irc_common_format::validate::{Level, Role, ValidateOptions, validate};
use irc_common_format::{Document, ExternalData, Format, Options, folder_of};
use irc_diag::{Diagnostic, Sink, Source};
use irc_onnx_ops::{Calls, Finding, FindingKind, ImportOptions};
use std::path::{Path, PathBuf};

pub mod bench;
pub mod check;
pub mod compile;
pub mod run;
pub mod translate;

/// What becomes of the libraries that a module imports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Libraries {
    /// They are not read, and the rules not checked: the file is taken as it is written.
    Left,
    /// Their operators and functions are put into the module.
    Bundled,
}

/// The form that a flag names.
fn format(flags: &Graphs) -> Result<Format, Stop> {
    let Some(name) = &flags.format else { return Ok(Format::default()) };
    Format::from_name(name).ok_or_else(|| {
        let names = Format::names().join(", ");
        Stop::Usage(format!("--format: expected one of {names}, found {name}"))
    })
}

/// How a file is taken to the tensor level.
fn import_options(flags: &Graphs) -> ImportOptions {
    ImportOptions {
        calls: match flags.functions {
            Functions::Inline => Calls::Inlined,
            Functions::Outline => Calls::Outlined,
        },
        ignore_control_inputs: flags.ignore_control_inputs,
        ..ImportOptions::default()
    }
}

/// Refuses the flags of these files where there is none.
pub fn refuse(flags: &Graphs) -> Result<(), Stop> {
    let Graphs {
        format: _,
        library_path,
        allow_fetch,
        implicit_std,
        compat,
        functions,
        ignore_control_inputs,
    } = flags;
    let flags = [
        ("--library-path", !library_path.is_empty()),
        ("--allow-fetch", allow_fetch.is_some()),
        ("--implicit-std", *implicit_std),
        ("--compat", *compat),
        ("--functions", *functions != Functions::Inline),
        ("--ignore-control-inputs", *ignore_control_inputs),
    ];
    refuse_flags(&flags, "it is for Common IR and ONNX files")
}

/// Refuses flags that say how ARK models are compiled.
fn refuse_of_ark(flags: &irc_cli::Compile, keep: bool) -> Result<(), Stop> {
    let irc_cli::Compile { target_cpu: _, results, ark_accumulate, explain_fusion } = flags;
    let flags = [
        ("--results", results.is_some()),
        ("--keep-intermediates", keep),
        ("--ark-accumulate", *ark_accumulate),
        ("--explain-fusion", explain_fusion.is_some()),
    ];
    refuse_flags(&flags, "it is for ARK models")
}

/// A file as it was read, its source, and what was found in it.
type Read = (Option<Document>, Source, Vec<Diagnostic>);

/// The folder of a file; nothing for standard input.
fn folder(name: &str) -> Option<PathBuf> {
    (name != "-").then(|| folder_of(Path::new(name)).to_owned())
}

/// Reads a file with the libraries it imports, and checks them. What it names lies beside it, unless it
/// comes from standard input.
fn read(
    name: &str,
    bytes: Bytes,
    flags: &Graphs,
    level: Level,
    libraries: Libraries,
) -> Result<Read, Stop> {
    let mut sink = Sink::new();
    let folder = folder(name);
    let name = if name == "-" { "<stdin>" } else { name };
    let external = folder.clone().map_or(ExternalData::Leave, ExternalData::In);
    let options = Options { format: format(flags)?, external };
    let mut document = irc_common_format::read(name, bytes, &options, &mut sink);
    let source = document.as_ref().map(|document| document.input.source());
    let source = source.unwrap_or_else(|| Source::new(name, ""));
    crash::remember(&source);
    if let (Some(document), Libraries::Bundled) = (&mut document, libraries) {
        let found = load(&document.module, &load_options(folder, flags), &mut sink);
        let level = if flags.compat { Level::Compat } else { level };
        let implicit_std = flags.implicit_std;
        let rules = ValidateOptions { level, role: Role::Any, implicit_std };
        validate(&document.module, &found, &rules, &mut sink);
        document.module = bundle(&document.module, &found);
    }
    let mut findings = sink.into_diagnostics();
    if let Some(document) = &document {
        document.input.place(&mut findings);
    }
    Ok((document, source, findings))
}

/// Where libraries may lie.
fn load_options(folder: Option<PathBuf>, flags: &Graphs) -> LoadOptions {
    LoadOptions {
        folder,
        library_paths: flags.library_path.clone(),
        fetch: flags.allow_fetch.clone().map(Fetch::into_folder),
        ..LoadOptions::default()
    }
}

/// Reads a file to be compiled; its warnings are on the console. What only files of Common IR's time
/// break is a warning.
fn open(
    console: &Console,
    name: &str,
    bytes: Bytes,
    flags: &Graphs,
    libraries: Libraries,
) -> Result<(Document, Source), Stop> {
    let (document, source, findings) = read(name, bytes, flags, Level::Compat, libraries)?;
    match document {
        Some(document) if !findings.iter().any(Diagnostic::is_error) => {
            console.findings(&source, &findings);
            Ok((document, source))
        }
        _ => Err(Stop::Findings(source, findings)),
    }
}

/// What the importer found, at its place in the file.
fn place(document: &Document, found: &[Finding]) -> Vec<Diagnostic> {
    let mut findings: Vec<_> = found.iter().map(diagnostic).collect();
    document.input.place(&mut findings);
    findings
}

fn diagnostic(finding: &Finding) -> Diagnostic {
    let code = match finding.kind {
        FindingKind::UnknownOperator => "onnx-operator",
        FindingKind::Unsupported => "onnx-unsupported",
        FindingKind::Invalid => "onnx-node",
        FindingKind::StatedShape => "onnx-shape",
        FindingKind::NeedsValue(_) => "onnx-needs-value",
        FindingKind::NeedsShape(_) => "onnx-needs-shape",
    };
    let message = format!("{}: {}", finding.node, finding.message);
    let diagnostic = match finding.kind {
        FindingKind::StatedShape => Diagnostic::warning(code, message),
        _ => Diagnostic::error(code, message),
    };
    let diagnostic = diagnostic.path(finding.path.clone());
    match &finding.kind {
        FindingKind::NeedsValue(inputs) | FindingKind::NeedsShape(inputs) if !inputs.is_empty() => {
            let names = inputs.join(", ");
            diagnostic
                .help(format!("the program is made for what {names} is: give it with --inputs"))
        }
        FindingKind::UnknownOperator => diagnostic.help("docs/operators.md lists what is known"),
        _ => diagnostic,
    }
}
