//! `irc simulate`: the times at which the instructions of an NPU program run.
use super::{Assembled, Files, ModelOf, assemble, compute::compute, cost, price};
use crate::{
    console::Console,
    error::Error,
    models,
    output::{self, Content},
};
use irc::quantise::Scope;
use irc_cli::{Flags, Simulate};
use irc_diag::counted;
use irc_gemini_format::{
    Options,
    schedule::{Dialect, Schedule},
};
use irc_npu::{Engine, Program};
use irc_npu_network::{layer_names, mesh, segment_map, workload_times};
use irc_npu_sim::{
    cycles,
    html::{self, Page},
    noc::{Link, MAX_SIDE, Mesh, TrafficTotals},
    perfetto,
    segments::segment_table,
};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, path::Path};

/// Assembles a schedule, and reports the number of cycles of its program.
pub fn simulate(console: &Console, arguments: &Simulate, flags: &Flags) -> Result<(), Error> {
    let schedule = arguments.schedule.to_string_lossy();
    if arguments.quantise.calibrate.is_some() && arguments.model.is_none() {
        return Err(Error::Usage("--calibrate quantises a model: give it with --model".into()));
    }
    output::probe_all(flags, Path::to_owned)?;
    let quantising = models::Quantising::of(&arguments.quantise, Scope::Everywhere);
    let files = Files {
        schedule: &schedule,
        frontend: arguments.frontend.as_deref(),
        program: arguments.program.as_deref(),
        model: arguments.model.as_deref().map(|name| ModelOf {
            name,
            shapes: &arguments.shape,
            quantising: &quantising,
            inputs: arguments.inputs.as_deref(),
            has_values: arguments.outputs.is_some(),
            falls_back: arguments.host_fallback,
        }),
    };
    let assembled = assemble(console, &files, &Options::default())?;
    let (schedule, program) = (&assembled.schedule, &assembled.program);
    let mesh = shared_mesh(arguments, schedule)?;
    let step = console.step("simulating");
    let times = workload_times(schedule);
    let options = cycles::Options { times, mesh, ..cycles::Options::default() };
    let timing = cycles::run(program, &options);
    let timing = timing.map_err(|error| Error::problem(error.to_string()))?;
    drop(step);
    let mut staged = vec![];
    if let Some(trace) = &arguments.trace {
        let text = perfetto::write(program, &timing);
        staged.push(output::stage(trace, text.as_bytes(), Content::Text)?);
    }
    if let Some(page) = &arguments.html {
        let text = page_of(&assembled, &timing, &options)?;
        staged.push(output::stage(page, text.as_bytes(), Content::Text)?);
    }
    if let Some(outputs) = &arguments.outputs {
        staged.push(compute(console, arguments, outputs, &assembled)?);
    }
    staged.into_iter().try_for_each(output::Stream::finish)?;
    let busy = busy(program, &timing);
    match arguments.json {
        true => output::print(&json_of(program, &timing, &busy, options.mesh.as_ref())),
        // If an artefact is written to standard output, nothing else is.
        false if flags.written().iter().any(|file| output::is_stdout(&file.path)) => {
            console.text(&text_of(&timing, &busy));
            Ok(())
        }
        false => output::print(&text_of(&timing, &busy)),
    }
}

/// The page that shows a timing. Without rates of the mesh, its links and DRAM are as fast as needed.
fn page_of(
    assembled: &Assembled,
    timing: &cycles::Timing,
    options: &cycles::Options,
) -> Result<String, Error> {
    let Assembled { schedule, program, frontend, .. } = assembled;
    let mesh = options.mesh.clone().or_else(|| mesh(schedule, f64::INFINITY, f64::INFINITY));
    let of = (&options.times, &options.rates, mesh.as_ref());
    let table = segment_table(program, timing, of, &segment_map(schedule));
    let table = table.map_err(|error| Error::problem(error.to_string()))?;
    let names = layer_names(schedule, frontend.as_ref());
    let mesh = mesh.as_ref();
    Ok(html::write(&Page { program, timing, names: &names, table: &table, mesh }))
}

/// The mesh that cores share, with the rates of the flags, else those of the NPU that a flag or the schedule
/// names; `None` without any.
fn shared_mesh(arguments: &Simulate, schedule: &Schedule) -> Result<Option<Mesh>, Error> {
    let (link, dram) = (arguments.link_rate, arguments.dram_rate);
    let target = price::target(arguments.target.as_deref(), schedule)?;
    if schedule.dialect == Dialect::A {
        return match link.or(dram).is_none() && arguments.target.is_none() {
            true => Ok(None),
            false => Err(Error::Usage(
                "--link-rate, --dram-rate and --target apply to schedules of several cores; this one has one core"
                    .into(),
            )),
        };
    }
    let of_target = target.map(|target| cost::shared_mesh(&target, schedule)).transpose();
    let of_target = of_target.map_err(Error::problem)?.flatten();
    if of_target.is_none() && link.is_none() && dram.is_none() {
        return Ok(None);
    }
    let rate = |given: Option<f64>, of: fn(&Mesh) -> f64| {
        given.or(of_target.as_ref().map(of)).unwrap_or(f64::INFINITY)
    };
    let shared = mesh(schedule, rate(link, |mesh| mesh.link), rate(dram, |mesh| mesh.dram));
    let Schedule { xlen, ylen, .. } = schedule;
    let rejected = || {
        format!(
            "the mesh of the schedule is {xlen} by {ylen}: expected at most {MAX_SIDE} by {MAX_SIDE}"
        )
    };
    shared.map(Some).ok_or_else(|| Error::problem(rejected()))
}

/// Number of busy cycles of each engine of a core.
type Busy = BTreeMap<(u32, Engine), u64>;

fn busy(program: &Program, timing: &cycles::Timing) -> Busy {
    let mut busy = Busy::new();
    for (core, times) in program.cores.iter().zip(&timing.times) {
        for (instruction, time) in core.code.iter().zip(times) {
            let key = (core.id, instruction.op.engine());
            *busy.entry(key).or_default() += time.end - time.start;
        }
    }
    busy
}

fn text_of(timing: &cycles::Timing, busy: &Busy) -> String {
    let mut text = format!("cycles {}\n", timing.cycles);
    for ((core, engine), cycles) in busy {
        let share = *cycles as f64 / timing.cycles.max(1) as f64 * 100.0;
        text += &format!("core {core}  {engine}  {}  {share:.1} %\n", counted(*cycles, "cycle"));
    }
    text
}

fn json_of(program: &Program, timing: &cycles::Timing, busy: &Busy, mesh: Option<&Mesh>) -> String {
    let cores = program.cores.iter().map(|core| {
        let own = busy.iter().filter(|((id, _), _)| *id == core.id);
        let engines: Map<String, Value> =
            own.map(|((_, engine), cycles)| (engine.to_string(), json!(cycles))).collect();
        json!({ "core": core.id, "instructions": core.code.len(), "busy": engines })
    });
    let cores: Vec<Value> = cores.collect();
    let mut all = json!({ "cycles": timing.cycles, "cores": cores });
    if let Some((mesh, carried)) = mesh.zip(timing.carried.as_ref()) {
        all["traffic"] = traffic(mesh, carried);
    }
    format!("{all:#}\n")
}

/// The traffic of links and DRAM.
fn traffic(mesh: &Mesh, carried: &TrafficTotals) -> Value {
    let link = |(((from_x, from_y), (to_x, to_y)), bytes): (&Link, &u64)| json!({ "from": [from_x, from_y], "to": [to_x, to_y], "bytes": bytes });
    let links: Vec<Value> = carried.links.iter().map(link).collect();
    json!({
        "dram_bytes": carried.dram,
        "max_link_bytes": carried.busiest().map_or(0, |(_, bytes)| bytes),
        "least_cycles": carried.bound(mesh),
        "links": links,
    })
}
