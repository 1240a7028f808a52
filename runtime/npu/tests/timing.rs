//! Timing of small programs, and their traces.

use irc_diag::{Sink, Source};
use irc_npu::access::Space;
use irc_npu::listing::{self, Limits};
use irc_npu::{Engine, Program};
use irc_npu_sim::cycles::{self, Error, Options};
use irc_npu_sim::html::{self, Page};
use irc_npu_sim::noc::Mesh;
use irc_npu_sim::perfetto;
use irc_npu_sim::residency::residents;
use irc_npu_sim::segments::SegmentTable;
use serde_json::Value;

const SMALL: &str = include_str!("../../../formats/npu/tests/data/small.txt");
const TWO_CORES: &str = include_str!("../../../formats/npu/tests/data/two_cores.txt");

fn program(text: &str) -> Program {
    let source = Source::new("small.txt", text);
    let listing = listing::parse(&source, Limits::default(), &mut Sink::new());
    listing.expect("a right listing").program
}

fn options() -> Options {
    let times = (0..8).flat_map(|w| [0, 5].map(|core| ((core, w), 100.0 * f64::from(w + 1))));
    Options { times: times.collect(), ..Options::default() }
}

/// Index of an instruction of a core.
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
fn a_core_beyond_the_mesh_is_named() {
    let mut program = program(SMALL);
    program.cores[0].id = u32::MAX;
    let mesh = Some(Mesh::with_ports_at_sides(2, 2, 24.0, 4.0));
    let fault = cycles::run(&program, &Options { mesh, ..options() }).expect_err("no place");
    assert_eq!(fault, Error::NoPlace(u32::MAX));
}

#[test]
fn a_workload_without_a_time_is_named() {
    let fault = cycles::run(&program(SMALL), &Options::default()).expect_err("no times");
    let expected = "instruction 14 of core 0: the schedule states no time for workload 0";
    assert_eq!(fault.to_string(), expected);
}

#[test]
fn a_program_that_stops_says_where() {
    let mut program = program(SMALL);
    let load = place(&program, 0, "lda_mov", 0);
    program.cores[0].code[load].tokens.next.remove(Engine::Vp);
    let Err(Error::Stuck(heads)) = cycles::run(&program, &options()) else { panic!("it runs") };
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
    // While it is quantised, the image and its result; finally nothing.
    let counters = events.iter().filter(|event| event["ph"] == "C" && event["pid"] == 5);
    let bytes: Vec<_> =
        counters.map(|event| event["args"]["bytes"].as_i64().expect("bytes")).collect();
    assert_eq!((bytes.iter().max(), bytes.last()), (Some(&384), Some(&0)));
}

#[test]
fn residents_are_from_the_first_writing_to_the_last_reading() {
    let program = program(SMALL);
    let timing = cycles::run(&program, &options()).expect("a timing");
    let (core, times) = (&program.cores[0], &timing.times[0]);
    let all = residents(core, times);
    let load = place(&program, 0, "lda_mov", 0);
    let vector = place(&program, 0, "vp_self", 0);
    let image = all.iter().find(|one| one.engine == Engine::Ld && one.space == Space::L2);
    let image = image.expect("the image");
    assert_eq!((image.time.start, image.time.end), (times[load].start, times[vector].end));
    // 8 by 8 pixels of 3 channels of FP16, padded to 4.
    assert_eq!((image.bytes.1 - image.bytes.0, image.size), (512, 512));
    assert!(all.iter().any(|one| one.space == Space::Wl0 && one.engine == Engine::Lw));
    // No two occupy the same byte of L2 at the same time, as the verifier's race check requires.
    for (i, a) in all.iter().enumerate() {
        for b in all[..i].iter().filter(|b| a.space == Space::L2 && b.space == Space::L2) {
            let in_time = a.time.start < b.time.end && b.time.start < a.time.end;
            let in_space = a.bytes.0 < b.bytes.1 && b.bytes.0 < a.bytes.1;
            assert!(!(in_time && in_space), "{a:?}\n{b:?}");
        }
    }
}

#[test]
fn the_page_needs_nothing_else() {
    let program = program(TWO_CORES);
    let timing = cycles::run(&program, &options()).expect("a timing");
    let names = [(0, "first <&>".to_owned())].into();
    let table = SegmentTable::default();
    let shown =
        Page { program: &program, timing: &timing, names: &names, table: &table, mesh: None };
    let page = html::write(&shown);
    assert_eq!(page, html::write(&shown));
    assert!(!page.contains("http") && !page.contains("src="));
    assert!(page.contains("core 5, L2") && page.contains("core 6, L2"));
    assert!(page.contains("result of first &lt;&amp;&gt;\n128 bytes at "), "{page}");
    let (_, buffers) = page.split_once("id=\"buffers\"").expect("buffers");
    assert_eq!(buffers.matches("<rect").count(), buffers.matches(" bytes at ").count());
    assert_eq!(page.matches("ring region 0: 0 to").count(), 2);
}
