//! What a schedule costs: the estimate of the model, and beside it the cycles of the simulator.
use super::model::report;
use crate::error::Error;
use irc::npu::{PricedSchedule, Target, price};
use irc_diag::Diagnostic;
use irc_gemini_format::schedule::Schedule;
use irc_npu::Program;
use irc_npu_emit::KnownLayers;
use irc_npu_network::{mesh, workload_times};
use irc_npu_sim::{cycles, noc::Mesh};
use serde_json::{Value, json};

/// The NPU of a flag, or else the one that the schedule states.
pub fn target(flag: Option<&str>, schedule: &Schedule) -> Result<Option<Target>, Error> {
    if let Some(text) = flag {
        return super::model::target(text).map(Some);
    }
    let Some(text) = &schedule.target else { return Ok(None) };
    let wrong = |message: String| Error::problem(format!("the schedule's target: {message}"));
    let target: Target = text.parse().map_err(wrong)?;
    target.machine().map_err(wrong)?;
    Ok(Some(target))
}

/// The mesh of a schedule with the rates of its NPU.
///
/// # Errors
/// An NPU with another number of cores.
pub fn shared_mesh(target: &Target, schedule: &Schedule) -> Result<Option<Mesh>, String> {
    let [width, height] = target.mesh;
    if (schedule.xlen, schedule.ylen) != (width as i64, height as i64) {
        return Err(format!(
            "the schedule is for {} by {} cores, the NPU has {width} by {height}",
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
    let program = irc_npu_emit::emit_known(schedule, None, known);
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
            format!("simulated {cycles} cycles, {percent:+.1} %\n")
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

/// The cost of a schedule, as a record.
pub fn schedule(
    name: &str,
    schedule: &Schedule,
    flags: &irc_cli::Npu,
) -> Result<Result<Value, Diagnostic>, Error> {
    let Some(target) = target(flags.target.as_deref(), schedule)? else {
        let message = "--cost of a schedule that does not state its NPU needs --target, as in --target npu:mesh=4x4";
        return Err(Error::Usage(message.into()));
    };
    let machine = target.machine().map_err(Error::Usage)?;
    let objective = super::model::goal(flags).objective();
    let PricedSchedule { network, report: found, is_of_tree, others } =
        match price(schedule, &machine, objective) {
            Ok(priced) => priced,
            Err(found) => return Ok(Err(*found)),
        };
    let mut known = irc::npu::stated_layers(schedule);
    if known.is_empty() {
        known = irc::npu::known_layers(&network, &[]);
    }
    let estimate = found.cost.latency;
    let inferred = compiled(schedule, &irc::npu::stated_layers(schedule), &target);
    let simulated = inferred.or_else(|_| compiled(schedule, &known, &target));
    let mut record = report(&found, &[]);
    record["file"] = name.into();
    record["target"] = target.to_string().into();
    record["of_tree"] = is_of_tree.into();
    add_simulated(&mut record, estimate, &simulated);
    let mut lines = found.to_string();
    let source = match is_of_tree {
        true => "estimate of the tree that the schedule states\n",
        false => "estimate of workloads and transfers: the schedule states no tree\n",
    };
    let head = lines.match_indices('\n').nth(2).map_or(lines.len(), |(at, _)| at + 1);
    let mut more = format!("{}{source}", compared(estimate, &simulated));
    if let Some((layer, stated, found)) = others.first() {
        more += &format!(
            "{} layers take other cycles than their mappings: {layer} {stated}, its mapping {found}\n",
            others.len()
        );
    }
    lines.insert_str(head, &more);
    record["text"] = lines.into();
    Ok(Ok(record))
}
