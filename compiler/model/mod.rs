//! Models of all formats: import, compile, run.
//!
//! A [`Model`] is the program of a file, in a session. Formats differ only in how they are read
//! ([`crate::import`]): [`Model::compile`] makes a [`Program`] that runs in this process,
//! [`Model::library`], [`Model::emit`] and [`Model::archive`] make artefacts, and [`Model::stage`] returns
//! the intermediate IR.
mod batch;
mod calibrate;
mod gpu;
mod npu;
mod program;

use crate::{
    ArchiveOptions, CompileOptions, Compiled, KernelProgress, Session,
    attributes::Schedule,
    codegen::{Output, Target},
    fusion::FusionReport,
    import::{Content, FrontEnd, ImportOptions, Imported, InputFile, path_of},
    interface::port_of,
    pipeline::NVPTX,
    session::{
        Error, Input, KernelWork, Place, QueryError, queries,
        tunable::{Tunable, Tunables},
        tuning::Tuned,
    },
};
use bytes::Bytes;
use irc_ark_model::ArkModel;
use irc_common_format::Format;
use irc_diag::{Diagnostic, Source};
use irc_mlf::Contents;
use irc_runtime::{Interface, Port};
use irc_tensor::Tensor;
use irc_tl::Graph;
use std::{borrow::Cow, collections::BTreeMap, path::Path, sync::Arc};

pub use batch::{Batch, Entry};
pub use calibrate::Calibration;
pub use npu::{NpuDivision, NpuStep};
pub use program::Program;

/// Maximum size in bytes of an input that is read into memory: far beyond any text model, but device files
/// are endless. Common IR and ONNX files, schedules, archives and libraries are memory-mapped, and may be larger.
pub const MAX_BYTES: u64 = irc_common_format::MAX_STREAM;

/// A model in a session.
#[derive(Clone, Copy)]
pub struct Model<'s> {
    session: &'s Session,
    input: Input,
}

/// Identifies a model in its session, for edits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ModelId(Input);

/// The bytes of a file, decompressed if it is a gzip file.
///
/// # Errors
/// Errors with the code `file-size`, and errors of decompression.
pub fn unpacked(name: &str, bytes: Bytes) -> Result<Bytes, Error> {
    let is_mapped = |bytes: &[u8]| {
        matches!(
            Content::of(bytes),
            Content::Graph | Content::Archive | Content::Library | Content::Schedule
        )
    };
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
        Err(found) => {
            Err(Error::found(file(), vec![Diagnostic { code: "file-compressed", ..*found }]))
        }
    }
}

impl Session {
    /// Imports a model: an ARK model, a Common IR or ONNX file in any encoding, or MLIR.
    ///
    /// # Errors
    /// A file that cannot be read, that is not a model, or that has errors.
    pub fn import(&self, path: impl AsRef<Path>) -> Result<Model<'_>, Error> {
        self.import_with(path, &ImportOptions::default())
    }

    /// As [`Session::import`], with options.
    ///
    /// # Errors
    /// See [`Session::import`].
    pub fn import_with(
        &self,
        path: impl AsRef<Path>,
        options: &ImportOptions,
    ) -> Result<Model<'_>, Error> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let bytes = self.files.read(path).map_err(|error| {
            let message = format!("cannot read {name}: {error}");
            Error::at("file-read", Source::new(&name, ""), message)
        })?;
        let bytes = unpacked(&name, bytes)?;
        self.import_bytes(&name, bytes, options)
    }

    /// As [`Session::import`], for a file in memory. Files that it refers to are found in the folder of
    /// `name`, unless that is `-`.
    ///
    /// # Errors
    /// See [`Session::import`].
    pub fn import_bytes(
        &self,
        name: &str,
        bytes: Bytes,
        options: &ImportOptions,
    ) -> Result<Model<'_>, Error> {
        let model = self.parse(name, bytes, options)?;
        model.imported_or_lowered()?;
        Ok(model)
    }

    /// Reads a model without importing it: errors of the import are reported by the methods of the model.
    ///
    /// # Errors
    /// A file that is not a model.
    pub fn parse(
        &self,
        name: &str,
        bytes: Bytes,
        options: &ImportOptions,
    ) -> Result<Model<'_>, Error> {
        let content = match options.format == Format::default() {
            true => Content::of_file(Path::new(name), &bytes),
            false => Content::Graph,
        };
        let Some(front_end) = FrontEnd::of(content) else {
            let message = format!("{name}: expected a model, found {}", content.words());
            let found = Diagnostic::error("file-kind", message);
            let found = match content {
                Content::Archive | Content::Library => {
                    found.help("it is already compiled: run it with the crate irc_runtime")
                }
                Content::Object => found.help("it is already compiled: link it"),
                _ => found,
            };
            return Err(Error::found(Source::new(name, ""), vec![found]));
        };
        let files = self.files.clone();
        let file = InputFile { files, ..InputFile::new(name, bytes, options) };
        Ok(Model { session: self, input: self.add(front_end, file) })
    }

    /// A model of a program that already is a graph; diagnostics refer to `source`.
    pub fn import_program(&self, source: Source, imported: impl Into<Imported>) -> Model<'_> {
        let input = self.add_program(source, Arc::new(imported.into()));
        Model { session: self, input }
    }

    /// A model of a graph.
    pub fn import_graph(&self, graph: &Graph) -> Model<'_> {
        self.import_program(Source::new("graph", ""), graph.clone())
    }

    /// The model with this id.
    pub fn model(&self, id: ModelId) -> Model<'_> {
        Model { session: self, input: id.0 }
    }

    /// Replaces the bytes of a model's file; its name and options do not change. Results that depend on
    /// changed parts are recomputed on demand.
    pub fn edit(&mut self, id: ModelId, bytes: impl Into<Bytes>) {
        use crate::session::Contents;
        let Contents::File(front_end, file) = self.contents(id.0) else { return };
        let bytes = bytes.into();
        if file.bytes == bytes {
            return;
        }
        let contents = Contents::File(front_end, Arc::new(InputFile { bytes, ..(**file).clone() }));
        self.replace(id.0, contents);
    }
}

impl<'s> Model<'s> {
    /// The id of the model in its session.
    pub fn id(&self) -> ModelId {
        ModelId(self.input)
    }

    pub(crate) fn input(&self) -> Input {
        self.input
    }

    /// The file, for rendering diagnostics.
    pub fn source(&self) -> Source {
        queries::source(&self.session.database, self.input)
    }

    /// All diagnostics of reading and importing the file that are not errors.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        let parsed = queries::parsed(&self.session.database, self.input);
        let mut found = parsed.diagnostics.to_vec();
        if let Ok(imported) = queries::imported(&self.session.database, self.input) {
            let mut more = imported.warnings.clone();
            if let Some(document) = &parsed.document {
                document.locate(&mut more);
            }
            found.extend(more);
        }
        found.retain(|one| !one.is_error());
        found
    }

    /// All diagnostics of reading the file.
    pub fn read_diagnostics(&self) -> Vec<Diagnostic> {
        queries::parsed(&self.session.database, self.input).diagnostics.to_vec()
    }

    /// All diagnostics of the file: of reading it, and errors and notes of compiling it.
    pub fn check(&self) -> Vec<Diagnostic> {
        let parsed = queries::parsed(&self.session.database, self.input);
        let mut found = parsed.diagnostics.to_vec();
        if let Some(document) = &parsed.document
            && document.stage().is_none()
        {
            found.extend(document.check());
            if !found.iter().any(Diagnostic::is_error) {
                found.extend(queries::wrong_bounds(&self.session.database, self.input));
            }
        }
        found
    }

    /// See [`Session::observe`].
    pub fn observe(&self, observer: impl Fn(KernelProgress<'_>) + Send + Sync + 'static) {
        self.session.observe(observer);
    }

    /// See [`Session::observe_search`].
    pub fn observe_search(
        &self,
        observer: impl Fn(crate::npu_schedule::Progress) + Send + Sync + 'static,
    ) {
        self.session.observe_search(observer);
    }

    /// The same model in another session, without cached results.
    pub fn in_session<'t>(&self, session: &'t Session) -> Model<'t> {
        let input = Input::new(&session.database, self.session.contents(self.input).clone());
        Model { session, input }
    }

    /// The program at the tensor level.
    ///
    /// # Errors
    /// Errors in the file; a module after the tensor level.
    pub fn imported(&self) -> Result<Arc<Imported>, Error> {
        let imported = queries::imported(&self.session.database, self.input);
        imported.map_err(|error| Error::new(self.source(), error))
    }

    /// Whether an op makes integers of 8 bits of floats.
    pub fn is_quantised(&self) -> bool {
        let quantises = |graph: &irc_tl::Graph| {
            let dtype = |value: &irc_tl::ValueId| graph.ty(*value).dtype;
            let is_byte = |value| matches!(dtype(value), irc_tl::DType::I8 | irc_tl::DType::U8);
            graph.nodes.iter().any(|node| {
                matches!(node.kind, irc_tl::NodeKind::Op(_))
                    && node.results.iter().any(is_byte)
                    && node.operands.iter().any(|value| dtype(value).is_float())
            })
        };
        self.imported().is_ok_and(|imported| quantises(&imported.graph))
    }

    /// The ARK model of the file, if it is one.
    pub fn ark(&self) -> Option<irc_ark_format::model::Document> {
        let parsed = queries::parsed(&self.session.database, self.input);
        parsed.document.as_deref()?.ark().cloned()
    }

    /// The model as an ARK model: that of the file, or its program converted to ARK's ops.
    ///
    /// # Errors
    /// Errors in the file; every node without an ARK op.
    pub fn to_ark(&self) -> Result<ArkModel, Error> {
        if let Some(document) = self.ark() {
            return Ok(ArkModel { model: document.model, buffers: vec![] });
        }
        let imported = self.imported()?;
        irc_ark_model::to_ark(&imported.graph).map_err(|mut found| {
            self.locate(&mut found);
            Error::found(self.source(), found)
        })
    }

    /// Adds locations in the file to diagnostics whose paths are those of items of the file, or origins of nodes.
    pub fn locate(&self, diagnostics: &mut [Diagnostic]) {
        for diagnostic in &mut *diagnostics {
            let path = diagnostic.path.take();
            diagnostic.path = path.map(|path| path_of(&path).to_owned());
        }
        let parsed = queries::parsed(&self.session.database, self.input);
        if let Some(document) = &parsed.document {
            document.locate(diagnostics);
        }
    }

    fn imported_or_lowered(&self) -> Result<(), Error> {
        match queries::stage_of(&self.session.database, self.input) {
            Some(_) => Ok(()),
            None => self.imported().map(drop),
        }
    }

    /// Evaluates the model with the reference evaluator, which is slow, and defines the results of every
    /// op. Omitted inputs of static size are zero.
    ///
    /// # Errors
    /// Inputs with wrong types or shapes, or ops that the evaluator does not support (`reference`).
    pub fn evaluate(
        &self,
        mut inputs: BTreeMap<String, Tensor>,
    ) -> Result<BTreeMap<String, Tensor>, Error> {
        let imported = self.imported()?;
        let graph = &imported.graph;
        let failed = |message: String| Error::at("reference", self.source(), message);
        for (name, value) in &graph.inputs {
            let Some(ty) = graph.ty(*value).known().filter(|_| !inputs.contains_key(name)) else {
                continue;
            };
            let zeros = Tensor::zeros(ty).map_err(|error| failed(format!("{name}: {error}")))?;
            inputs.insert(name.clone(), zeros);
        }
        let results = graph.eval(&inputs).map_err(|error| failed(error.to_string()))?;
        Ok(graph.outputs.iter().map(|(name, _)| name.clone()).zip(results).collect())
    }

    /// The model's inputs and outputs. Only a module after the tensor level is compiled for this, for this
    /// machine or a GPU.
    ///
    /// # Errors
    /// Errors in the file; tensors whose size overflows.
    pub fn interface(&self) -> Result<Interface, Error> {
        if let Some(reached) = queries::stage_of(&self.session.database, self.input) {
            let target = if *reached.pipeline == NVPTX { Target::gpu(90) } else { Target::host() };
            return Ok(self.library(target)?.interface.clone());
        }
        let imported = self.imported()?;
        let graph = &imported.graph;
        let port = |(name, value): &(String, _)| {
            let port = port_of(name.clone(), graph.ty(*value))?;
            Ok(Port { preserved: graph.preserved.contains(value), ..port })
        };
        let ports = |all: &[(String, _)]| {
            let ports: Result<Vec<Port>, String> = all.iter().map(port).collect();
            ports.map_err(|message| Error::at("lowering", self.source(), message))
        };
        let outputs =
            ports(&graph.outputs)?.into_iter().map(|port| Port { preserved: false, ..port });
        Ok(Interface {
            inputs: ports(&graph.inputs)?,
            outputs: outputs.collect(),
            ..Interface::default()
        })
    }

    /// The model's inputs, without compiling it.
    ///
    /// # Errors
    /// See [`Model::interface`].
    pub fn inputs(&self) -> Result<Vec<Port>, Error> {
        self.interface().map(|interface| interface.inputs)
    }

    /// A report of how the model's ops were fused, and why not further.
    ///
    /// # Errors
    /// Errors in the file.
    pub fn explain_fusion(
        &self,
        options: impl Into<CompileOptions>,
    ) -> Result<FusionReport, Error> {
        self.session.explain_fusion(self.input, &options.into())
    }

    /// A warning for each kernel that adds products in scalar loops. The kernels are compiled, and cached.
    ///
    /// # Errors
    /// If lowering or code generation fails.
    pub fn slow_kernels(
        &self,
        options: impl Into<CompileOptions>,
    ) -> Result<Vec<Diagnostic>, Error> {
        self.session.slow_kernels(self.input, &options.into())
    }

    /// The kernels whose schedules have choices, once each.
    ///
    /// # Errors
    /// Errors in the file.
    pub fn tunables(&self, options: impl Into<CompileOptions>) -> Result<Tunables, Error> {
        self.session.tunables(self.input, &options.into())
    }

    /// Compiles a program that launches one of these kernels once, with a schedule. Its inputs are the kernel's operands
    /// but for constants, which have random values.
    ///
    /// # Errors
    /// If lowering or code generation fails.
    pub fn compile_tunable(
        &self,
        kernel: &Tunable,
        schedule: Schedule,
        options: impl Into<CompileOptions>,
    ) -> Result<Compiled, Error> {
        self.session.compile_tunable(self.input, (kernel, schedule), &options.into())
    }

    /// What the tuning in the options chooses of the model's kernels.
    ///
    /// # Errors
    /// Errors in the file.
    pub fn tuned(&self, options: impl Into<CompileOptions>) -> Result<Tuned, Error> {
        self.session.tuned(self.input, &options.into())
    }

    /// The work of the model's kernels, by symbol, in a run with these values of its symbols.
    ///
    /// # Errors
    /// Errors in the file.
    pub fn kernel_work(
        &self,
        options: impl Into<CompileOptions>,
        symbols: &dyn Fn(&str) -> Option<i64>,
    ) -> Result<BTreeMap<String, KernelWork>, Error> {
        self.session.kernel_work(self.input, &options.into(), symbols)
    }

    /// Compiles and loads the model.
    ///
    /// # Errors
    /// If lowering or code generation fails; if the target does not run on this machine (`target`); if the
    /// system cannot load the library (`load`).
    pub fn compile(&self, options: impl Into<CompileOptions>) -> Result<Program, Error> {
        let options = options.into();
        let runs = options.target.expect_runnable();
        runs.map_err(|message| Error::at("target", self.source(), message))?;
        let compiled = self.library_with(&options, Place::Given)?;
        let program = Program::load(&compiled);
        program.map_err(|error| Error::at("load", self.source(), error.to_string()))
    }

    /// Compiles the model to a shared library that contains its constants (`docs/c-abi.md` describes its
    /// interface).
    ///
    /// # Errors
    /// If lowering or code generation fails.
    pub fn library(&self, options: impl Into<CompileOptions>) -> Result<Arc<Compiled>, Error> {
        self.library_with(options, Place::Linked)
    }

    /// As [`Model::library`], with the constants in the place `constants`.
    ///
    /// # Errors
    /// See [`Model::library`].
    pub fn library_with(
        &self,
        options: impl Into<CompileOptions>,
        constants: Place,
    ) -> Result<Arc<Compiled>, Error> {
        let options = options.into();
        self.expect_of_gpu(&options)?;
        let library = self.session.library(self.input, &options, constants);
        library.map_err(|error| self.rejected(&options, error))
    }

    /// Compiles the model to one relocatable object, LLVM IR, assembly, C source or PTX, with its constants.
    ///
    /// # Errors
    /// If lowering or code generation fails.
    pub fn emit(
        &self,
        output: Output,
        options: impl Into<CompileOptions>,
    ) -> Result<Vec<u8>, Error> {
        let options = options.into();
        self.expect_of_gpu(&options)?;
        let code = self.session.emit(self.input, &options, output);
        code.map_err(|error| self.rejected(&options, error))
    }

    /// Checks that a GPU can run the model, if it is compiled for one.
    fn expect_of_gpu(&self, options: &CompileOptions) -> Result<(), Error> {
        if !options.target.backend.writes(Output::Ptx) {
            return Ok(());
        }
        if queries::stage_of(&self.session.database, self.input).is_some() {
            return Ok(());
        }
        let imported = self.imported()?;
        let document = queries::parsed(&self.session.database, self.input).document;
        let path = |name: &str| document.as_ref()?.port_path(name);
        let fixed = gpu::expect_fixed(&self.interface()?, path);
        let fixed = fixed.and_then(|()| gpu::expect_stated(&imported.graph, path));
        fixed.map_err(|error| self.located(error))
    }

    /// The error of code generation; for a GPU, what of the program its kernels do not have.
    fn rejected(&self, options: &CompileOptions, error: Error) -> Error {
        let is_kernel = options.target.backend.writes(Output::Ptx) && !error.internal;
        let imported = is_kernel.then(|| self.imported().ok()).flatten();
        let found = imported.map(|imported| gpu::unsupported(&imported.graph)).unwrap_or_default();
        if found.is_empty() { error } else { self.located(QueryError::found(found)) }
    }

    /// An error with its diagnostics at nodes of the file.
    fn located(&self, mut error: QueryError) -> Error {
        if let Some(document) = queries::parsed(&self.session.database, self.input).document {
            document.locate(&mut error.diagnostics);
        }
        Error::new(self.source(), error)
    }

    /// The IR after a stage of the target's pipeline as text, with locations; [`crate::pipeline::PIPELINES`]
    /// names the stages. The first is the file in the dialect of its format.
    ///
    /// # Errors
    /// If lowering fails, or the stage is unknown.
    pub fn stage(&self, stage: &str, options: impl Into<CompileOptions>) -> Result<String, Error> {
        let options = options.into();
        let pipeline = options.target.backend.pipeline;
        let position = pipeline.position(stage).ok();
        if position.is_some_and(|position| Ok(position) >= pipeline.position(pipeline.scheduled()))
        {
            self.expect_of_gpu(&options)?;
        }
        let text = queries::stage_text(&self.session.database, self.input, &options, stage);
        text.map_err(|error| self.rejected(&options, Error::new(self.source(), error)))
    }

    /// The contents of a Model Library Format archive of the model, for [`irc_mlf::build`].
    ///
    /// # Errors
    /// If lowering or code generation fails, or if a graph cannot represent the model (`mlf-program`).
    pub fn archive(
        &self,
        options: impl Into<CompileOptions>,
        archive: &ArchiveOptions,
    ) -> Result<Contents, Error> {
        let options = options.into();
        self.expect_of_gpu(&options)?;
        let contents = self.session.archive(self.input, &options, archive);
        let output = options.target.backend.outputs.first().copied();
        contents.map_err(|error| {
            self.rejected(&options, self.session.error(self.input, &options, output, error))
        })
    }
}
