//! The search as a whole.

use std::sync::Arc;

use irc_diag::Diagnostic;
use irc_npu_cost::{Cut, Kind, MAX_BATCH, Machine, Model, Network, Objective, Result, Tree};

use crate::explain::explain;
use crate::options::Options;
use crate::result::{Schedule, Segment};
use crate::search::{Found, search};
use crate::split::{pieces, split};
use crate::state::Problem;

/// Schedules a network for `batch` images.
///
/// # Errors
/// `cost-machine`; `schedule-batch` for no or too many images, `schedule-network` for no layers;
/// `schedule-no-room` for a layer that fits in no buffers, whatever the pieces, with the numbers; `cost-…`
/// for what prevents every schedule, with the layer named.
pub fn schedule(
    network: &Network,
    machine: &Machine,
    batch: u64,
    options: &Options<'_>,
) -> Result<Schedule> {
    machine.check()?;
    if !(1..=MAX_BATCH).contains(&batch) {
        let message = format!("expected a batch of 1 to {MAX_BATCH} images, found {batch}");
        return Err(Box::new(Diagnostic::error("schedule-batch", message)));
    }
    if network.nodes().is_empty() {
        let message = format!("the network {} has no layers", network.name());
        return Err(Box::new(Diagnostic::error("schedule-network", message)));
    }
    let splits = split(network, machine)?;
    let (network, sources) = pieces(network, &splits)?;
    let problem = Problem { network: &network, machine, batch, objective: options.objective };
    let Found { state, mappings, evaluations } = search(problem, options)?;
    let mut model = Model::new(&network, machine, mappings)?;
    let segments = explain(&problem, &mut model, &state);
    let tree = state.tree(&problem);
    let evaluation = model.evaluate(&tree)?;
    Ok(Schedule { network, sources, splits, tree, mappings, evaluation, segments, evaluations })
}

/// The segments of a tree, explained as those of a schedule.
///
/// # Errors
/// As [`Model::segment`].
pub fn explain_tree(
    network: &Network,
    machine: &Machine,
    objective: Objective,
    tree: &Tree,
) -> Result<Vec<Segment>> {
    let problem = Problem { network, machine, batch: tree.batch, objective };
    let mut model = Model::new(network, machine, objective)?;
    let children = match &tree.kind {
        Kind::Cut(Cut::Time, children) => &children[..],
        _ => std::slice::from_ref(tree),
    };
    let mut segments = vec![];
    for child in children {
        segments.push(Arc::new(problem.segment(&mut model, child.clone(), &[])?));
    }
    let images = children.first().map_or(tree.batch, |child| child.batch);
    let state = problem.state(images, segments);
    Ok(explain(&problem, &mut model, &state))
}
