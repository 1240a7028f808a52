//! The pieces of layers that fit no buffers.

use super::{Layers, Operand, Origin, Parameters, Stored};
use irc_diag::Diagnostic;
use irc_npu_cost::{Network, Node, Op};
use irc_npu_schedule::{Share, Source, Split, Splits, input_channels, pieces};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Layers, of which some are pieces of the layers of a graph.
#[derive(Clone, Debug)]
pub struct Pieces {
    /// The layers.
    pub layers: Arc<Layers>,
    /// The layer of the graph that each of them is, or which piece of it.
    pub sources: Vec<Source>,
}

impl Layers {
    /// These layers in pieces.
    ///
    /// # Errors
    /// `schedule-split` for pieces that they cannot have; `cost-…` if there would be too many layers.
    pub fn pieces(&self, splits: &Splits) -> Result<Pieces, Box<Diagnostic>> {
        let (network, sources) = pieces(&self.network, splits)?;
        let nodes = network.nodes().iter().zip(&sources);
        let origins = nodes.map(|(node, source)| self.origin(node, source, &sources)).collect();
        // The layers with the result of each layer of the graph.
        let mut made: Vec<Vec<usize>> = vec![vec![]; self.origins.len()];
        for (index, source) in sources.iter().enumerate() {
            if !matches!(source.share, Share::Partial(_)) {
                made[source.layer].push(index);
            }
        }
        let outputs = self.outputs.iter();
        let outputs = outputs
            .flat_map(|(name, layer)| made[*layer].iter().map(|piece| (name.clone(), *piece)));
        let parts = |part: &Operand| match part {
            Operand::Layer(layer) => made[*layer].iter().copied().map(Operand::Layer).collect(),
            Operand::Value { .. } => vec![part.clone()],
        };
        let results = self.results.iter().map(|stored| Stored {
            parts: stored.parts.iter().flat_map(parts).collect(),
            ..stored.clone()
        });
        let layers = Layers {
            origins,
            outputs: outputs.collect(),
            results: results.collect(),
            network,
            images: self.images,
            parameters: self.parameters.clone(),
            encoding: self.encoding.clone(),
        };
        Ok(Pieces { layers: Arc::new(layers), sources })
    }

    /// What a piece computes.
    fn origin(&self, piece: &Node, source: &Source, sources: &[Source]) -> Origin {
        let whole = &self.origins[source.layer];
        let layers = |inputs: &[usize]| inputs.iter().copied().map(Operand::Layer).collect();
        if source.share == Share::Sum {
            let each = piece.layer.output.channels;
            return Origin {
                operands: layers(&piece.inputs),
                starts: (0..piece.inputs.len() as u64).map(|operand| operand * each).collect(),
                parameters: None,
                weights: vec![],
                padding: [0, 0],
                ..whole.clone()
            };
        }
        let parameters = whole.parameters.as_ref().map(|all| {
            let [start, end] = [source.channels.start, source.channels.end];
            let first = all.channels.start;
            Parameters { filters: all.filters.clone(), channels: first + start..first + end }
        });
        let (operands, starts) = self.operands(piece, source, sources).into_iter().unzip();
        let weights = layers(&piece.weights);
        Origin { operands, starts, parameters, weights, ..whole.clone() }
    }

    /// What a piece reads, each with its first channel in the order of the graph.
    fn operands(&self, piece: &Node, source: &Source, sources: &[Source]) -> Vec<(Operand, u64)> {
        let node = &self.network.nodes()[source.layer];
        let origin = &self.origins[source.layer];
        let needed = match &source.share {
            Share::Partial(channels) => channels.clone(),
            _ => input_channels(&node.layer, &source.channels),
        };
        // Operands of element-wise layers have the same channels.
        let each = match node.layer.op {
            Op::Eltwise { .. } => node.layer.output.channels,
            _ => u64::MAX,
        };
        let all = origin.operands.iter().zip(origin.starts.iter().copied());
        let mut found = vec![];
        let mut first = 0;
        for (operand, start) in all.clone() {
            let Operand::Value { value, name, channels, dims } = operand else { break };
            let count = channels.end - channels.start;
            let own = shared(&(first..first + count), &needed);
            if let Some(Range { start: from, end: to }) = own {
                let channels = channels.start + from - first..channels.start + to - first;
                let (name, dims) = (name.clone(), dims.clone());
                let operand = Operand::Value { value: *value, name, channels, dims };
                found.push((operand, start + from - first));
            }
            first = (first + count) % each;
        }
        let mut rest = all.filter_map(|(operand, start)| match operand {
            Operand::Layer(layer) => Some((*layer, start)),
            Operand::Value { .. } => None,
        });
        // The pieces of each operand are in order.
        let mut last: Option<(usize, u64, u64)> = None;
        for &input in &piece.inputs {
            let Source { layer, channels, .. } = &sources[input];
            let same = last.filter(|(known, _, from)| known == layer && *from < channels.start);
            let mut next = || rest.by_ref().find(|(known, _)| known == layer);
            let start = match same {
                Some((_, start, _)) => start,
                None => next().map_or(0, |(_, start)| start),
            };
            last = Some((*layer, start, channels.start));
            found.push((Operand::Layer(input), start + channels.start));
        }
        found
    }
}

/// The pieces into which layers are split in a schedule or a tree, by the names of its layers. Other names are left out.
pub fn stated_splits<'n>(names: impl Iterator<Item = &'n str>, network: &Network) -> Splits {
    let names: BTreeSet<&str> = names.collect();
    let places: BTreeMap<&str, usize> =
        network.nodes().iter().enumerate().map(|(at, node)| (&*node.layer.name, at)).collect();
    let mut all = Splits::default();
    let mut sums: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
    for name in names {
        let Some((layer, channel, sum)) = piece(name, &places) else { continue };
        let split = all.0.entry(layer).or_default();
        split.cuts.extend(channel.filter(|channel| *channel > 0));
        sums.entry(layer).or_default().extend(sum);
    }
    for (layer, split) in &mut all.0 {
        split.sums = sums.get(layer).map_or(1, |sums| sums.len().max(1) as u64);
    }
    all.0.retain(|_, split| *split != Split::default());
    all
}

/// The layer of which a name is that of a piece, `LAYER.CHANNEL`, `LAYER+INPUT` or `LAYER.CHANNEL+INPUT`, with its first
/// output channel and its first input channel.
fn piece(name: &str, places: &BTreeMap<&str, usize>) -> Option<(usize, Option<u64>, Option<u64>)> {
    let last = |name: &'_ str, mark: char| -> Option<(usize, u64)> {
        let (outer, number) = name.rsplit_once(mark)?;
        Some((outer.len(), number.parse().ok()?))
    };
    let channels = |name: &str| match (places.get(name), last(name, '.')) {
        (Some(layer), _) => Some((*layer, None)),
        (None, Some((end, channel))) => Some((*places.get(&name[..end])?, Some(channel))),
        (None, None) => None,
    };
    if places.contains_key(name) {
        return None;
    }
    let partial = last(name, '+').and_then(|(end, sum)| {
        let (layer, channel) = channels(&name[..end])?;
        Some((layer, channel, Some(sum)))
    });
    partial.or_else(|| channels(name).map(|(layer, channel)| (layer, channel, None)))
}

/// What two ranges share, if anything.
fn shared(a: &Range<u64>, b: &Range<u64>) -> Option<Range<u64>> {
    let both = a.start.max(b.start)..a.end.min(b.end);
    (!both.is_empty()).then_some(both)
}
