//! The network of the layers that were found.

use super::build::Build;
use super::locate::located;
use super::source::{Draft, Kind, SourceId};
use super::{Layers, Operand, Origin};
use irc_diag::Diagnostic;
use irc_npu_cost::{Network, Reads, Shape};
use std::collections::BTreeSet;

/// The network of all layers that outputs depend on.
pub fn finish(
    build: &Build<'_>,
    outputs: &[(String, SourceId)],
) -> Result<Layers, Vec<Diagnostic>> {
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
    let mut made = Finished {
        build,
        network: Network::new("model"),
        origins: vec![],
        layers: vec![None; build.drafts.len()],
        names: build.graph.inputs.iter().map(|(name, _)| name.clone()).collect(),
        found: vec![],
    };
    order.into_iter().for_each(|draft| made.add(draft));
    let mut last = vec![];
    for (name, source) in outputs {
        let mut parts = vec![];
        made.parts(*source, &mut parts);
        for part in parts {
            if let Operand::Layer(layer) = part {
                last.push((name.clone(), layer));
            }
        }
    }
    if made.found.is_empty() && made.origins.is_empty() {
        made.found.push(Diagnostic::error(
            "layer-operator",
            "the model has nothing that the NPU computes",
        ));
    }
    let Finished { network, origins, found, .. } = made;
    if !found.is_empty() {
        return Err(found);
    }
    Ok(Layers { network, origins, images: build.images, outputs: last })
}

/// The network under construction.
struct Finished<'b, 'g> {
    build: &'b Build<'g>,
    network: Network,
    origins: Vec<Origin>,
    /// The layer of each draft.
    layers: Vec<Option<usize>>,
    names: BTreeSet<String>,
    found: Vec<Diagnostic>,
}

impl Finished<'_, '_> {
    fn parts(&self, source: SourceId, parts: &mut Vec<Operand>) {
        match &self.build.sources[source].kind {
            Kind::Joined(all) => all.iter().for_each(|part| self.parts(*part, parts)),
            Kind::Layer(draft) => parts.extend(self.layers[*draft].map(Operand::Layer)),
            Kind::Given(..) => {
                let value = self.build.sources[source].root;
                let mut inputs = self.build.graph.inputs.iter();
                let name = inputs.find(|(_, input)| *input == value).map(|(name, _)| name.clone());
                let name = name.unwrap_or_else(|| format!("value_{}", value.0));
                let channels = self.build.shape(source).channels;
                parts.push(Operand::Value { value, name, channels });
            }
        }
    }

    fn add(&mut self, index: usize) {
        let draft = &self.build.drafts[index];
        let (mut operands, mut weights) = (vec![], vec![]);
        draft.input.iter().for_each(|source| self.parts(*source, &mut operands));
        draft.weights.iter().for_each(|source| self.parts(*source, &mut weights));
        operands.sort_by_key(|operand| match operand {
            Operand::Value { .. } => 0,
            Operand::Layer(layer) => layer + 1,
        });
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
        let (inputs, weights) = (layers(&operands), layers(&weights));
        let reads = Reads { inputs: &inputs, external, weights: &weights };
        match self.network.add_reading(layer, reads) {
            Ok(layer) => {
                self.layers[index] = Some(layer);
                let mut nodes = draft.nodes.clone();
                nodes.sort_unstable();
                nodes.dedup();
                let last = nodes.last().copied().unwrap_or(draft.node);
                self.origins.push(Origin {
                    result: self.build.graph.nodes[last].results[0],
                    nodes,
                    operands,
                    parameters: draft.parameters.clone(),
                    padding: draft.padding,
                });
            }
            Err(diagnostic) => self.found.push(located(*diagnostic, origin.as_deref())),
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
            Kind::Layer(_) => {}
            Kind::Given(..) => found.push(source),
        }
    }

    /// A name that is one word and unique: that of the node, or its path.
    fn name(&mut self, origin: Option<&str>) -> String {
        let (path, node) =
            origin.map_or(("layer", ""), |origin| origin.split_once(": ").unwrap_or((origin, "")));
        let own = node.split_once('\'').and_then(|(_, name)| name.strip_suffix('\''));
        let own = own.filter(|name| !name.is_empty()).unwrap_or(path);
        let name: String = own.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
        let mut unique = name.clone();
        let mut number = 2;
        while !self.names.insert(unique.clone()) {
            unique = format!("{name}_{number}");
            number += 1;
        }
        unique
    }
}
