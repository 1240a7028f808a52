//! What a program takes in the simulator, beside the estimate of the model.
use irc::npu::Target;
use irc_diag::counted;
use irc_gemini_format::schedule::Schedule;
use irc_npu::Program;
use irc_npu_emit::KnownLayers;
use irc_npu_network::{mesh, workload_times};
use irc_npu_sim::{cycles, noc::Mesh};
use serde_json::{Value, json};

/// The mesh of a schedule with the rates of its NPU.
///
/// # Errors
/// An NPU with another number of cores.
pub fn shared_mesh(target: &Target, schedule: &Schedule) -> Result<Option<Mesh>, String> {
    let [width, height] = target.mesh;
    if (schedule.xlen, schedule.ylen) != (width as i64, height as i64) {
        return Err(format!(
            "the mesh of the schedule is {} by {}, that of the NPU {width} by {height}",
            schedule.xlen, schedule.ylen
        ));
    }
    let machine = target.machine()?;
    Ok(mesh(schedule, machine.link_bandwidth as f64, machine.dram_bandwidth as f64))
}

/// The cycles of the program of a schedule, or why there are none.
pub fn simulated(schedule: &Schedule, program: &Program, target: &Target) -> Result<u64, String> {
    let mesh = shared_mesh(target, schedule)?;
    let times = workload_times(schedule);
    let options = cycles::Options { times, mesh, ..cycles::Options::default() };
    let timing = cycles::run(program, &options).map_err(|error| error.to_string())?;
    Ok(timing.cycles)
}

/// As [`simulated`], with the program that is compiled from the schedule.
pub fn compiled(schedule: &Schedule, known: &KnownLayers, target: &Target) -> Result<u64, String> {
    let program = irc::npu::program(schedule, None, known);
    let reason = |found: Vec<irc_npu_emit::FileDiagnostic>| {
        let first = found.into_iter().next();
        first.map_or_else(String::new, |one| one.diagnostic.message)
    };
    simulated(schedule, &program.map_err(reason)?, target)
}

/// The cycles of the simulator beside an estimate, in a line.
pub fn compared(estimate: u64, simulated: &Result<u64, String>) -> String {
    match simulated {
        Err(reason) => format!("not simulated: {reason}\n"),
        Ok(cycles) => {
            let percent = (*cycles as f64 / estimate.max(1) as f64 - 1.0) * 100.0;
            format!("simulated {}, {percent:+.1} %\n", counted(*cycles, "cycle"))
        }
    }
}

/// Adds the cycles of the simulator to a record.
pub fn add_simulated(record: &mut Value, estimate: u64, simulated: &Result<u64, String>) {
    match simulated {
        Ok(cycles) => {
            record["simulated"] = json!(cycles);
            record["simulated_ratio"] = json!(*cycles as f64 / estimate.max(1) as f64);
        }
        Err(reason) => record["not_simulated"] = json!(reason),
    }
}
