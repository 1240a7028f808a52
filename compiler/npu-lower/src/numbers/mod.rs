//! What quantised layers compute: weights, constants, activations.
//!
//! The nodes of a layer are read from its result back to what it reads. Convolutions and window sums are a sum of
//! integers, one product in `f32`, a rounding and a zero point: the NPU computes the same. Functions of bytes are
//! evaluated on all bytes, and on all pairs of bytes for sums; constants of the NPU are accepted only if it computes the
//! same bytes for all. So programs compute the bytes that the graph has.

mod chain;
mod convolution;
mod pieces;
mod single;
mod vector;

use crate::layers::{Layers, Operand, Origin, Trace, located, reduction};
use chain::Chain;
use irc_diag::Diagnostic;
use irc_npu::enums::DataSign;
use irc_npu_cost::{Layer, Op};
use irc_npu_emit::Numbers;
use irc_tensor::Tensor;
use irc_tl::{DType, Graph, ValueId};
use std::collections::BTreeSet;

/// The numbers of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerNumbers {
    /// Its arithmetic; `None` of a layer that only moves bytes.
    pub arithmetic: Option<Numbers>,
    /// Its weights, if it has any.
    pub weights: Option<Weights>,
    /// The type of its result.
    pub dtype: DType,
}

/// The weights of a layer, and the constants of its output channels: `scale (sum + offset) + bias`.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// `i8[K, C, R S]`, with input channels in the order in which the layer reads them.
    pub weight: Given,
    /// `f32[K]`.
    pub scale: Given,
    /// `f32[K]`.
    pub bias: Given,
    /// `i32[K]`.
    pub offset: Given,
}

/// A tensor that the model contains, or that is given when it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// Its elements.
    Known(Tensor),
    /// The name of an input of the graph.
    Input(String),
    /// The shape of a value that the host gives ([`Boundary::weights`](crate::Boundary::weights)).
    Value([i64; 3]),
}

impl Weights {
    /// The tensors by their keys after the name of the layer.
    pub fn tensors(&self) -> [(&'static str, &Given); 4] {
        [
            ("weight", &self.weight),
            ("scale", &self.scale),
            ("bias", &self.bias),
            ("offset", &self.offset),
        ]
    }
}

impl LayerNumbers {
    /// The numbers of some of `count` output channels.
    ///
    /// # Errors
    /// If they are some of weights that are inputs of the graph.
    pub fn part(&self, channels: std::ops::Range<u64>, count: u64) -> Result<Self, String> {
        if channels == (0..count) {
            return Ok(self.clone());
        }
        let range = channels.start as usize..channels.end as usize;
        let part = |given: &Given| match given {
            Given::Known(tensor) => {
                let row = tensor.bytes().len() / count.max(1) as usize;
                let bytes = tensor.bytes().get(range.start * row..range.end * row);
                let mut ty = tensor.ty().clone();
                ty.shape[0] = range.len() as i64;
                let bytes = bytes.ok_or("a part of weights is beyond their end")?;
                Tensor::from_bytes(ty, bytes).map(Given::Known).map_err(|error| error.to_string())
            }
            Given::Input(name) => {
                Err(format!("only some channels of the input '{name}' are weights"))
            }
            Given::Value(_) => Err("only some channels of a given value are weights".into()),
        };
        let weights = match &self.weights {
            Some(Weights { weight, scale, bias, offset }) => Some(Weights {
                weight: part(weight)?,
                scale: part(scale)?,
                bias: part(bias)?,
                offset: part(offset)?,
            }),
            None => None,
        };
        Ok(Self { weights, ..self.clone() })
    }
}

/// The numbers of all layers of a quantised graph.
///
/// # Errors
/// `layer-numbers` for each layer that the NPU does not compute exactly, at its node.
pub fn numbers(graph: &Graph, layers: &Layers) -> Result<Vec<LayerNumbers>, Vec<Diagnostic>> {
    let (mut all, mut found) = (vec![], vec![]);
    for own in each(graph, layers) {
        match own {
            Ok(numbers) => all.push(numbers),
            Err(diagnostic) => found.push(diagnostic),
        }
    }
    if found.is_empty() { Ok(all) } else { Err(found) }
}

/// The numbers of each layer, or why it has none.
pub(crate) fn each(graph: &Graph, layers: &Layers) -> Vec<Result<LayerNumbers, Diagnostic>> {
    let mut trace = Trace::new(graph);
    trace.parameters.clone_from(&layers.parameters);
    let of = |(index, origin): (usize, &Origin)| {
        let layer = &layers.network.nodes()[index].layer;
        let of = Reader { trace: &trace, layers, layer, origin };
        // Not a function of each element, even where one element has the value that all have.
        if let (Op::Pointwise, Some(node)) = (&layer.op, reduction(graph, &origin.nodes)) {
            let why = "functions of each element do not add or compare channels on the NPU";
            return Err(located(Diagnostic::error("layer-numbers", why), node.origin.as_deref()));
        }
        let diagnostic = |why| Diagnostic::error("layer-numbers", why);
        of.numbers().map_err(|why| layers.locate(graph, index, diagnostic(why)))
    };
    layers.origins.iter().enumerate().map(of).collect()
}

/// A layer whose numbers are read.
struct Reader<'r> {
    trace: &'r Trace<'r>,
    layers: &'r Layers,
    layer: &'r Layer,
    origin: &'r Origin,
}

impl Reader<'_> {
    fn numbers(&self) -> Result<LayerNumbers, String> {
        let dtype = self.trace.graph.ty(self.origin.result).dtype;
        let (mut arithmetic, mut weights) = (None, None);
        match &self.layer.op {
            Op::GroupedConv { groups, .. } if self.is_scaling(*groups) => {
                arithmetic = Some(self.scaling()?);
            }
            Op::GroupedConv { .. } if !self.origin.weights.is_empty() => {
                let (numbers, constants) = self.product_of_results()?;
                (arithmetic, weights) = (Some(numbers), Some(constants));
            }
            Op::Conv { .. } | Op::GroupedConv { .. } => {
                let (numbers, constants) = self.convolution()?;
                (arithmetic, weights) = (Some(numbers), Some(constants));
            }
            Op::Pool(_) => arithmetic = Some(self.pool()?),
            Op::Eltwise { .. } => arithmetic = Some(self.sum()?),
            Op::Pointwise => arithmetic = Some(self.function()?),
            Op::Transpose { .. } => {
                self.sign(self.origin.result)?;
            }
        }
        Ok(LayerNumbers { arithmetic, weights, dtype })
    }

    /// The values that the layer reads as activations.
    fn operands(&self) -> Vec<ValueId> {
        self.origin.operands.iter().map(|operand| self.value(operand)).collect()
    }

    fn value(&self, operand: &Operand) -> ValueId {
        match operand {
            Operand::Value { value, .. } => *value,
            Operand::Layer(layer) => self.layers.origins[*layer].result,
        }
    }

    /// The name of an input, none of the activations, of which a value is computed by the nodes after what the layer reads.
    fn parameter_of(&self, value: ValueId) -> Option<&str> {
        let operands: BTreeSet<ValueId> = self.operands().into_iter().collect();
        let (mut pending, mut seen) = (vec![value], BTreeSet::new());
        while let Some(value) = pending.pop() {
            if operands.contains(&value) || !seen.insert(value) {
                continue;
            }
            if self.trace.parameters.contains(&value) {
                let mut inputs = self.trace.graph.inputs.iter();
                return inputs.find(|(_, input)| *input == value).map(|(name, _)| name.as_str());
            }
            if let Some((_, read)) = self.trace.op(value) {
                pending.extend(read);
            }
        }
        None
    }

    /// Whether the layer multiplies each channel by one number, which is a result, and is no product of matrices.
    fn is_scaling(&self, groups: u64) -> bool {
        let is_each = groups == self.layer.output.channels;
        if !is_each || self.layer.window().kernel != [1, 1] || self.origin.weights.len() != 1 {
            return false;
        }
        let chain = Chain::of(self.trace, self.origin.result, &[]);
        !matches!(self.trace.op(chain.from), Some((irc_tl::Op::Matmul { .. }, _)))
    }

    fn sign(&self, value: ValueId) -> Result<DataSign, String> {
        match self.trace.graph.ty(value).dtype {
            DType::I8 => Ok(DataSign::Signed),
            DType::U8 => Ok(DataSign::Unsigned),
            other => Err(format!("its result is not quantised to 8 bits: it is {other}")),
        }
    }

    /// The sign of what is read, which is the same for all operands.
    fn input_sign(&self) -> Result<DataSign, String> {
        let mut signs = vec![];
        for value in self.operands() {
            let dtype = self.trace.graph.ty(value).dtype;
            let sign = self.sign(value);
            signs.push(sign.map_err(|_| format!("what it reads is not 8 bits wide but {dtype}"))?);
        }
        match signs[..] {
            [first, ref rest @ ..] if rest.iter().all(|sign| *sign == first) => Ok(first),
            [] => Err("it reads nothing".into()),
            _ => Err("it reads signed and unsigned bytes".into()),
        }
    }

    /// The channels of what is read in the order of the graph, for each in the order of the layer; `None` if the orders
    /// are the same.
    fn channels(&self) -> Option<Vec<usize>> {
        let count = |operand: &Operand| operand.channels(&self.layers.network);
        let operands = self.origin.operands.iter().zip(&self.origin.starts);
        let all = operands.flat_map(|(operand, start)| *start..start + count(operand));
        let all: Vec<usize> = all.map(|channel| channel as usize).collect();
        let is_same = all.iter().enumerate().all(|(at, channel)| at == *channel);
        (!is_same).then_some(all)
    }
}

/// The limits of the bytes of a sign.
fn limits(sign: DataSign) -> (f64, f64) {
    match sign {
        DataSign::Signed => (-128.0, 127.0),
        DataSign::Unsigned => (0.0, 255.0),
    }
}
