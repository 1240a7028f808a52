//! The published traces: cycles within 0.01 %, and every start exactly, given CT's durations.

use std::path::{Path, PathBuf};

use irc_diag::{Sink, Source};
use irc_npu::listing::{self, Limits, Trace};
use irc_npu_sim::cycles::{self, Options};
use irc_npu_sim::durations::WorkloadTimes;
use serde_json::Value;

fn folder() -> PathBuf {
    let corpus = std::env::var_os("IRC_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"),
        PathBuf::from,
    );
    corpus.join("gemini/single_core")
}

/// Name, trace and times of the workloads of its schedule.
fn traces() -> Vec<(String, Trace, WorkloadTimes)> {
    let Ok(entries) = std::fs::read_dir(folder()) else {
        println!("skipped: there is no corpus at {}", folder().display());
        return vec![];
    };
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with("_sim.txt"))
        .collect();
    names.sort();
    let schedule = |name: &str| folder().join(name.replace("_sim.txt", "_stschedule.json"));
    names.retain(|name| schedule(name).exists());
    names.into_iter().map(|name| (name.clone(), trace(&name), times(&schedule(&name)))).collect()
}

fn trace(name: &str) -> Trace {
    let text = std::fs::read_to_string(folder().join(name)).expect("a trace");
    let mut sink = Sink::new();
    let trace = listing::parse_trace(&Source::new(name, text), Limits::default(), &mut sink);
    trace.expect("a right trace")
}

fn times(schedule: &Path) -> WorkloadTimes {
    let text = std::fs::read_to_string(schedule).expect("a schedule");
    let schedule: Value = serde_json::from_str(&text).expect("JSON");
    let workloads = schedule["0"].as_array().expect("workloads of core 0");
    let time = |workload: &Value| {
        let id = workload["workload_id"].as_i64().expect("an id") as i32;
        ((0, id), workload["time"].as_f64().expect("a time"))
    };
    workloads.iter().map(time).collect()
}

#[test]
fn cycles_are_those_of_the_traces() {
    for (name, trace, times) in traces() {
        let published = trace.times[0].iter().map(|time| time.end).max().expect("instructions");
        let options = Options { times, ..Options::default() };
        let timing = cycles::run(&trace.program, &options).expect("a timing");
        let error = timing.cycles as f64 / published as f64 - 1.0;
        println!("{name}: {} of {published}, {:+.4} %", timing.cycles, 100.0 * error);
        assert!(error.abs() < 1e-4, "{name}: {} instead of {published}", timing.cycles);
    }
}

#[test]
fn times_are_equal_given_those_of_control() {
    for (name, trace, times) in traces() {
        let control = Some(cycles::control_durations(&trace.program, &trace.times));
        let options = Options { times, control, ..Options::default() };
        let timing = cycles::run(&trace.program, &options).expect("a timing");
        let pairs = timing.times[0].iter().zip(&trace.times[0]);
        let different: Vec<_> =
            pairs.enumerate().filter(|(_, (ours, theirs))| ours != theirs).collect();
        assert!(
            different.is_empty(),
            "{name}: {} differ: {:?}",
            different.len(),
            &different[..different.len().min(4)]
        );
    }
}
