//! Front ends: they read and check files of every format, and import them as graphs of the tensor level.
//!
//! A format is a row of [`FRONT_ENDS`]. Its `parse` function makes a [`Document`] of a file's bytes; the
//! interface of documents is the same for all formats: the graph, the file in the dialect of its format,
//! and the location of a diagnostic in the file. All later steps are shared.
mod ark;
mod bounds;
mod cache;
mod common_ir;
mod content;
mod gemini;
mod mlir;

use crate::{
    lowering::graph_to_tl::{give_values, graph_to_tl},
    pipeline::Reached,
};
use bytes::Bytes;
use irc_ark_frontend::Accumulate;
use irc_common_format::{FileSystem, Files, Format, library::Fetch};
use irc_diag::{Diagnostic, Source};
use irc_mlir::{Context, Module};
use irc_onnx_ops::{Calls, Structure, cases::Values};
use irc_quantise::{Plan, Quantisation};
use irc_tensor::Tensor;
use irc_tl::{Constant, Dim, Graph, Results};
use std::{collections::BTreeMap, ops::RangeInclusive, path::PathBuf, sync::Arc};

pub use bounds::Bounds;
pub use common_ir::{Libraries, Read, folder, load_options, read};
pub use content::Content;

/// Options for reading a file, and for the program that is imported from it. Setting an option that does
/// not apply to the format is an error.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The encoding of a Common IR or ONNX file, if it cannot be detected from its content.
    pub format: Format,
    /// Rejects deviations that files of a format commonly have although the format forbids them, and
    /// unknown keys.
    pub strict: bool,
    /// Folders in which imported libraries are searched, in addition to the model's own.
    pub library_paths: Vec<PathBuf>,
    /// Fetches libraries from servers; `None` to stay offline.
    pub fetch: Option<Fetch>,
    /// Whether undeclared operators are those of the standard library.
    pub implicit_std: bool,
    /// How calls of the module's functions are treated.
    pub calls: Calls,
    /// Allows nodes to run before their control inputs.
    pub ignore_control_inputs: bool,
    /// Takes sizes that are computed at run time to be those that the model states, even where the program
    /// does not depend on them.
    pub assume_stated_shapes: bool,
    /// Whether sizes must be known when the program is compiled, as for a GPU: the program is then also specialised for
    /// the values of short inputs from which sizes are computed.
    pub known_sizes: bool,
    /// Shapes of inputs with symbolic dimensions in the model, in elements, and values of such dimensions.
    pub shapes: BTreeMap<String, Vec<i64>>,
    /// Bounds of dimensions that the model leaves open.
    pub bounds: Bounds,
    /// The tokens for which caches of keys and values have room, a number or a symbol: new ones are then added in place.
    pub cache: Option<Dim>,
    /// Values of inputs. The program is specialised for those that its structure depends on.
    pub inputs: Values,
    /// The values that the program returns.
    pub results: Results,
    /// How sums and products of ARK models accumulate.
    pub accumulate: Accumulate,
    /// The quantisation of the program to 8 bits, of [`crate::Model::calibrate`] of the same file with the same other
    /// options.
    pub quantisation: Option<Arc<Quantisation>>,
}

impl ImportOptions {
    /// Sets the shape of an input, in elements.
    #[must_use]
    pub fn shape(mut self, name: impl Into<String>, shape: impl Into<Vec<i64>>) -> Self {
        self.shapes.insert(name.into(), shape.into());
        self
    }

    /// Bounds a dimension of inputs.
    #[must_use]
    pub fn bound(mut self, name: impl Into<String>, range: RangeInclusive<i64>) -> Self {
        self.bounds.insert(name.into(), range);
        self
    }

    /// Sets the value of an input that the program's structure depends on.
    #[must_use]
    pub fn input(mut self, name: impl Into<String>, value: &Tensor) -> Self {
        self.inputs.tensors.insert(name.into(), Constant::of(value));
        self
    }

    /// Sets the values that the program returns.
    #[must_use]
    pub fn results(mut self, results: Results) -> Self {
        self.results = results;
        self
    }
}

/// A file to import.
#[derive(Clone, Debug)]
pub struct InputFile {
    /// Its name in diagnostics. Files that it refers to are found in the folder of that name, unless the
    /// name is `-` or `<stdin>`.
    pub name: String,
    /// Its bytes, which may be memory-mapped.
    pub bytes: Bytes,
    /// The options.
    pub options: ImportOptions,
    /// The files that it may refer to.
    pub files: Arc<dyn Files>,
}

impl InputFile {
    /// A file in memory; files that it refers to are in the file system.
    pub fn new(name: impl Into<String>, bytes: Bytes, options: &ImportOptions) -> Self {
        let files = Arc::new(FileSystem);
        InputFile { name: name.into(), bytes, options: options.clone(), files }
    }
}

/// An imported program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// The program.
    pub graph: Graph,
    /// How inputs and outputs that are not tensors are composed of tensors of the graph.
    pub structures: BTreeMap<String, Structure>,
    /// The bounds of dimensions of inputs, which the program checks.
    pub bounds: Bounds,
    /// Deviations from declarations in the file that do not affect the program.
    pub warnings: Vec<Diagnostic>,
}

impl Imported {
    /// The same with another graph of the same inputs and outputs.
    pub(crate) fn with(&self, graph: Graph) -> Self {
        let Self { graph: _, structures, bounds, warnings } = self;
        let (structures, bounds) = (structures.clone(), bounds.clone());
        Self { graph, structures, bounds, warnings: warnings.clone() }
    }

    /// Quantises the program.
    pub(crate) fn quantise(&mut self, by: &Quantisation) -> Result<(), Vec<Diagnostic>> {
        let made = Plan::new(&self.graph, by.scope).quantise(&self.graph, by);
        self.graph = made.map_err(|message| vec![Diagnostic::error("quantise-model", message)])?;
        Ok(())
    }
}

impl From<Graph> for Imported {
    fn from(graph: Graph) -> Self {
        Imported { graph, ..Imported::default() }
    }
}

/// A file that was read.
#[derive(Clone)]
pub struct Parsed {
    /// The contents; `None` after an error.
    pub document: Option<Arc<dyn Document>>,
    /// The text that diagnostics refer to.
    pub source: Source,
    /// Every diagnostic of reading it.
    pub diagnostics: Arc<[Diagnostic]>,
}

impl PartialEq for Parsed {
    /// Documents are compared by identity: every parse creates a new one.
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.document, &other.document) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        same && self.source == other.source && self.diagnostics == other.diagnostics
    }
}

/// A position in a file: line and column, from 1.
pub type Position = (usize, usize);

/// The contents of a file, in any format.
pub trait Document: Send + Sync {
    /// The program, imported with the options of the file.
    ///
    /// # Errors
    /// All diagnostics, with paths in the document; [`Document::locate`] adds their locations.
    fn import(&self) -> Result<Imported, Vec<Diagnostic>>;

    /// The file in the dialect of its format; `None` after a diagnostic in the context.
    fn dialect<'c>(&self, context: &'c Context) -> Option<Module<'c>>;

    /// Adds locations in the file to diagnostics that have a path.
    fn locate(&self, diagnostics: &mut [Diagnostic]);

    /// Diagnostics of compiling the file, in addition to those of reading it, for `irc check`: unknown
    /// operators, errors of compilation, and as notes what depends on values that are known only at run
    /// time.
    fn check(&self) -> Vec<Diagnostic> {
        let mut found = match self.import() {
            Ok(imported) => imported.warnings,
            Err(found) => found,
        };
        self.locate(&mut found);
        found
    }

    /// The path of the input or output of a name, if inputs and outputs are items of the file.
    fn port_path(&self, _name: &str) -> Option<String> {
        None
    }

    /// The stage whose output the file is, if it is a module after the tensor level, which has no graph.
    fn stage(&self) -> Option<Reached> {
        None
    }

    /// The ARK model of the file, if it is one.
    fn ark(&self) -> Option<&irc_ark_format::model::Document> {
        None
    }
}

/// A format.
pub struct FrontEnd {
    /// The kind of file.
    pub content: Content,
    /// Reads a file of that kind.
    parse: fn(&InputFile) -> Parsed,
    /// The values that `irc run` returns by default.
    pub run_results: Results,
}

/// All formats that can be imported as graphs.
pub static FRONT_ENDS: [FrontEnd; 4] = [
    FrontEnd { content: Content::Model, parse: ark::parse, run_results: Results::All },
    FrontEnd { content: Content::Graph, parse: common_ir::parse, run_results: Results::Outputs },
    FrontEnd { content: Content::Frontend, parse: gemini::parse, run_results: Results::Outputs },
    FrontEnd { content: Content::Mlir, parse: mlir::parse, run_results: Results::Outputs },
];

/// An option that applies only to some formats: its description, the kinds of files, and whether it is set.
type OptionRow = (&'static str, &'static [Content], fn(&ImportOptions) -> bool);

/// Every option that does not apply to all formats.
static OPTIONS: [OptionRow; 10] = [
    ("a search path of libraries", &[Content::Graph], |own| !own.library_paths.is_empty()),
    ("fetching libraries", &[Content::Graph], |own| own.fetch.is_some()),
    ("a shape of an input", &[Content::Graph], |own| !own.shapes.is_empty()),
    ("room in caches", &[Content::Graph], |own| own.cache.is_some()),
    ("the implicit standard library", &[Content::Graph], |own| own.implicit_std),
    ("outlining of functions", &[Content::Graph], |own| own.calls != Calls::default()),
    ("ignoring control inputs", &[Content::Graph], |own| own.ignore_control_inputs),
    ("assuming stated shapes", &[Content::Graph], |own| own.assume_stated_shapes),
    ("a value of an input", &[Content::Graph], |own| !own.inputs.tensors.is_empty()),
    ("accumulation as in ARK's kernels", &[Content::Model], |own| {
        own.accumulate != Accumulate::default()
    }),
];

impl FrontEnd {
    /// The front end of a kind of file.
    pub fn of(content: Content) -> Option<&'static FrontEnd> {
        FRONT_ENDS.iter().find(|row| row.content == content)
    }

    /// Reads a file; an option that does not apply to the format is an error.
    pub fn read(&self, file: &InputFile) -> Parsed {
        let parsed = (self.parse)(file);
        let unused = OPTIONS
            .iter()
            .filter(|(_, files, is_set)| !files.contains(&self.content) && is_set(&file.options));
        let errors = unused.map(|(name, ..)| {
            let format = self.content.words();
            Diagnostic::error("import-option", format!("{name} has no meaning for {format}"))
        });
        Parsed { diagnostics: parsed.diagnostics.iter().cloned().chain(errors).collect(), ..parsed }
    }
}

/// A document of a program that already is a graph.
pub(crate) struct Written {
    /// The program.
    pub imported: Arc<Imported>,
    /// The document that it is a part of, if any.
    pub of: Option<Arc<dyn Document>>,
}

impl Document for Written {
    fn import(&self) -> Result<Imported, Vec<Diagnostic>> {
        Ok((*self.imported).clone())
    }

    fn dialect<'c>(&self, context: &'c Context) -> Option<Module<'c>> {
        let module = graph_to_tl(context, &self.imported.graph, "main").ok()?;
        give_values(context, module.as_operation(), &self.imported.graph);
        Some(module)
    }

    fn port_path(&self, name: &str) -> Option<String> {
        self.of.as_ref()?.port_path(name)
    }

    fn locate(&self, diagnostics: &mut [Diagnostic]) {
        if let Some(whole) = &self.of {
            whole.locate(diagnostics);
        }
    }
}

/// The path of the item in a node's origin: an origin is a path, or `path: node`.
pub(crate) fn path_of(origin: &str) -> &str {
    origin.split_once(": ").map_or(origin, |(path, _)| path)
}

/// Positions of nodes in a file, by their origins; `None` if a node has no position.
pub(crate) fn positions(
    document: &dyn Document,
    source: &Source,
    origins: &[&str],
) -> Vec<Option<Position>> {
    let at =
        |origin: &&str| Diagnostic::new(irc_diag::Severity::Note, "", "").path(path_of(origin));
    let mut found: Vec<Diagnostic> = origins.iter().map(at).collect();
    document.locate(&mut found);
    let lines = source.lines();
    found.iter().map(|one| one.primary_span().map(|span| lines.line_column(span.start))).collect()
}
