//! Any bytes: the plan reader never panics, explains what it rejects, and writes back what it
//! accepts; and every check ends on what it accepts, alone, as two ranks, and against a model.

use irc_ark_format::model::{Model, Node, Options};
use irc_ark_format::plan::{self, Plan};
use irc_diag::{Sink, Source, render};

/// Checks the properties of the module for these bytes.
pub fn check(bytes: &[u8]) {
    let source = Source::from_bytes("fuzz.plan.json", bytes);
    let mut sink = Sink::new();
    let plan = plan::parse(&source, &Options::default(), &mut sink);
    assert_eq!(plan.is_none(), sink.has_errors(), "rejected if and only if explained");
    render(&source, &sink.into_diagnostics(), false, 80);
    if let Some(plan) = plan {
        plan::check_ranks(std::slice::from_ref(&plan));
        if plan.world_size == 2 {
            let peer = Plan { rank: 1 - plan.rank, ..plan.clone() };
            plan::check_ranks(&[plan.clone(), peer]);
        }
        plan::check_model(&plan, &model_of(&plan));
        let text = plan::write(&plan);
        let again =
            plan::parse(&Source::new("again", &text), &Options::default(), &mut Sink::new());
        assert_eq!(again, Some(plan));
    }
}

/// The ops of a plan, last task first, as a model.
fn model_of(plan: &Plan) -> Model {
    let ops = plan.task_infos.iter().rev().flat_map(|info| &info.ops);
    let node = |(id, op): (usize, &plan::PlanOp)| Node {
        id: id as u64,
        producers: vec![],
        consumers: vec![],
        op: op.op.clone(),
    };
    let nodes = ops.enumerate().map(node).collect();
    Model { rank: plan.rank, world_size: plan.world_size, nodes }
}
