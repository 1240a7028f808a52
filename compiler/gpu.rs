//! Runs kernels for GPUs without one.
use irc_diag::{Diagnostic, Sink, Source};
use irc_ptx::{Argument, Checks, Launch, Memory, Module};
use irc_runtime::{GpuKernel, Parameter, Port};
use irc_tensor::{DType, Tensor, TensorType};
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
        let (name, contents) =
            contents(&kernel, *parameter, given, source.text()).map_err(EmulationError::Message)?;
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
        let ty = tensor_type(port).map_err(EmulationError::Message)?;
        let tensor = Tensor::from_bytes(ty, memory.bytes(buffer));
        let tensor = tensor.map_err(|error| EmulationError::Message(error.to_string()))?;
        outputs.insert(port.name.clone(), tensor);
    }
    Ok(Emulated { outputs, warnings: report.diagnostics })
}

/// What the memory of a parameter holds before the launch.
enum Contents {
    Bytes(Vec<u8>),
    /// Bytes that the kernel only reads.
    Constants(Vec<u8>),
    /// So many bytes, which the kernel has to write before it reads them.
    Unwritten(usize),
}

/// The name and the contents of the memory of a parameter.
fn contents(
    kernel: &GpuKernel,
    parameter: Parameter,
    given: &BTreeMap<String, Tensor>,
    ptx: &str,
) -> Result<(String, Contents), String> {
    if parameter.constants {
        let bytes = GpuKernel::constants(ptx)?;
        return Ok(("constants".to_owned(), Contents::Constants(bytes)));
    }
    let interface = &kernel.interface;
    let input = parameter.input.map(|input| &interface.inputs[input]);
    let output = || parameter.output.map(|output| &interface.outputs[output]);
    let Some(port) = input.or_else(output) else {
        let bytes = usize::try_from(interface.workspace_bytes);
        let bytes = bytes.map_err(|_| "the workspace does not fit in memory".to_owned())?;
        return Ok(("workspace".to_owned(), Contents::Unwritten(bytes)));
    };
    let ty = tensor_type(port)?;
    let size = ty.byte_size().map_err(|error| error.to_string())?;
    let contents = match input.and_then(|input| given.get(&input.name)) {
        Some(tensor) if tensor.ty() == &ty => Contents::Bytes(tensor.bytes().to_vec()),
        Some(tensor) => {
            return Err(format!("input '{}': expected {ty}, found {}", port.name, tensor.ty()));
        }
        // An output of a plan is a buffer, which is zero at the start.
        None if input.is_some() || kernel.blocks.is_some() => Contents::Bytes(vec![0; size]),
        None => Contents::Unwritten(size),
    };
    Ok((port.name.clone(), contents))
}

fn tensor_type(port: &Port) -> Result<TensorType, String> {
    let dtype = DType::ALL.into_iter().find(|dtype| dtype.name() == port.dtype);
    let dtype = dtype.ok_or_else(|| format!("unknown type '{}'", port.dtype))?;
    Ok(TensorType::new(dtype, port.shape.clone()))
}
