//! Files of Common IR and ONNX: read with the libraries they import, checked, and written as graphs of the
//! tensor level.
use super::ImportOptions;
use bytes::Bytes;
use irc_common_format::{
    Document, ExternalData, Options, folder_of,
    library::{LoadOptions, bundle, load},
    model::{Module, Value},
    validate::{Level, Role, ValidateOptions, validate},
};
use irc_diag::{Diagnostic, Severity, Sink, Source};
use irc_onnx_ops::{Imported, NodeDiagnostic, NodeDiagnosticKind, cases::import_for, unsupported};
use std::path::{Path, PathBuf};

/// What becomes of the libraries that a module imports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Libraries {
    /// They are not read, and the rules not checked: the file is taken as it is written.
    Left,
    /// Their operators and functions are put into the module.
    Bundled,
}

/// A file as it was read.
#[derive(Debug)]
pub struct Read {
    /// What it says; `None` where that cannot be known.
    pub document: Option<Document>,
    /// Its text, or what stands for it.
    pub source: Source,
    /// What was found in it, each at its place.
    pub diagnostics: Vec<Diagnostic>,
}

/// The folder of a file, beside which lies what it names; `None` for standard input.
pub fn folder(name: &str) -> Option<PathBuf> {
    (name != "-").then(|| folder_of(Path::new(name)).to_owned())
}

/// Reads a file with the libraries it imports, and checks them. What it names lies beside it, unless it
/// comes from standard input, whose name is `-`.
pub fn read(name: &str, bytes: Bytes, options: &ImportOptions, libraries: Libraries) -> Read {
    let mut sink = Sink::new();
    let folder = folder(name);
    let name = if name == "-" { "<stdin>" } else { name };
    let external = folder.clone().map_or(ExternalData::Leave, ExternalData::In);
    let reading = Options { format: options.format, external };
    let mut document = irc_common_format::read(name, bytes.clone(), &reading, &mut sink);
    let source = match &document {
        Some(document) => document.input.source(),
        // Where text goes wrong is shown in it.
        None if std::str::from_utf8(&bytes).is_ok() => Source::from_bytes(name, &bytes),
        None => Source::new(name, ""),
    };
    if let (Some(document), Libraries::Bundled) = (&mut document, libraries) {
        let found = load(&document.module, &load_options(folder, options), &mut sink);
        let level = if options.strict { Level::Strict } else { Level::Compat };
        let implicit_std = options.implicit_std;
        let rules = ValidateOptions { level, role: Role::Any, implicit_std };
        validate(&document.module, &found, &rules, &mut sink);
        document.module = bundle(&document.module, &found);
    }
    let mut diagnostics = sink.into_diagnostics();
    if let Some(document) = &document {
        document.input.place(&mut diagnostics);
    }
    Read { document, source, diagnostics }
}

/// Where libraries may lie.
pub fn load_options(folder: Option<PathBuf>, options: &ImportOptions) -> LoadOptions {
    LoadOptions {
        folder,
        library_paths: options.library_paths.clone(),
        fetch: options.fetch.clone(),
        ..LoadOptions::default()
    }
}

/// The program of a module, and warnings.
///
/// # Errors
/// Diagnostics at their places in the file.
pub fn import(
    document: &Document,
    options: &ImportOptions,
) -> Result<(Imported, Vec<Diagnostic>), Vec<Diagnostic>> {
    let found = unknown_inputs(&document.module, options);
    if !found.is_empty() {
        return Err(found);
    }
    let unknown = unsupported(&document.module);
    if !unknown.is_empty() {
        return Err(placed(document, &unknown));
    }
    let imported = import_for(&document.module, &options.inputs, options.of_operators());
    let imported = imported.map_err(|found| placed(document, &found))?;
    let warnings = placed(document, &imported.warnings);
    Ok((imported, warnings))
}

/// Everything found in a module on the way to its program: operators that are not known, and, of a module
/// that is sound, nodes that cannot be compiled. What is only known when a model is compiled is no fault of
/// its file, but a note.
pub fn check(document: &Document, options: &ImportOptions, is_sound: bool) -> Vec<Diagnostic> {
    let unknown = unknown_inputs(&document.module, options);
    let mut found = unsupported(&document.module);
    // What breaks a rule cannot be written either: that is told once.
    if unknown.is_empty() && found.is_empty() && is_sound && !document.module.is_library() {
        found = match irc_onnx_ops::import(&document.module, &options.of_operators()) {
            Ok(imported) => imported.warnings,
            Err(found) => found,
        };
    }
    let (open, wrong): (Vec<_>, Vec<_>) = found.into_iter().partition(|diagnostic| {
        matches!(
            diagnostic.kind,
            NodeDiagnosticKind::NeedsValue(_) | NodeDiagnosticKind::NeedsShape(_)
        )
    });
    let note = |diagnostic| Diagnostic { severity: Severity::Note, ..diagnostic };
    let open = placed(document, &open).into_iter().map(note);
    unknown.into_iter().chain(placed(document, &wrong)).chain(open).collect()
}

/// A diagnostic for each name in the options that no input has.
fn unknown_inputs(module: &Module, options: &ImportOptions) -> Vec<Diagnostic> {
    let inputs = module.graph.iter().flat_map(|graph| &graph.inputs);
    let inputs: Vec<&str> = inputs.map(Value::name).collect();
    // Parts of what is no tensor have names such as x[0].
    let whole = |name: &str| name.split('[').next().unwrap_or_default().to_owned();
    let is_known = |name: &str| inputs.contains(&name) || inputs.contains(&&*whole(name));
    let names = options.shapes.keys().chain(options.inputs.tensors.keys());
    let unknown = names.filter(|name| !is_known(name)).map(|name| {
        let message = format!("no input is named '{name}'; the inputs are {}", inputs.join(", "));
        Diagnostic::error("import-input", message)
    });
    unknown.collect()
}

/// What the importer found, at its place in the file.
fn placed(document: &Document, found: &[NodeDiagnostic]) -> Vec<Diagnostic> {
    let mut diagnostics: Vec<_> = found.iter().map(diagnostic).collect();
    document.input.place(&mut diagnostics);
    diagnostics
}

fn diagnostic(node: &NodeDiagnostic) -> Diagnostic {
    let code = match node.kind {
        NodeDiagnosticKind::UnknownOperator => "onnx-operator",
        NodeDiagnosticKind::Unsupported => "onnx-unsupported",
        NodeDiagnosticKind::Invalid => "onnx-node",
        NodeDiagnosticKind::StatedShape => "onnx-shape",
        NodeDiagnosticKind::NeedsValue(_) => "onnx-needs-value",
        NodeDiagnosticKind::NeedsShape(_) => "onnx-needs-shape",
    };
    let message = format!("{}: {}", node.node, node.message);
    let diagnostic = match node.kind {
        NodeDiagnosticKind::StatedShape => Diagnostic::warning(code, message),
        _ => Diagnostic::error(code, message),
    };
    let diagnostic = diagnostic.path(node.path.clone());
    match &node.kind {
        NodeDiagnosticKind::NeedsValue(inputs) | NodeDiagnosticKind::NeedsShape(inputs)
            if !inputs.is_empty() =>
        {
            let names: Vec<String> = inputs.iter().map(|name| format!("'{name}'")).collect();
            let names = names.join(", ");
            diagnostic.help(format!("the program is made for what {names} is: give it with --inputs, or ImportOptions::inputs"))
        }
        NodeDiagnosticKind::UnknownOperator => {
            diagnostic.help("docs/operators.md lists what is known")
        }
        _ => diagnostic,
    }
}
