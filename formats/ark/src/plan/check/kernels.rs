//! The requirements of ARK's kernels.

use irc_diag::{Diagnostic, Sink};
use irc_json::At;

use super::memory::Memory;
use super::{align, lanes, matmul, ops};
use crate::model::{Op, OpKind};
use crate::plan::{Plan, PlanOp};

/// Checks every op against the preconditions of its kernel.
pub(super) fn check(plan: &Plan, sink: &mut Sink) {
    let memory = Memory::of(plan);
    for (place, plan_op) in ops(plan) {
        let at = place.at();
        match plan_op.op.kind {
            OpKind::Matmul => matmul::check(plan, plan_op, &at, sink),
            OpKind::Transpose => check_transpose(&plan_op.op, &at, sink),
            kind if kind.is_reduce() => check_reduce(plan, plan_op, &at, sink),
            _ => {}
        }
        if lanes::check(plan_op, &memory, &at, sink) {
            align::check(plan_op, &memory, &at, sink);
        }
    }
}

fn check_transpose(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let permutation = op.dims_arg("Permutation").unwrap_or_default();
    if permutation.iter().copied().eq(0..permutation.len() as i64) {
        let message = "there is no kernel for a transposition that moves nothing";
        let args = at.key("Args");
        let diagnostic = Diagnostic::error("plan-transpose-identity", message)
            .path(args.key("Permutation").to_string())
            .help("remove the op, or use `Copy`");
        sink.push(diagnostic);
    }
}

fn check_reduce(plan: &Plan, plan_op: &PlanOp, at: &At<'_>, sink: &mut Sink) {
    let op = &plan_op.op;
    let rank = op.reads[0].rank();
    let axis = op.int_arg("Axis").map_or(0, i64::from);
    if plan_op.config.text("ImplType") == Some("WarpWise") && axis + 1 != rank as i64 {
        let config = at.key("Config");
        let message = format!("`WarpWise` reduces the last axis only, found axis {axis} of {rank}");
        let diagnostic = Diagnostic::error("plan-reduce-impl", message);
        sink.push(diagnostic.path(config.key("ImplType").to_string()));
    }
    check_sums(plan, plan_op, at, sink);
    if op.bool_arg("KeepDim") == Some(false) && rank < 4 {
        let args = at.key("Args");
        let message = format!("ARK reduces a wrong axis of {rank} dimensions without `KeepDim`");
        let diagnostic = Diagnostic::error("plan-reduce-keep-dim", message)
            .path(args.key("KeepDim").to_string())
            .help("keep the dimension and read the result through a view without it");
        sink.push(diagnostic);
    }
}

/// Several warps of one reduction combine their sums in on-chip memory.
fn check_sums(plan: &Plan, plan_op: &PlanOp, at: &At<'_>, sink: &mut Sink) {
    let is_warp_wise = plan_op.config.text("ImplType") == Some("WarpWise");
    let warps = plan_op.config.int("NumWarps").unwrap_or(1);
    let needed = plan.architecture.warp_threads() * plan_op.op.reads[0].dtype.bytes() as i64;
    let has = plan_op.config.int("SramBytes").unwrap_or(0);
    if is_warp_wise && warps > 1 && has < needed {
        let config = at.key("Config");
        let message = format!("{warps} warps of a reduction need {needed} bytes, found {has}");
        let diagnostic = Diagnostic::error("plan-sram", message);
        sink.push(diagnostic.path(config.key("SramBytes").to_string()));
    }
}
