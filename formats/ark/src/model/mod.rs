//! The model file: nodes, ops, tensors, buffers.
//!
//! [`parse`] reads text and accepts older and newer generations of the format with a warning;
//! [`validate`] checks a [`Model`] from any source, [`check_ranks`] those of several ranks
//! together; [`write()`] writes ARK's own layout.
//!
//! Identifiers are plain integers: a node id identifies a [`Node`], a tensor id a [`Tensor`]
//! definition, a buffer id a memory space. Tensors with different ids may share a buffer.

mod canonical;
mod hazard;
pub(crate) mod links;
mod number;
mod old_matmul;
mod op;
mod origin;
mod parse;
pub(crate) mod read;
mod region;
pub mod shape;
mod tensor;
pub(crate) mod validate;
pub(crate) mod write;

pub use hazard::{Hazard, HazardKind, hazards};
pub use links::check_ranks;
pub use op::{Arg, ArgKind, Argument, Elements, Exchange, Family, Float, Lane, Op, OpKind, Row};
pub use origin::Origin;
pub use parse::{Document, Options, parse};
pub use region::{Region, buffer_bytes, element_offsets};
pub use tensor::{Buffer, DataType, Tensor};
pub use validate::{validate, validate_graph, validate_op};
pub use write::write;

/// A model of one rank.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Model {
    /// Rank this model runs on.
    pub rank: i64,
    /// Number of ranks.
    pub world_size: i64,
    /// Nodes in creation order, which is ARK's order of execution.
    pub nodes: Vec<Node>,
}

/// One node of the computation graph.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// Unique id; ARK writes the index of the node.
    pub id: u64,
    /// Ids of nodes whose results this node uses. ARK's order differs between runs.
    pub producers: Vec<u64>,
    /// Ids of nodes that use this node's results.
    pub consumers: Vec<u64>,
    /// What the node computes.
    pub op: Op,
}
