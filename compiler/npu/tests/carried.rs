//! The small schedules in the repository.

use crate::support::{diagnostics, layers, plan};
use irc_diag::Source;
use irc_gemini_format::frontend::{Activation, Frontend, FrontendLayer};
use irc_gemini_format::schedule::{OneOrMany, Schedule};
use irc_gemini_format::{FileKind, Nullable};
use irc_npu::op::{SiMov, SoMov, VpSelf};
use irc_npu::{Op, Program};
use irc_npu_emit::FileDiagnostic;

macro_rules! data {
    ($name:literal) => {
        Source::new($name, include_str!(concat!("../../../formats/gemini/tests/data/", $name)))
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
    assert_eq!(diagnostics(&program), []);
    let ops = |core: usize| program.cores[core].code.iter().map(|instruction| &instruction.op);
    let sent = |core| ops(core).filter(|op| matches!(op, Op::SoMov(SoMov { .. }))).count();
    let received = |core| ops(core).filter(|op| matches!(op, Op::SiMov(SiMov { .. }))).count();
    let cores = 0..program.cores.len();
    assert_eq!(cores.clone().map(sent).sum::<usize>(), cores.map(received).sum::<usize>());
}

#[test]
fn a_transfer_goes_once_to_each_core() {
    let source = Source::new("multicast.json", include_str!("data/multicast.json"));
    let program = emit(&source, None);
    assert_eq!(diagnostics(&program), []);
    let code = || program.cores.iter().flat_map(|core| &core.code);
    let count =
        |is_it: fn(&Op) -> bool| code().filter(|instruction| is_it(&instruction.op)).count();
    // Two workloads of the second core read the result that the first sends.
    assert_eq!(count(|op| matches!(op, Op::SoMov(_))), 1);
    assert_eq!(count(|op| matches!(op, Op::SiMov(_))), 1);
    assert_eq!(count(|op| matches!(op, Op::DtCal(_))), 1);
}

#[test]
fn programs_are_right() {
    let frontend = layers(&data!("frontend.json"));
    for source in [data!("rings.json"), data!("two_cores.json"), data!("allocated.json")] {
        let program = emit(&source, Some(&frontend));
        assert_eq!(diagnostics(&program), [], "{}", source.name());
    }
}

#[test]
fn a_schedule_without_several_cores_needs_its_frontend() {
    let found = irc_npu_emit::emit(&plan(&data!("rings.json")), None).expect_err("no layers");
    assert_eq!(found[0].diagnostic.code, "emit-no-frontend");
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
    assert_eq!(diagnostics(&made), []);
}

#[test]
fn tiles_go_in_the_order_of_their_keys() {
    let frontend = layers(&data!("frontend.json"));
    let mut schedule = plan(&data!("rings.json"));
    let sorted = irc_npu_emit::emit(&schedule, Some(&frontend)).expect("a program");
    for workload in &mut schedule.cores[0].workloads {
        workload.tile_info.as_mut().expect("tiles").tiles.reverse();
    }
    assert_eq!(irc_npu_emit::emit(&schedule, Some(&frontend)).expect("a program"), sorted);
}

/// Indices of `l2_add` in `rings.json` and in `frontend.json`.
const SUM: (usize, usize) = (3, 2);

/// The vector operations with two operands.
fn sums(program: &Program) -> Vec<VpSelf> {
    let code = program.cores[0].code.iter();
    let all = code.filter_map(|instruction| match &instruction.op {
        Op::VpSelf(op) if op.lut == 18 => Some(op.clone()),
        _ => None,
    });
    all.collect()
}

#[test]
fn scales_meet_their_operands_in_either_order() {
    let frontend = layers(&data!("frontend.json"));
    let mut schedule = plan(&data!("rings.json"));
    let emit = |schedule: &Schedule| irc_npu_emit::emit(schedule, Some(&frontend));
    let made = emit(&schedule).expect("a program");
    let workload = &mut schedule.cores[0].workloads[SUM.0];
    let Some(OneOrMany::Many(operands)) = &mut workload.ifmap else { panic!("two operands") };
    operands.reverse();
    assert_eq!(emit(&schedule).expect("a program"), made);
    let [sum] = &sums(&made)[..] else { panic!("one sum") };
    assert_ne!(sum.st_addr, sum.st_addr1);
    // With the operands of the frontend exchanged, those of the instruction are exchanged too.
    let mut other = frontend.clone();
    other.layers[SUM.1].1.previous_layer.reverse();
    let made = irc_npu_emit::emit(&schedule, Some(&other)).expect("a program");
    let [swapped] = &sums(&made)[..] else { panic!("one sum") };
    assert_eq!((swapped.st_addr, swapped.st_addr1), (sum.st_addr1, sum.st_addr));
}

#[test]
fn operands_that_nothing_tells_apart_are_rejected() {
    let mut frontend = layers(&data!("frontend.json"));
    frontend.layers[SUM.1].1.previous_layer = vec!["a".into(), "b".into()];
    let found = irc_npu_emit::emit(&plan(&data!("rings.json")), Some(&frontend));
    assert_eq!(found.expect_err("no operand is known")[0].diagnostic.code, "emit-operands");
}

#[test]
fn a_relu_is_in_the_path_of_a_sum_and_of_no_other() {
    let schedule = plan(&data!("rings.json"));
    let mut frontend = layers(&data!("frontend.json"));
    let path = |frontend: &Frontend| {
        let made = irc_npu_emit::emit(&schedule, Some(frontend)).expect("a program");
        sums(&made)[0].gpmd
    };
    assert_eq!(path(&frontend), 5);
    let relu = Some(Nullable(Some(Activation::Relu)));
    frontend.layers[SUM.1].1.activation_type = relu;
    assert_eq!(path(&frontend), 69);
    frontend.layers[3].1.activation_type = relu;
    let found = irc_npu_emit::emit(&schedule, Some(&frontend)).expect_err("a pooling with a ReLU");
    assert_eq!(found[0].diagnostic.code, "emit-operation");
}

#[test]
fn windows_beyond_a_part_that_its_operand_goes_on_behind_are_rejected() {
    let schedule = plan(&data!("rings.json"));
    let mut frontend = layers(&data!("frontend.json"));
    frontend.layers[3].1.pool_size = Some([7, 1]);
    let found = irc_npu_emit::emit(&schedule, Some(&frontend)).expect_err("rows of another part");
    assert_eq!(found[0].diagnostic.code, "emit-tile");
}

#[test]
fn what_is_wrong_with_a_layer_has_a_path_in_its_file() {
    let schedule = plan(&data!("rings.json"));
    let source = data!("frontend.json");
    let sound = layers(&source);
    let rejected = |change: &dyn Fn(&mut FrontendLayer), code, text: &str| {
        let mut changed = sound.clone();
        changed.layers.iter_mut().for_each(|(_, layer)| change(layer));
        let mut found =
            irc_npu_emit::emit(&schedule, Some(&changed)).expect_err("a layer is wrong");
        let FileDiagnostic { file, diagnostic } = found.remove(0);
        assert_eq!((file, diagnostic.code), (FileKind::Frontend, code));
        let mut placed = [diagnostic];
        irc_gemini_format::place(&source, &mut placed);
        let span = placed[0].primary_span().expect("a place");
        assert!(source.text()[span].starts_with(text), "{placed:?}");
    };
    let of = |name: &'static str, change: fn(&mut FrontendLayer)| {
        move |layer: &mut FrontendLayer| {
            if layer.name == name {
                change(layer)
            }
        }
    };
    let unknown = of("l3_pool", |layer| layer.operation = "element_wise_mul".into());
    rejected(&unknown, "emit-operation", "\"max_pool2d\"");
    let other = of("l4_conv", |layer| layer.output_dtype[0] = "int32".into());
    rejected(&other, "emit-format", "[");
    let huge = of("l4_conv", |layer| layer.stride = Some([1 << 33, 1]));
    rejected(&huge, "emit-range", "[");
    let large = of("l0_conv", |layer| layer.output_shape[0][1] = 1 << 30);
    rejected(&large, "emit-range", "[");
    let bare = of("l5_quantize", |layer| layer.module_list = None);
    rejected(&bare, "emit-frontend", "{");
}

#[test]
fn layers_of_no_kind_are_rejected() {
    let mut schedule = plan(&data!("two_cores.json"));
    for workload in schedule.cores.iter_mut().flat_map(|core| &mut core.workloads) {
        workload.layer_type = None;
    }
    let found = irc_npu_emit::emit(&schedule, None).expect_err("layers of no kind");
    assert_eq!(found[0].diagnostic.code, "emit-kind");
}

/// The code and path of the diagnostic with which a changed schedule is rejected.
fn rejected(text: &str, change: impl Fn(&mut Schedule)) -> (&'static str, String) {
    let mut schedule = plan(&Source::new("schedule.json", text));
    change(&mut schedule);
    let found = irc_npu_emit::emit(&schedule, None).expect_err("a schedule without a program");
    (found[0].diagnostic.code, found[0].diagnostic.path.clone().expect("a path"))
}

#[test]
fn groups_of_no_whole_words_read_the_words_that_they_are_in() {
    // Weights of 4 elements for each output: four groups of 4 of the 16 channels.
    let text = include_str!("data/groups.json");
    let mut schedule = plan(&Source::new("groups.json", text));
    schedule.dram[0].outs[1].size = 16 * 4 * 8;
    let program = irc_npu_emit::emit(&schedule, None).expect("a program");
    let widths = program.cores.iter().flat_map(|core| &core.code);
    let widths: Vec<u32> = widths
        .filter_map(|instruction| match &instruction.op {
            Op::LdwMov(load) => Some(load.w_size[1]),
            _ => None,
        })
        .collect();
    assert!(!widths.is_empty() && widths.iter().all(|width| *width == 8), "{widths:?}");
}

#[test]
fn weights_that_no_window_explains_are_rejected() {
    let found = rejected(include_str!("data/groups.json"), |schedule| {
        schedule.dram[0].outs[1].size = 16 * 5 * 8;
    });
    assert_eq!(found, ("emit-windows", "$[\"1\"][0].weight".into()));
}

#[test]
fn activations_of_which_nothing_says_how_they_come_are_rejected() {
    // One workload of `qk` lists its weights: the transfer of the other's keys is removed.
    let found = rejected(include_str!("data/attention.json"), |schedule| {
        for workload in &mut schedule.cores[0].workloads {
            for resident in workload.buffer.iter_mut().filter(|each| each.layer() == Some("qk")) {
                if let Some(Nullable(Some(sources))) = &mut resident.source {
                    sources.retain(|source| source.transfer_id != 8);
                }
            }
        }
    });
    assert_eq!(found.0, "emit-from-ofmap");
}

#[test]
fn what_is_no_transposition_has_to_say_what_it_is() {
    let found = rejected(include_str!("data/outside.json"), |schedule| {
        schedule.cores[0].workloads[1].layer_type = None;
    });
    assert_eq!(found, ("emit-kind", "$[\"1\"][1]".into()));
}
