//! Times of small programs, and their trace.

use irc_diag::{Sink, Source};
use irc_npu::listing::{self, Limits};
use irc_npu::{Engine, Program};
use irc_npu_sim::cycles::{self, Fault, Options};
use irc_npu_sim::noc::Mesh;
use irc_npu_sim::perfetto;
use serde_json::Value;

const SMALL: &str = include_str!("../../../dialects/npu/format/tests/data/small.txt");
const TWO_CORES: &str = include_str!("../../../dialects/npu/format/tests/data/two_cores.txt");

fn program(text: &str) -> Program {
    let source = Source::new("small.txt", text);
    let listing = listing::parse(&source, Limits::default(), &mut Sink::new());
    listing.expect("a right listing").program
}

fn options() -> Options {
    let times = (0..8).flat_map(|w| [0, 5].map(|core| ((core, w), 100.0 * f64::from(w + 1))));
    Options { times: times.collect(), ..Options::default() }
}

/// Place of an instruction of a core.
fn place(program: &Program, core: usize, name: &str, which: usize) -> usize {
    let code = program.cores[core].code.iter().enumerate();
    let mut named = code.filter(|(_, i)| i.op.name() == name).map(|(place, _)| place);
    named.nth(which).expect("an instruction")
}

#[test]
fn an_instruction_waits_for_its_engine_and_its_tokens() {
    let program = program(SMALL);
    let timing = cycles::run(&program, &options()).expect("a timing");
    let time = |name, which| timing.times[0][place(&program, 0, name, which)];
    assert_eq!(time("lda_mov", 0).start, time("ct_bc", 0).end);
    // Seven instructions that write registers take longer than the load.
    assert_eq!(time("vp_self", 0).start, 7 * 21);
    assert_eq!(time("vp_pool", 0).start, time("pe_conv", 0).end);
    // Two convolutions share 400 cycles of workload 3.
    assert_eq!(time("pe_conv", 1).end - time("pe_conv", 1).start, 220);
    assert_eq!(time("pe_conv", 2).start, time("pe_conv", 1).end);
    assert_eq!(timing.cycles, time("ct_ed", 0).end);
}

#[test]
fn ends_of_a_transfer_run_together() {
    let program = program(TWO_CORES);
    let timing = cycles::run(&program, &options()).expect("a timing");
    let sent = timing.times[0][place(&program, 0, "so_mov", 0)];
    let received = timing.times[1][place(&program, 1, "si_mov", 0)];
    assert_eq!(sent, received);
    assert!(sent.start >= timing.times[0][place(&program, 0, "vp_self", 0)].end);
}

#[test]
fn a_narrow_mesh_takes_longer() {
    let program = program(TWO_CORES);
    let cycles =
        |mesh| cycles::run(&program, &Options { mesh, ..options() }).expect("a timing").cycles;
    let mesh = Mesh { xlen: 2, link: 32.0, dram: 1000.0, hop: 1, ports: vec![] };
    let wide = cycles(Some(mesh.clone()));
    assert!(cycles(Some(Mesh { link: 0.5, ..mesh.clone() })) > wide);
    assert!(cycles(Some(Mesh { dram: 1.0, ..mesh })) > wide);
}

#[test]
fn a_workload_without_a_time_is_named() {
    let fault = cycles::run(&program(SMALL), &Options::default()).expect_err("no times");
    let expected = "instruction 14 of core 0: the schedule gives no time for workload 0";
    assert_eq!(fault.to_string(), expected);
}

#[test]
fn a_program_that_stops_says_where() {
    let mut program = program(SMALL);
    let load = place(&program, 0, "lda_mov", 0);
    program.cores[0].code[load].tokens.next.remove(Engine::Vp);
    let Err(Fault::Stuck(heads)) = cycles::run(&program, &options()) else { panic!("it runs") };
    assert!(heads.contains(&(0, place(&program, 0, "vp_self", 0))));
}

#[test]
fn the_trace_is_json_with_a_track_for_each_engine() {
    let program = program(TWO_CORES);
    let timing = cycles::run(&program, &options()).expect("a timing");
    let trace: Value = serde_json::from_str(&perfetto::write(&program, &timing)).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
    assert_eq!((of("X"), of("M")), (program.len(), 2 * (1 + Engine::COUNT)));
    let slice = events.iter().find(|event| event["name"] == "vp_self").expect("a slice");
    assert_eq!((&slice["pid"], &slice["tid"]), (&5.into(), &4.into()));
    // While it is quantised, the image and its result; at last nothing.
    let counters = events.iter().filter(|event| event["ph"] == "C" && event["pid"] == 5);
    let bytes: Vec<_> =
        counters.map(|event| event["args"]["bytes"].as_i64().expect("bytes")).collect();
    assert_eq!((bytes.iter().max(), bytes.last()), (Some(&384), Some(&0)));
}
