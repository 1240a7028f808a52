//! Communication between ranks, as in ARK's kernels.
//!
//! * A put copies a tensor, or a task's tile of it, into the peer's buffer that lists the tag; a signal
//!   after it releases a waiting task of the peer.
//! * A packet is 32 bits of payload and 32 bits of flag; the reader waits until the flag has arrived.
//! * A reduction adds the data that peers wrote into consecutive parts of scratch, in the order of
//!   their ranks, and writes the sum to its own buffer and to those of the peers.
//! * A synchronisation notifies every peer and waits for all of them.
//!
//! ARK's semaphores count signals of a peer for all tags together. Here each tag is counted separately,
//! and if every task of a tiled `Send` signals, the single waiting task waits for all signals:
//! this is the intent of the plan, whereas ARK's kernel would continue after the first.

pub(crate) mod manifest;
pub(crate) mod message;
pub(crate) mod op;
mod reduce;
pub(crate) mod step;
pub(crate) mod transport;
pub(crate) mod view;

pub use op::{Action, CommOp, Cut, Place, Reduce};
pub use view::View;

use crate::Error;
use crate::layout::Layout;
use crate::script::{Entry, script};
use irc_ark_format::plan::Plan;
use manifest::Manifest;
use std::collections::BTreeMap;

/// The communication ops of a rank, by the index of the task info and the index in it.
pub type CommOps = BTreeMap<(usize, usize), CommOp>;

/// The communication ops of all ranks of a world, in their order.
///
/// # Errors
/// Ranks or tags that do not match, or an op that is not supported.
pub fn of_world(ranks: &[(&Plan, &Layout)]) -> Result<Vec<CommOps>, Error> {
    let mut manifests = BTreeMap::new();
    let mut scripts = vec![];
    for (plan, layout) in ranks {
        let script = script(plan)?;
        let manifest = Manifest::of(plan, layout, &script)?;
        if manifests.insert(plan.rank, manifest).is_some() {
            return Err(Error::World(format!("two plans are of rank {}", plan.rank)));
        }
        scripts.push(script);
    }
    manifest::check(&manifests)?;
    let of_rank = |((plan, layout), script): (&(&Plan, &Layout), &Vec<Entry>)| {
        let ops = manifest::communications(plan);
        let ready = ops.map(|(info, op, _)| {
            Ok(((info, op), prepare((plan, layout, script), (info, op), &manifests)?))
        });
        ready.collect()
    };
    ranks.iter().zip(&scripts).map(of_rank).collect()
}

/// Prepares a communication op for those of its tasks that run.
pub(crate) fn prepare(
    (plan, layout, script): (&Plan, &Layout, &[Entry]),
    (info, op): (usize, usize),
    manifests: &BTreeMap<i64, Manifest>,
) -> Result<CommOp, Error> {
    let plan_op = &plan.task_infos[info].ops[op];
    let problem = |reason: String| Error::Plan {
        place: format!(
            "rank {}, $.TaskInfos[{info}].Ops[{op}] ({} '{}')",
            plan.rank, plan_op.op.kind, plan_op.op.name
        ),
        reason,
    };
    let ready = op::prepare(plan, layout, plan_op, manifests).map_err(problem)?;
    let ends = script.iter().filter_map(|entry| match entry {
        Entry::Tasks(share) if share.task == info => Some(share.distribution.tasks.end),
        _ => None,
    });
    let (end, known) = (ends.max().unwrap_or_default(), ready.tasks());
    match known.filter(|&known| end > known) {
        Some(known) => Err(problem(format!("tasks up to {end} run, and its tiles are {known}"))),
        None => Ok(ready),
    }
}
