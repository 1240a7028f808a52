//! Kernels for GPUs: compiled from plans, and run on a GPU or emulated.
use crate::{
    archive,
    console::Console,
    error::Error,
    input::{Content, Input},
    output, target,
    values::{Buffers, Given, Missing},
    world::Plans,
};
use irc::{
    Session, Target,
    codegen::{GpuForm, Output},
    gpu::{Emulated, EmulationError, Options, emulate_program, program_of},
    session::{
        PlanFile,
        gpu::{archive as archive_of, library},
    },
};
use irc_ark_format::plan::Architecture;
use irc_cli::{CUDA, CompileTo, EMULATOR, Kind, Run};
use irc_diag::Source;
use irc_executor::trace::{MAX_TASKS, Timeline, task_args};
use irc_runtime::{Execution, GpuKernel, GpuProgram, RunError, gpu::record::Event};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

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

    /// The GPU that a program is compiled for to be run: one that is named, or that of the machine, or for the emulator the
    /// default.
    pub fn target(self, arch: Option<&str>) -> Result<Target, Error> {
        let capability = match (arch, self) {
            (None, Self::Cuda) => irc_runtime::gpu::capability().map_err(RunError::Device)?,
            _ => return target::gpu(arch.unwrap_or(target::GPU)).map_err(Error::Usage),
        };
        Ok(Target::gpu(if capability == 90 { 90 } else { 80 }))
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
        let program = program_of(source);
        let program = program.map_err(|wrong| Error::Diagnostics(source.clone(), vec![wrong]))?;
        Ok(Self { program: Arc::new(program), source: source.clone() })
    }

    /// The kernel of the plans of a world, compiled to be run.
    pub fn of_plans(plans: &Plans, arguments: &Run) -> Result<Self, Error> {
        let code = ptx_of_plans(plans, arguments.arch.as_deref(), form(arguments))?;
        let several = plans.sources().len() > 1;
        let name = if several { "the kernel of the plans" } else { "the kernel of the plan" };
        Self::of_ptx(&Source::from_bytes(name, &code))
    }

    /// A kernel of a library or an archive of this name.
    pub fn inside(program: &Arc<GpuProgram>, name: &str) -> Self {
        let source = Source::new(format!("the kernel of {name}"), program.text.as_str());
        Self { program: program.clone(), source }
    }

    /// The kernel of a library or an archive, if it is one; its code is loaded.
    pub fn of_compiled(console: &Console, input: &Input) -> Result<Option<Self>, Error> {
        let name = input.shown();
        match input.content {
            Content::Library => {
                let library = input.load_library()?;
                Ok(library.kernel().map(|program| Self::inside(program, name)))
            }
            Content::Archive => Ok(archive::kernel(console, name, &input.bytes)?
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
        let missing = Missing::of(interface, arguments.seed);
        missing.complete(console, &mut given, &interface.inputs)?;
        let records_times = self.kernel().parameters.iter().any(|parameter| parameter.trace);
        if arguments.trace.is_some() && !records_times {
            let problem = Error::problem("the kernel does not record times, which --trace needs");
            return Err(problem.help("compile it with --timestamps"));
        }
        if engine == Engine::Cuda {
            let step = console.step("running");
            let execution = Execution::new(&self.program).map_err(RunError::Device)?;
            let outputs = execution.run_on(&given).map_err(Error::problem)?;
            let events = execution.events().map_err(Error::problem)?;
            drop(step);
            write_trace(arguments, self.kernel(), &events, &[])?;
            return Ok(outputs);
        }
        let emulated =
            self.emulate(console, arguments.race_check, arguments.max_instructions, &given)?;
        console.diagnostics(&self.source, &emulated.warnings);
        let unit =
            ("time", "emulated: a nanosecond stands for an instruction of all threads together");
        write_trace(arguments, self.kernel(), &emulated.events, &[unit])?;
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
        let options =
            Options { races, max_instructions, observer: Some(&observer), ..Options::default() };
        let emulated = emulate_program(&self.program, &self.source, given, &options);
        emulated.map_err(|error| match error {
            EmulationError::Diagnostics(found) => Error::Diagnostics(self.source.clone(), found),
            EmulationError::Message(message) => Error::problem(message),
        })
    }
}

/// The form of a program that is compiled to be run.
pub fn form(arguments: &Run) -> GpuForm {
    GpuForm { timestamps: arguments.trace.is_some(), ..GpuForm::default() }
}

/// The form of a program that is written.
pub fn form_of(arguments: &CompileTo) -> GpuForm {
    GpuForm { timestamps: arguments.timestamps, separate: arguments.no_persistent }
}

/// Writes the timeline of a launch, if one is requested: a track for each warp that recorded events, which is the first
/// of those that share a task.
fn write_trace(
    arguments: &Run,
    kernel: &GpuKernel,
    events: &[Event],
    more: &[(&str, &str)],
) -> Result<(), Error> {
    let Some(path) = &arguments.trace else { return Ok(()) };
    let stream = output::Stream::open(path)?;
    let mut timeline = Timeline::new(stream.writer()?);
    match kernel.ranks.is_empty() {
        true => timeline.process(0, "GPU"),
        false => (0..kernel.ranks.len())
            .for_each(|rank| timeline.process(rank as i64, &format!("rank {rank}"))),
    }
    let warps = u64::from(kernel.threads.div_ceil(32));
    let track = |event: &Event| {
        let (rank, block) = kernel.rank_of(event.block);
        (rank.unwrap_or(0) as i64, (block * warps + event.warp).cast_signed())
    };
    let tracks: BTreeMap<_, _> =
        events.iter().map(|event| (track(event), (event.block, event.warp))).collect();
    for (track, (block, warp)) in tracks {
        timeline.track(track, &format!("{}, warp {warp}", kernel.block_name(block)));
    }
    let start = events.iter().map(|event| event.begin).min().unwrap_or(0);
    for slice in slices(kernel, events) {
        let (event, last, count) = slice;
        let step = &kernel.steps[event.step];
        let (kind, args) = match (&step.tasks, step.processors) {
            (Some((info, _)), _) => ("task", task_args(*info, (event.task, last, count))),
            (None, Some(_)) => ("wait", "{}".to_owned()),
            (None, None) => ("kernel", "{}".to_owned()),
        };
        let length = event.end.saturating_sub(event.begin);
        let times = (u128::from(event.begin - start), u128::from(length));
        let name =
            if kind == "wait" { format!("barrier {}", step.name) } else { step.name.clone() };
        timeline.slice(track(&event), (&name, kind), &args, times);
    }
    timeline.finish(more).map_err(|error| Error::problem(error.to_string()))?;
    stream.finish()
}

/// Events, the last task of each and the number of tasks; of many tasks, those of a step on a warp are together.
fn slices(kernel: &GpuKernel, events: &[Event]) -> Vec<(Event, u64, u64)> {
    let is_task = |event: &&Event| kernel.steps[event.step].tasks.is_some();
    if events.iter().filter(is_task).count() as i64 <= MAX_TASKS {
        return events.iter().map(|event| (*event, event.task, 1)).collect();
    }
    let mut together: BTreeMap<(usize, u64, u64), (Event, u64, u64)> = BTreeMap::new();
    for event in events {
        let place = (event.step, event.block, event.warp);
        let (all, last, count) = together.entry(place).or_insert((*event, event.task, 0));
        all.begin = all.begin.min(event.begin);
        all.end = all.end.max(event.end);
        *last = event.task;
        *count += 1;
    }
    together.into_values().collect()
}

/// The kernel of the plans of a world as PTX, for their own device unless another is named.
pub fn ptx_of_plans(plans: &Plans, arch: Option<&str>, form: GpuForm) -> Result<Vec<u8>, Error> {
    of_plans(plans, arch, form, |session, plans, target| {
        session.emit_ranks(plans, target, Output::Ptx)
    })
}

/// What is made of the kernel of the plans of a world, for their own device unless another is named.
fn of_plans(
    plans: &Plans,
    arch: Option<&str>,
    form: GpuForm,
    make: impl FnOnce(&Session, &[PlanFile<'_>], &Target) -> Result<Vec<u8>, irc::Error>,
) -> Result<Vec<u8>, Error> {
    let session = Session::new();
    let sources = plans.sources();
    let plans: Vec<_> = sources.iter().map(|source| session.plan(source.clone())).collect();
    let mut named = None;
    for (source, plan) in sources.iter().zip(&plans) {
        let of_plan = match plan.architecture()? {
            Architecture::Any | Architecture::Cuda | Architecture::Cuda80 => target::GPU,
            Architecture::Cuda90 => "CUDA_90",
            other => {
                let problem = Error::problem(format!(
                    "{} is a plan for {}, and kernels are for CUDA_80 and CUDA_90",
                    source.name(),
                    other.name()
                ));
                return Err(problem.help("plan its model with --arch CUDA_80 or CUDA_90"));
            }
        };
        let first = *named.get_or_insert(of_plan);
        if arch.is_none() && first != of_plan {
            let problem = Error::problem(format!(
                "the plans are for different GPUs, {first} and {of_plan}, and their kernel is for one"
            ));
            return Err(problem.help("irc compile --arch names it"));
        }
    }
    let target = target::gpu(arch.or(named).unwrap_or(target::GPU)).map_err(Error::Usage)?;
    Ok(make(&session, &plans, &Target { form, ..target })?)
}

/// Writes the kernel of the plans of a world, as PTX, LLVM IR or MLIR, or in a library or an archive.
pub fn write_plans(
    console: &Console,
    arguments: &CompileTo,
    sources: &[Source],
    kind: Kind,
) -> Result<(), Error> {
    let files: Vec<_> = sources.iter().map(|source| (source.clone(), Content::Plan)).collect();
    let plans = Plans::open(console, &files, false)?;
    let (arch, form) = (arguments.arch.as_deref(), form_of(arguments));
    let text = match (kind, &arguments.stage) {
        (Kind::Mlir, Some(stage)) => of_plans(&plans, arch, form, |session, plans, target| {
            session.stage_of_ranks(plans, target, stage)
        }),
        (Kind::Ll, _) => of_plans(&plans, arch, form, |session, plans, target| {
            session.emit_ranks(plans, target, Output::LlvmIr)
        }),
        _ => ptx_of_plans(&plans, arch, form),
    };
    let (text, source) = (text?, &sources[0]);
    match kind {
        Kind::So => {
            let library = library(source, &text)?.library;
            output::write(&arguments.output, &library, output::Content::Executable)
        }
        Kind::Tar => {
            let contents = || Ok(archive_of(source, &text, &archive::options(arguments)?)?);
            archive::write_contents(console, arguments, contents()?, contents)
        }
        _ => output::write(&arguments.output, &text, output::Content::Text),
    }
}
