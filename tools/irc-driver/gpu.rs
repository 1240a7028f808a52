//! Runs kernels for GPUs: on one, or emulated.
use crate::{
    console::Console,
    error::Error,
    values::{self, Buffers},
};
use irc::gpu::{EmulationError, emulate};
use irc_cli::Run;
use irc_diag::Source;
use irc_runtime::GpuKernel;

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
    let kernel = description(source)?;
    if let Some(seed) = arguments.seed {
        values::fill(&mut given, &kernel.interface.inputs, seed)?;
    }
    if engine == Engine::Cuda {
        let _step = console.step("running");
        return kernel.run(source.text(), &given).map_err(|message| {
            Error::problem(message).help("--backend emulate runs the kernel without a GPU")
        });
    }
    let step = console.step("emulating");
    let emulated = emulate(source, &given, arguments.race_check);
    drop(step);
    let emulated = emulated.map_err(|error| match error {
        EmulationError::Diagnostics(found) => Error::Diagnostics(source.clone(), found),
        EmulationError::Message(message) => Error::problem(message),
    })?;
    console.diagnostics(source, &emulated.warnings);
    Ok(emulated.outputs)
}

/// What the first line of PTX states.
pub fn description(source: &Source) -> Result<GpuKernel, Error> {
    GpuKernel::from_ptx(source.text()).map_err(Error::problem)
}
