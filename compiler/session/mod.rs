//! The driver: an incremental database behind a [`Session`].
//!
//! A session holds source files and answers questions about them: diagnostics, IR after a stage, a
//! compiled library. Answers are remembered; after an edit only what depends on it is asked again:
//! parsing, import, the fusion of the touched segment, the touched kernel, the link. There are no
//! globals, no printing and no environment here; diagnostics come back as values.

mod archive;
mod constants;
mod database;
mod diagnose;
mod graph;
mod kernel;
mod machine;
mod plan;
mod queries;

use crate::{codegen::Output, interface::Interface};
use database::{Database, SourceFile};
use irc_diag::{Diagnostic, Source};
use irc_tensor::Tensor;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

pub use crate::codegen::Target;
pub use archive::ArchiveOptions;
pub use graph::{CompiledGraph, CompiledGraphs, GraphEntry};
pub use plan::CompiledPlan;
pub use queries::{Accumulate, CompileOptions, Results};

/// A source file of a session.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId(SourceFile);

/// How to check a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CheckOptions {
    /// Unknown keys are errors rather than notes.
    pub strict: bool,
}

/// A compiled model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The shared library's bytes; [`irc_runtime::Library`] loads them from a file.
    pub library: Vec<u8>,
    /// What it takes and gives.
    pub interface: Interface,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The diagnostics; at least one is an error.
    pub diagnostics: Vec<Diagnostic>,
    /// The fault is irc's, not the input's.
    pub internal: bool,
}

impl Failure {
    fn internal(message: impl Into<String>) -> Self {
        Failure { diagnostics: vec![Diagnostic::error("internal", message)], internal: true }
    }

    fn cancelled() -> Self {
        let diagnostics = vec![Diagnostic::error("cancelled", "the compilation was cancelled")];
        Failure { diagnostics, internal: false }
    }
}

/// Stops a session's work from another thread.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Asks the running compilation to stop before its next kernel.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Lets the session work again.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// An incremental compiler for a set of files.
///
/// ```
/// let mut session = irc::Session::new();
/// let empty = r#"{"Rank": 0, "WorldSize": 1, "Nodes": []}"#;
/// let file = session.open("empty.json", empty);
/// assert!(session.check(file, &Default::default()).is_empty());
/// ```
#[derive(Default)]
pub struct Session {
    database: Database,
    files: BTreeMap<String, FileId>,
    cancel: CancelToken,
}

impl Session {
    /// An empty session.
    pub fn new() -> Self {
        crate::passes::register_all();
        Self::default()
    }

    /// Adds a file, or replaces the text of one that was added under the same name.
    pub fn open(&mut self, name: &str, text: impl AsRef<str>) -> FileId {
        self.open_source(Source::new(name, text))
    }

    /// Adds or replaces a file given as a [`Source`], which may hold bytes that are not UTF-8.
    pub fn open_source(&mut self, source: Source) -> FileId {
        let name = source.name().to_owned();
        if let Some(file) = self.files.get(&name).copied() {
            self.edit(file, source);
            return file;
        }
        let file = self.add(source);
        self.files.insert(name, file);
        file
    }

    /// Adds a file that is never edited.
    pub(crate) fn add(&self, source: Source) -> FileId {
        FileId(SourceFile::new(&self.database, source))
    }

    fn edit(&mut self, file: FileId, source: Source) {
        use salsa::Setter;
        if *file.0.source(&self.database) != source {
            file.0.set_source(&mut self.database).to(source);
        }
    }

    /// The file's text, for rendering diagnostics.
    pub fn source(&self, file: FileId) -> Source {
        file.0.source(&self.database).clone()
    }

    /// Everything found in a file.
    pub fn check(&self, file: FileId, options: &CheckOptions) -> Vec<Diagnostic> {
        queries::parsed(&self.database, file.0, options.strict).diagnostics.to_vec()
    }

    /// The IR after a stage of the host pipeline as text, with locations.
    ///
    /// # Errors
    /// Diagnostics in the file, or an unknown stage.
    pub fn stage(
        &self,
        file: FileId,
        stage: &str,
        options: &CompileOptions,
    ) -> Result<String, Failure> {
        queries::stage_text(&self.database, file.0, stage, options)
    }

    /// How the file's ops were fused, and why not further.
    ///
    /// # Errors
    /// Diagnostics in the file.
    pub fn explain_fusion(
        &self,
        file: FileId,
        options: &CompileOptions,
    ) -> Result<crate::fusion::FusionReport, Failure> {
        queries::explain(&self.database, file.0, options)
    }

    /// Compiles a file to a shared library.
    ///
    /// # Errors
    /// Diagnostics in the file, or what code generation could not do.
    pub fn compile(
        &self,
        file: FileId,
        options: &CompileOptions,
    ) -> Result<Arc<Compiled>, Failure> {
        self.compile_kernels(file, options)?;
        let config = queries::Config::new(&self.database, options.clone());
        queries::library(&self.database, file.0, config)
            .map_err(|failure| queries::locate(&self.database, file.0, config, failure))
    }

    /// Compiles the kernels that are not compiled yet, on as many threads as there are cores.
    fn compile_kernels(&self, file: FileId, options: &CompileOptions) -> Result<(), Failure> {
        let config = queries::Config::new(&self.database, options.clone());
        let fused = queries::fused(&self.database, file.0, config)?;
        let mut texts: Vec<Arc<str>> = fused.kernels.iter().map(|(_, text)| text.clone()).collect();
        texts.sort();
        texts.dedup();
        self.compile_texts(texts, &options.target)
    }

    /// Compiles kernels, which are remembered, on as many threads as there are cores.
    fn compile_texts(&self, texts: Vec<Arc<str>>, target: &Target) -> Result<(), Failure> {
        self.share(texts, |database, text| {
            let key = queries::KernelKey::new(database, text, target.clone());
            // Its failure is reported by the query that needs it.
            let _ = queries::kernel_object(database, key);
        })
    }

    /// Compiles the tasks of a plan's file to a shared library and its description.
    ///
    /// The plan is not checked: `irc_ark_format::plan::check` finds what is wrong with it.
    ///
    /// # Errors
    /// A file that is no plan, an op that no kernel can compute, or what code generation could not
    /// do.
    pub fn compile_plan(
        &self,
        file: FileId,
        target: &Target,
    ) -> Result<Arc<CompiledPlan>, Failure> {
        let texts = plan::task_texts(&self.database, file.0)?;
        let kernels = texts.iter().flatten().filter_map(|step| match step {
            plan::TextStep::Kernel(_, texts) => Some(texts),
            plan::TextStep::Communicate(_) => None,
        });
        let mut texts: Vec<Arc<str>> = kernels.flatten().cloned().collect();
        texts.sort();
        texts.dedup();
        self.share(texts, |database, text| {
            let key = plan::TaskKey::new(database, text, target.clone());
            // As above.
            let _ = plan::task_object(database, key);
        })?;
        let target = plan::TargetKey::new(&self.database, target.clone());
        plan::plan_library(&self.database, file.0, target)
    }

    /// The kernels of a plan's tasks at the tensor level, as text: for each task info its steps,
    /// for each step its variants; nothing for a step that moves data between ranks.
    ///
    /// # Errors
    /// A file that is no plan, or an op that no kernel can compute.
    pub fn task_kernels(&self, file: FileId) -> Result<Vec<Vec<Vec<Arc<str>>>>, Failure> {
        let texts = plan::task_texts(&self.database, file.0)?;
        let variants = |step: &plan::TextStep| match step {
            plan::TextStep::Kernel(_, texts) => texts.clone(),
            plan::TextStep::Communicate(_) => vec![],
        };
        Ok(texts.iter().map(|steps| steps.iter().map(variants).collect()).collect())
    }

    /// Does `work` for each item, on as many threads as there are cores.
    fn share<T: Clone + Sync>(
        &self,
        texts: Vec<T>,
        work: impl Fn(&Database, T) + Sync,
    ) -> Result<(), Failure> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let next = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads.min(texts.len()) {
                let (database, cancel) = (self.database.clone(), self.cancel.clone());
                let (next, texts, work) = (&next, &texts, &work);
                scope.spawn(move || {
                    while let Some(text) = texts.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if cancel.is_cancelled() {
                            return;
                        }
                        work(&database, text.clone());
                    }
                });
            }
        });
        if self.cancel.is_cancelled() { Err(Failure::cancelled()) } else { Ok(()) }
    }

    /// Compiles a file to one relocatable object, LLVM IR, assembly or C source.
    ///
    /// # Errors
    /// Diagnostics in the file, or what code generation could not do.
    pub fn emit(
        &self,
        file: FileId,
        output: Output,
        options: &CompileOptions,
    ) -> Result<Vec<u8>, Failure> {
        queries::emit(&self.database, file.0, output, options)
    }

    /// The inputs and outputs of a file, without compiling it; the workspace is not planned yet.
    ///
    /// # Errors
    /// Diagnostics in the file.
    pub fn interface(&self, file: FileId, options: &CompileOptions) -> Result<Interface, Failure> {
        queries::interface(&self.database, file.0, options)
    }

    /// Evaluates a file with the reference evaluator: slow, and the meaning of everything else.
    /// Inputs not given are zero.
    ///
    /// # Errors
    /// Diagnostics in the file, or inputs that do not fit.
    pub fn run_reference(
        &self,
        file: FileId,
        inputs: BTreeMap<String, Tensor>,
        options: &CompileOptions,
    ) -> Result<BTreeMap<String, Tensor>, Failure> {
        queries::run_reference(&self.database, file.0, inputs, options)
    }

    /// Stops this session's compilations from another thread.
    pub fn cancel_token(&self) -> CancelToken {
        self.cancel.clone()
    }

    /// The names of the queries executed since the last call, in order: what was not remembered.
    pub fn take_executed(&self) -> Vec<String> {
        self.database.take_executed()
    }
}
