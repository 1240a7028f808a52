//! Plans of several ranks written by ARK, from the corpus.
//!
//! Reads `IRC_CORPUS`, or `../shared/corpus` next to the repository, and prints a line if it is absent.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::PathBuf;

use crate::common::ranks::given;
use crate::common::{Outputs, run_on};
use irc_ark_format::model::{OpKind, Options as ParseOptions, Tensor};
use irc_ark_format::plan::tiling::grid;
use irc_ark_format::plan::{Plan, PlanOp, parse};
use irc_executor::code::{Entry, Kernel, Operand, PlanCode, Step, TaskCode, Variant};
use irc_executor::{Kernels, Options, Rank};
use irc_tensor::f16;

/// Number of elements of a tile of these kernels: what ARK's planner uses for wide tensors.
const TILE: usize = 64;

unsafe extern "C" fn copy(operands: *const *mut c_void, _: *mut c_void) -> i32 {
    // Safety: the plans pass two tiles of 16-bit floats.
    unsafe { (*operands.add(1)).cast::<f16>().copy_from((*operands).cast(), TILE) };
    0
}

unsafe extern "C" fn add(operands: *const *mut c_void, _: *mut c_void) -> i32 {
    // Safety: the plans pass three tiles of 16-bit floats.
    unsafe {
        let at = |index: usize| (*operands.add(index)).cast::<f16>();
        for index in 0..TILE {
            let sum = (*at(0).add(index)).to_f32() + (*at(1).add(index)).to_f32();
            *at(2).add(index) = f16::from_f32(sum);
        }
    }
    0
}

unsafe extern "C" fn scale<const FACTOR: u8>(operands: *const *mut c_void, _: *mut c_void) -> i32 {
    // Safety: the plans pass two tiles of 16-bit floats.
    unsafe {
        let at = |index: usize| (*operands.add(index)).cast::<f16>();
        for index in 0..TILE {
            *at(1).add(index) = f16::from_f32((*at(0).add(index)).to_f32() * f32::from(FACTOR));
        }
    }
    0
}

fn folder() -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let corpus = std::env::var_os("IRC_CORPUS").map_or_else(|| default.into(), PathBuf::from);
    let folder = corpus.join("ark");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: there is no corpus at {}", corpus.display());
    None
}

/// The plans of a set, for each architecture for which it exists.
fn sets(name: &str, world: i64) -> Vec<Vec<Plan>> {
    let Some(folder) = folder() else { return vec![] };
    let read = |rank: i64, arch: &str| {
        let path = folder.join(format!("{name}_rank{rank}of{world}{arch}.plan.json"));
        let text = std::fs::read_to_string(path).ok()?;
        let mut sink = irc_diag::Sink::default();
        let source = irc_diag::Source::new("plan.json", text);
        Some(parse(&source, &ParseOptions::default(), &mut sink).expect("a plan"))
    };
    let all = ["", ".cuda_90", ".rocm_942"]
        .iter()
        .filter_map(|arch| (0..world).map(|rank| read(rank, arch)).collect::<Option<Vec<Plan>>>());
    all.collect()
}

/// The code of a plan of copies, sums and communication ops.
fn code(plan: &Plan) -> PlanCode {
    let step = |(index, op): (usize, &PlanOp)| match op.op.kind.is_communication() {
        true => Step::Communicate(index),
        false => Step::Kernel(kernel(index, op)),
    };
    let tasks = plan.task_infos.iter();
    let tasks =
        tasks.map(|info| TaskCode { steps: info.ops.iter().enumerate().map(step).collect() });
    PlanCode { tasks: tasks.collect(), scratch_bytes: 0, requires: vec![] }
}

fn kernel(index: usize, op: &PlanOp) -> Kernel {
    let symbol = match op.op.kind {
        OpKind::Copy => "copy".to_owned(),
        OpKind::Add => "add".to_owned(),
        OpKind::ScalarMul => format!("scale {}", op.op.float_arg("Factor").expect("a factor")),
        kind => panic!("no kernel for {kind}"),
    };
    let counts = grid(op).expect("tiled").counts;
    let operand = |tensor: &Tensor| {
        assert_eq!(tensor.shape, [counts[3] * TILE as i64], "whole tiles of a vector");
        let offset = tensor.offsets[0].cast_unsigned() * 2;
        Operand { buffer: tensor.buffer.id, offset, steps: [0, 0, 0, TILE as u64 * 2] }
    };
    Kernel {
        ops: vec![index],
        counts,
        operands: op.op.reads.iter().chain(&op.op.writes).map(operand).collect(),
        variants: vec![Variant { last: [false; 4], symbol, keeps: None }],
    }
}

fn kernels() -> Kernels {
    let scales: [Entry; 8] = [
        scale::<1>, scale::<2>, scale::<3>, scale::<4>, scale::<5>, scale::<6>, scale::<7>,
        scale::<8>,
    ];
    let scales = scales.into_iter().enumerate();
    let scales = scales.map(|(index, entry)| (format!("scale {}", index + 1), entry));
    let others: [(&str, Entry); 2] = [("copy", copy), ("add", add)];
    let named = others.into_iter().map(|(name, entry)| (name.to_owned(), entry)).chain(scales);
    // Safety: `code` describes what they access.
    unsafe { Kernels::from_entries(named.collect()) }
}

/// Small integers, so that sums are exact in any order.
fn value(rank: usize, index: usize) -> f32 {
    ((index * 7 + rank * 3) % 13) as f32
}

/// Runs a set on values in buffer 0 of each rank, checked for races, and then with more threads.
fn run(plans: &[Plan]) -> Vec<Outputs> {
    let ranks: Vec<Rank> = plans
        .iter()
        .map(|plan| Rank::new(plan.clone(), &code(plan), kernels()).expect("a plan"))
        .collect();
    let of = |(index, rank): (usize, &Rank)| {
        let ports = &rank.interface().inputs;
        let Some(port) = ports.iter().find(|port| port.name == "buffer_0") else {
            return BTreeMap::new();
        };
        let count = port.shape[0] as usize;
        let values: Vec<f16> = (0..count).map(|at| f16::from_f32(value(index, at))).collect();
        let tensor = irc_tensor::Tensor::from_values([count as i64], &values).expect("a tensor");
        given(&[("buffer_0".into(), tensor)])
    };
    let inputs: Vec<Outputs> = ranks.iter().enumerate().map(of).collect();
    let checked = Options { race_check: true, ..Options::default() };
    let outputs = run_on(&ranks, inputs.clone(), checked).expect("no race");
    let threads = Options { threads: 3, ..Options::default() };
    assert_eq!(run_on(&ranks, inputs, threads).expect("a run"), outputs);
    outputs
}

fn floats(outputs: &Outputs, buffer: u64) -> Vec<f32> {
    outputs[&format!("buffer_{buffer}")].to_f32()
}

#[test]
fn what_is_sent_is_received() {
    for name in ["send_recv", "packet"] {
        for plans in sets(name, 2) {
            let outputs = run(&plans);
            let expected: Vec<f32> = (0..1024).map(|index| value(0, index)).collect();
            assert_eq!(floats(&outputs[1], 0), expected, "{name}");
        }
    }
}

#[test]
fn sums_of_parts_reach_all_ranks() {
    for name in ["packet_reduce", "recv_reduce_send"] {
        for plans in sets(name, 2) {
            let sum = |index| value(0, index) + value(1, index);
            let expected: Vec<f32> = (0..1024).map(sum).collect();
            run(&plans).iter().for_each(|outputs| assert_eq!(floats(outputs, 0), expected));
        }
    }
}

#[test]
fn both_directions_at_once() {
    for name in ["send_recv_bidir", "send_recv_sm"] {
        for plans in sets(name, 2) {
            let sum = |index| value(0, index) + value(1, index);
            let expected: Vec<f32> = (0..1024).map(sum).collect();
            run(&plans).iter().for_each(|outputs| assert_eq!(floats(outputs, 4), expected));
        }
    }
}

#[test]
fn all_reduce_adds_up() {
    for (name, world) in
        [("all_reduce", 2), ("all_reduce", 4), ("all_reduce", 8), ("all_reduce_sm", 4)]
    {
        // The largest exists for one architecture only.
        let count = if name == "all_reduce_sm" { 1 } else { 3 };
        for plans in sets(name, world as i64).into_iter().take(count) {
            for outputs in &run(&plans) {
                let all: Vec<Vec<f32>> = outputs.values().map(irc_tensor::Tensor::to_f32).collect();
                // Each rank first multiplies by its number, counting from 1.
                let term = |rank: usize, index| value(rank, index) * (rank + 1) as f32;
                let sum = |index| (0..world).map(|rank| term(rank, index)).sum::<f32>();
                let expected: Vec<f32> = (0..all[0].len()).map(sum).collect();
                assert!(all.contains(&expected), "{name} of {world}");
            }
        }
    }
}
