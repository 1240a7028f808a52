//! How much a model computes.
use irc_ark_format::{
    model::{self, Model, Op, OpKind},
    plan::Plan,
};
use irc_diag::{Sink, Source};

/// Floating-point operations of a model; `None` when it cannot be read.
///
/// A multiply-add is two; an elementwise op is one for each element it makes, whatever it costs
/// (three for a rotary embedding); a reduction is one for each element it takes. Moves and
/// conversions are none.
pub fn flops(source: &Source) -> Option<u64> {
    let mut sink = Sink::new();
    let document = model::parse(source, &model::Options::default(), &mut sink)?;
    Some(of_model(&document.model))
}

/// Floating-point operations of a plan.
pub fn of_plan(plan: &Plan) -> u64 {
    let ops = plan.task_infos.iter().flat_map(|task| &task.ops);
    ops.map(|plan_op| of_op(&plan_op.op)).fold(0, u64::saturating_add)
}

fn of_model(model: &Model) -> u64 {
    model.nodes.iter().map(|node| of_op(&node.op)).fold(0, u64::saturating_add)
}

fn of_op(op: &Op) -> u64 {
    let made = op.writes.first().map_or(0, |tensor| elements(&tensor.shape));
    let taken = op.reads.first().map_or(0, |tensor| elements(&tensor.shape));
    match op.kind {
        OpKind::Matmul => made.saturating_mul(2).saturating_mul(inner(op)),
        OpKind::Rope => made.saturating_mul(3),
        OpKind::ReduceSum | OpKind::ReduceMax | OpKind::ReduceMean => taken,
        OpKind::ScalarAdd | OpKind::ScalarMul => made,
        OpKind::Copy | OpKind::Cast => 0,
        kind if kind.is_binary() || kind.is_unary() => made,
        _ => 0,
    }
}

/// The contracted extent of a matmul.
fn inner(op: &Op) -> u64 {
    let Some(shape) = op.reads.first().map(|tensor| &tensor.shape) else { return 0 };
    let transposed = op.bool_arg("TransposeInput").unwrap_or(false);
    let from_end = if transposed { 2 } else { 1 };
    let extent = shape.len().checked_sub(from_end).and_then(|index| shape.get(index));
    extent.map_or(1, |extent| (*extent).unsigned_abs())
}

fn elements(shape: &[i64]) -> u64 {
    shape.iter().map(|extent| extent.unsigned_abs()).fold(1, u64::saturating_mul)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(name: &str) -> u64 {
        let path = format!("{}/../examples/{name}", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(path).expect("an example");
        flops(&Source::from_bytes(name, &bytes)).expect("a model")
    }

    #[test]
    fn a_matmul_is_two_operations_for_each_product() {
        assert_eq!(example("matmul_1024_f32.model.json"), 2 * 1024 * 1024 * 1024);
    }

    #[test]
    fn a_softmax_is_five_operations_an_element() {
        // Max, difference, exponential, sum, quotient.
        assert_eq!(example("softmax_4096x2048_f32.model.json"), 5 * 4096 * 2048);
    }
}
