//! What a schedule states about itself: its NPU and its tree.

use super::other_tree;
use crate::target::{Goal, Target};
use irc_diag::{Diagnostic, Sink, Source};
use irc_gemini_format::schedule::{Dialect, Schedule};
use irc_npu_cost::{Layer, Network, Op, Reads, Shape, Tree, parse};
use std::collections::HashSet;

/// The NPU that a schedule states.
///
/// # Errors
/// `layer-target` at a text that is not an NPU of the cost model; `layer-mesh` if it has another mesh than the schedule.
pub fn stated_target(schedule: &Schedule) -> Result<Option<Target>, Box<Diagnostic>> {
    let Some(text) = &schedule.target else { return Ok(None) };
    let error = |code: &'static str, message: String| {
        let message = format!("the schedule's target: {message}");
        Box::new(Diagnostic::error(code, message).path(path(schedule, "target")))
    };
    let wrong = |message: String| error("layer-target", message);
    let target: Target = text.parse().map_err(wrong)?;
    target.machine().map_err(wrong)?;
    let [width, height] = target.mesh;
    if (schedule.xlen, schedule.ylen) != (width as i64, height as i64) {
        let message = format!(
            "its mesh is {width} by {height}, and xlen and ylen are {} and {}",
            schedule.xlen, schedule.ylen
        );
        return Err(error("layer-mesh", message));
    }
    Ok(Some(target))
}

/// What a schedule states that it minimises.
///
/// # Errors
/// `layer-target` at another text than that of a goal.
pub fn stated_goal(schedule: &Schedule) -> Result<Option<Goal>, Box<Diagnostic>> {
    let wrong = |message: String| {
        let message = format!("the schedule's objective: {message}");
        Box::new(Diagnostic::error("layer-target", message).path(path(schedule, "objective")))
    };
    schedule.objective.as_ref().map(|text| text.parse().map_err(wrong)).transpose()
}

/// The errors in the NPU, in the objective and in the text of the tree that a schedule states, with their paths. Whether the tree is that
/// of the workloads, [`price`](super::price) finds.
pub fn check_stated(schedule: &Schedule) -> Vec<Diagnostic> {
    let target = stated_target(schedule).err();
    let tree = schedule
        .tree
        .as_ref()
        .zip(named_layers(schedule))
        .and_then(|(text, network)| parsed_tree(schedule, text, &network).err());
    let goal = stated_goal(schedule).err();
    target.into_iter().chain(goal).chain(tree).map(|found| *found).collect()
}

/// The tree with this text, of layers of a network.
pub(super) fn parsed_tree(
    schedule: &Schedule,
    text: &str,
    network: &Network,
) -> Result<Tree, Box<Diagnostic>> {
    let (source, mut sink) = (Source::new("tree", text), Sink::new());
    parse(&source, network, &mut sink).ok_or_else(|| {
        let found = sink.into_diagnostics().into_iter().next();
        let message = found.map_or_else(String::new, |found| found.message);
        let message = format!("the tree of the schedule is not valid: {message}");
        other_tree(message, Some(path(schedule, "tree")))
    })
}

/// A network with the names of a schedule's layers; `None` if they are more than the cost model has.
fn named_layers(schedule: &Schedule) -> Option<Network> {
    let (mut network, mut known) = (Network::new("schedule"), HashSet::new());
    let element = Shape::new(1, 1, 1);
    for (_, _, workload) in schedule.workloads() {
        if known.insert(workload.layer_name.as_str()) {
            let layer = Layer::new(workload.layer_name.as_str(), Op::Pointwise, element);
            let reads = Reads { external: Some(element), ..Reads::default() };
            network.add_reading(layer, reads).ok()?;
        }
    }
    Some(network)
}

/// The path of a key beside the size of the mesh.
fn path(schedule: &Schedule, key: &str) -> String {
    match schedule.dialect {
        Dialect::A | Dialect::B => format!("$.{key}"),
        Dialect::C => format!("$.metadata.{key}"),
    }
}
