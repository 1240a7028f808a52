//! Runs kernels for GPUs without one.
use irc_diag::{Diagnostic, Sink, Source};
use irc_ptx::{Argument, Checks, Launch, Memory, Module};
use irc_runtime::{Contents, GpuKernel};
use irc_tensor::Tensor;
use std::collections::BTreeMap;

/// The number of blocks of an emulated launch that may have any number.
const BLOCKS: u32 = 2;

/// What an emulated kernel has computed.
#[derive(Debug)]
pub struct Emulated {
    /// The outputs by name.
    pub outputs: BTreeMap<String, Tensor>,
    /// Warnings at instructions of the PTX.
    pub warnings: Vec<Diagnostic>,
}

/// Why a kernel could not be emulated.
#[derive(Debug)]
pub enum EmulationError {
    /// Errors at instructions of the PTX.
    Diagnostics(Vec<Diagnostic>),
    /// An error without a place.
    Message(String),
}

/// Runs a kernel of [`Model::emit`](crate::Model::emit) or [`PlanFile::ptx`](crate::session::PlanFile::ptx) on an
/// emulated GPU. Inputs that are not given are zero; results do not depend on the number of blocks.
///
/// # Errors
/// PTX that irc has not written, inputs of other types, and what the emulator finds: faults, and with `races` accesses
/// that nothing orders.
pub fn emulate(
    source: &Source,
    given: &BTreeMap<String, Tensor>,
    races: bool,
) -> Result<Emulated, EmulationError> {
    let kernel = GpuKernel::from_ptx(source.text()).map_err(EmulationError::Message)?;
    let mut sink = Sink::new();
    let program = Module::parse(source, &mut sink)
        .and_then(|module| module.compile(&kernel.entry, &mut sink));
    let Some(program) = program else {
        return Err(EmulationError::Diagnostics(sink.into_diagnostics()));
    };
    let mut memory = Memory::new();
    let mut buffers = vec![];
    for parameter in &kernel.parameters {
        let contents = kernel.contents(*parameter, given, source.text());
        let (name, contents) = contents.map_err(EmulationError::Message)?;
        buffers.push(match contents {
            Contents::Bytes(bytes) => memory.add(name, bytes),
            Contents::Constants(bytes) => memory.add_constant(name, bytes),
            Contents::Unwritten(size) => memory.add_unwritten(name, size),
        });
    }
    let blocks = kernel.blocks.unwrap_or(BLOCKS);
    let launch = Launch {
        grid: [blocks, 1, 1],
        block: [kernel.threads, 1, 1],
        shared_bytes: kernel.shared_bytes,
        arguments: buffers.iter().map(|buffer| Argument::Buffer(*buffer)).collect(),
        checks: Checks { races, uninitialised: true },
        resident: Some(blocks as usize),
        ..Launch::default()
    };
    let report = launch.run(&program, &mut memory);
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
    Ok(Emulated { outputs, warnings: report.diagnostics })
}
