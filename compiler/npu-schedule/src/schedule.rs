//! The search as a whole.

use irc_diag::Diagnostic;
use irc_npu_cost::{MAX_BATCH, Machine, Model, Network, Result};

use crate::explain::explain;
use crate::options::Options;
use crate::result::Schedule;
use crate::search::search;
use crate::split::split;
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
    let (network, sources) = split(network, machine)?;
    let problem = Problem { network: &network, machine, batch, objective: options.objective };
    let (state, evaluations) = search(problem, options)?;
    let mut model = Model::new(&network, machine, options.objective)?;
    let segments = explain(&problem, &mut model, &state);
    let tree = state.tree(&problem);
    let evaluation = model.evaluate(&tree)?;
    Ok(Schedule { network, sources, tree, evaluation, segments, evaluations })
}
