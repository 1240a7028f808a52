//! From graphs of the tensor level to layers of an NPU, and from schedule trees to Gemini schedules.
//!
//! [`layers`] finds the layers of a graph, whatever format it was imported from: the
//! [`Network`](irc_npu_cost::Network) that trees schedule, and for every layer the nodes of the graph that it
//! computes. What the NPU cannot compute is reported for the whole graph at once. The rules are in
//! `docs/npu-models.md`.

mod boundary;
mod division;
mod fingerprint;
mod layers;
mod numbers;
mod priced;
mod program;
mod report;
mod schedule;
mod target;

pub use boundary::Boundary;
pub use division::{Division, Place, Step, divide};
pub use fingerprint::{fingerprint, hash_of_samples};
pub use layers::{Layers, Operand, Origin, Parameters, Pieces, Stored, layers, stated_splits};
pub use numbers::{Given, LayerNumbers, Weights, numbers};
pub use priced::{PricedSchedule, check_stated, price, stated_goal, stated_target};
pub use program::program;
pub use report::{LayerReport, Report, SegmentReport};
pub use schedule::{
    LayerFacts, Scheduled, allocated, in_tiled, known_layers, schedule, stated_layers, tiled,
    untiled,
};
pub use target::{CoreKind, DramRate, Goal, PREFIX, Target};
