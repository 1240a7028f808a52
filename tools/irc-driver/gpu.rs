//! Kernels for GPUs: compiled from plans, and run on a GPU or emulated.
use crate::{
    archive,
    console::Console,
    error::Error,
    input::Input,
    output, run, target,
    values::{self, Buffers, Given},
};
use irc::{
    Session,
    gpu::{Emulated, Emulation, EmulationError, archive as archive_of, emulate_program, library},
};
use irc_ark_format::plan::Architecture;
use irc_cli::{CUDA, CompileTo, EMULATOR, Kind, Run};
use irc_diag::Source;
use irc_runtime::{Execution, GpuKernel, GpuProgram, RunError};
use std::{collections::BTreeSet, sync::Arc};

/// Where a kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// An emulator of a GPU.
    Emulator,
    /// A GPU.
    Cuda,
}

impl Engine {
    /// The GPU of a name, if it is one.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            CUDA => Some(Self::Cuda),
            EMULATOR => Some(Self::Emulator),
            _ => None,
        }
    }

    /// The GPU of a flag for a kernel, by default a real one.
    pub fn of_kernel(backend: Option<&str>, name: &str) -> Result<Self, Error> {
        let Some(backend) = backend else { return Ok(Self::Cuda) };
        Self::named(backend).ok_or_else(|| {
            Error::Usage(format!(
                "--backend {backend} does not run {name}: it is a kernel for a GPU, which {CUDA} and {EMULATOR} run"
            ))
        })
    }
}

/// A kernel with its place in diagnostics.
pub struct Program {
    program: Arc<GpuProgram>,
    source: Source,
}

impl Program {
    /// The kernel of a PTX file of irc.
    pub fn of_ptx(source: &Source) -> Result<Self, Error> {
        let program = GpuProgram::from_ptx(source.text()).map_err(Error::problem)?;
        Ok(Self { program: Arc::new(program), source: source.clone() })
    }

    /// A kernel of a library or an archive of this name.
    pub fn inside(program: &Arc<GpuProgram>, name: &str) -> Self {
        let source = Source::new(&format!("the kernel of {name}"), program.text.as_str());
        Self { program: program.clone(), source }
    }

    /// The kernel of a library or an archive, if it is one; its code is loaded.
    pub fn of_compiled(console: &Console, input: &Input) -> Result<Option<Self>, Error> {
        let name = input.shown();
        match input.content {
            crate::input::Content::Library => {
                let library = run::load_library(input)?;
                Ok(library.kernel().map(|program| Self::inside(program, name)))
            }
            crate::input::Content::Archive => Ok(archive::kernel(console, name, &input.bytes)?
                .map(|program| Self::inside(&program, name))),
            _ => Ok(None),
        }
    }

    /// What it is.
    pub fn kernel(&self) -> &GpuKernel {
        &self.program.kernel
    }

    /// The names of the buffers of the plan that it runs, if it runs one.
    pub fn buffers(&self) -> Option<BTreeSet<String>> {
        let interface = &self.kernel().interface;
        let ports = interface.inputs.iter().chain(&interface.outputs);
        self.kernel().blocks.map(|_| ports.map(|port| port.name.clone()).collect())
    }

    /// Runs the kernel on the inputs of a file, and random ones if requested.
    pub fn run_on(
        &self,
        console: &Console,
        arguments: &Run,
        engine: Engine,
        given: Given,
    ) -> Result<Buffers, Error> {
        self.run(console, arguments, engine, given.read_for(&self.kernel().interface)?)
    }

    /// Runs the kernel on given inputs, and random ones if requested.
    pub fn run(
        &self,
        console: &Console,
        arguments: &Run,
        engine: Engine,
        mut given: Buffers,
    ) -> Result<Buffers, Error> {
        let interface = &self.kernel().interface;
        if let Some(seed) = arguments.seed {
            values::fill(&mut given, &interface.inputs, seed)?;
        }
        if engine == Engine::Cuda {
            let _step = console.step("running");
            let execution = Execution::new(&self.program).map_err(RunError::Device)?;
            return execution.run_on(&given).map_err(Error::problem);
        }
        let emulated =
            self.emulate(console, arguments.race_check, arguments.max_instructions, &given)?;
        console.diagnostics(&self.source, &emulated.warnings);
        Ok(emulated.outputs)
    }

    /// Emulates the kernel, and shows how far it is.
    pub fn emulate(
        &self,
        console: &Console,
        races: bool,
        max_instructions: Option<u64>,
        given: &Buffers,
    ) -> Result<Emulated, Error> {
        let step = console.step("emulating");
        let observer = |instructions: u64| {
            step.say(&format!("emulating: {:.1} million instructions", instructions as f64 / 1e6));
        };
        let options = Emulation { races, max_instructions, observer: Some(&observer) };
        let emulated = emulate_program(&self.program, &self.source, given, &options);
        emulated.map_err(|error| match error {
            EmulationError::Diagnostics(found) => Error::Diagnostics(self.source.clone(), found),
            EmulationError::Message(message) => Error::problem(message),
        })
    }
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

/// Writes the kernel of a plan, as PTX or in a library or an archive.
pub fn write_plan(
    console: &Console,
    arguments: &CompileTo,
    source: Source,
    kind: Kind,
) -> Result<(), Error> {
    let ptx = ptx_of_plan(source.clone(), arguments.arch.as_deref())?;
    match kind {
        Kind::So => {
            let library = library(&source, &ptx)?.library;
            output::write(&arguments.output, &library, output::Content::Executable)
        }
        Kind::Tar => {
            let contents = || Ok(archive_of(&source, &ptx, &archive::options(arguments)?)?);
            archive::write_contents(console, arguments, contents()?, contents)
        }
        _ => output::write(&arguments.output, &ptx, output::Content::Text),
    }
}
