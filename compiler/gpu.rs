//! Kernels for GPUs: libraries of them, and runs without a GPU.
use crate::{
    Error, Interface,
    codegen::{CodegenError, SymbolScope, data_object, link_library},
    session::{ArchiveOptions, Compiled, archive_of_kernel},
};
use irc_diag::{Diagnostic, Sink, Source};
use irc_mlf::Contents as ArchiveContents;
use irc_ptx::{Argument, Checks, Launch, Memory, Module, Statistics};
use irc_runtime::{Contents, GpuKernel, GpuProgram};
use irc_tensor::{ALIGNMENT, Tensor};
use std::collections::BTreeMap;

/// The number of blocks of an emulated launch that may have any number.
const BLOCKS: u32 = 2;

/// The objects of a library with a kernel, by name: its interface, its PTX and its constants.
///
/// # Errors
/// If an object cannot be written.
pub(crate) fn objects(program: &GpuProgram) -> Result<Vec<(String, Vec<u8>)>, CodegenError> {
    let interface = interface(program);
    let ended = |text: &str| [text.as_bytes(), &[0]].concat();
    let constants = Some(program.constants.to_vec()).filter(|bytes| !bytes.is_empty());
    let parts = [
        ("irc_metadata", Some(ended(&interface.to_json())), 1),
        ("irc_kernel", Some(ended(&program.text)), 1),
        ("irc_constants", constants, ALIGNMENT as u64),
    ];
    let made = parts.into_iter().filter_map(|(name, bytes, alignment)| {
        let object = data_object(name, &bytes?, alignment, SymbolScope::Dynamic);
        Some(object.map(|object| (name.to_owned(), object)))
    });
    made.collect()
}

/// The interface of a library with a kernel.
fn interface(program: &GpuProgram) -> Interface {
    Interface { convention: Interface::KERNEL, ..program.kernel.interface.clone() }
}

/// A shared library with the kernel of PTX of [`Model::emit`](crate::Model::emit) or
/// [`PlanFile::ptx`](crate::session::PlanFile::ptx), which irc's runtime runs on a GPU.
///
/// # Errors
/// PTX that irc has not written, or no linker.
pub fn library(source: &Source, ptx: &[u8]) -> Result<Compiled, Error> {
    compiled(ptx).map_err(|error| Error::new(source.clone(), error.into()))
}

/// As [`library`], without the model for diagnostics.
pub(crate) fn compiled(ptx: &[u8]) -> Result<Compiled, CodegenError> {
    let program = program(ptx)?;
    let objects = objects(&program)?;
    let objects = objects.iter().map(|(name, object)| (name.clone(), object.as_slice()));
    let library = link_library(objects)?.bytes;
    Ok(Compiled { library, interface: interface(&program), constants: vec![] })
}

/// The contents of an archive with such a kernel, for [`irc_mlf::build`]. Other clients than irc's runtime report that its
/// code is for a GPU.
///
/// # Errors
/// As [`library`]; inputs and outputs that clients of archives do not have.
pub fn archive(
    source: &Source,
    ptx: &[u8],
    options: &ArchiveOptions,
) -> Result<ArchiveContents, Error> {
    let contents = program(ptx).map_err(Into::into);
    let contents = contents.and_then(|program| archive_of_kernel(&program, options));
    contents.map_err(|error| Error::new(source.clone(), error))
}

/// The kernel of PTX that irc has written.
pub(crate) fn program(ptx: &[u8]) -> Result<GpuProgram, CodegenError> {
    GpuProgram::from_ptx(&String::from_utf8_lossy(ptx)).map_err(CodegenError::new)
}

/// Bytes of shared memory that a block may have, by compute capability: at least that much.
const SHARED_LIMITS: [(u32, u64); 5] =
    [(90, 227 << 10), (87, 163 << 10), (86, 99 << 10), (80, 163 << 10), (70, 64 << 10)];

/// All diagnostics of PTX: syntax, instructions that the emulator does not know, limits of the architecture, and if irc has
/// written it, its description and its constants.
pub fn check(source: &Source) -> Vec<Diagnostic> {
    let text = source.text();
    let mut sink = Sink::new();
    let module = Module::parse(source, &mut sink);
    let kernels: Vec<_> = module.iter().flat_map(Module::kernels).collect();
    let programs: Vec<_> = kernels
        .iter()
        .filter_map(|name| Some((*name, module.as_ref()?.compile(name, &mut sink)?)))
        .collect();
    let mut found = sink.into_diagnostics();
    let first = 0..text.lines().next().unwrap_or_default().len();
    let mut dynamic = 0;
    if text.starts_with(GpuKernel::PREFIX) {
        let wrong =
            |message: String| Diagnostic::error("gpu-description", message).at(first.clone(), "");
        match GpuProgram::from_ptx(text) {
            Err(message) => found.push(wrong(message)),
            Ok(GpuProgram { kernel, .. }) => {
                dynamic = kernel.shared_bytes;
                let program = programs.iter().find(|(name, _)| *name == kernel.entry);
                let (name, expected) = (&kernel.entry, kernel.parameters.len());
                match program.map(|(_, program)| program.parameters()) {
                    None if kernels.contains(&name.as_str()) => {}
                    None => found.push(wrong(format!("the PTX has no kernel '{name}'"))),
                    Some(own) if own.len() != expected || own.iter().any(|own| own.size != 8) => {
                        let message = format!(
                            "the kernel '{name}' has {} parameters, and its description {expected} pointers",
                            own.len()
                        );
                        found.push(wrong(message));
                    }
                    Some(_) => {}
                }
            }
        }
    }
    let target = text.find("\n.target sm_").map(|at| at + 1);
    let line = target.and_then(|at| text[at..].lines().next()).unwrap_or_default();
    let capability: String = line.chars().filter(char::is_ascii_digit).collect();
    let capability: u32 = capability.parse().unwrap_or(0);
    let limit = SHARED_LIMITS.iter().find(|(least, _)| capability >= *least);
    if let (Some(at), Some((_, limit))) = (target, limit) {
        for (name, program) in programs {
            let bytes = program.shared_bytes() + dynamic;
            if bytes > *limit {
                let message = format!(
                    "the kernel '{name}' needs {bytes} bytes of shared memory, and a block of this architecture has \
                     {limit}"
                );
                let place = at..at + line.len();
                found.push(Diagnostic::error("gpu-limit", message).at(place, ""));
            }
        }
    }
    found
}

/// How a kernel is emulated.
#[derive(Clone, Copy, Default)]
pub struct Emulation<'e> {
    /// Whether accesses that nothing orders are reported.
    pub races: bool,
    /// The number of instructions of all threads together after which the kernel is stopped; `None` for that of
    /// [`Launch`].
    pub max_instructions: Option<u64>,
    /// Is called now and then with the number of instructions so far.
    pub observer: Option<&'e dyn Fn(u64)>,
}

/// What an emulated kernel has computed.
#[derive(Debug)]
pub struct Emulated {
    /// The outputs by name.
    pub outputs: BTreeMap<String, Tensor>,
    /// Warnings at instructions of the PTX.
    pub warnings: Vec<Diagnostic>,
    /// Numbers of instructions and accesses.
    pub statistics: Statistics,
}

/// Why a kernel could not be emulated.
#[derive(Debug)]
pub enum EmulationError {
    /// Errors at instructions of the PTX.
    Diagnostics(Vec<Diagnostic>),
    /// An error without a place.
    Message(String),
}

/// Runs a kernel of PTX of [`Model::emit`](crate::Model::emit) or [`PlanFile::ptx`](crate::session::PlanFile::ptx) on an
/// emulated GPU. Inputs that are not given are zero; results do not depend on the number of blocks.
///
/// # Errors
/// PTX that irc has not written, inputs of other types, and what the emulator finds: faults, and with `races` accesses
/// that nothing orders.
pub fn emulate(
    source: &Source,
    given: &BTreeMap<String, Tensor>,
    options: &Emulation<'_>,
) -> Result<Emulated, EmulationError> {
    let program = GpuProgram::from_ptx(source.text()).map_err(EmulationError::Message)?;
    emulate_program(&program, source, given, options)
}

/// As [`emulate`], of a kernel whose text is that of the source.
///
/// # Errors
/// As [`emulate`].
pub fn emulate_program(
    program: &GpuProgram,
    source: &Source,
    given: &BTreeMap<String, Tensor>,
    options: &Emulation<'_>,
) -> Result<Emulated, EmulationError> {
    let kernel = &program.kernel;
    let mut sink = Sink::new();
    let code = Module::parse(source, &mut sink)
        .and_then(|module| module.compile(&kernel.entry, &mut sink));
    let Some(code) = code else {
        return Err(EmulationError::Diagnostics(sink.into_diagnostics()));
    };
    let mut memory = Memory::new();
    let mut buffers = vec![];
    for parameter in &kernel.parameters {
        let contents = program.contents(*parameter, given);
        let (name, contents) = contents.map_err(EmulationError::Message)?;
        buffers.push(match contents {
            Contents::Bytes(bytes) => memory.add(name, bytes),
            Contents::Constants(bytes) => memory.add_constant(name, bytes),
            Contents::Unwritten(size) => memory.add_unwritten(name, size),
        });
    }
    let blocks = kernel.blocks.unwrap_or(BLOCKS);
    let default = Launch::default();
    let launch = Launch {
        grid: [blocks, 1, 1],
        block: [kernel.threads, 1, 1],
        shared_bytes: kernel.shared_bytes,
        arguments: buffers.iter().map(|buffer| Argument::Buffer(*buffer)).collect(),
        checks: Checks { races: options.races, uninitialised: true },
        resident: Some(blocks as usize),
        max_instructions: options.max_instructions.unwrap_or(default.max_instructions),
        ..default
    };
    let report = match options.observer {
        Some(observer) => launch.run_observed(&code, &mut memory, observer),
        None => launch.run(&code, &mut memory),
    };
    if !report.is_clean() {
        return Err(EmulationError::Diagnostics(report.diagnostics));
    }
    let mut outputs = BTreeMap::new();
    for (parameter, buffer) in kernel.parameters.iter().zip(buffers) {
        let Some(output) = parameter.output else { continue };
        let port = &kernel.interface.outputs[output];
        let ty = GpuKernel::type_of(port).map_err(EmulationError::Message)?;
        let tensor = Tensor::from_bytes(ty, memory.bytes(buffer));
        let tensor = tensor.map_err(|error| EmulationError::Message(error.to_string()))?;
        outputs.insert(port.name.clone(), tensor);
    }
    Ok(Emulated { outputs, warnings: report.diagnostics, statistics: report.statistics })
}
