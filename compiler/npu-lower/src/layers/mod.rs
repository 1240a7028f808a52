//! The layers of a graph.
//!
//! Nodes are visited in order. A value is a constant, a [`View`] of the result of a layer, or a function of the
//! elements of one that is not part of a layer yet. Convolutions, products, pools and functions of several
//! results are layers; a function of each element becomes part of the layer before it if nothing else reads
//! that layer's result, and a layer of its own otherwise. Reshapes and transpositions are views, and layers
//! only where a reader needs other axes.

mod arrange;
mod build;
mod bytes;
mod combine;
mod finish;
mod locate;
mod pieces;
mod product;
mod readers;
mod reduce;
mod roles;
mod source;
mod trace;
mod view;
mod window;

use crate::schedule::LayerFacts;
pub(crate) use build::shapes;
pub(crate) use bytes::is_byte;
use irc_diag::Diagnostic;
use irc_npu_cost::{Network, Region, Span};
use irc_tl::{Graph, ValueId};
pub(crate) use locate::{located, reduction, unique, word};
pub use pieces::{Pieces, stated_splits};
pub(crate) use roles::roles;
use std::collections::BTreeSet;
use std::ops::Range;
pub(crate) use trace::{Trace, bytes_of};
#[cfg(test)]
pub use view::Atom;
pub use view::{Dimension, Whole};
pub(crate) use window::outside;

/// The layers of a graph, and what they are in it.
#[derive(Clone, Debug)]
pub struct Layers {
    /// The layers, of one image.
    pub network: Network,
    /// What each layer computes, by its index in the network.
    pub origins: Vec<Origin>,
    /// Images of the graph's inputs; 1 if they have no batch.
    pub images: u64,
    /// The outputs of the graph, and the layers whose results they are.
    pub outputs: Vec<(String, usize)>,
    /// The tensors that the outputs are computed of, each once.
    pub results: Vec<Stored>,
    /// The inputs of the graph that are weights.
    pub parameters: BTreeSet<ValueId>,
    /// The nodes that quantise inputs, which the host computes.
    pub encoding: Vec<usize>,
}

/// A value of the graph as the NPU stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The value.
    pub value: ValueId,
    /// The axes of its dimensions.
    pub dims: Vec<Dimension>,
    /// The tensors that have its channels.
    pub parts: Vec<Operand>,
    /// Which channel of the value each channel of the parts, one after the other, is. Nothing reads the others.
    pub order: Vec<u64>,
    /// The channels of the value.
    pub channels: u64,
}

/// What a layer computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The nodes of the graph, by index, ascending. Those of a layer of which only some channels are computed
    /// are nodes of other layers too.
    pub nodes: Vec<usize>,
    /// The value of the graph that the layer's result is, up to the order of its elements.
    pub result: ValueId,
    /// What the input consists of, in the order of its channels: inputs of the graph come first, then layers
    /// in ascending order.
    pub operands: Vec<Operand>,
    /// The first channel of each operand in the order of the graph.
    pub starts: Vec<u64>,
    /// The weights, unless they are results of layers.
    pub parameters: Option<Parameters>,
    /// What else serves as weights, in the order of its channels.
    pub weights: Vec<Operand>,
    /// Rows, then columns, that the first window begins before the input.
    pub padding: [u64; 2],
}

/// A part of the input of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Channels of an input of the graph.
    Value {
        /// The value of the graph.
        value: ValueId,
        /// Its name.
        name: String,
        /// The channels: all, unless a piece of a layer reads them.
        channels: Range<u64>,
        /// The axes of the dimensions of the value.
        dims: Vec<Dimension>,
    },
    /// The result of a layer.
    Layer(usize),
}

impl Operand {
    /// The number of its channels, in a network.
    pub fn channels(&self, network: &Network) -> u64 {
        match self {
            Self::Value { channels, .. } => channels.end - channels.start,
            Self::Layer(layer) => network.nodes()[*layer].layer.output.channels,
        }
    }

    /// The layer, if it is the result of one.
    pub fn layer(&self) -> Option<usize> {
        match self {
            Self::Layer(layer) => Some(*layer),
            Self::Value { .. } => None,
        }
    }
}

/// Constant weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// What they are.
    pub filters: Filters,
    /// Those of its output channels that the layer computes.
    pub channels: Range<u64>,
}

/// The filters of a convolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filters {
    /// A value of the graph.
    Value {
        /// The value.
        value: ValueId,
        /// Of a matrix: the dimensions that are output and input channels. Others are filters.
        matrix: Option<[usize; 2]>,
    },
    /// Each output channel is one input channel of its group: 1 for the one of this number, and 0 for others.
    Single(Vec<u64>),
    /// The only output channel is the sum of all that its windows read.
    Sum,
}

impl Parameters {
    /// All channels of a value, of which `matrix` are the dimensions that are output and input channels.
    pub fn new(value: ValueId, matrix: Option<[usize; 2]>, count: u64) -> Self {
        Self { filters: Filters::Value { value, matrix }, channels: 0..count }
    }

    /// One output channel, the sum of all that its windows read.
    pub fn sum() -> Self {
        Self { filters: Filters::Sum, channels: 0..1 }
    }

    /// Output channels that are single input channels of their group.
    pub fn single(channels: Vec<u64>) -> Self {
        let count = channels.len() as u64;
        Self { filters: Filters::Single(channels), channels: 0..count }
    }
}

impl Layers {
    /// The rows and columns of the input of a layer up to the last ones that it reads: windows may leave out some at the end.
    pub fn rows_and_columns_read(&self, layer: usize) -> [u64; 2] {
        let node = &self.network.nodes()[layer];
        let made = node.layer.output;
        let [channels, images, rows, columns] =
            [made.channels, 1, made.rows, made.columns].map(Span::upto);
        let whole = Region { channels, images, rows, columns };
        let read = node.layer.input_region(whole, node.input, self.origins[layer].padding);
        [read.rows.to, read.columns.to]
    }

    /// What schedules need to know about the layers.
    pub fn facts(&self) -> Vec<LayerFacts> {
        let parts = self.results.iter().flat_map(|result| &result.parts);
        let outputs: BTreeSet<usize> = parts.filter_map(Operand::layer).collect();
        let facts = |(layer, origin): (usize, &Origin)| {
            let given = origin.operands.iter().filter_map(|operand| match operand {
                Operand::Value { name, channels, .. } => Some((name.clone(), channels.clone())),
                Operand::Layer(_) => None,
            });
            LayerFacts {
                padding: origin.padding,
                given: given.collect(),
                is_output: outputs.contains(&layer),
            }
        };
        self.origins.iter().enumerate().map(facts).collect()
    }

    /// A diagnostic at the node of the graph that a layer is for.
    pub fn locate(&self, graph: &Graph, layer: usize, diagnostic: Diagnostic) -> Diagnostic {
        let node = self.origins.get(layer).and_then(|origin| origin.nodes.first());
        let origin = node.and_then(|node| graph.nodes.get(*node)?.origin.clone());
        located(diagnostic, origin.as_deref())
    }
}

/// The layers of a graph.
///
/// # Errors
/// All that the NPU cannot compute: `layer-open-size` for inputs whose sizes are not known, `layer-operator` for
/// nodes that are no layers, `layer-axes` for nodes that need another order of axes than the NPU can
/// provide, and for layers those of [`Network::add_reading`]. Diagnostics have the paths of nodes.
pub fn layers(graph: &Graph) -> Result<Layers, Vec<Diagnostic>> {
    find(graph).map_err(|rejected| rejected.found)
}

/// As [`layers`], with the nodes of what the NPU cannot compute.
pub(crate) fn find(graph: &Graph) -> Result<Layers, Rejected> {
    let (found, outputs) = build::build(graph)?;
    finish::finish(&found, &outputs)
}

/// What the NPU cannot compute.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rejected {
    /// Its nodes; none if it is all of the graph.
    pub nodes: Vec<usize>,
    /// Why.
    pub found: Vec<Diagnostic>,
}

/// The error of a graph without layers.
pub(crate) fn nothing() -> Diagnostic {
    Diagnostic::error("layer-operator", "the model has nothing that the NPU computes")
}
