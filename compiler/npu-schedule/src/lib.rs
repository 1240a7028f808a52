//! Schedules of networks for tiled accelerators: a deterministic search over resource allocation trees.
//!
//! [`schedule`] finds a [`Tree`] for a [`Network`] on a [`Machine`] that minimises an [`Objective`] of the
//! energy and the delay which `irc-npu-cost` computes. The result depends on the network, the machine,
//! the batch, the objective, the budget and the seed only: not on clocks, nor on the number of threads.
//! The algorithm is described in `docs/npu-schedule.md`.

mod anneal;
mod bound;
mod explain;
mod moves;
mod options;
mod random;
mod recombine;
mod result;
mod schedule;
mod search;
mod segmentation;
mod split;
mod splits;
mod state;

pub use bound::{Bounds, LowerBound};
pub use options::{Options, Progress};
pub use result::{RunnerUp, Schedule, Segment, Share, Source};
pub use schedule::{explain_tree, schedule};
pub use split::{input_channels, pieces};
pub use splits::{Split, Splits};

#[cfg(doc)]
use irc_npu_cost::{Machine, Network, Objective, Tree};
