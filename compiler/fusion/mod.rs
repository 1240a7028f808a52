//! Fusion: groups the ops of a function into kernels.
//!
//! Four steps, each a function of plain data:
//!
//! 0. [`simplify()`] rewrites the [`Graph`] by the exact algebra rules; then reshapes of products are moved behind
//!    elementwise ops (`sink`).
//! 1. [`segments`] cuts the [`Graph`] at edges to which no rule applies.
//! 2. [`fuse_segment`] finds all legal fusions of one segment with egg (the rules are one table, [`RULES`])
//!    and searches for the cheapest kernels under the cost model of [`Cost`].
//! 3. The pass [`Fuse`] writes the groups into the function, and joins those of attention (`attention`); [`explain`] describes the decisions as a
//!    [`FusionReport`].
//!
//! Results do not depend on a clock or on the order of a hash map: egg runs with its `deterministic`
//! feature and limits on terms and iterations, and costs are integers.
//!
//! Segments are decided independently, so a driver may cache [`fuse_segment`] by [`Segment`].
mod algebra;
mod attention;
mod cost;
mod emit;
mod epilogue;
mod explain;
mod form;
mod graph;
mod inline;
mod loops;
mod open;
mod pass;
mod plan;
mod report;
mod row_steps;
mod rules;
mod segment;
mod simplify;
mod sink;
mod smallest;
mod term;
mod wrap;

pub use algebra::{AlgebraRule, algebra};
pub(crate) use attention::{causal, prefix};
pub use cost::{Cost, LAUNCH, WORK_PER_BYTE};
pub use form::{Form, Kind};
pub use graph::{
    Function, Graph, Node, NodeId, ValueId, is_view, read_function, read_open_function,
};
pub use loops::WhySlow;
pub use pass::{Fuse, explain, fuse_function, fuse_function_with};
pub use plan::{Kernel, Plan};
pub use report::{
    AttentionReport, FusionReport, GroupReport, LoopsReport, OpName, Simplification, Step,
    UnfusedEdge, WhyNot,
};
pub use rules::{RULES, Rule};
pub use segment::{Edge, GraphSegment, MAX_NODES, Segment, SegmentNode, Source, segments};
pub use simplify::{SimplifyTl, simplify, simplify_function};
pub use term::Firing;

use std::collections::BTreeSet;

/// The fusion of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFusion {
    /// The kernels.
    pub plan: Plan,
    /// Per node: the sets of operands that may be computed in the same kernel.
    pub variants: Vec<Vec<u32>>,
    /// Every rule that was applied.
    pub firings: BTreeSet<Firing>,
}

/// Chooses the kernels of one segment.
pub fn fuse_segment(segment: &Segment) -> SegmentFusion {
    let (variants, firings) = rules::saturate(segment);
    let plan = plan::search(segment, &variants);
    SegmentFusion { plan, variants, firings }
}
