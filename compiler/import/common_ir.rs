//! Files of Common IR and ONNX, with the libraries that they import.
use super::{Document, ImportOptions, Imported, InputFile, Parsed};
use irc_common_format::{
    Document as File, ExternalData, Options, folder_of,
    library::{LoadOptions, bundle, load},
    model::{Module, Path as Item, Value},
    validate::{Level, Role, ValidateOptions, validate},
};
use irc_diag::{Diagnostic, Severity, Sink, Source};
use irc_dialects::common_ir::{self, Origins};
use irc_mlir::{Context, Module as Mlir, OperationLike};
use irc_onnx_ops::{
    NodeDiagnostic, NodeDiagnosticKind, cases::import_for, is_part, newer_sets, open_sizes,
    rejections, unsupported,
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

struct CommonIr {
    file: File,
    input: InputFile,
    /// Whether the file was read without errors.
    is_sound: bool,
}

/// Reads a file with the libraries that it imports.
pub fn parse(input: &InputFile) -> Parsed {
    let Read { document, source, diagnostics } = read(input, Libraries::Bundled);
    let is_sound = !diagnostics.iter().any(Diagnostic::is_error);
    let document = document.map(|file| {
        Arc::new(CommonIr { file, input: input.clone(), is_sound }) as Arc<dyn Document>
    });
    Parsed { document, source, diagnostics: diagnostics.into() }
}

impl Document for CommonIr {
    fn import(&self) -> Result<Imported, Vec<Diagnostic>> {
        let options = &self.input.options;
        let found = unknown_inputs(&self.file.module, options);
        if !found.is_empty() {
            return Err(found);
        }
        let unknown = unsupported(&self.file.module);
        if !unknown.is_empty() {
            return Err(unknown.iter().map(diagnostic).collect());
        }
        let imported = import_for(&self.file.module, &options.inputs, of_operators(options));
        match imported {
            Ok(imported) => Ok(Imported {
                graph: imported.graph,
                structures: imported.structures,
                warnings: imported
                    .warnings
                    .iter()
                    .chain(&newer_sets(&self.file.module))
                    .map(diagnostic)
                    .collect(),
                ..Imported::default()
            }),
            Err(found) => Err(found.iter().map(diagnostic).collect()),
        }
    }

    /// The file without its libraries.
    fn dialect<'c>(&self, context: &'c Context) -> Option<Mlir<'c>> {
        let file = read(&self.input, Libraries::Unread).document?;
        let module = common_ir::import(context, &file.module, &Origins::of(&file));
        module.as_operation().verify().then_some(module)
    }

    fn locate(&self, diagnostics: &mut [Diagnostic]) {
        self.file.input.place(diagnostics);
    }

    fn port_path(&self, name: &str) -> Option<String> {
        let graph = self.file.module.graph.as_ref()?;
        let mut lists = [("input", &graph.inputs), ("output", &graph.outputs)].into_iter();
        lists.find_map(|(list, ports)| {
            let index = ports.iter().position(|port| port.name() == name)?;
            Some(Item::GRAPH.index(list, index).to_string())
        })
    }

    fn check(&self) -> Vec<Diagnostic> {
        let (module, options) = (&self.file.module, &self.input.options);
        let mut found = unknown_inputs(module, options);
        let mut nodes = unsupported(module);
        // A file that violates a rule cannot be imported either: report that only once.
        if found.is_empty() && nodes.is_empty() && self.is_sound && !module.is_library() {
            nodes = match irc_onnx_ops::import(module, &of_operators(options)) {
                Ok(imported) => imported.warnings,
                Err(nodes) => nodes,
            };
        }
        if found.is_empty() && self.is_sound {
            nodes.extend(rejections(module));
        }
        let is_open = |node: &&NodeDiagnostic| {
            matches!(
                node.kind,
                NodeDiagnosticKind::NeedsValue(_) | NodeDiagnosticKind::NeedsShape(_)
            )
        };
        let (open, wrong): (Vec<_>, Vec<_>) = nodes.iter().partition(is_open);
        found.extend(wrong.into_iter().map(diagnostic));
        let note = |node| Diagnostic { severity: Severity::Note, ..diagnostic(node) };
        found.extend(open.into_iter().map(note));
        self.locate(&mut found);
        found
    }
}

fn of_operators(options: &ImportOptions) -> irc_onnx_ops::ImportOptions {
    irc_onnx_ops::ImportOptions {
        calls: options.calls,
        ignore_control_inputs: options.ignore_control_inputs,
        assume_stated_shapes: options.assume_stated_shapes,
        known_sizes: options.known_sizes,
        shapes: options.shapes.clone(),
        results: options.results.clone(),
        ..irc_onnx_ops::ImportOptions::default()
    }
}

/// How the libraries that a module imports are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Libraries {
    /// They are not read, and the rules are not checked: the module is that of the file alone.
    Unread,
    /// Their operators and functions are added to the module.
    Bundled,
}

/// The result of reading a file.
#[derive(Debug)]
pub struct Read {
    /// The contents; `None` if they cannot be determined.
    pub document: Option<File>,
    /// Its text, or a text representation.
    pub source: Source,
    /// The diagnostics, with locations.
    pub diagnostics: Vec<Diagnostic>,
}

/// The folder of a file, in which the files that it refers to are found; `None` for standard input.
pub fn folder(name: &str) -> Option<PathBuf> {
    (name != "-").then(|| folder_of(Path::new(name)).to_owned())
}

/// Reads a file with the libraries that it imports, and checks them. Files that it refers to are found in
/// its folder, unless it comes from standard input, whose name is `-`.
pub fn read(file: &InputFile, libraries: Libraries) -> Read {
    let InputFile { name, bytes, options, files } = file;
    let mut sink = Sink::new();
    let folder = folder(name);
    let name = if name == "-" { "<stdin>" } else { name };
    let external = folder.clone().map_or(ExternalData::Leave, ExternalData::In);
    let reading = Options { format: options.format, external, files: files.clone() };
    let mut document = irc_common_format::read(name, bytes.clone(), &reading, &mut sink);
    let source = match &document {
        Some(document) => document.input.source(),
        // Errors in text are shown in the text itself.
        None => Source::of_text_or_binary(name, bytes),
    };
    if let (Some(document), Libraries::Bundled) = (&mut document, libraries) {
        let found = load(&document.module, &load_options(file), &mut sink);
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

/// The folders in which the libraries of a file are searched.
pub fn load_options(file: &InputFile) -> LoadOptions {
    LoadOptions {
        folder: folder(&file.name),
        library_paths: file.options.library_paths.clone(),
        fetch: file.options.fetch.clone(),
        files: file.files.clone(),
        ..LoadOptions::default()
    }
}

/// A diagnostic for each name in the options that is neither an input nor an open size of one.
fn unknown_inputs(module: &Module, options: &ImportOptions) -> Vec<Diagnostic> {
    let inputs = module.graph.iter().flat_map(|graph| &graph.inputs);
    let inputs: Vec<&str> = inputs.map(Value::name).collect();
    let sizes = open_sizes(module);
    let is_input = |name: &str| inputs.iter().any(|input| is_part(name, input));
    // A number of past tokens becomes an input if caches have room.
    let is_cached = |name: &str| options.cache.is_some() && sizes.contains(name);
    let is_size = |name: &str, shape: &[i64]| shape.len() == 1 && sizes.contains(name);
    let shapes = options.shapes.iter().filter(|(name, shape)| !is_size(name, shape));
    let shapes = shapes
        .map(|(name, shape)| (name, if shape.len() == 1 { "input or open size" } else { "input" }));
    let values = options.inputs.tensors.keys().filter(|name| !is_cached(name));
    let values = values.map(|name| (name, "input"));
    let unknown = shapes.chain(values).filter(|(name, _)| !is_input(name));
    let unknown = unknown.map(|(name, what)| {
        let message = format!("no {what} is named '{name}'; the inputs are {}", inputs.join(", "));
        let names: Vec<&str> = sizes.iter().map(String::as_str).collect();
        Diagnostic::error("import-input", message).help(match &names[..] {
            [] => "all sizes of the inputs are fixed".to_owned(),
            _ if sizes.contains(name) => {
                format!("'{name}' is an open size: --shape {name}=1 states it")
            }
            names => format!("the open sizes of the inputs are {}", names.join(", ")),
        })
    });
    unknown.collect()
}

fn diagnostic(node: &NodeDiagnostic) -> Diagnostic {
    let code = match node.kind {
        NodeDiagnosticKind::UnknownOperator => "onnx-operator",
        NodeDiagnosticKind::Unsupported => "onnx-unsupported",
        NodeDiagnosticKind::Invalid => "onnx-node",
        NodeDiagnosticKind::GivenShape => "import-input",
        NodeDiagnosticKind::StatedShape => "onnx-shape",
        NodeDiagnosticKind::Rejected => "onnx-runtime",
        NodeDiagnosticKind::NeedsValue(_) => "onnx-needs-value",
        NodeDiagnosticKind::NeedsShape(_) => "onnx-needs-shape",
    };
    let message = format!("{}: {}", node.node, node.message);
    let diagnostic = match node.kind {
        NodeDiagnosticKind::StatedShape | NodeDiagnosticKind::Rejected => {
            Diagnostic::warning(code, message)
        }
        _ => Diagnostic::error(code, message),
    };
    let diagnostic = diagnostic.path(node.path.clone());
    match &node.kind {
        NodeDiagnosticKind::NeedsValue(inputs) | NodeDiagnosticKind::NeedsShape(inputs)
            if !inputs.is_empty() =>
        {
            let names: Vec<String> = inputs.iter().map(|name| format!("'{name}'")).collect();
            let names = names.join(", ");
            let how = match &node.kind {
                NodeDiagnosticKind::NeedsShape(_) => {
                    format!("sizes of {names}: give them with --shape or --inputs")
                }
                _ => format!("value of {names}: give it with --inputs"),
            };
            diagnostic.help(format!("the program is specialised to the {how}"))
        }
        NodeDiagnosticKind::Rejected => {
            diagnostic.help("irc runs the model; ONNX Runtime does not")
        }
        NodeDiagnosticKind::UnknownOperator => {
            diagnostic.help("docs/operators.md lists the operators")
        }
        _ => diagnostic,
    }
}
