//! The network of the layers that were found.

use super::build::Build;
use super::bytes::is_byte;
use super::locate::{located, unique, word};
use super::source::{Draft, Kind, Source, SourceId};
use super::view::Dimension;
use super::{Layers, Operand, Origin, Rejected, Stored, nothing};
use irc_npu_cost::{Network, Reads, Shape};
use irc_tl::ValueId;
use std::collections::BTreeSet;

/// The network of all layers that outputs depend on.
pub fn finish(build: &Build<'_>, outputs: &[(String, SourceId)]) -> Result<Layers, Rejected> {
    let mut wanted = vec![false; build.drafts.len()];
    let mut pending: Vec<SourceId> = outputs.iter().map(|(_, source)| *source).collect();
    while let Some(source) = pending.pop() {
        match &build.sources[source].kind {
            Kind::Joined(parts) => pending.extend(parts),
            Kind::Layer(draft) if !wanted[*draft] => {
                wanted[*draft] = true;
                pending
                    .extend(build.drafts[*draft].input.iter().chain(&build.drafts[*draft].weights));
            }
            _ => {}
        }
    }
    let mut order: Vec<usize> = (0..build.drafts.len()).filter(|draft| wanted[*draft]).collect();
    order.sort_by_key(|draft| (build.drafts[*draft].node, *draft));
    let mut roots = vec![None; build.drafts.len()];
    for source in &build.sources {
        if let Kind::Layer(draft) = source.kind {
            roots[draft] = Some(source.root);
        }
    }
    let mut made = Finished {
        build,
        roots,
        network: Network::new("model"),
        origins: vec![],
        layers: vec![None; build.drafts.len()],
        names: (build.graph.inputs.iter().map(|(name, _)| name))
            .chain(build.encoding.results.values())
            .cloned()
            .collect(),
        rejected: Rejected::default(),
    };
    order.into_iter().for_each(|draft| made.add(draft));
    let mut last = vec![];
    let mut results: Vec<Stored> = vec![];
    for (name, source) in outputs {
        let mut parts = vec![];
        made.parts(*source, &mut parts);
        for part in &parts {
            if let Operand::Layer(layer) = part {
                last.push((name.clone(), *layer));
            }
        }
        for source in build.stored(*source) {
            let Source { root: value, .. } = build.sources[source];
            if results.iter().all(|known| known.value != value) {
                let mut parts = vec![];
                made.parts(source, &mut parts);
                results.push(Stored { value, dims: made.dims(source), parts });
            }
        }
    }
    if made.rejected.found.is_empty() && made.origins.is_empty() {
        made.rejected.found.push(nothing());
    }
    let inputs = build.graph.inputs.iter().map(|(_, value)| *value);
    let parameters = inputs.filter(|value| !build.roles[value.0].is_activation).collect();
    let Finished { network, origins, rejected, .. } = made;
    if !rejected.found.is_empty() {
        return Err(rejected);
    }
    let is_host = build.encoding.is_host.iter().enumerate();
    let encoding = is_host.filter(|(_, is_host)| **is_host).map(|(node, _)| node).collect();
    let images = build.images;
    Ok(Layers { network, origins, images, outputs: last, results, parameters, encoding })
}

impl Build<'_> {
    /// The sources whose bytes a source is: of a concatenation of numbers that bytes stand for, the operands.
    fn stored(&self, source: SourceId) -> Vec<SourceId> {
        let Source { kind, root, .. } = &self.sources[source];
        match kind {
            Kind::Joined(parts) if !is_byte(self.graph, *root) => {
                parts.iter().flat_map(|part| self.stored(*part)).collect()
            }
            _ => vec![source],
        }
    }
}

/// The network under construction.
struct Finished<'b, 'g> {
    build: &'b Build<'g>,
    /// The value that the result of each draft is.
    roots: Vec<Option<ValueId>>,
    network: Network,
    origins: Vec<Origin>,
    /// The layer of each draft.
    layers: Vec<Option<usize>>,
    names: BTreeSet<String>,
    rejected: Rejected,
}

impl Finished<'_, '_> {
    /// The dimensions of the value that a source is.
    fn dims(&self, source: SourceId) -> Vec<Dimension> {
        let source = &self.build.sources[source];
        match &source.kind {
            Kind::Given(_, Some((dims, _))) => dims.clone(),
            _ => source.dims.clone(),
        }
    }

    fn parts(&self, source: SourceId, parts: &mut Vec<Operand>) {
        match &self.build.sources[source].kind {
            Kind::Joined(all) => all.iter().for_each(|part| self.parts(*part, parts)),
            Kind::Layer(draft) if let Some(layer) = self.layers[*draft] => {
                parts.push(Operand::Layer(layer));
            }
            // The result of a rejected layer is as an input, so that what reads it is checked as well.
            Kind::Layer(_) | Kind::Given(..) => {
                let value = self.build.sources[source].root;
                let mut inputs = self.build.graph.inputs.iter();
                let name = inputs.find(|(_, input)| *input == value).map(|(name, _)| name.clone());
                let name = name.or_else(|| self.build.encoding.results.get(&value).cloned());
                let name = name.unwrap_or_else(|| format!("value_{}", value.0));
                let channels = 0..self.build.shape(source).channels;
                parts.push(Operand::Value { value, name, channels, dims: self.dims(source) });
            }
        }
    }

    fn add(&mut self, index: usize) {
        let draft = &self.build.drafts[index];
        let (mut operands, mut weights) = (vec![], vec![]);
        draft.input.iter().for_each(|source| self.parts(*source, &mut operands));
        draft.weights.iter().for_each(|source| self.parts(*source, &mut weights));
        let mut start = 0;
        let mut placed: Vec<(u64, Operand)> = vec![];
        for operand in operands {
            let channels = match &operand {
                Operand::Value { channels, .. } => channels.end - channels.start,
                Operand::Layer(layer) => self.network.nodes()[*layer].layer.output.channels,
            };
            placed.push((start, operand));
            start += channels;
        }
        placed.sort_by_key(|(_, operand)| match operand {
            Operand::Value { .. } => 0,
            Operand::Layer(layer) => layer + 1,
        });
        let (starts, operands): (Vec<u64>, Vec<Operand>) = placed.into_iter().unzip();
        let layers = |operands: &[Operand]| -> Vec<usize> {
            let layer = |operand: &Operand| match operand {
                Operand::Layer(layer) => Some(*layer),
                Operand::Value { .. } => None,
            };
            operands.iter().filter_map(layer).collect()
        };
        let origin = self.build.graph.nodes[draft.node].origin.clone();
        let layer =
            irc_npu_cost::Layer::new(self.name(origin.as_deref()), draft.op.clone(), draft.output);
        let external = self.external(draft);
        let (inputs, read) = (layers(&operands), layers(&weights));
        let reads = Reads { inputs: &inputs, external, weights: &read };
        match self.network.add_reading(layer, reads) {
            Ok(layer) => {
                self.layers[index] = Some(layer);
                let mut nodes = draft.nodes.clone();
                nodes.sort_unstable();
                nodes.dedup();
                let last = nodes.last().copied().unwrap_or(draft.node);
                let result = self.roots[index];
                self.origins.push(Origin {
                    result: result.unwrap_or_else(|| self.build.graph.nodes[last].results[0]),
                    nodes,
                    operands,
                    starts,
                    parameters: draft.parameters.clone(),
                    weights,
                    padding: draft.padding,
                });
            }
            Err(diagnostic) => {
                self.rejected.nodes.extend(draft.nodes.iter().chain([&draft.node]));
                self.rejected.found.push(located(*diagnostic, origin.as_deref()));
            }
        }
    }

    /// The shape of what a layer reads from outside.
    fn external(&self, draft: &Draft) -> Option<Shape> {
        let mut given = vec![];
        draft.input.iter().for_each(|source| self.given(*source, &mut given));
        let shapes = given.into_iter().map(|source| self.build.shape(source));
        shapes.reduce(|all, next| Shape { channels: all.channels + next.channels, ..all })
    }

    fn given(&self, source: SourceId, found: &mut Vec<SourceId>) {
        match &self.build.sources[source].kind {
            Kind::Joined(all) => all.iter().for_each(|part| self.given(*part, found)),
            Kind::Layer(draft) if self.layers[*draft].is_some() => {}
            Kind::Layer(_) | Kind::Given(..) => found.push(source),
        }
    }

    /// A name that is one word and unique: that of the node, or its path.
    fn name(&mut self, origin: Option<&str>) -> String {
        unique(&word(origin, "layer"), &mut self.names)
    }
}
