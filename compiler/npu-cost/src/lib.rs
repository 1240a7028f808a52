//! The cost model of SET for schedules of tiled accelerators.
//!
//! A [`Machine`] is a mesh of cores with DRAM at its edges, a [`Network`] is a graph of layers, and a
//! [`Tree`] states which layers run when and on which cores. [`evaluate`] computes the cycles and the energy
//! of a tree; [`Model`] does so for many trees, and returns the cost and the scheme of each
//! layer.
//!
//! The model is the published one (Cai et al., "Inter-layer Scheduling Space Definition and
//! Exploration for Tiled Accelerators", ISCA 2023), as its authors' program computes it: sums are in
//! the same order, so that the same trees get the same numbers. Formulas, sources and defects are in
//! `docs/npu-cost.md`.

mod diagnostic;
mod evaluate;
mod initial;
mod layer;
mod layout;
mod leaf;
mod machine;
mod mapper;
mod memo;
mod mesh;
mod moves;
mod network;
pub mod networks;
mod objective;
mod partition;
mod placement;
mod runs;
mod shape;
mod traffic;
mod tree;
mod usage;

pub use diagnostic::Result;
pub use evaluate::{Bound, Cost, Energy, Evaluation, LayerCost, Model, SegmentCost, evaluate};
pub use initial::{initial, layer_by_layer};
pub use layer::{Axis, Layer, Op, Window};
pub use leaf::Need;
pub use machine::{
    Array, Chiplets, DramKind, Eyeriss, Interface, MAX_BYTES, MAX_CORES, Machine, Memory, Package,
    Polar, VectorUnit,
};
pub use mapper::{Mapping, map};
pub use mesh::{Mesh, Place};
pub use network::{MAX_BATCH, Network, Node, Reads};
pub use objective::Objective;
pub use partition::{Partition, Scheme};
pub use placement::{Pieces, Placement};
pub use runs::{Run, runs};
pub use shape::{Region, Shape, Span};
pub use traffic::{Dram, Flow, Traffic};
pub use tree::{Cut, Kind, Tree, parse, parse_placed};
