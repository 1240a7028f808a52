//! From graphs of the tensor level to layers of an NPU, and from schedule trees to Gemini schedules.
//!
//! [`layers`] finds the layers of a graph, whatever format it was imported from: the
//! [`Network`](irc_npu_cost::Network) that trees schedule, and for every layer the nodes of the graph that it
//! computes. What the NPU cannot compute is reported for the whole graph at once. The rules are in
//! `docs/npu-models.md`.

mod layers;
mod priced;
mod report;
mod schedule;
mod target;

pub use layers::{Layers, Operand, Origin, Parameters, layers};
pub use priced::{PricedSchedule, price};
pub use report::{LayerReport, Report, SegmentReport};
pub use schedule::{LayerFacts, Scheduled, allocated, known_layers, schedule, stated_layers};
pub use target::{CoreKind, DramRate, Goal, PREFIX, Target};
