//! Common IR and ONNX files.
use crate::{console::Console, crash, run::refuse_flags, stop::Stop};
use bytes::Bytes;
use irc_cli::{Functions, Graphs};
use irc_common_format::library::{Fetch, LoadOptions, bundle, load};
use irc_common_format::model::{Module, Value};
use irc_common_format::validate::{Level, Role, ValidateOptions, validate};
use irc_common_format::{Document, ExternalData, Format, Options, folder_of};
use irc_diag::{Diagnostic, Severity, Sink, Source};
use irc_onnx_ops::{Calls, Finding, FindingKind, ImportOptions};
use irc_tl::{Dim, Graph};
use std::collections::BTreeMap;
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
fn import_options(flags: &Graphs, module: &Module) -> Result<ImportOptions, Stop> {
    Ok(ImportOptions {
        calls: match flags.functions {
            Functions::Inline => Calls::Inlined,
            Functions::Outline => Calls::Outlined,
        },
        ignore_control_inputs: flags.ignore_control_inputs,
        shapes: shapes(&flags.shape, module)?,
        ..ImportOptions::default()
    })
}

/// Shapes by input, from `data=1x3x224x224`.
fn shapes(flags: &[String], module: &Module) -> Result<BTreeMap<String, Vec<i64>>, Stop> {
    let inputs = module.graph.iter().flat_map(|graph| &graph.inputs);
    let inputs: Vec<&str> = inputs.map(Value::name).collect();
    let mut shapes = BTreeMap::new();
    for flag in flags {
        let wrong = || {
            let expected = "expected NAME=SHAPE, as in data=1x3x224x224";
            Stop::Usage(format!("--shape: {expected}, found '{flag}'"))
        };
        let (name, shape) = flag.rsplit_once('=').ok_or_else(wrong)?;
        let extent = |text: &str| text.parse().ok().filter(|extent: &i64| *extent >= 0);
        let extents = shape.split('x').filter(|_| !shape.is_empty()).map(extent);
        let extents: Vec<i64> = extents.collect::<Option<_>>().ok_or_else(wrong)?;
        if !inputs.contains(&name) {
            let known = inputs.join(", ");
            let message = format!("--shape: no input is named '{name}'; the inputs are {known}");
            return Err(Stop::problem(message));
        }
        shapes.insert(name.to_owned(), extents);
    }
    Ok(shapes)
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

/// The sizes of a graph that the shapes of its inputs tell, by name.
fn sizes<'s>(graph: &Graph, shape: impl Fn(&str) -> Option<&'s [i64]>) -> BTreeMap<Dim, i64> {
    let mut sizes = BTreeMap::new();
    for (name, value) in &graph.inputs {
        let extents = shape(name).unwrap_or_default().iter().copied();
        sizes.extend(graph.ty(*value).dims.iter().cloned().zip(extents));
    }
    sizes
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
    let mut document = irc_common_format::read(name, bytes.clone(), &options, &mut sink);
    let source = match &document {
        Some(document) => document.input.source(),
        // Where text goes wrong is shown in it.
        None if std::str::from_utf8(&bytes).is_ok() => Source::from_bytes(name, &bytes),
        None => Source::new(name, ""),
    };
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
            console.findings(&source, &briefly(findings));
            Ok((document, source))
        }
        _ => Err(Stop::Findings(source, findings)),
    }
}

/// The first warnings, and how many there are more; `irc check` tells them all, and notes.
fn briefly(mut findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    const MOST: usize = 5;
    findings.retain(|finding| finding.severity != Severity::Note);
    let more = findings.len().saturating_sub(MOST);
    if more > 0 {
        findings.truncate(MOST);
        let last = findings.pop().map(|last| last.help(format!("irc check tells {more} more")));
        findings.extend(last);
    }
    findings
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
            let names: Vec<String> = inputs.iter().map(|name| format!("'{name}'")).collect();
            let names = names.join(", ");
            diagnostic
                .help(format!("the program is made for what {names} is: give it with --inputs"))
        }
        FindingKind::UnknownOperator => diagnostic.help("docs/operators.md lists what is known"),
        _ => diagnostic,
    }
}
