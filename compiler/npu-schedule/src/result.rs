//! The result of the search.

use irc_diag::counted;
use std::ops::Range;

use irc_npu_cost::{Bound, Cost, Evaluation, Network, Tree};

use crate::splits::Splits;

/// The best alternative to a segment that was not chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct RunnerUp {
    /// Its tree, in one line.
    pub shape: String,
    /// The cost of all images; `None` if it is not valid.
    pub cost: Option<Cost>,
    /// Why it was not chosen: how it differs, or what it lacks.
    pub reason: String,
}

/// A part of a schedule whose layers exchange data on the chip; between segments all data pass through DRAM.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Its layers, in the order of the tree.
    pub layers: Vec<usize>,
    /// Its tree, in one line.
    pub shape: String,
    /// The cost of all images.
    pub cost: Cost,
    /// What limits its speed.
    pub bound: Bound,
    /// Cycles that its cores need for all images, without waiting for links and DRAM.
    pub cores: u64,
    /// Cycles that the busiest link needs.
    pub links: u64,
    /// Cycles that DRAM needs.
    pub dram: u64,
    /// The best alternative.
    pub runner_up: Option<RunnerUp>,
}

/// The layer of the given network that a layer of the scheduled one computes, and which part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Index in the given network.
    pub layer: usize,
    /// Output channels.
    pub channels: Range<u64>,
    /// What is computed for them.
    pub share: Share,
}

/// The share of its output channels' work that a layer does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Share {
    /// All of it.
    Whole,
    /// A sum over these input channels.
    Partial(Range<u64>),
    /// The sum of the partial sums, which it reads.
    Sum,
}

/// A schedule.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The network that the tree schedules: the given one, unless it has layers that fit in no buffers
    /// and are split along their channels.
    pub network: Network,
    /// What each layer of `network` computes.
    pub sources: Vec<Source>,
    /// How the layers of the given network are split.
    pub splits: Splits,
    /// The tree, with a scheme at each leaf.
    pub tree: Tree,
    /// Its cost.
    pub evaluation: Evaluation,
    /// Segments in the order of the tree.
    pub segments: Vec<Segment>,
    /// Evaluations of the search.
    pub evaluations: u64,
}

impl std::fmt::Display for Segment {
    /// What was chosen, what limits it, and the best alternative, each in a line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { shape, cost, bound, cores, links, dram, .. } = self;
        writeln!(f, "chosen: {}", shortened(shape))?;
        writeln!(
            f,
            "{}, {:.0} pJ, bound by {}: layers {cores}, links {links}, dram {}",
            counted(cost.latency, "cycle"),
            cost.energy,
            bound.name(),
            counted(*dram, "cycle")
        )?;
        match &self.runner_up {
            None => writeln!(f, "runner-up: none, a layer alone has no other form"),
            Some(RunnerUp { shape, cost: Some(cost), reason }) => writeln!(
                f,
                "runner-up: {}\n{}, {:.0} pJ: {reason}",
                shortened(shape),
                counted(cost.latency, "cycle"),
                cost.energy
            ),
            Some(RunnerUp { shape, cost: None, reason }) => {
                writeln!(f, "runner-up: {}\nnot valid: {reason}", shortened(shape))
            }
        }
    }
}

/// A tree in a line that can be read: of a longer one, its beginning.
fn shortened(shape: &str) -> String {
    const MAX_LENGTH: usize = 240;
    match shape.char_indices().nth(MAX_LENGTH) {
        Some((end, _)) => format!("{} …", &shape[..end]),
        None => shape.to_owned(),
    }
}
