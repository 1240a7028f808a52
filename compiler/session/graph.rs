//! Libraries of graphs: programs of the tensor level that an importer wrote as data.
//!
//! A graph is fused in its own module, and taken apart into its program (the function that calls
//! kernels, and those inside it) and its kernels. Kernels are remembered by their text, as those of
//! files are. Many graphs compile together: equal kernels once, several kernels and several programs
//! to an object, all of it to one library. What cannot be compiled fails its own graph alone.
use super::{
    CompileOptions, Compiled, Failure, Session,
    constants::{Place, linked, mark},
    database::Database,
    diagnose,
    kernel::{self, Broken, KernelObject, compile_kernels, compile_programs},
    machine::{in_context, run},
    queries::{self, declaration, kernel_text, unlocated},
};
use crate::{
    codegen::{CodegenError, Output, Target, compile, hide_inner, link_library},
    interface::Interface,
    lowering::{
        emit_entry::WEIGHTS,
        graph_to_tl::{graph_to_tl, weights},
    },
    model::with_file,
    pipeline::HOST_CPU,
};
use irc_diag::Source;
use irc_mlir::{Module, OperationLike, attr, read};
use irc_runtime::{Library, RunError, Runner};
use irc_tl::{Constant, Graph};
use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

/// Kernels that compile together to one object.
const KERNELS: usize = 24;
/// Programs that compile together to one object.
const PROGRAMS: usize = 48;

/// A compiled graph.
#[derive(Clone, Debug)]
pub struct CompiledGraph {
    /// The shared library's bytes; [`irc_runtime::Library`] loads them from a file.
    pub library: Vec<u8>,
    /// What it takes and gives.
    pub interface: Interface,
    /// The constants that an [`irc_runtime::Runner`] is given, by number.
    pub weights: Vec<Constant>,
}

impl CompiledGraph {
    /// Loads the library, and binds the constants.
    ///
    /// # Errors
    /// As [`Library::load`] and [`Runner::new`].
    pub fn runner(&self) -> Result<Runner, RunError> {
        let library = with_file(&self.library, Library::load)?;
        runner(library, &self.weights)
    }
}

/// Graphs compiled to one library.
#[derive(Clone, Debug)]
pub struct CompiledGraphs {
    /// The shared library's bytes.
    pub library: Vec<u8>,
    /// For each graph its part in it, or why there is none.
    pub graphs: Vec<Result<GraphEntry, Failure>>,
}

impl CompiledGraphs {
    /// Loads the library, and binds the constants of every graph that is in it; `None` stands for
    /// those that are not.
    ///
    /// # Errors
    /// As [`Library::load_entries`] and [`Runner::new`].
    pub fn runners(&self) -> Result<Vec<Option<Runner>>, RunError> {
        let entries: Vec<Option<&GraphEntry>> =
            self.graphs.iter().map(|entry| entry.as_ref().ok()).collect();
        let suffixes: Vec<String> =
            entries.iter().flatten().map(|entry| entry.suffix.clone()).collect();
        let libraries = with_file(&self.library, |path| Library::load_entries(path, &suffixes))?;
        let mut libraries = libraries.into_iter();
        let load = |entry: Option<&GraphEntry>| {
            let Some((entry, library)) = entry.and_then(|entry| Some((entry, libraries.next()?)))
            else {
                return Ok(None);
            };
            runner(library, &entry.weights).map(Some)
        };
        entries.into_iter().map(load).collect()
    }
}

fn runner(library: Library, weights: &[Constant]) -> Result<Runner, RunError> {
    let weights: Vec<_> = weights.iter().map(|weight| weight.bytes.clone()).collect();
    Runner::new(Arc::new(library), &weights)
}

/// The part of a graph in a library of several.
#[derive(Clone, Debug)]
pub struct GraphEntry {
    /// Stands behind the names of its entry point and metadata; see
    /// [`irc_runtime::Library::load_entries`].
    pub suffix: String,
    /// What it takes and gives.
    pub interface: Interface,
    /// The constants that an [`irc_runtime::Runner`] is given, by number.
    pub weights: Vec<Constant>,
}

/// A graph after fusion, taken apart.
pub(super) struct Parts {
    /// The functions that call kernels, with the kernels' symbols in place of their names.
    pub program: String,
    /// The texts of its kernels, by symbol.
    pub kernels: BTreeMap<String, Arc<str>>,
}

impl Session {
    /// Compiles a graph to a shared library, which is given its large constants when it runs.
    ///
    /// # Errors
    /// What cannot be lowered, or what code generation could not do.
    pub fn compile_graph(
        &self,
        graph: &Graph,
        options: &CompileOptions,
    ) -> Result<CompiledGraph, Failure> {
        let compiled = caught(|| self.compile_one(graph, options, Place::Given));
        compiled.map_err(|failure| located(graph, options, failure))
    }

    /// Compiles a graph to a shared library that holds its constants: nothing is copied or read before
    /// it is used, for the system maps them.
    ///
    /// # Errors
    /// As [`Session::compile_graph`].
    pub fn compile_graph_whole(
        &self,
        graph: &Graph,
        options: &CompileOptions,
    ) -> Result<Compiled, Failure> {
        let compiled = caught(|| self.compile_one(graph, options, Place::Linked));
        let compiled = compiled.map_err(|failure| located(graph, options, failure))?;
        Ok(Compiled { library: compiled.library, interface: compiled.interface })
    }

    fn compile_one(
        &self,
        graph: &Graph,
        options: &CompileOptions,
        place: Place,
    ) -> Result<CompiledGraph, Failure> {
        let target = &options.target;
        let mut parts = parts_of(&self.database, graph, options, "main", "")?;
        let kernels = self.kernels(&parts.kernels, target)?;
        let constants = parts.settle(weights(graph), &kernels, place)?;
        let held = match place {
            Place::Given => None,
            Place::Linked => linked(&constants)?,
        };
        let text = with_declarations(&[&parts], |symbol| kernels.get(symbol).cloned());
        let key = queries::GlueKey::new(&self.database, Arc::<str>::from(text), target.clone());
        let glue = queries::glue_object(&self.database, key).map_err(unlocated)?;
        let objects = kernels.values().map(|kernel| (kernel.symbol.clone(), &*kernel.object));
        let glue_part = [("irc_glue".to_owned(), &*glue.object)].into_iter();
        let held = held.iter().map(|object| (WEIGHTS.to_owned(), &**object));
        let library = link_library(glue_part.chain(held).chain(objects), &[])
            .map_err(|error| Failure::internal(error.to_string()))?;
        Ok(CompiledGraph { library, interface: glue.interface.clone(), weights: constants })
    }

    /// Kernels by symbol, compiled on as many threads as there are cores.
    pub(super) fn kernels(
        &self,
        texts: &BTreeMap<String, Arc<str>>,
        target: &Target,
    ) -> Result<BTreeMap<String, Arc<KernelObject>>, Failure> {
        self.compile_texts(texts.values().cloned().collect(), target)?;
        let object = |(symbol, text): (&String, &Arc<str>)| {
            let key = queries::KernelKey::new(&self.database, text.clone(), target.clone());
            let object = queries::kernel_object(&self.database, key).map_err(unlocated)?;
            Ok((symbol.clone(), object))
        };
        texts.iter().map(object).collect()
    }

    /// The IR of a graph after a stage of the host pipeline, as text with locations.
    ///
    /// # Errors
    /// What cannot be lowered, or an unknown stage.
    pub fn graph_stage(
        &self,
        graph: &Graph,
        stage: &str,
        options: &CompileOptions,
    ) -> Result<String, Failure> {
        lowered(graph, stage, options, |module| irc_mlir::to_text(&module.as_operation(), true))
    }

    /// Compiles a graph to one relocatable object, LLVM IR, assembly or C source.
    ///
    /// # Errors
    /// What cannot be lowered, or what code generation could not do.
    pub fn emit_graph(
        &self,
        graph: &Graph,
        output: Output,
        options: &CompileOptions,
    ) -> Result<Vec<u8>, Failure> {
        let finish = |module: &Module<'_>| {
            if output == Output::C {
                hide_inner(module);
            }
            compile(module, &options.target, output)
        };
        lowered(graph, "llvm", options, finish)?
            .map_err(|error| Failure::internal(error.to_string()))
    }

    /// Compiles graphs to one library. A graph that cannot be compiled has no part in it.
    ///
    /// # Errors
    /// The linker's.
    pub fn compile_graphs(
        &self,
        graphs: &[&Graph],
        options: &CompileOptions,
    ) -> Result<CompiledGraphs, Failure> {
        let target = &options.target;
        let parts = Mutex::new(BTreeMap::new());
        self.share((0..graphs.len()).collect(), |database, index| {
            let (name, suffix) = (format!("g{index}"), format!("_{index}"));
            let part = caught(|| parts_of(database, graphs[index], options, &name, &suffix));
            locked(&parts).insert(index, part);
        })?;
        let parts = parts.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut texts: BTreeMap<String, Arc<str>> = BTreeMap::new();
        for part in parts.values().flatten() {
            texts.extend(part.kernels.iter().map(|(symbol, text)| (symbol.clone(), text.clone())));
        }
        let texts: Vec<Arc<str>> = texts.into_values().collect();
        let kernels = self.in_chunks(&texts, KERNELS, |texts| {
            let texts: Vec<&str> = texts.iter().map(|text| &***text).collect();
            compile_kernels(&texts, target)
        })?;
        let mut objects: Vec<Vec<u8>> = kernels.objects;
        let mut compiled = BTreeMap::new();
        let mut broken = BTreeMap::new();
        for (text, kernel) in texts.iter().zip(kernels.results) {
            match kernel {
                Ok(kernel) => {
                    compiled.insert(kernel.symbol.clone(), Arc::new(kernel));
                }
                Err(failure) => {
                    broken.insert(kernel::symbol_of(text, target), failure);
                }
            }
        }
        let mut results: BTreeMap<usize, Result<(Interface, Vec<Constant>), Failure>> =
            BTreeMap::new();
        let mut whole: Vec<(usize, Parts, Vec<Constant>)> = vec![];
        for (index, part) in parts {
            let failed =
                |parts: &Parts| parts.kernels.keys().find_map(|symbol| broken.get(symbol).cloned());
            let settled = part.and_then(|parts| failed(&parts).map_or(Ok(parts), Err));
            let settled = settled.and_then(|mut parts| {
                let constants = parts.settle(weights(graphs[index]), &compiled, Place::Given)?;
                Ok((parts, constants))
            });
            match settled {
                Ok((parts, constants)) => whole.push((index, parts, constants)),
                Err(failure) => {
                    results.insert(index, Err(failure));
                }
            }
        }
        let programs = self.in_chunks(&whole, PROGRAMS, |parts| {
            let parts: Vec<&Parts> = parts.iter().map(|(_, parts, _)| parts).collect();
            let text = with_declarations(&parts, |symbol| compiled.get(symbol).cloned());
            compile_programs(&text, target)
        })?;
        objects.extend(programs.objects);
        for ((index, _, constants), program) in whole.into_iter().zip(programs.results) {
            results.insert(index, program.map(|interface| (interface, constants)));
        }
        if objects.is_empty() {
            objects.push(kernel::compile_nothing(target).map_err(unlocated)?);
        }
        let named = objects.iter().enumerate();
        let named = named.map(|(number, object)| (format!("part_{number}"), object.as_slice()));
        let library =
            link_library(named, &[]).map_err(|error| Failure::internal(error.to_string()))?;
        let entries = results.into_iter().map(|(index, program)| {
            program.map(|(interface, weights)| GraphEntry {
                suffix: format!("_{index}"),
                interface,
                weights,
            })
        });
        Ok(CompiledGraphs { library, graphs: entries.collect() })
    }

    /// Compiles items several at a time, on as many threads as there are cores; where several fail,
    /// one at a time, so that only those fail that must.
    fn in_chunks<T: Sync, R: Send>(
        &self,
        items: &[T],
        size: usize,
        compile: impl Fn(&[&T]) -> Result<(Vec<R>, Vec<u8>), Broken> + Sync,
    ) -> Result<Chunks<R>, Failure> {
        let all: Vec<&T> = items.iter().collect();
        let found = Mutex::new(BTreeMap::new());
        let starts: Vec<usize> = (0..items.len()).step_by(size).collect();
        self.share(starts, |_, start| {
            let chunk = &all[start..(start + size).min(all.len())];
            let mut chunks = Chunks { results: vec![], objects: vec![] };
            halve(chunk, &compile, &mut chunks);
            locked(&found).insert(start, chunks);
        })?;
        let mut joined = Chunks { results: vec![], objects: vec![] };
        for chunks in found.into_inner().unwrap_or_else(PoisonError::into_inner).into_values() {
            joined.results.extend(chunks.results);
            joined.objects.extend(chunks.objects);
        }
        Ok(joined)
    }
}

/// A graph's module after a stage, whole, given to `finish`.
fn lowered<T>(
    graph: &Graph,
    stage: &str,
    options: &CompileOptions,
    finish: impl FnOnce(&Module<'_>) -> T,
) -> Result<T, Failure> {
    let passes = HOST_CPU.text_with(options, "import", stage).map_err(Failure::internal)?;
    let mut message = None;
    let finished = in_context(|context| {
        let written = graph_to_tl(context, graph, "main");
        let mut module = written.map_err(|error| message = Some(error)).ok()?;
        run(context, &mut module, &passes)?;
        Some(finish(&module))
    });
    finished.map_err(|captured| failure(message, &captured))
}

/// Fuses a graph and takes it apart.
pub(super) fn parts_of(
    database: &Database,
    graph: &Graph,
    options: &CompileOptions,
    name: &str,
    suffix: &str,
) -> Result<Parts, Failure> {
    let tensor = HOST_CPU.text_with(options, "tensor", "tensor").map_err(Failure::internal)?;
    let outline = HOST_CPU.text(Some("fuse"), Some("kernels")).map_err(Failure::internal)?;
    let outline = outline.replace("outline-kernels", &format!("outline-kernels{{prefix={name}_}}"));
    let mut message = None;
    let parts = in_context(|context| {
        let written = graph_to_tl(context, graph, name);
        let mut module = written.map_err(|error| message = Some(error)).ok()?;
        run(context, &mut module, &tensor)?;
        for function in read::body_ops(module.as_operation()) {
            queries::fuse_one(database, function)?;
        }
        run(context, &mut module, &outline)?;
        let main = kernel::named(module.as_operation(), name)?;
        if !suffix.is_empty() {
            irc_mlir::set_attribute(main, "irc.suffix", attr::string(context, suffix));
        }
        let mut parts = Parts { program: String::new(), kernels: BTreeMap::new() };
        let mut names = vec![];
        mark(context, module.as_operation(), main);
        for op in read::body_ops(module.as_operation()) {
            if op.has_attribute("irc.kernel") {
                let name = read::string(&op, "sym_name").unwrap_or_default();
                let text = kernel_text(context, op, &name);
                let symbol = kernel::symbol_of(&text, &options.target);
                names.push((format!("@{name}("), format!("@{symbol}(")));
                parts.kernels.insert(symbol, text);
            } else {
                parts.program += &irc_mlir::to_text(&op, false);
                parts.program.push('\n');
            }
        }
        parts.program = renamed(&parts.program, &names.into_iter().collect());
        Some(parts)
    });
    parts.map_err(|captured| failure(message, &captured))
}

/// What was compiled several at a time.
struct Chunks<R> {
    /// For each item what it is, or why it failed.
    results: Vec<Result<R, Failure>>,
    objects: Vec<Vec<u8>>,
}

fn halve<T, R>(
    items: &[&T],
    compile: &impl Fn(&[&T]) -> Result<(Vec<R>, Vec<u8>), Broken>,
    chunks: &mut Chunks<R>,
) {
    let compiled = catch_unwind(AssertUnwindSafe(|| compile(items)));
    match compiled.unwrap_or_else(|panic| Err(Broken::Codegen(CodegenError::new(said(&*panic))))) {
        Ok((results, object)) => {
            chunks.results.extend(results.into_iter().map(Ok));
            chunks.objects.push(object);
        }
        Err(broken) if items.len() <= 1 => {
            chunks.results.extend(items.iter().map(|_| Err(unlocated(broken.clone()))));
        }
        Err(_) => {
            let (left, right) = items.split_at(items.len() / 2);
            halve(left, compile, chunks);
            halve(right, compile, chunks);
        }
    }
}

/// A panic fails its own graph, not those beside it.
pub(super) fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|panic| Err(Failure::internal(said(&*panic))))
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("the compiler panicked: {}", text.unwrap_or("without saying why"))
}

/// Compiles a graph that failed again, whole, to say at which node.
pub(super) fn located(graph: &Graph, options: &CompileOptions, failure: Failure) -> Failure {
    if !failure.internal {
        return failure;
    }
    match caught(|| lowered(graph, "llvm", options, |_| ())) {
        Err(located) if located.diagnostics.iter().any(|found| found.path.is_some()) => located,
        _ => failure,
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program's text with the names of kernels replaced, in one pass.
pub(super) fn renamed(text: &str, names: &BTreeMap<String, String>) -> String {
    let mut found = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        let (before, after) = rest.split_at(at);
        found += before;
        let end = after.find('(').map_or(after.len(), |end| end + 1);
        match names.get(&after[..end]) {
            Some(name) => {
                found += name;
                rest = &after[end..];
            }
            None => {
                found.push('@');
                rest = &after[1..];
            }
        }
    }
    found + rest
}

/// Programs with the declarations of their kernels, each once.
pub(super) fn with_declarations(
    parts: &[&Parts],
    kernel: impl Fn(&str) -> Option<Arc<KernelObject>>,
) -> String {
    let mut text = String::new();
    let mut symbols = BTreeSet::new();
    for part in parts {
        text += &part.program;
        symbols.extend(part.kernels.keys().cloned());
    }
    for symbol in symbols {
        if let Some(kernel) = kernel(&symbol) {
            text += &declaration(&symbol, &kernel);
        }
    }
    text
}

/// Why a graph has no library: what could not be written, or what a pass said.
fn failure(message: Option<String>, captured: &[irc_mlir::CapturedDiagnostic]) -> Failure {
    match message {
        Some(message) => {
            let diagnostics = vec![irc_diag::Diagnostic::error("lowering", message)];
            Failure { diagnostics, internal: false }
        }
        None => diagnose::failure(captured, &Source::new("graph", ""), None),
    }
}
