//! `irc simulate`: when the instructions of an NPU program run.
use super::assembled;
use crate::{
    console::Console,
    output::{self, Content},
    stop::Stop,
};
use irc_cli::Simulate;
use irc_gemini_format::{
    Options,
    schedule::{Schedule, Workload},
};
use irc_npu::{Engine, Program};
use irc_npu_sim::{cycles, perfetto};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Assembles a schedule, and tells how many cycles its program takes.
pub fn simulate(console: &Console, arguments: &Simulate) -> Result<(), Stop> {
    let schedule = arguments.schedule.to_string_lossy();
    if let Some(trace) = &arguments.trace {
        output::probe_beside(trace, &schedule)?;
    }
    let frontend = arguments.frontend.as_deref();
    let (schedule, program) = assembled(console, &schedule, frontend, &Options::default())?;
    let step = console.step("simulating");
    let options = cycles::Options { times: times(&schedule), ..cycles::Options::default() };
    let timing = cycles::run(&program, &options);
    let timing = timing.map_err(|fault| Stop::problem(fault.to_string()))?;
    drop(step);
    if let Some(trace) = &arguments.trace {
        let text = perfetto::write(&program, &timing);
        output::write(trace, text.as_bytes(), Content::Text)?;
    }
    let busy = busy(&program, &timing);
    output::print(&match arguments.json {
        true => json_of(&program, &timing, &busy),
        false => text_of(&timing, &busy),
    })
}

/// Cycles of workloads, as the schedule states them.
fn times(schedule: &Schedule) -> BTreeMap<(u32, i32), f64> {
    let time = |(core, _, workload): (usize, usize, &Workload)| {
        let core = u32::try_from(schedule.cores[core].id).ok()?;
        Some(((core, i32::try_from(workload.workload_id).ok()?), workload.time as f64))
    };
    schedule.workloads().filter_map(time).collect()
}

/// Cycles in which each engine of a core works.
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
        text += &format!("core {core}  {engine}  {cycles} cycles  {share:.1} %\n");
    }
    text
}

fn json_of(program: &Program, timing: &cycles::Timing, busy: &Busy) -> String {
    let cores = program.cores.iter().map(|core| {
        let own = busy.iter().filter(|((id, _), _)| *id == core.id);
        let engines: Map<String, Value> =
            own.map(|((_, engine), cycles)| (engine.to_string(), json!(cycles))).collect();
        json!({ "core": core.id, "instructions": core.code.len(), "busy": engines })
    });
    let cores: Vec<Value> = cores.collect();
    format!("{:#}\n", json!({ "cycles": timing.cycles, "cores": cores }))
}
