//! Front ends: files of every format, read, checked and written as graphs of the tensor level.
//!
//! A format is a row of [`FRONT_ENDS`]. Its `parse` makes a [`Document`] of a file's bytes; what the
//! compiler asks of a document is the same for all formats: the graph, the dialect that holds the file
//! as written, and the place in the file of a diagnostic. Everything behind the graph is shared.
mod ark;
mod common_ir;
mod content;
mod gemini;
mod mlir;

use bytes::Bytes;
use irc_ark_frontend::Accumulate;
use irc_common_format::{FileSystem, Files, Format, library::Fetch};
use irc_diag::{Diagnostic, Source};
use irc_mlir::{Context, Module};
use irc_onnx_ops::{Calls, Structure, cases::Values};
use irc_tensor::Tensor;
use irc_tl::{Constant, Graph, Results};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

pub use common_ir::{Libraries, Read, folder, load_options, read};
pub use content::Content;

/// How a file is read, and which program of it is compiled. An option that a format has no use for is an
/// error where it is set.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The form of a Common IR or ONNX file, where its content does not show it.
    pub format: Format,
    /// Makes errors of what files of a format's time do although the format forbids it, and of keys that
    /// the format does not know.
    pub strict: bool,
    /// Folders in which imported libraries may lie, besides the model's own.
    pub library_paths: Vec<PathBuf>,
    /// How libraries are fetched from servers; `None` to stay offline.
    pub fetch: Option<Fetch>,
    /// Whether operators that nothing declares are those of the standard library.
    pub implicit_std: bool,
    /// What becomes of calls of the module's functions.
    pub calls: Calls,
    /// Lets nodes run before those that their control inputs name.
    pub ignore_control_inputs: bool,
    /// Shapes of inputs whose sizes the model leaves open, in elements.
    pub shapes: BTreeMap<String, Vec<i64>>,
    /// Values of inputs. The program is specialised to those that its structure depends on.
    pub inputs: Values,
    /// Which values the program returns.
    pub results: Results,
    /// How sums and products of ARK models accumulate.
    pub accumulate: Accumulate,
}

impl ImportOptions {
    /// Sets the shape of an input, in elements.
    #[must_use]
    pub fn shape(mut self, name: impl Into<String>, shape: impl Into<Vec<i64>>) -> Self {
        self.shapes.insert(name.into(), shape.into());
        self
    }

    /// Sets the value of an input that the program's structure depends on.
    #[must_use]
    pub fn input(mut self, name: impl Into<String>, value: &Tensor) -> Self {
        self.inputs.tensors.insert(name.into(), Constant::of(value));
        self
    }

    /// Sets which values the program returns.
    #[must_use]
    pub fn results(mut self, results: Results) -> Self {
        self.results = results;
        self
    }
}

/// A file to import.
#[derive(Clone, Debug)]
pub struct InputFile {
    /// Its name in diagnostics. What the file refers to is looked for in the folder of that name, unless it
    /// is `-` or `<stdin>`.
    pub name: String,
    /// Its bytes, which may be mapped.
    pub bytes: Bytes,
    /// How to read it.
    pub options: ImportOptions,
    /// Where what it refers to is read from.
    pub files: Arc<dyn Files>,
}

impl InputFile {
    /// A file that is in memory; what it refers to is in the file system.
    pub fn new(name: impl Into<String>, bytes: Bytes, options: &ImportOptions) -> Self {
        let files = Arc::new(FileSystem);
        InputFile { name: name.into(), bytes, options: options.clone(), files }
    }
}

/// A program as a front end wrote it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// The program.
    pub graph: Graph,
    /// How inputs and outputs that are not tensors are made of tensors of the graph.
    pub structures: BTreeMap<String, Structure>,
    /// Differences from what the file states that do not matter to the program.
    pub warnings: Vec<Diagnostic>,
}

impl From<Graph> for Imported {
    fn from(graph: Graph) -> Self {
        Imported { graph, ..Imported::default() }
    }
}

/// A file that was read.
#[derive(Clone)]
pub struct Parsed {
    /// What it says; `None` after an error.
    pub document: Option<Arc<dyn Document>>,
    /// The text that diagnostics point into.
    pub source: Source,
    /// Every diagnostic of reading it.
    pub diagnostics: Arc<[Diagnostic]>,
}

impl PartialEq for Parsed {
    /// Documents are compared by identity: reading a file again makes another one.
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.document, &other.document) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        same && self.source == other.source && self.diagnostics == other.diagnostics
    }
}

/// A place in a file: line and column, from 1.
pub type Position = (usize, usize);

/// What a file says, in whatever format.
pub trait Document: Send + Sync {
    /// The program, as the options of the file ask for it.
    ///
    /// # Errors
    /// Every diagnostic, with paths in the document; [`Document::locate`] finds their places.
    fn import(&self) -> Result<Imported, Vec<Diagnostic>>;

    /// The file as written, in the dialect of its format; `None` after a diagnostic in the context.
    fn dialect<'c>(&self, context: &'c Context) -> Option<Module<'c>>;

    /// Gives diagnostics that have a path their place in the file.
    fn locate(&self, diagnostics: &mut [Diagnostic]);

    /// Diagnostics of compiling the file beyond those of reading it, for `irc check`: what is unknown,
    /// what cannot be compiled, and as notes what depends on values that are known at run time only.
    fn check(&self) -> Vec<Diagnostic> {
        let mut found = match self.import() {
            Ok(imported) => imported.warnings,
            Err(found) => found,
        };
        self.locate(&mut found);
        found
    }

    /// The stage of the pipeline that the file is after, when it is a module that has left the tensor level
    /// behind and has no graph.
    fn stage(&self) -> Option<&'static str> {
        None
    }

    /// The ARK model that the file holds, if that is what it is.
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
    /// Which values `irc run` returns by default.
    pub run_results: Results,
}

/// Every format that becomes a graph.
pub static FRONT_ENDS: [FrontEnd; 4] = [
    FrontEnd { content: Content::Model, parse: ark::parse, run_results: Results::All },
    FrontEnd { content: Content::Graph, parse: common_ir::parse, run_results: Results::Outputs },
    FrontEnd { content: Content::Frontend, parse: gemini::parse, run_results: Results::Outputs },
    FrontEnd { content: Content::Mlir, parse: mlir::parse, run_results: Results::Outputs },
];

/// An option that some formats have no use for: what it is, the files that take it, and whether it is set.
type OptionRow = (&'static str, &'static [Content], fn(&ImportOptions) -> bool);

/// Every option that does not apply to all formats.
static OPTIONS: [OptionRow; 8] = [
    ("a search path of libraries", &[Content::Graph], |own| !own.library_paths.is_empty()),
    ("fetching libraries", &[Content::Graph], |own| own.fetch.is_some()),
    ("a shape of an input", &[Content::Graph], |own| !own.shapes.is_empty()),
    ("the implicit standard library", &[Content::Graph], |own| own.implicit_std),
    ("outlining of functions", &[Content::Graph], |own| own.calls != Calls::default()),
    ("ignoring control inputs", &[Content::Graph], |own| own.ignore_control_inputs),
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

    /// Reads a file; an option that the format has no use for is an error.
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

/// A program that is a graph already.
pub(crate) struct Written(pub Arc<Imported>);

impl Document for Written {
    fn import(&self) -> Result<Imported, Vec<Diagnostic>> {
        Ok((*self.0).clone())
    }

    fn dialect<'c>(&self, context: &'c Context) -> Option<Module<'c>> {
        crate::lowering::graph_to_tl::graph_to_tl(context, &self.0.graph, "main").ok()
    }

    fn locate(&self, _: &mut [Diagnostic]) {}
}

/// The path of the item that a node's origin names: an origin is a path, or `path: node`.
pub(crate) fn path_of(origin: &str) -> &str {
    origin.split_once(": ").map_or(origin, |(path, _)| path)
}

/// Positions of nodes in a file, by their origins; `None` where the file has none.
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
