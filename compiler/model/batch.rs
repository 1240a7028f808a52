//! Compiles many programs to one library: equal kernels are compiled once, and several kernels and programs
//! share an object.
//!
//! A compile error affects only its own program.
use super::Model;
use crate::{
    codegen::{CodegenError, Output, link_library},
    interface::Interface,
    lowering::{graph_to_tl::weights, prepare_products::ByteSums},
    session::{
        CompileOptions, Error, Input, Place, QueryError, Session, constants,
        error::{CompileError, catch, panic_text},
        kernel::{self, KernelObject, compile_kernels, compile_programs},
        queries::{self, Config, Fused},
        with_file,
    },
};
use irc_runtime::{Library, RunError, Runner};
use irc_tl::Constant;
use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

/// Number of kernels per object.
const KERNELS: usize = 24;
/// Number of programs per object.
const PROGRAMS: usize = 48;

/// Programs compiled to one library.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The shared library's bytes.
    pub library: Vec<u8>,
    /// For each program its entry in the library, or its error.
    pub programs: Vec<Result<Entry, Error>>,
}

/// The entry of one program in a library of several.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The suffix of its entry point and metadata; see [`irc_runtime::Library::load_entries`].
    pub suffix: String,
    /// Its inputs and outputs.
    pub interface: Interface,
    /// The constants that an [`irc_runtime::Runner`] takes, by number.
    pub constants: Vec<Constant>,
}

impl Batch {
    /// Loads the library and binds the constants of every program in it; `None` for programs that failed to
    /// compile.
    ///
    /// # Errors
    /// See [`Library::load_entries`] and [`Runner::new`].
    pub fn runners(&self) -> Result<Vec<Option<Runner>>, RunError> {
        let entries: Vec<Option<&Entry>> =
            self.programs.iter().map(|entry| entry.as_ref().ok()).collect();
        let suffixes: Vec<String> =
            entries.iter().flatten().map(|entry| entry.suffix.clone()).collect();
        let libraries = with_file(&self.library, |path| Library::load_entries(path, &suffixes))?;
        let mut libraries = libraries.into_iter();
        let load = |entry: Option<&Entry>| {
            let Some((entry, library)) = entry.and_then(|entry| Some((entry, libraries.next()?)))
            else {
                return Ok(None);
            };
            let constants: Vec<_> =
                entry.constants.iter().map(|constant| constant.bytes.clone()).collect();
            Runner::new(Arc::new(library), &constants).map(Some)
        };
        entries.into_iter().map(load).collect()
    }
}

/// The entry of a program in the library, or its error.
type Program = Result<Entry, QueryError>;

/// A program during compilation.
struct Part {
    program: String,
    kernels: Vec<String>,
    constants: Vec<Constant>,
}

impl Session {
    /// Compiles models to one library. A model that fails to compile is not part of it.
    ///
    /// # Errors
    /// If linking fails.
    pub fn compile_batch(
        &self,
        models: &[Model<'_>],
        options: &CompileOptions,
    ) -> Result<Batch, Error> {
        let inputs: Vec<Input> = models.iter().map(Model::input).collect();
        let failed =
            |index: usize, error| self.error(inputs[index], options, Some(Output::Object), error);
        let (library, programs) = self.batch(&inputs, options).map_err(|error| {
            let file = irc_diag::Source::new("", "");
            Error::new(file, error)
        })?;
        let programs = programs.into_iter().enumerate();
        let programs =
            programs.map(|(index, program)| program.map_err(|error| failed(index, error)));
        Ok(Batch { library, programs: programs.collect() })
    }

    fn batch(
        &self,
        inputs: &[Input],
        options: &CompileOptions,
    ) -> Result<(Vec<u8>, Vec<Program>), QueryError> {
        let target = &options.target;
        let fused = Mutex::new(BTreeMap::new());
        self.share((0..inputs.len()).collect(), |database, index| {
            let config = Config::new(database, options.clone(), suffix(index));
            let one = catch(|| queries::fused(database, inputs[index], config));
            locked(&fused).insert(index, one);
        })?;
        let fused: BTreeMap<usize, Result<Arc<Fused>, QueryError>> =
            fused.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut texts: BTreeMap<String, Arc<str>> = BTreeMap::new();
        for one in fused.values().flatten() {
            texts.extend(one.kernels.iter().map(|(symbol, text)| (symbol.clone(), text.clone())));
        }
        let (symbols, texts): (Vec<String>, Vec<Arc<str>>) = texts.into_iter().unzip();
        let kernels = self.in_chunks(&texts, KERNELS, |texts| {
            let texts: Vec<&str> = texts.iter().map(|text| &***text).collect();
            compile_kernels(&texts, target)
        })?;
        let mut objects: Vec<Vec<u8>> = kernels.objects;
        let (mut compiled, mut broken) = (BTreeMap::new(), BTreeMap::new());
        for (symbol, kernel) in symbols.into_iter().zip(kernels.results) {
            match kernel {
                Ok(kernel) => drop(compiled.insert(symbol, Arc::new(kernel))),
                Err(error) => drop(broken.insert(symbol, error)),
            }
        }
        let mut results: BTreeMap<usize, Program> = BTreeMap::new();
        let mut parts: Vec<(usize, Part)> = vec![];
        let sums = options.settings().byte_sums();
        for (index, fused) in fused {
            let part = fused
                .and_then(|fused| self.part((inputs[index], sums), &fused, &compiled, &broken));
            match part {
                Ok(part) => parts.push((index, part)),
                Err(error) => drop(results.insert(index, Err(error))),
            }
        }
        let programs = self.in_chunks(&parts, PROGRAMS, |parts| {
            let texts = parts.iter().map(|(_, part)| part.program.as_str());
            let symbols = parts.iter().flat_map(|(_, part)| &part.kernels);
            let used: BTreeMap<String, Arc<KernelObject>> =
                symbols.map(|symbol| (symbol.clone(), compiled[symbol].clone())).collect();
            compile_programs(&kernel::with_declarations(texts, &used), target)
        })?;
        objects.extend(programs.objects);
        for ((index, part), interface) in parts.into_iter().zip(programs.results) {
            let entry =
                |interface| Entry { suffix: suffix(index), interface, constants: part.constants };
            results.insert(index, interface.map(entry));
        }
        if objects.is_empty() {
            objects.push(kernel::compile_nothing(target)?);
        }
        let named = objects.iter().enumerate();
        let named = named.map(|(number, object)| (format!("part_{number}"), object.as_slice()));
        let library = link_library(named)?;
        let requires = library.features.among(target.required_features());
        for entry in results.values_mut().flatten() {
            entry.interface.requires.clone_from(&requires);
        }
        Ok((library.bytes, results.into_values().collect()))
    }

    fn part(
        &self,
        (input, sums): (Input, ByteSums),
        fused: &Fused,
        compiled: &BTreeMap<String, Arc<KernelObject>>,
        broken: &BTreeMap<String, QueryError>,
    ) -> Result<Part, QueryError> {
        if let Some(error) = fused.kernels.keys().find_map(|symbol| broken.get(symbol)) {
            return Err(error.clone());
        }
        let kernels: Vec<String> = fused.kernels.keys().cloned().collect();
        let own = kernels.iter().map(|symbol| (symbol.clone(), compiled[symbol].clone())).collect();
        let weights = weights(&queries::prepared(&self.database, input, sums)?.graph);
        let (program, constants) = constants::settle(&fused.program, weights, &own, Place::Given)?;
        Ok(Part { program, kernels, constants })
    }

    /// Compiles several items at a time, on all cores; if a group of items fails, each of them alone, so
    /// that only the failing items have errors.
    fn in_chunks<T: Sync, R: Send>(
        &self,
        items: &[T],
        size: usize,
        compile: impl Fn(&[&T]) -> Result<(Vec<R>, Vec<u8>), CompileError> + Sync,
    ) -> Result<Chunks<R>, QueryError> {
        let all: Vec<&T> = items.iter().collect();
        let found = Mutex::new(BTreeMap::new());
        let starts: Vec<usize> = (0..items.len()).step_by(size).collect();
        self.share(starts, |_, start| {
            let chunk = &all[start..(start + size).min(all.len())];
            let mut chunks = Chunks { results: vec![], objects: vec![] };
            bisect(chunk, &compile, &mut chunks);
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

fn suffix(index: usize) -> String {
    format!("_{index}")
}

/// The results of compiling several items at a time.
struct Chunks<R> {
    /// The result or error of each item.
    results: Vec<Result<R, QueryError>>,
    objects: Vec<Vec<u8>>,
}

fn bisect<T, R>(
    items: &[&T],
    compile: &impl Fn(&[&T]) -> Result<(Vec<R>, Vec<u8>), CompileError>,
    chunks: &mut Chunks<R>,
) {
    let compiled = catch_unwind(AssertUnwindSafe(|| compile(items)));
    let panicked = |panic: Box<dyn std::any::Any + Send>| {
        Err(CompileError::Codegen(CodegenError::new(panic_text(&*panic))))
    };
    match compiled.unwrap_or_else(panicked) {
        Ok((results, object)) => {
            chunks.results.extend(results.into_iter().map(Ok));
            chunks.objects.push(object);
        }
        Err(error) if items.len() <= 1 => {
            chunks.results.extend(items.iter().map(|_| Err(error.clone().into())));
        }
        Err(_) => {
            let (left, right) = items.split_at(items.len() / 2);
            bisect(left, compile, chunks);
            bisect(right, compile, chunks);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
