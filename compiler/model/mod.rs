//! Models of whatever format: opened from a file, compiled, run.
//!
//! A [`Model`] is what a file says, in a session. The formats differ in how they are read; from then on a
//! model is one thing: [`Model::compile`] makes it a [`Program`] that runs here, [`Model::library`],
//! [`Model::emit`] and [`Model::archive`] what is shipped, [`Model::stage`] shows the IR on the way.
mod content;
pub mod graph;
mod program;

use crate::{
    ArchiveOptions, CheckOptions, CompileOptions, Compiled, Failure, FileId, Session,
    codegen::Output, fusion::FusionReport, interface::port_of,
};
use bytes::Bytes;
use irc_common_format::{Format, library::Fetch};
use irc_diag::{Diagnostic, Source};
use irc_mlf::Contents;
use irc_onnx_ops::{Calls, Imported, cases::Values};
use irc_runtime::Port;
use irc_tensor::Tensor;
use irc_tl::Constant;
use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use content::Content;
pub use program::Program;
pub(crate) use program::with_file;

/// Most bytes of an input that is no Common IR or ONNX file and no archive: no other comes near, and a
/// device file has no end.
pub const MAX_BYTES: u64 = 256 << 20;

/// Why a file is no model, or a model not what was asked for: diagnostics, and the file they are in.
///
/// Printed, it is what a terminal shows: each diagnostic with the lines it points at.
#[derive(Clone, PartialEq)]
pub struct Error {
    /// The file.
    pub file: Source,
    /// What was found; at least one is an error.
    pub failure: Failure,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Columns of a terminal.
        const WIDTH: usize = 100;
        let text = irc_diag::render(&self.file, &self.failure.diagnostics, false, WIDTH);
        f.write_str(text.trim_end())
    }
}

impl fmt::Debug for Error {
    /// As it is printed: what `main` shows of an error that it returns.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

impl Error {
    /// One diagnostic, at no place.
    fn at(code: &'static str, file: Source, message: impl Into<String>) -> Self {
        Self::found(file, vec![Diagnostic::error(code, message)])
    }

    fn found(file: Source, diagnostics: Vec<Diagnostic>) -> Self {
        Error { file, failure: Failure { diagnostics, internal: false } }
    }

    /// The diagnostics.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.failure.diagnostics
    }
}

/// How files are read. Those of Common IR and ONNX alone have inputs of open size, libraries and functions.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The form of a Common IR or ONNX file, where its content does not tell.
    pub format: Format,
    /// What files of a format's time do although it forbids it is an error rather than a warning; so are
    /// keys that the format does not know.
    pub strict: bool,
    /// Folders in which imported libraries may lie; beside the model they always may.
    pub library_paths: Vec<PathBuf>,
    /// How libraries are fetched from servers; `None` to stay offline.
    pub fetch: Option<Fetch>,
    /// Operators that nothing declares are those of the standard library.
    pub implicit_std: bool,
    /// What becomes of calls of the module's functions.
    pub calls: Calls,
    /// Lets nodes run before those that their control inputs name.
    pub ignore_control_inputs: bool,
    /// Shapes of inputs whose sizes the model leaves open, in elements.
    pub shapes: BTreeMap<String, Vec<i64>>,
    /// Values of inputs. The program is made for those that its structure depends on.
    pub inputs: Values,
}

impl ImportOptions {
    /// Says the shape of an input, in elements.
    #[must_use]
    pub fn shape(mut self, name: impl Into<String>, shape: impl Into<Vec<i64>>) -> Self {
        self.shapes.insert(name.into(), shape.into());
        self
    }

    /// Says the value of an input that the program's structure depends on.
    #[must_use]
    pub fn input(mut self, name: impl Into<String>, value: &Tensor) -> Self {
        self.inputs.tensors.insert(name.into(), Constant::of(value));
        self
    }

    fn of_operators(&self) -> irc_onnx_ops::ImportOptions {
        irc_onnx_ops::ImportOptions {
            calls: self.calls,
            ignore_control_inputs: self.ignore_control_inputs,
            shapes: self.shapes.clone(),
            ..irc_onnx_ops::ImportOptions::default()
        }
    }
}

/// A model in a session.
pub struct Model<'s> {
    session: &'s Session,
    source: Source,
    warnings: Vec<Diagnostic>,
    form: Form,
}

/// What a model was made of.
enum Form {
    /// An ARK model.
    File(FileId),
    /// A program of the tensor level.
    Graph(Box<Imported>),
}

/// Reads a file, unpacked when it is a gzip file. A file is mapped: what is not looked at is not read.
///
/// # Errors
/// The codes `file-read`, `file-size`, and what is wrong with a compressed file.
pub fn open(path: &Path) -> Result<Bytes, Error> {
    let name = path.display().to_string();
    let read = irc_common_format::map(path);
    let bytes = read.map_err(|error| {
        Error::at("file-read", Source::new(&name, ""), format!("cannot read {name}: {error}"))
    })?;
    unpacked(&name, bytes)
}

/// The bytes of a file, unpacked when it is a gzip file.
///
/// # Errors
/// The code `file-size`, and what is wrong with a compressed file.
pub fn unpacked(name: &str, bytes: Bytes) -> Result<Bytes, Error> {
    let is_mapped = |bytes: &[u8]| matches!(Content::of(bytes), Content::Graph | Content::Archive);
    let file = || Source::new(name, "");
    if bytes.len() as u64 > MAX_BYTES && !is_mapped(&bytes) {
        let message = format!("{name} is larger than {} MiB, the most irc reads", MAX_BYTES >> 20);
        return Err(Error::at("file-size", file(), message));
    }
    match irc_gemini_format::unpacked(&bytes) {
        Ok(Cow::Borrowed(_)) => Ok(bytes),
        Ok(Cow::Owned(unpacked)) if Content::of(&unpacked) == Content::Archive => {
            let message = format!("{name} is a compressed archive");
            let found = Diagnostic::error("file-compressed", message);
            let found = found.help("no client takes one: unpack it with gunzip");
            Err(Error::found(file(), vec![found]))
        }
        Ok(Cow::Owned(unpacked)) => Ok(unpacked.into()),
        Err(diagnostic) => Err(Error::found(file(), vec![*diagnostic])),
    }
}

impl Session {
    /// Opens a model: an ARK model, or a Common IR or ONNX file in any of its forms.
    ///
    /// # Errors
    /// A file that cannot be read, that is no model, or that has errors.
    pub fn import(&self, path: impl AsRef<Path>) -> Result<Model<'_>, Error> {
        self.import_with(path, &ImportOptions::default())
    }

    /// As [`Session::import`].
    ///
    /// # Errors
    /// As [`Session::import`].
    pub fn import_with(
        &self,
        path: impl AsRef<Path>,
        options: &ImportOptions,
    ) -> Result<Model<'_>, Error> {
        let path = path.as_ref();
        self.import_bytes(&path.display().to_string(), open(path)?, options)
    }

    /// As [`Session::import`], of a file that is in memory. What it names is looked for in the folder of
    /// `name`, unless that is `-`.
    ///
    /// # Errors
    /// As [`Session::import`].
    pub fn import_bytes(
        &self,
        name: &str,
        bytes: Bytes,
        options: &ImportOptions,
    ) -> Result<Model<'_>, Error> {
        let content = match options.format == Format::default() {
            true => Content::of_file(Path::new(name), &bytes),
            false => Content::Graph,
        };
        match content {
            Content::Model => self.import_source(Source::from_bytes(name, &bytes), options.strict),
            Content::Graph => self.import_graph(name, bytes, options),
            other => {
                let message = format!("{name}: expected a model, found {}", other.words());
                let found = Diagnostic::error("file-kind", message);
                let found = match other {
                    Content::Archive | Content::Library => {
                        found.help("it is compiled already: the crate irc_runtime runs it")
                    }
                    _ => found,
                };
                Err(Error::found(Source::new(name, ""), vec![found]))
            }
        }
    }

    /// Opens an ARK model. With `strict`, keys that the format does not know are errors.
    ///
    /// # Errors
    /// Diagnostics in the file.
    pub fn import_source(&self, source: Source, strict: bool) -> Result<Model<'_>, Error> {
        let file = self.add(source.clone());
        let warnings = self.check(file, &CheckOptions { strict });
        if warnings.iter().any(Diagnostic::is_error) {
            return Err(Error::found(source, warnings));
        }
        Ok(Model { session: self, source, warnings, form: Form::File(file) })
    }

    fn import_graph(
        &self,
        name: &str,
        bytes: Bytes,
        options: &ImportOptions,
    ) -> Result<Model<'_>, Error> {
        let graph::Read { document, source, diagnostics } =
            graph::read(name, bytes, options, graph::Libraries::Bundled);
        let Some(document) = document.filter(|_| !diagnostics.iter().any(Diagnostic::is_error))
        else {
            return Err(Error::found(source, diagnostics));
        };
        let imported = graph::import(&document, options);
        let (imported, warnings) = imported.map_err(|found| Error::found(source.clone(), found))?;
        let mut model = self.import_graph_of(source, imported);
        model.warnings = diagnostics.into_iter().chain(warnings).collect();
        Ok(model)
    }

    /// A model that an importer wrote as a program of the tensor level.
    pub fn import_graph_of(&self, source: Source, imported: Imported) -> Model<'_> {
        let form = Form::Graph(Box::new(imported));
        Model { session: self, source, warnings: vec![], form }
    }
}

impl Model<'_> {
    /// The file, for rendering diagnostics.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// What was found in the file that is no error.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// The same model in another session, in which nothing of it is remembered.
    ///
    /// # Errors
    /// None that this model did not have.
    pub fn in_session<'t>(&self, session: &'t Session) -> Result<Model<'t>, Error> {
        let source = self.source.clone();
        match &self.form {
            Form::File(_) => session.import_source(source, false),
            Form::Graph(imported) => Ok(session.import_graph_of(source, (**imported).clone())),
        }
    }

    /// The program of the tensor level that a Common IR or ONNX file is; `None` for an ARK model.
    pub fn imported(&self) -> Option<&Imported> {
        match &self.form {
            Form::Graph(imported) => Some(imported),
            Form::File(_) => None,
        }
    }

    /// Evaluates the model with the reference evaluator: slow, and the meaning of everything else. Inputs
    /// of an ARK model that are not given are zero.
    ///
    /// # Errors
    /// Inputs that do not fit, or what the evaluator cannot do (`reference`).
    pub fn evaluate(
        &self,
        inputs: BTreeMap<String, Tensor>,
        options: impl Into<CompileOptions>,
    ) -> Result<BTreeMap<String, Tensor>, Error> {
        let graph = match &self.form {
            Form::File(file) => {
                let found = self.session.run_reference(*file, inputs, &options.into());
                return found.map_err(|failure| self.failed(failure));
            }
            Form::Graph(imported) => &imported.graph,
        };
        let results = graph.eval(&inputs);
        let results = results
            .map_err(|error| Error::at("reference", self.source.clone(), error.to_string()))?;
        Ok(graph.outputs.iter().map(|(name, _)| name.clone()).zip(results).collect())
    }

    /// What the model takes, without compiling it.
    ///
    /// # Errors
    /// Diagnostics in the file.
    pub fn inputs(&self, options: impl Into<CompileOptions>) -> Result<Vec<Port>, Error> {
        let graph = match &self.form {
            Form::File(file) => {
                let interface = self.session.interface(*file, &options.into());
                return interface.map(|known| known.inputs).map_err(|failure| self.failed(failure));
            }
            Form::Graph(imported) => &imported.graph,
        };
        let port = |(name, value): &(String, _)| port_of(name.clone(), graph.ty(*value));
        let ports: Result<_, String> = graph.inputs.iter().map(port).collect();
        ports.map_err(|message| Error::at("lowering", self.source.clone(), message))
    }

    /// How an ARK model's ops were fused, and why not further; `None` for a graph.
    ///
    /// # Errors
    /// Diagnostics in the file.
    pub fn explain_fusion(
        &self,
        options: impl Into<CompileOptions>,
    ) -> Result<Option<FusionReport>, Error> {
        let Form::File(file) = self.form else { return Ok(None) };
        let report = self.session.explain_fusion(file, &options.into());
        report.map(Some).map_err(|failure| self.failed(failure))
    }

    /// Compiles the model, and loads it.
    ///
    /// # Errors
    /// What cannot be lowered or generated; a target that does not run here (`target`); the system's
    /// reasons not to load it (`load`).
    pub fn compile(&self, options: impl Into<CompileOptions>) -> Result<Program, Error> {
        let options = options.into();
        if !options.target.runs_here() {
            let message = format!("code for '{}' does not run on this machine", options.target.cpu);
            return Err(Error::at("target", self.source.clone(), message));
        }
        let program = match &self.form {
            Form::File(file) => {
                let compiled = self.session.compile(*file, &options);
                let compiled = compiled.map_err(|failure| self.failed(failure))?;
                Program::load(&compiled.library, vec![])
            }
            Form::Graph(imported) => {
                let compiled = self.session.compile_graph(&imported.graph, &options);
                let compiled = compiled.map_err(|failure| self.failed(failure))?;
                let constants = compiled.weights.iter().map(|weight| weight.bytes.clone());
                Program::load(&compiled.library, constants.collect())
            }
        };
        program.map_err(|error| Error::at("load", self.source.clone(), error.to_string()))
    }

    /// Compiles the model to a shared library that holds its constants (`docs/c-abi.md` says how it is
    /// called).
    ///
    /// # Errors
    /// What cannot be lowered or generated.
    pub fn library(&self, options: impl Into<CompileOptions>) -> Result<Arc<Compiled>, Error> {
        let options = options.into();
        let compiled = match &self.form {
            Form::File(file) => self.session.compile(*file, &options),
            Form::Graph(imported) => {
                self.session.compile_graph_whole(&imported.graph, &options).map(Arc::new)
            }
        };
        compiled.map_err(|failure| self.failed(failure))
    }

    /// Compiles the model to one relocatable object, LLVM IR, assembly or C source.
    ///
    /// # Errors
    /// What cannot be lowered or generated.
    pub fn emit(
        &self,
        output: Output,
        options: impl Into<CompileOptions>,
    ) -> Result<Vec<u8>, Error> {
        let options = options.into();
        let emitted = match &self.form {
            Form::File(file) => self.session.emit(*file, output, &options),
            Form::Graph(imported) => self.session.emit_graph(&imported.graph, output, &options),
        };
        emitted.map_err(|failure| self.failed(failure))
    }

    /// The IR after a stage of the host pipeline as text, with locations; [`crate::pipeline::HOST_CPU`]
    /// names the stages.
    ///
    /// # Errors
    /// What cannot be lowered, or an unknown stage.
    pub fn stage(&self, stage: &str, options: impl Into<CompileOptions>) -> Result<String, Error> {
        let options = options.into();
        let text = match &self.form {
            Form::File(file) => self.session.stage(*file, stage, &options),
            Form::Graph(imported) => self.session.graph_stage(&imported.graph, stage, &options),
        };
        text.map_err(|failure| self.failed(failure))
    }

    /// What a Model Library Format archive of the model is made of; [`irc_mlf::build`] makes it.
    ///
    /// # Errors
    /// What cannot be lowered or generated, or that a graph cannot hold it (`mlf-program`).
    pub fn archive(
        &self,
        options: impl Into<CompileOptions>,
        archive: &ArchiveOptions,
    ) -> Result<Contents, Error> {
        let options = options.into();
        let contents = match &self.form {
            Form::File(file) => self.session.archive(*file, &options, archive),
            Form::Graph(imported) => self.session.archive_graph(&imported.graph, &options, archive),
        };
        contents.map_err(|failure| self.failed(failure))
    }

    fn failed(&self, failure: Failure) -> Error {
        Error { file: self.source.clone(), failure }
    }
}
