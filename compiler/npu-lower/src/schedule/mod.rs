//! Gemini schedules of trees.
//!
//! Layers run in the order of the tree, and every part of a layer is a workload of one core. A workload gets what
//! it reads from the cores that computed it where the tree lets the results stay on chip, and from DRAM
//! otherwise; snapshots of buffers follow from when data arrive and when they are read last. The dialect is
//! that of SET's main branch (`docs/npu-models.md`).

mod allocate;
mod buffers;
mod tiled;
mod transfers;
mod untiled;
mod workloads;

use crate::target::Target;
use irc_diag::Diagnostic;
use irc_gemini_format::schedule::Schedule;
use irc_npu_cost::{Evaluation, Machine, Network, Objective, Tree, runs};
use irc_npu_emit::{KnownLayer, KnownLayers, Numbers};
use std::ops::Range;

pub use allocate::allocated;
pub use tiled::tiled;
pub use untiled::{in_tiled, untiled};

/// A tree with the network that it schedules.
#[derive(Clone, Copy, Debug)]
pub struct Scheduled<'a> {
    /// The layers.
    pub network: &'a Network,
    /// What is known about each layer beside its shape.
    pub facts: &'a [LayerFacts],
    /// The machine.
    pub machine: &'a Machine,
    /// Its text, which the schedule states.
    pub target: Option<&'a Target>,
    /// The tree.
    pub tree: &'a Tree,
    /// Its cost, with the scheme of each layer.
    pub evaluation: &'a Evaluation,
    /// The objective that selects the mappings of layers to cores.
    pub objective: Objective,
}

/// What a schedule needs to know about a layer beside its shape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayerFacts {
    /// Rows, then columns, that the first window begins before the input.
    pub padding: [u64; 2],
    /// The tensors from outside the network that it reads: names, and channels.
    pub given: Vec<(String, Range<u64>)>,
    /// Whether its result is an output of the model, which is stored although other layers read it.
    pub is_output: bool,
}

/// The schedule of a tree.
///
/// # Errors
/// A tree that is not of the network, or an evaluation of another tree.
pub fn schedule(of: &Scheduled<'_>) -> Result<Schedule, Box<Diagnostic>> {
    let runs = runs(of.network, of.machine, of.tree, of.evaluation, of.objective)?;
    Ok(workloads::write(of, &runs))
}

/// What the program of a schedule needs to know about the layers of a network. `numbers` are the arithmetic of each
/// layer; without them, constants are placeholders.
pub fn known_layers(
    network: &Network,
    facts: &[LayerFacts],
    arithmetic: &[Option<Numbers>],
) -> KnownLayers {
    let layers = network.nodes().iter().enumerate().map(|(index, node)| {
        let window = node.layer.window();
        let padding = facts.get(index).map_or(node.padding, |facts| facts.padding);
        let signed = |pair: [u64; 2]| pair.map(|number| number as i64);
        let known = KnownLayer {
            kernel: signed(window.kernel),
            stride: signed(window.stride),
            padding: signed(padding),
            groups: node.layer.groups() as i64,
            numbers: arithmetic.get(index).copied().flatten(),
        };
        (node.layer.name.clone(), known)
    });
    layers.collect()
}

/// What a schedule states about the windows of its layers; nothing if irc has not written it.
pub fn stated_layers(schedule: &Schedule) -> KnownLayers {
    let windows = schedule.windows.iter().flatten().map(|stated| {
        let known = KnownLayer {
            kernel: stated.kernel,
            stride: stated.stride,
            padding: stated.padding,
            groups: stated.groups,
            numbers: None,
        };
        (stated.layer_name.clone(), known)
    });
    windows.collect()
}
