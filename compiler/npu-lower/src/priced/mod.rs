//! The cost of a schedule that is in a file.
//!
//! A schedule that states its tree costs what the tree costs, after its workloads have been compared with those of
//! the tree. Otherwise the cost is that of the workloads and transfers themselves (`docs/npu-models.md`).

mod network;
mod runs;
mod stated;
mod workloads;

pub use stated::{check_stated, stated_goal, stated_target};

use crate::report::Report;
use crate::schedule::{Scheduled, schedule as of_tree};
use irc_diag::{Diagnostic, counted};
use irc_gemini_format::schedule::{Schedule, Workload};
use irc_npu_cost::{Machine, Model, Network, Objective, Tree};

/// The cost of a schedule.
#[derive(Clone, Debug)]
pub struct PricedSchedule {
    /// Its layers, as far as they follow from its workloads.
    pub network: Network,
    /// Its cost, by segments and layers.
    pub report: Report,
    /// Whether it is that of a tree, as the search prices it.
    pub is_of_tree: bool,
    /// Layers whose mappings take another time than the schedule states, with both numbers of cycles.
    pub others: Vec<(String, u64, u64)>,
}

/// The cost of a schedule on a machine.
///
/// # Errors
/// `layer-schedule` for layers that cannot be recovered from their workloads, `layer-tree` for a tree that is not that
/// of the workloads, with the path of the first that differs; a mesh of another size; `cost-…`.
pub fn price(
    schedule: &Schedule,
    machine: &Machine,
    objective: Objective,
) -> Result<PricedSchedule, Box<Diagnostic>> {
    let mesh = machine.mesh;
    if (schedule.xlen, schedule.ylen) != (mesh.width as i64, mesh.height as i64) {
        let message = format!(
            "the mesh of the schedule is {} by {}, that of the NPU {} by {}",
            schedule.xlen, schedule.ylen, mesh.width, mesh.height
        );
        return Err(Box::new(Diagnostic::error("layer-mesh", message)));
    }
    // What is in the buffers is the schedule's own affair: its checks report it.
    let mut roomy = *machine;
    roomy.buffer.size = ROOMY;
    let network = network::network(schedule, &roomy, objective)?;
    let others = workloads::others(schedule, &network, &roomy, objective);
    let report = match &schedule.tree {
        Some(text) => of_its_tree(schedule, text, &network, &roomy, objective)?,
        None => workloads::report(schedule, &network, &roomy, objective)?,
    };
    Ok(PricedSchedule { network, report, is_of_tree: schedule.tree.is_some(), others })
}

/// Bytes of a buffer in which everything fits.
const ROOMY: u64 = 1 << 27;

fn of_its_tree(
    schedule: &Schedule,
    text: &str,
    network: &Network,
    machine: &Machine,
    objective: Objective,
) -> Result<Report, Box<Diagnostic>> {
    let tree = without_spans(stated::parsed_tree(schedule, text, network)?);
    let mut model = Model::new(network, machine, objective)?;
    let evaluation = model.evaluate(&tree)?;
    let of = Scheduled {
        network,
        facts: &[],
        machine,
        target: None,
        tree: &tree,
        evaluation: &evaluation,
        objective,
    };
    expect_same(schedule, &of_tree(&of)?)?;
    Report::new(network, machine, objective, &tree, &evaluation)
}

fn without_spans(mut tree: Tree) -> Tree {
    tree.span = None;
    if let irc_npu_cost::Kind::Cut(_, children) = &mut tree.kind {
        let all = std::mem::take(children);
        *children = all.into_iter().map(without_spans).collect();
    }
    tree
}

/// Compares the workloads of a schedule with those of its tree.
fn expect_same(schedule: &Schedule, wanted: &Schedule) -> Result<(), Box<Diagnostic>> {
    let key = |of: &Schedule, (core, _, workload): (usize, usize, &Workload)| {
        let extent = workload.extent;
        (of.cores[core].id, workload.workload_id, workload.layer_name.clone(), extent)
    };
    let mut all: Vec<_> = wanted.workloads().map(|one| key(wanted, one)).collect();
    let by_id = |of: &(i64, i64, String, _)| (of.0, of.1);
    all.sort_by_key(by_id);
    for one in schedule.workloads() {
        let own = key(schedule, one);
        let known = all.binary_search_by_key(&by_id(&own), by_id).is_ok_and(|at| all[at] == own);
        if !known {
            let message = format!(
                "workload {} computes {} of {}, which is not what the tree of the schedule states",
                own.1, own.3, own.2
            );
            return Err(other_tree(message, Some(schedule.workload_path((one.0, one.1)))));
        }
    }
    let count = schedule.workloads().count();
    match count == all.len() {
        true => Ok(()),
        false => {
            let message =
                format!("the tree has {}, the schedule {count}", counted(all.len(), "workload"));
            Err(other_tree(message, None))
        }
    }
}

fn other_tree(message: String, path: Option<String>) -> Box<Diagnostic> {
    let found = Diagnostic::error("layer-tree", message);
    let found = found.help("without the key `tree`, the cost is that of the workloads");
    Box::new(match path {
        Some(path) => found.path(path),
        None => found,
    })
}
