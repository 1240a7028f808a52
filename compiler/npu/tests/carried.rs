//! The small schedules that the project carries.

mod support;

use irc_diag::Source;
use irc_gemini_format::frontend::Frontend;
use irc_npu::op::{SiMov, SoMov};
use irc_npu::{Op, Program};
use support::{findings, layers, plan};

macro_rules! data {
    ($name:literal) => {
        Source::new(
            $name,
            include_str!(concat!("../../../dialects/gemini/format/tests/data/", $name)),
        )
    };
}

fn emit(source: &Source, frontend: Option<&Frontend>) -> Program {
    let schedule = plan(source);
    let made = irc_npu_emit::emit(&schedule, frontend);
    made.unwrap_or_else(|found| panic!("{}: {found:#?}", source.name()))
}

#[test]
fn transfers_have_both_ends() {
    let program = emit(&data!("allocated.json"), None);
    assert_eq!(findings(&program), []);
    let ops = |core: usize| program.cores[core].code.iter().map(|instruction| &instruction.op);
    let sent = |core| ops(core).filter(|op| matches!(op, Op::SoMov(SoMov { .. }))).count();
    let received = |core| ops(core).filter(|op| matches!(op, Op::SiMov(SiMov { .. }))).count();
    let cores = 0..program.cores.len();
    assert_eq!(cores.clone().map(sent).sum::<usize>(), cores.map(received).sum::<usize>());
}

#[test]
fn programs_are_right() {
    let frontend = layers(&data!("frontend.json"));
    for source in [data!("rings.json"), data!("two_cores.json"), data!("allocated.json")] {
        let program = emit(&source, Some(&frontend));
        assert_eq!(findings(&program), [], "{}", source.name());
    }
}

#[test]
fn a_schedule_without_several_cores_needs_its_frontend() {
    let found = irc_npu_emit::emit(&plan(&data!("rings.json")), None).expect_err("no layers");
    assert_eq!(found[0].code, "emit-no-frontend");
}

#[test]
fn a_change_of_ring_regions_is_a_new_table() {
    let frontend = layers(&data!("frontend.json"));
    let mut schedule = plan(&data!("rings.json"));
    let tables = |program: &Program| {
        let code = program.cores[0].code.iter();
        code.filter(|instruction| matches!(&instruction.op, Op::CtBc(op) if op.bcs == 0)).count()
    };
    let made = irc_npu_emit::emit(&schedule, Some(&frontend)).expect("a program");
    assert_eq!(tables(&made), 1);
    // The last workload's tensors do not reach the last KiB.
    let last = schedule.cores[0].workloads.last_mut().expect("a workload");
    let regions = last.ring_buffer_info.as_mut().expect("ring regions");
    regions.push([8192, 9216]);
    let made = irc_npu_emit::emit(&schedule, Some(&frontend)).expect("a program");
    assert_eq!(tables(&made), 2);
    assert_eq!(findings(&made), []);
}

#[test]
fn layers_of_no_kind_are_refused() {
    let mut schedule = plan(&data!("two_cores.json"));
    for workload in schedule.cores.iter_mut().flat_map(|core| &mut core.workloads) {
        workload.layer_type = None;
    }
    let found = irc_npu_emit::emit(&schedule, None).expect_err("layers of no kind");
    assert_eq!(found[0].code, "emit-kind");
}
