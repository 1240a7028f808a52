//! Options of the search.

use irc_npu_cost::Objective;

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
    /// Maximum number of evaluations of segments.
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
        Self { objective: Objective::EDP, budget: 400_000, threads: 2, seed: 1, progress: None }
    }
}
