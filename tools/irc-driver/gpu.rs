//! Runs kernels for GPUs: on one, or emulated.
use crate::{
    console::Console,
    error::Error,
    values::{self, Buffers},
};
use irc_cli::Run;
use irc_diag::{Sink, Source};
use irc_ptx::{Argument, Checks, Launch, Memory, Module};
use irc_runtime::{GpuKernel, Parameter, Port};
use irc_tensor::{DType, Tensor, TensorType};
use std::collections::BTreeMap;

/// The number of blocks of an emulated launch that may have any number.
const BLOCKS: u32 = 2;

/// Memory that the kernel has to write before it reads it.
const UNWRITTEN: u8 = 0xCD;

/// Where a kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// An emulator of a GPU.
    Emulator,
    /// A GPU.
    Cuda,
}

/// Runs the kernel of a PTX file.
pub fn run(
    console: &Console,
    arguments: &Run,
    engine: Engine,
    source: &Source,
    mut given: Buffers,
) -> Result<Buffers, Error> {
    if engine == Engine::Cuda {
        return Err(Error::unimplemented("the CUDA backend"));
    }
    let kernel = description(source)?;
    if let Some(seed) = arguments.seed {
        values::fill(&mut given, &kernel.interface.inputs, seed)?;
    }
    emulate(console, arguments, source, &kernel, &given)
}

/// What the first line of PTX states.
pub fn description(source: &Source) -> Result<GpuKernel, Error> {
    GpuKernel::from_ptx(source.text()).map_err(Error::problem)
}

fn emulate(
    console: &Console,
    arguments: &Run,
    source: &Source,
    kernel: &GpuKernel,
    given: &Buffers,
) -> Result<Buffers, Error> {
    let mut sink = Sink::new();
    let program = Module::parse(source, &mut sink)
        .and_then(|module| module.compile(&kernel.entry, &mut sink));
    let Some(program) = program else {
        return Err(Error::Diagnostics(source.clone(), sink.into_diagnostics()));
    };
    let mut memory = Memory::new();
    let mut buffers = vec![];
    for parameter in &kernel.parameters {
        let (name, bytes) = contents(kernel, *parameter, given)?;
        buffers.push(memory.add(name, bytes));
    }
    let blocks = kernel.blocks.unwrap_or(BLOCKS);
    let launch = Launch {
        grid: [blocks, 1, 1],
        block: [kernel.threads, 1, 1],
        shared_bytes: kernel.shared_bytes,
        arguments: buffers.iter().map(|buffer| Argument::Buffer(*buffer)).collect(),
        checks: Checks { races: arguments.race_check, uninitialised: true },
        resident: Some(blocks as usize),
        ..Launch::default()
    };
    let step = console.step("emulating");
    let report = launch.run(&program, &mut memory);
    drop(step);
    if !report.is_clean() {
        return Err(Error::Diagnostics(source.clone(), report.diagnostics));
    }
    console.diagnostics(source, &report.diagnostics);
    let mut found = BTreeMap::new();
    for (parameter, buffer) in kernel.parameters.iter().zip(buffers) {
        let Some(output) = parameter.output else { continue };
        let port = &kernel.interface.outputs[output];
        let tensor = Tensor::from_bytes(tensor_type(port)?, memory.bytes(buffer));
        found.insert(port.name.clone(), tensor.map_err(|error| Error::problem(error.to_string()))?);
    }
    Ok(found)
}

/// The name and the first contents of the memory of a parameter.
fn contents(
    kernel: &GpuKernel,
    parameter: Parameter,
    given: &Buffers,
) -> Result<(String, Vec<u8>), Error> {
    let interface = &kernel.interface;
    let input = parameter.input.map(|input| &interface.inputs[input]);
    let Some(port) = input.or_else(|| parameter.output.map(|output| &interface.outputs[output])) else {
        let bytes = usize::try_from(interface.workspace_bytes);
        let bytes = bytes.map_err(|_| Error::problem("the workspace does not fit in memory"))?;
        return Ok(("workspace".to_owned(), vec![UNWRITTEN; bytes]));
    };
    let ty = tensor_type(port)?;
    let size = ty.byte_size().map_err(|error| Error::problem(error.to_string()))?;
    let bytes = match input.and_then(|input| given.get(&input.name)) {
        Some(tensor) if tensor.ty() == &ty => tensor.bytes().to_vec(),
        Some(tensor) => {
            let found = tensor.ty();
            return Err(Error::problem(format!("input '{}': expected {ty}, found {found}", port.name)));
        }
        // An output of a plan is a buffer, which is zero at the start.
        None if input.is_some() || kernel.blocks.is_some() => vec![0; size],
        None => vec![UNWRITTEN; size],
    };
    Ok((port.name.clone(), bytes))
}

fn tensor_type(port: &Port) -> Result<TensorType, Error> {
    let dtype = DType::ALL.into_iter().find(|dtype| dtype.name() == port.dtype);
    let dtype = dtype.ok_or_else(|| Error::problem(format!("unknown type '{}'", port.dtype)))?;
    Ok(TensorType::new(dtype, port.shape.clone()))
}
