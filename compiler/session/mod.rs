//! The driver: an incremental database behind a [`Session`].
//!
//! A session holds inputs and answers queries about them: diagnostics, IR after a stage, a compiled
//! library. Results are cached; after an edit, only those that depend on it are recomputed: reading and
//! import, the fusion of the changed segment, the changed kernel, the link. There are no globals, no
//! printing and no environment variables here; diagnostics are returned as values.
mod archive;
pub(crate) mod constants;
mod database;
mod diagnose;
pub(crate) mod error;
pub mod gpu;
pub(crate) mod kernel;
mod load;
mod npu;
mod plan;
mod profile;
pub(crate) mod queries;
pub mod tunable;
pub mod tuning;
mod whole;

use crate::{
    attributes::Schedule,
    codegen::{CodegenError, Output, link_library},
    fusion::FusionReport,
    import::{FrontEnd, Imported, InputFile, Parsed, Written},
    interface::Interface,
};
pub(crate) use database::Contents;
use database::Database;
use irc_common_format::{FileSystem, Files};
use irc_diag::{Diagnostic, Source};
use irc_runtime::{RunError, Runner};
use irc_tl::{Constant, Graph};
pub use profile::KernelWork;
use queries::{Config, Fused, KernelKey};
use std::collections::BTreeMap;
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
use tunable::{Tunable, Tunables};
use tuning::Tuned;

pub use crate::codegen::Target;
pub use archive::ArchiveOptions;
pub(crate) use archive::archive_of_kernel;
pub use constants::Place;
pub(crate) use database::Input;
pub use error::{Error, QueryError};
pub(crate) use load::with_file;
pub use npu::{NpuModel, NpuOptions, NpuTree, NpuValues};
pub use plan::{CompiledPlan, PlanFile};
pub use queries::CompileOptions;

/// A compiled model.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    /// The bytes of the shared library; [`irc_runtime::Library`] loads them from a file.
    pub library: Vec<u8>,
    /// Its inputs and outputs.
    pub interface: Interface,
    /// The large constants that an [`irc_runtime::Runner`] takes, by number; empty if they are in the
    /// library.
    pub constants: Vec<Constant>,
}

impl Compiled {
    /// Links named objects to a library that has an interface, and no constants outside.
    fn link<'o>(
        objects: impl IntoIterator<Item = (String, &'o [u8])>,
        mut interface: Interface,
    ) -> Result<Self, CodegenError> {
        let library = link_library(objects)?;
        interface.requires = library.features.among(interface.requires);
        Ok(Self { library: library.bytes, interface, constants: vec![] })
    }

    /// Loads the library, and binds the constants.
    ///
    /// # Errors
    /// See [`irc_runtime::Library::load`] and [`Runner::new`].
    pub fn runner(&self) -> Result<Runner, RunError> {
        let library = with_file(&self.library, irc_runtime::Library::load)?;
        let constants: Vec<_> =
            self.constants.iter().map(|constant| constant.bytes.clone()).collect();
        Runner::new(library.into(), &constants)
    }
}

/// Stops a session's work from another thread.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Cancels the running compilation before its next kernel.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Allows the session to compile again.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// An incremental compiler.
///
/// ```
/// use irc::{ImportOptions, Session, Target};
///
/// # fn main() -> Result<(), irc::Error> {
/// let empty = r#"{"Rank": 0, "WorldSize": 1, "Nodes": []}"#;
/// let mut session = Session::new();
/// let id = session.import_bytes("empty.json", empty.into(), &ImportOptions::default())?.id();
/// session.edit(id, r#"{"Rank": 0, "WorldSize": 2, "Nodes": []}"#);
/// let text = session.model(id).stage("import", Target::host())?;
/// assert!(text.contains("world_size = 2"));
/// # Ok(())
/// # }
/// ```
pub struct Session {
    pub(crate) database: Database,
    pub(crate) files: Arc<dyn Files>,
    cancel: CancelToken,
    observer: Mutex<Option<Observer>>,
}

/// Called before each kernel is compiled, on the thread that compiles it.
type Observer = Arc<dyn Fn(KernelProgress<'_>) + Send + Sync>;

/// A kernel that is compiled next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelProgress<'k> {
    /// Its symbol.
    pub name: &'k str,
    /// Its number among the kernels of its program, from 0.
    pub number: usize,
    /// The number of kernels of its program.
    pub count: usize,
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

impl Session {
    /// An empty session, which reads files of the file system.
    pub fn new() -> Self {
        Self::with_files(FileSystem)
    }

    /// An empty session that reads all files through `files`: models, their external data and the libraries
    /// that they import.
    pub fn with_files(files: impl Files + 'static) -> Self {
        crate::passes::register_all();
        let (database, cancel, observer) = Default::default();
        Self { database, files: Arc::new(files), cancel, observer }
    }

    /// Adds a file.
    pub(crate) fn add(&self, front_end: &'static FrontEnd, file: InputFile) -> Input {
        Input::new(&self.database, Contents::File(front_end, file.into()))
    }

    /// Adds a program that already is a graph.
    pub(crate) fn add_program(&self, source: Source, imported: Arc<Imported>) -> Input {
        let document = Some(Arc::new(Written { imported, of: None }) as _);
        let parsed = Parsed { document, source, diagnostics: [].into() };
        Input::new(&self.database, Contents::Program(parsed))
    }

    /// Adds a part of the program of an input; diagnostics refer to the file of the whole.
    pub(crate) fn add_part(&self, whole: Input, part: Graph) -> Input {
        let Parsed { document, source, .. } = queries::parsed(&self.database, whole);
        let imported = Arc::new(part.into());
        let document = Some(Arc::new(Written { imported, of: document }) as _);
        let parsed = Parsed { document, source, diagnostics: [].into() };
        Input::new(&self.database, Contents::Program(parsed))
    }

    /// Adds a plan.
    pub(crate) fn add_plan(&self, source: Source) -> Input {
        Input::new(&self.database, Contents::Plan(source))
    }

    /// Replaces the contents of an input.
    pub(crate) fn replace(&mut self, input: Input, contents: Contents) {
        use salsa::Setter;
        input.set_contents(&mut self.database).to(contents);
    }

    /// The contents of an input.
    pub(crate) fn contents(&self, input: Input) -> &Contents {
        input.contents(&self.database)
    }

    /// The error of a query on an input, with the input's file. An error without location is located by
    /// lowering a module that has locations. `output` is the code that was requested, if any.
    pub(crate) fn error(
        &self,
        input: Input,
        options: &CompileOptions,
        output: Option<Output>,
        error: QueryError,
    ) -> Error {
        let located = queries::locate(&self.database, input, options, output, error);
        Error::new(queries::source(&self.database, input), located)
    }

    /// Compiles an input to a shared library.
    pub(crate) fn library(
        &self,
        input: Input,
        options: &CompileOptions,
        place: Place,
    ) -> Result<Arc<Compiled>, Error> {
        let compiled = error::catch(|| {
            if options.target.backend.writes(Output::Ptx) {
                let config = self.config(options);
                let ptx = queries::emit(&self.database, input, config, Output::Ptx)?;
                return Ok(Arc::new(gpu::compiled(&ptx)?));
            }
            self.compile_kernels(input, options)?;
            queries::library(&self.database, input, self.config(options), place)
        });
        compiled.map_err(|error| self.error(input, options, Some(Output::Object), error))
    }

    /// Generates an object, LLVM IR, assembly or C source of an input.
    pub(crate) fn emit(
        &self,
        input: Input,
        options: &CompileOptions,
        output: Output,
    ) -> Result<Vec<u8>, Error> {
        let emitted = error::catch(|| {
            if output == Output::Object {
                self.compile_kernels(input, options)?;
            }
            queries::emit(&self.database, input, self.config(options), output)
        });
        emitted.map_err(|error| self.error(input, options, Some(output), error))
    }

    /// The report of how an input's ops were fused.
    pub(crate) fn explain_fusion(
        &self,
        input: Input,
        options: &CompileOptions,
    ) -> Result<FusionReport, Error> {
        let report = error::catch(|| queries::explain_fusion(&self.database, input, options));
        report.map_err(|error| self.error(input, options, None, error))
    }

    /// A warning for each kernel of an input that adds products in scalar loops.
    pub(crate) fn slow_kernels(
        &self,
        input: Input,
        options: &CompileOptions,
    ) -> Result<Vec<Diagnostic>, Error> {
        let found = error::catch(|| {
            if queries::stage_of(&self.database, input).is_some() {
                return Ok(vec![]);
            }
            self.compile_kernels(input, options)?;
            queries::slow_kernels(&self.database, input, self.config(options))
        });
        found.map_err(|error| self.error(input, options, Some(Output::Object), error))
    }

    /// The kernels of an input whose schedules have choices.
    pub(crate) fn tunables(
        &self,
        input: Input,
        options: &CompileOptions,
    ) -> Result<Tunables, Error> {
        let options = CompileOptions::from(options.target.clone());
        self.fused(input, &options).map(|fused| Tunables::of(&fused))
    }

    /// A program that launches one kernel of an input once, with a schedule.
    pub(crate) fn compile_tunable(
        &self,
        input: Input,
        (kernel, schedule): (&Tunable, Schedule),
        options: &CompileOptions,
    ) -> Result<Compiled, Error> {
        let compiled = error::catch(|| kernel.compile(schedule, &options.target));
        compiled.map_err(|error| self.error(input, options, Some(Output::Object), error))
    }

    /// What the tuning in the options chooses of an input's kernels.
    pub(crate) fn tuned(&self, input: Input, options: &CompileOptions) -> Result<Tuned, Error> {
        self.fused(input, options).map(|fused| fused.tuned.clone())
    }

    /// The work of the kernels of an input in a run with these values of its symbols.
    pub(crate) fn kernel_work(
        &self,
        input: Input,
        options: &CompileOptions,
        symbols: &dyn Fn(&str) -> Option<i64>,
    ) -> Result<BTreeMap<String, KernelWork>, Error> {
        self.fused(input, options)
            .map(|fused| profile::work(&fused.program, &fused.kernels, symbols))
    }

    fn fused(&self, input: Input, options: &CompileOptions) -> Result<Arc<Fused>, Error> {
        let fused = error::catch(|| queries::fused(&self.database, input, self.config(options)));
        fused.map_err(|error| self.error(input, options, None, error))
    }

    fn config(&self, options: &CompileOptions) -> Config<'_> {
        Config::new(&self.database, options.clone(), String::new())
    }

    /// Compiles the kernels of an input that are not cached, on all cores.
    fn compile_kernels(&self, input: Input, options: &CompileOptions) -> Result<(), QueryError> {
        if queries::stage_of(&self.database, input).is_some() {
            return Ok(());
        }
        let fused = queries::fused(&self.database, input, self.config(options))?;
        let kernels: Vec<(usize, (&String, &Arc<str>))> =
            fused.kernels.iter().enumerate().collect();
        let observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let count = kernels.len();
        self.share(kernels, |database, (number, (name, text))| {
            if let Some(observer) = &observer {
                observer(KernelProgress { name, number, count });
            }
            let text = text.clone();
            let key = KernelKey::new(database, text, options.target.clone());
            // An error is reported by the query that needs the object.
            let _ = queries::kernel_object(database, key);
        })
    }

    /// Does `work` for each item, on all cores.
    pub(crate) fn share<T: Clone + Sync>(
        &self,
        items: Vec<T>,
        work: impl Fn(&Database, T) + Sync,
    ) -> Result<(), QueryError> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads.min(items.len()) {
                let (database, cancel) = (self.database.clone(), self.cancel.clone());
                let (next, items, work) = (&next, &items, &work);
                scope.spawn(move || {
                    while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if cancel.is_cancelled() {
                            return;
                        }
                        work(&database, item.clone());
                    }
                });
            }
        });
        if self.cancel.is_cancelled() { Err(QueryError::cancelled()) } else { Ok(()) }
    }

    /// Calls `observer` before each kernel is compiled, on the thread that compiles it.
    pub fn observe(&self, observer: impl Fn(KernelProgress<'_>) + Send + Sync + 'static) {
        let mut current = self.observer.lock().unwrap_or_else(PoisonError::into_inner);
        *current = Some(Arc::new(observer));
    }

    /// Calls `observer` from time to time while a schedule for an NPU is searched, on the thread that requested it.
    pub fn observe_search(
        &self,
        observer: impl Fn(crate::npu_schedule::Progress) + Send + Sync + 'static,
    ) {
        self.database.observe_search(Arc::new(observer));
    }

    /// Stops this session's compilations from another thread.
    pub fn cancel_token(&self) -> CancelToken {
        self.cancel.clone()
    }

    /// The names of the queries executed since the last call, in order; cached ones are not included.
    pub fn take_executed(&self) -> Vec<String> {
        self.database.take_executed()
    }
}
