//! Networks: layers and their inputs.

use crate::diagnostic::{Result, error};
use crate::layer::{Layer, Op};
use crate::shape::{Region, Shape};

// With these limits and those of the machine, every count of the model fits into 63 bits: bytes over
// links are the product of layers, batch, cores, hops and the size of a global buffer.

/// Maximum number of layers of a network.
const MAX_LAYERS: usize = 1 << 10;
/// Maximum extent of an axis.
const MAX_EXTENT: u64 = 1 << 20;
/// Maximum number of elements of a tensor of one image.
const MAX_VOLUME: u64 = 1 << 32;
/// Maximum number of operations of a layer per image.
const MAX_OPERATIONS: u128 = 1 << 42;
/// Maximum number of images that a network is run on at once.
pub const MAX_BATCH: u64 = 1 << 10;

/// A layer with its inputs.
#[derive(Clone, Debug)]
pub struct Node {
    /// The layer.
    pub layer: Layer,
    /// Layers whose results are its input, ascending: their channels are concatenated.
    pub inputs: Vec<usize>,
    /// Layers whose results are its weights, ascending; empty if the weights are constants.
    pub weights: Vec<usize>,
    /// Channels of the input that come from outside the network, before those of `inputs`.
    pub external: u64,
    /// Shape of the input without padding, as far as the layer reads it.
    pub input: Shape,
    /// Padding before the first row and column.
    pub padding: [u64; 2],
    /// Whether another layer reads the result.
    pub is_read: bool,
}

impl Node {
    /// The layers whose results it reads, as input or weights.
    pub fn reads(&self) -> impl Iterator<Item = usize> {
        self.inputs.iter().chain(&self.weights).copied()
    }

    /// Whether its weights are activations.
    pub fn has_made_weights(&self) -> bool {
        !self.weights.is_empty()
    }

    /// The part of the input that a part of the result needs.
    pub fn input_region(&self, part: Region) -> Region {
        self.layer.input_region(part, self.input, self.padding)
    }
}

/// The inputs of a layer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reads<'a> {
    /// Layers whose results are the input.
    pub inputs: &'a [usize],
    /// Input from outside the network, before that of `inputs`.
    pub external: Option<Shape>,
    /// Layers whose results are the weights.
    pub weights: &'a [usize],
}

/// A network: a list of layers in topological order.
#[derive(Clone, Debug)]
pub struct Network {
    name: String,
    nodes: Vec<Node>,
}

impl Network {
    /// A network without layers.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), nodes: vec![] }
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Layers in the order they were added; their index identifies them.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The index of the layer with a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.layer.name == name)
    }

    /// Adds a layer with inputs.
    ///
    /// # Errors
    /// As [`Network::add_reading`].
    pub fn add(&mut self, layer: Layer, inputs: &[usize]) -> Result<usize> {
        self.add_reading(layer, Reads { inputs, ..Reads::default() })
    }

    /// Adds a layer, and returns its index.
    ///
    /// # Errors
    /// `cost-layer` if the layer by itself is invalid or too large, `cost-network` if its inputs do
    /// not match, or its name is taken.
    pub fn add_reading(&mut self, layer: Layer, reads: Reads<'_>) -> Result<usize> {
        let node = self.node_of(layer, reads)?;
        for read in node.reads() {
            self.nodes[read].is_read = true;
        }
        self.nodes.push(node);
        Ok(self.nodes.len() - 1)
    }

    /// The node that [`Network::add_reading`] would add.
    ///
    /// # Errors
    /// As [`Network::add_reading`].
    pub fn node_of(&self, layer: Layer, reads: Reads<'_>) -> Result<Node> {
        check_layer(&layer)?;
        let (mut inputs, mut weights) = (reads.inputs.to_vec(), reads.weights.to_vec());
        inputs.sort_unstable();
        weights.sort_unstable();
        self.check_places(&layer, &inputs, &weights)?;
        let given = self.join(&layer, &inputs, reads.external)?;
        let (input, padding) = fit(&layer, given)?;
        self.check_weights(&layer, &weights)?;
        let external = reads.external.map_or(0, |shape| shape.channels);
        Ok(Node { layer, inputs, weights, external, input, padding, is_read: false })
    }

    fn check_places(&self, layer: &Layer, inputs: &[usize], weights: &[usize]) -> Result<()> {
        let mut all = inputs.iter().chain(weights);
        let twice = |places: &[usize]| places.windows(2).any(|pair| pair[0] == pair[1]);
        let message = if self.nodes.len() == MAX_LAYERS {
            format!("expected at most {MAX_LAYERS} layers")
        } else if self.find(&layer.name).is_some() {
            "another layer has that name".into()
        } else if all.any(|place| *place >= self.nodes.len()) {
            "reads a layer that does not exist".into()
        } else if twice(inputs) || twice(weights) {
            "reads the same layer twice".into()
        } else {
            return Ok(());
        };
        Err(mismatch(layer, message))
    }

    /// All inputs, concatenated along channels.
    fn join(&self, layer: &Layer, inputs: &[usize], external: Option<Shape>) -> Result<Shape> {
        let made = inputs.iter().map(|place| self.nodes[*place].layer.output);
        let mut all = external.into_iter().chain(made);
        let Some(mut joined) = all.next() else {
            return Err(mismatch(layer, "reads nothing"));
        };
        check_operands(layer, 0, joined)?;
        for next in all {
            check_operands(layer, joined.channels, next)?;
            if (next.rows, next.columns) != (joined.rows, joined.columns) {
                return Err(mismatch(layer, "reads inputs of different rows and columns"));
            }
            joined.channels += next.channels;
        }
        Ok(joined)
    }

    fn check_weights(&self, layer: &Layer, weights: &[usize]) -> Result<()> {
        if weights.is_empty() {
            return Ok(());
        }
        let Some(wanted) = layer.weights().filter(|_| layer.splits_channels()) else {
            return Err(mismatch(layer, "only grouped convolutions have activations as weights"));
        };
        let made = || weights.iter().map(|place| self.nodes[*place].layer.output);
        let same = made().all(|of| (of.rows, of.columns) == (wanted.rows, wanted.columns));
        match same && made().map(|of| of.channels).sum::<u64>() == wanted.channels {
            true => Ok(()),
            false => Err(mismatch(layer, format!("needs weights of {}", text(wanted)))),
        }
    }
}

/// Rejects an input that crosses operands of an element-wise layer.
fn check_operands(layer: &Layer, before: u64, next: Shape) -> Result<()> {
    let Op::Eltwise { .. } = layer.op else { return Ok(()) };
    let each = layer.output.channels;
    match before % each + next.channels <= each {
        true => Ok(()),
        false => Err(mismatch(layer, "an input is in two operands")),
    }
}

/// The part of the input that is read, and the padding around it.
fn fit(layer: &Layer, given: Shape) -> Result<(Shape, [u64; 2])> {
    let needs = layer.needs();
    let fits = match layer.op {
        Op::Conv { .. } | Op::GroupedConv { .. } | Op::Pool(_) => fit_window(layer, given),
        Op::Eltwise { .. } | Op::Pointwise | Op::Transpose { .. } => {
            (given == needs).then_some((given, [0, 0]))
        }
    };
    fits.ok_or_else(|| {
        let is_smaller = given.rows < needs.rows || given.columns < needs.columns;
        let why = match given.channels == needs.channels && is_smaller {
            true => ": windows that read padding only are not supported",
            false => "",
        };
        mismatch(layer, format!("needs an input of {}, found {}{why}", text(needs), text(given)))
    })
}

/// Checks the window: after the last one there is no room for another, and it extends beyond the input on either side by
/// less than its kernel.
fn fit_window(layer: &Layer, given: Shape) -> Option<(Shape, [u64; 2])> {
    let (needs, window) = (layer.needs(), layer.window());
    let along = |axis: usize, given: u64, needs: u64| {
        if given > needs {
            return (given - needs < window.stride[axis]).then_some((needs, 0));
        }
        let beyond = needs - given;
        (beyond <= 2 * (window.kernel[axis] - 1)).then_some((given, beyond / 2))
    };
    let (rows, above) = along(0, given.rows, needs.rows)?;
    let (columns, left) = along(1, given.columns, needs.columns)?;
    let input = Shape::new(needs.channels, rows, columns);
    (given.channels == needs.channels).then_some((input, [above, left]))
}

fn check_layer(layer: &Layer) -> Result<()> {
    let window = layer.window();
    let Shape { channels, rows, columns } = layer.output;
    let mut extents = vec![("channels", channels), ("rows", rows), ("columns", columns)];
    extents.extend(window.kernel.map(|extent| ("window", extent)));
    extents.extend(window.stride.map(|extent| ("stride", extent)));
    let (each, groups) = match layer.op {
        Op::Conv { channels, .. } => (channels, 1),
        Op::GroupedConv { channels, groups, .. } => (channels, groups),
        Op::Eltwise { operands } => (operands, 1),
        Op::Pool(_) | Op::Pointwise | Op::Transpose { .. } => (1, 1),
    };
    extents.extend([("input channels", each), ("groups", groups)]);
    let wrong = extents.iter().find(|(_, extent)| !(1..=MAX_EXTENT).contains(extent));
    if let Some((what, extent)) = wrong {
        let message = format!(
            "layer {}: expected extents from 1 to {MAX_EXTENT}, found {extent} ({what})",
            layer.name
        );
        return Err(error("cost-layer", message));
    }
    if each % groups != 0 || !channels.is_multiple_of(groups) {
        let message =
            format!("layer {}: the channels are not divisible by {groups} groups", layer.name);
        return Err(error("cost-layer", message));
    }
    check_op(layer)?;
    check_size(layer, each)
}

fn check_op(layer: &Layer) -> Result<()> {
    match layer.op {
        Op::Transpose { order: [a, b, c] } if a == b || b == c || a == c => {
            Err(error("cost-layer", format!("layer {}: an axis occurs twice", layer.name)))
        }
        _ => Ok(()),
    }
}

/// The counts of the model are products of these with few cores and hops.
fn check_size(layer: &Layer, each: u64) -> Result<()> {
    let product = |of: &[u64]| of.iter().map(|extent| u128::from(*extent)).product::<u128>();
    let [kernel_rows, kernel_columns] = layer.window().kernel;
    let Shape { channels, rows, columns } = layer.output;
    let output = [channels, rows, columns];
    let operations = product(&output) * product(&[each, kernel_rows, kernel_columns]);
    let weights = product(&[each, kernel_rows, kernel_columns, channels]);
    if operations > MAX_OPERATIONS || weights.max(product(&output)) > u128::from(MAX_VOLUME) {
        return Err(error("cost-layer", format!("layer {} has too many operations", layer.name)));
    }
    let needs = layer.needs();
    match product(&[needs.channels, needs.rows, needs.columns]) > u128::from(MAX_VOLUME) {
        true => Err(error("cost-layer", format!("layer {} reads too many elements", layer.name))),
        false => Ok(()),
    }
}

fn mismatch(layer: &Layer, message: impl AsRef<str>) -> Box<irc_diag::Diagnostic> {
    error("cost-network", format!("layer {}: {}", layer.name, message.as_ref()))
}

fn text(Shape { channels, rows, columns }: Shape) -> String {
    format!("{channels} by {rows} by {columns}")
}
