//! Runs kernels for GPUs: on one, or emulated.
use crate::{
    console::Console,
    error::Error,
    target,
    values::{self, Buffers},
};
use irc::{
    Session,
    gpu::{EmulationError, emulate},
};
use irc_ark_format::plan::Architecture;
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

/// The kernel of a plan, for its own device unless another is named.
pub fn ptx_of_plan(source: Source, arch: Option<&str>) -> Result<Vec<u8>, Error> {
    let session = Session::new();
    let plan = session.plan(source);
    let own = plan.architecture()?;
    let of_plan = match own {
        Architecture::Any | Architecture::Cuda | Architecture::Cuda80 => "CUDA_80",
        Architecture::Cuda90 => "CUDA_90",
        other => {
            let problem = Error::problem(format!(
                "the plan is for {}, and PTX for NVIDIA GPUs",
                other.name()
            ));
            return Err(problem.help("plan its model with --arch CUDA_80 or CUDA_90"));
        }
    };
    Ok(plan.ptx(&target::gpu(arch.unwrap_or(of_plan))?)?)
}

/// What the first line of PTX states.
pub fn description(source: &Source) -> Result<GpuKernel, Error> {
    GpuKernel::from_ptx(source.text()).map_err(Error::problem)
}
