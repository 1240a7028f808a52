//! Static quantisation of graphs of the tensor level to 8 bits.
//!
//! [`Plan`] finds the products and convolutions of `f32` with constant weights, and what lies between them that
//! bytes can pass: sums, maxima and means of windows, reshapes, transpositions, slices. [`Observer`] collects the
//! ranges of the values that become bytes, while the graph runs on samples. [`Plan::quantise`] writes the graph in
//! which these values are `u8` with a scale and a zero point, weights `i8` with a scale for each output channel, and
//! sums of products `i32`: what an ONNX file with the same `QuantizeLinear` and `DequantizeLinear` nodes is imported
//! as. All else stays in `f32`.

mod constants;
mod observer;
mod plan;
mod rewrite;

pub use observer::{Method, Observer, Range};
pub use plan::{Plan, Scope};

use std::collections::BTreeMap;

/// The scales of weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Granularity {
    /// One for each output channel.
    #[default]
    Channel,
    /// One for all of a tensor.
    Tensor,
}

/// How a graph is quantised.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantisation {
    /// What becomes bytes.
    pub scope: Scope,
    /// The scales of weights.
    pub granularity: Granularity,
    /// The ranges of the values of [`Plan::observed`].
    pub ranges: BTreeMap<irc_tl::ValueId, Range>,
}
