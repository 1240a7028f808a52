//! Execution of models: Model Library Format archives, and libraries written by `irc compile`.
//!
//! A [`Model`] is immutable and shared by all threads; a [`Context`] is the state with which one thread runs
//! it. All memory is allocated when a context is created: a run allocates nothing.

mod code;
mod compiled;
mod context;
mod error;
mod graph;
mod options;
mod packed;
mod plan;
mod slots;
mod spans;
mod workspace;

pub use context::Context;
pub use error::{InvalidArchive, ModelError};
pub use options::ContextOptions;

use crate::{GpuProgram, Interface, Library, constants::HostConstant, processor};
use bytes::Bytes;
use code::Code;
use irc_mlf::{Depth, Package};
use memmap2::Mmap;
use packed::Function;
use plan::Plan;
use std::{collections::BTreeMap, fs::File, path::Path, sync::Arc};

/// A loaded model: code and parameters, which any number of contexts share.
pub struct Model {
    pub(crate) kind: Kind,
}

pub(crate) enum Kind {
    /// A graph of packed calls.
    Graph(Box<GraphModel>),
    /// A library written by `irc compile`.
    Compiled(Arc<Library>),
}

/// A model of an archive.
pub(crate) struct GraphModel {
    plan: Plan,
    /// Parameters by number; `None` if the graph does not use the parameter.
    params: Vec<Option<HostConstant>>,
    /// The functions that the plan calls, by number.
    functions: Vec<Function>,
    by_name: Arc<BTreeMap<String, Function>>,
    // Dropped last: it contains the functions.
    _code: Code,
}

/// Options of opening an archive.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions<'o> {
    /// The model in an archive of several; `None` selects the only one.
    pub model: Option<&'o str>,
    /// The archive's code as a shared library, linked by the caller; `None` selects the library in the
    /// archive, which does not exist in TVM's archives.
    pub library: Option<&'o Path>,
}

impl GraphModel {
    /// Name of the node that a step runs.
    fn node(&self, step: usize) -> &str {
        &self.plan.steps[step].node
    }

    /// Number of bytes of inputs, then of outputs.
    fn port_bytes(&self) -> Vec<usize> {
        let outputs = self.plan.outputs.iter().map(|output| output.place);
        let places = self.plan.inputs.iter().copied().chain(outputs);
        places.map(|place| self.plan.places[place].bytes).collect()
    }
}

impl Model {
    /// Opens an archive, or a library written by `irc compile`.
    ///
    /// The file is memory-mapped while the model exists, and must not change. Parameters are used in
    /// place if they are aligned in the archive, and are otherwise copied once. Hashes are not checked.
    /// Code runs with the rights of the program: open only trusted files.
    ///
    /// # Errors
    /// All except [`ModelError::Buffer`] and [`ModelError::Failed`].
    pub fn open(path: &Path, options: OpenOptions<'_>) -> Result<Self, ModelError> {
        let failed = |error: std::io::Error| ModelError::File {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        // Safety: the caller guarantees that the file does not change.
        let map = File::open(path).and_then(|file| unsafe { Mmap::map(&file) }).map_err(failed)?;
        if map.starts_with(b"\x7fELF") {
            let library = Library::load(path)?;
            return Ok(Model { kind: Kind::Compiled(Arc::new(library)) });
        }
        Self::from_bytes(&path.display().to_string(), &Bytes::from_owner(map), options)
    }

    /// Opens an archive in memory, which is called `name` in messages.
    ///
    /// # Errors
    /// As [`Model::open`].
    pub fn from_bytes(
        name: &str,
        bytes: &Bytes,
        options: OpenOptions<'_>,
    ) -> Result<Self, ModelError> {
        let (package, report) = irc_mlf::read(name, bytes);
        let package = package.ok_or(ModelError::InvalidArchive(InvalidArchive(report)))?;
        Self::from_package(&package, options)
    }

    /// The model of an archive that has been read. The sizes of one whose library contains a program with open sizes depend
    /// on its inputs.
    ///
    /// # Errors
    /// As [`Model::open`].
    pub fn from_package(package: &Package, options: OpenOptions<'_>) -> Result<Self, ModelError> {
        let number = checked_model(package, options.model)?;
        let plan = plan_of(package, number)?;
        check_processor(package, number)?;
        let code = match options.library {
            Some(library) => Code::open(library)?,
            None => Code::from_bytes(package.archive.name(), shared_library(package)?)?,
        };
        if let Some(program) = code.program()? {
            return Ok(Model { kind: Kind::Compiled(Arc::new(program)) });
        }
        let functions = plan.functions.iter().map(|name| code.function(name));
        let functions: Vec<Function> = functions.collect::<Result<_, _>>()?;
        // Without sorting, whose code takes 3 kB in a library that must stay small.
        let mut by_name = BTreeMap::new();
        by_name.extend(plan.functions.iter().cloned().zip(functions.iter().copied()));
        let params = params(package, number, &plan)?;
        let by_name = Arc::new(by_name);
        let model = GraphModel { plan, params, functions, by_name, _code: code };
        Ok(Model { kind: Kind::Graph(Box::new(model)) })
    }

    /// The kernel for a GPU, if the model is one.
    pub fn kernel(&self) -> Option<&Arc<GpuProgram>> {
        match &self.kind {
            Kind::Graph(_) => None,
            Kind::Compiled(library) => library.kernel(),
        }
    }

    /// The inputs and outputs, in order. Inputs of archives are those of the graph that are not
    /// parameters; outputs have the names in the archive, or otherwise their numbers: `0`, `1`.
    pub fn interface(&self) -> &Interface {
        match &self.kind {
            Kind::Graph(model) => &model.plan.interface,
            Kind::Compiled(library) => library.interface(),
        }
    }

    /// The number of an input.
    ///
    /// # Errors
    /// [`ModelError::Unknown`].
    pub fn input(&self, name: &str) -> Result<usize, ModelError> {
        find("input", &self.interface().inputs, name)
    }

    /// The number of an output.
    ///
    /// # Errors
    /// [`ModelError::Unknown`].
    pub fn output(&self, name: &str) -> Result<usize, ModelError> {
        find("output", &self.interface().outputs, name)
    }
}

fn find(kind: &'static str, ports: &[crate::Port], name: &str) -> Result<usize, ModelError> {
    ports.iter().position(|port| port.name == name).ok_or_else(|| unknown(kind, ports, name))
}

pub(crate) fn unknown(kind: &'static str, ports: &[crate::Port], name: &str) -> ModelError {
    let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
    ModelError::Unknown { kind, name: name.to_owned(), known: names.join(", ") }
}

/// Number of bytes of each context of an archive's model, without loading its code.
///
/// # Errors
/// As [`Model::open`], except for errors of code.
pub fn context_bytes(
    package: &Package,
    model: Option<&str>,
    options: &ContextOptions,
) -> Result<u64, ModelError> {
    let number = checked_model(package, model)?;
    graph::bytes(&plan_of(package, number)?, options)
}

/// The number of a model of an archive without errors.
fn checked_model(package: &Package, name: Option<&str>) -> Result<usize, ModelError> {
    let report = irc_mlf::check(package, Depth::Form);
    if report.has_errors() {
        return Err(ModelError::InvalidArchive(InvalidArchive(report)));
    }
    let modules = &package.metadata.modules;
    let unsupported = |reason: String| ModelError::Unsupported {
        name: package.archive.name().to_owned(),
        reason,
    };
    let known = || modules.iter().map(|module| module.name.as_str()).collect::<Vec<_>>().join(", ");
    match name {
        Some(name) => modules.iter().position(|module| module.name == name).ok_or_else(|| {
            unsupported(format!("no model is named `{name}`; there are {}", known()))
        }),
        None if modules.len() == 1 => Ok(0),
        None => Err(unsupported(format!("say which of its models: {}", known()))),
    }
}

fn plan_of(package: &Package, number: usize) -> Result<Plan, ModelError> {
    let name = || package.archive.name().to_owned();
    plan::of(package, number).map_err(|reason| ModelError::Unsupported { name: name(), reason })
}

/// Rejects code that this processor cannot run, before any of it is loaded.
fn check_processor(package: &Package, number: usize) -> Result<(), ModelError> {
    let extension = package.metadata.extension.as_ref();
    let shared = extension.and_then(|extension| extension.library.as_ref());
    let targets = package.metadata.modules[number].targets.iter();
    // The features that the code uses, if they are stated; otherwise those that it may use.
    let required = match shared {
        Some(library) => library.requires.clone(),
        None => targets.flat_map(|target| processor::required_by(&target.text)).collect(),
    };
    let missing = processor::missing_features(&required);
    if missing.is_empty() {
        return Ok(());
    }
    let name = package.archive.name().to_owned();
    Err(ModelError::Processor { name, missing: missing.join(", ") })
}

fn shared_library(package: &Package) -> Result<&Bytes, ModelError> {
    let extension = package.metadata.extension.as_ref();
    let shared = extension.and_then(|extension| extension.library.as_ref());
    let member = shared.and_then(|library| package.archive.get(&library.member));
    member.ok_or_else(|| ModelError::Unsupported {
        name: package.archive.name().to_owned(),
        reason:
            "it has no shared library: link the objects or sources in `codegen/host`, and open it \
                 with what comes out"
                .into(),
    })
}

/// The parameters that the graph uses: from the aligned member if there is one, otherwise copied.
fn params(
    package: &Package,
    number: usize,
    plan: &Plan,
) -> Result<Vec<Option<HostConstant>>, ModelError> {
    let (module, part) = (&package.metadata.modules[number], &package.parts[number]);
    let extension = package.metadata.extension.as_ref();
    let ours = extension.and_then(|extension| extension.models.get(&module.name));
    let weights = ours.and_then(|model| model.weights.as_ref());
    let mut params: Vec<Option<HostConstant>> = part.params.iter().map(|_| None).collect();
    for place in &plan.places {
        let plan::ValueMemory::Param(index) = place.home else { continue };
        let param = &part.params[index];
        let data = weights.and_then(|weights| {
            let begin = usize::try_from(*weights.offsets.get(&param.name)?).ok()?;
            let member = package.archive.get(&weights.member)?;
            let end = begin.checked_add(param.data.len()).filter(|end| *end <= member.len())?;
            Some(member.slice(begin..end))
        });
        let held = HostConstant::new(data.as_ref().unwrap_or(&param.data)).map_err(|error| {
            let needed = param.data.len() as u64;
            ModelError::Memory { needed, reason: error.to_string() }
        })?;
        params[index] = Some(held);
    }
    Ok(params)
}
