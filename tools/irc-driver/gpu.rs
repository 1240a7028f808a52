//! Runs kernels for GPUs: on one, or emulated.
use crate::{
    console::Console,
    error::Error,
    output, target,
    values::{self, Buffers},
};
use irc::{
    Session, Target,
    codegen::GpuForm,
    gpu::{EmulationError, Options, emulate},
};
use irc_ark_format::plan::Architecture;
use irc_cli::Run;
use irc_diag::Source;
use irc_executor::trace::{MAX_TASKS, Timeline, task_args};
use irc_runtime::{GpuKernel, gpu::record::Event};
use std::collections::BTreeMap;

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
    if arguments.trace.is_some() && !kernel.parameters.iter().any(|parameter| parameter.trace) {
        let problem = Error::problem("the kernel does not record times, which --trace needs");
        return Err(problem.help("compile it with --timestamps"));
    }
    if engine == Engine::Cuda {
        let step = console.step("running");
        let ran = kernel.run(source.text(), &given);
        drop(step);
        let (outputs, events) = ran.map_err(|message| {
            Error::problem(message).help("--backend emulate runs the kernel without a GPU")
        })?;
        write_trace(arguments, &kernel, &events, &[])?;
        return Ok(outputs);
    }
    let step = console.step("emulating");
    let emulated =
        emulate(source, &given, &Options { races: arguments.race_check, ..Options::default() });
    drop(step);
    let emulated = emulated.map_err(|error| match error {
        EmulationError::Diagnostics(found) => Error::Diagnostics(source.clone(), found),
        EmulationError::Message(message) => Error::problem(message),
    })?;
    console.diagnostics(source, &emulated.warnings);
    let unit = ("time", "emulated: a nanosecond stands for an instruction of all threads together");
    write_trace(arguments, &kernel, &emulated.events, &[unit])?;
    Ok(emulated.outputs)
}

/// The form of a program that is compiled to be run.
pub fn form(arguments: &Run) -> GpuForm {
    GpuForm { timestamps: arguments.trace.is_some(), ..GpuForm::default() }
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
    timeline.process(0, "GPU");
    let warps = u64::from(kernel.threads.div_ceil(32));
    let track = |event: &Event| (0, (event.block * warps + event.warp).cast_signed());
    let tracks: BTreeMap<_, _> =
        events.iter().map(|event| (track(event), (event.block, event.warp))).collect();
    for (track, (block, warp)) in tracks {
        timeline.track(track, &format!("{} {block}, warp {warp}", kernel.unit()));
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

/// The kernel of a plan, for its own device unless another is named.
pub fn ptx_of_plan(source: Source, arch: Option<&str>, form: GpuForm) -> Result<Vec<u8>, Error> {
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
    let target = target::gpu(arch.unwrap_or(of_plan))?;
    Ok(plan.ptx(&Target { form, ..target })?)
}

/// What the first line of PTX states.
pub fn description(source: &Source) -> Result<GpuKernel, Error> {
    GpuKernel::from_ptx(source.text()).map_err(Error::problem)
}
