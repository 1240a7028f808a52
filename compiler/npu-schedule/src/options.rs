//! Options of the search.

use irc_npu_cost::{Machine, Network, Objective};

/// Evaluations for any network on few cores.
const EVALUATIONS: u64 = 80_000;
/// And for each layer.
const EVALUATIONS_PER_LAYER: u64 = 3000;
/// The number of layers up to which schedules for other objectives are searched as well: searches of small networks end in
/// local minima that those of others avoid.
pub const FEW_LAYERS: u64 = 16;
/// The objectives of which schedules of small networks are searched, whatever is requested: so a schedule for one is not
/// worse by it than those for the others.
pub const OBJECTIVES: [Objective; 3] =
    [Objective::EDP, Objective { energy: 0, delay: 1 }, Objective { energy: 1, delay: 0 }];
/// The number of evaluations for each layer above which these networks have no more.
const MAX_EVALUATIONS_PER_LAYER: u64 = 30_000;
/// The number of layers up to which there are more evaluations for each.
const MAX_LAYERS: u64 = 160;
/// The number of cores up to which evaluations are not fewer.
const FEW_CORES: u64 = 48;

/// The state of a running search.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Evaluations so far.
    pub evaluations: u64,
    /// Evaluations of the whole search.
    pub budget: u64,
    /// The objective of the best schedule so far.
    pub best: f64,
}

/// Options of the search.
#[derive(Clone, Copy)]
pub struct Options<'p> {
    /// What is minimised.
    pub objective: Objective,
    /// Number of evaluations of segments, of which one with more than 128 layers counts in proportion; 0 for a number that
    /// fits the network and the machine. Those of the first schedule, a few dozen for each layer, are made in any case.
    pub budget: u64,
    /// Threads; the result does not depend on them.
    pub threads: usize,
    /// Seed of the local search.
    pub seed: u64,
    /// Called from time to time, by the thread that called the search.
    pub progress: Option<&'p dyn Fn(Progress)>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { objective: Objective::EDP, budget: 0, threads: 2, seed: 1, progress: None }
    }
}

impl Options<'_> {
    /// The number of evaluations for a network on a machine. Evaluations take longer the more cores
    /// there are, so that there are fewer of them.
    pub fn evaluations(&self, network: &Network, machine: &Machine) -> u64 {
        if self.budget != 0 {
            return self.budget;
        }
        let (layers, cores) = (network.nodes().len() as u64, machine.mesh.cores());
        let mut all = EVALUATIONS + EVALUATIONS_PER_LAYER * layers.min(MAX_LAYERS);
        if layers <= FEW_LAYERS {
            all = (OBJECTIVES.len() as u64 * all).min(MAX_EVALUATIONS_PER_LAYER * layers);
        }
        all * FEW_CORES / cores.max(FEW_CORES)
    }
}
