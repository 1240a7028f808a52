//! The network of the layers that were found.

use super::build::Build;
use super::bytes::is_byte;
use super::locate::{located, unique, word};
use super::source::{Draft, Kind, Source, SourceId};
use super::view::Dimension;
use super::{Layers, Operand, Origin, Rejected, Stored, nothing};
use irc_npu_cost::{Network, Op, Reads, Shape};
use irc_tl::ValueId;
use std::collections::{BTreeMap, BTreeSet};

/// The network of all layers that outputs depend on.
pub fn finish(build: &Build<'_>, outputs: &[(String, SourceId)]) -> Result<Layers, Rejected> {
    let mut wanted = vec![false; build.drafts.len()];
    let wholes = build.wholes();
    let stored: Vec<Vec<SourceId>> =
        outputs.iter().map(|(_, source)| build.stored(*source, &wholes)).collect();
    let mut pending: Vec<SourceId> = stored.iter().flatten().copied().collect();
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
        names: build.encoding.used.clone(),
        rejected: Rejected::default(),
    };
    order.into_iter().for_each(|draft| made.add(draft));
    let mut last = vec![];
    let mut results = Results::default();
    for ((name, _), sources) in outputs.iter().zip(stored) {
        for source in sources {
            let mut parts = vec![];
            made.parts(source, &mut parts);
            let layers = parts.iter().filter_map(Operand::layer);
            last.extend(layers.map(|layer| (name.clone(), layer)));
            for (whole, order) in build.in_wholes(source, &wholes) {
                made.store(whole, &order, &parts, &mut results);
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
    let results = results.all;
    Ok(Layers { network, origins, images, outputs: last, results, parameters, encoding })
}

/// What is stored for the outputs.
#[derive(Default)]
struct Results {
    all: Vec<Stored>,
    /// The place of each value, and its channels so far.
    places: BTreeMap<ValueId, (usize, BTreeSet<u64>)>,
}

impl Build<'_> {
    /// The sources whose bytes a source is: of a concatenation of numbers that bytes stand for, the operands, and what
    /// these are copies of.
    fn stored(&self, source: SourceId, wholes: &Wholes) -> Vec<SourceId> {
        let Source { kind, root, .. } = &self.sources[source];
        match kind {
            Kind::Joined(parts) if !is_byte(self.graph, *root) => {
                parts.iter().flat_map(|part| self.stored(*part, wholes)).collect()
            }
            Kind::Layer(draft) if is_byte(self.graph, *root) && !wholes.contains_key(&source) => {
                let draft = &self.drafts[*draft];
                let is_move = match draft.op {
                    Op::Pointwise => draft.nodes.is_empty(),
                    Op::Transpose { .. } => true,
                    _ => false,
                };
                match draft.input[..] {
                    [before] if is_move && self.sources[before].root == *root => {
                        self.stored(before, wholes)
                    }
                    _ => vec![source],
                }
            }
            _ => vec![source],
        }
    }

    /// The sources of which each source is some channels.
    fn wholes(&self) -> Wholes {
        let mut all = Wholes::new();
        for ((whole, from, to), part) in &self.parts {
            all.entry(*part).or_default().push((*whole, (*from..*to).collect()));
        }
        for ((whole, channels), part) in &self.gathers {
            all.entry(*part).or_default().push((*whole, channels.clone()));
        }
        all
    }

    /// The sources whose value is one of the graph and has the channels of a source, and which channels those are: the
    /// source, or those of which it is a part.
    fn in_wholes(&self, source: SourceId, wholes: &Wholes) -> Vec<(SourceId, Vec<u64>)> {
        let all: Vec<u64> = (0..self.shape(source).channels).collect();
        let mut found: BTreeMap<SourceId, Vec<u64>> = BTreeMap::new();
        let mut pending = vec![(source, all.clone())];
        while let Some((part, order)) = pending.pop() {
            // A part has the value of the whole, unless a function has become part of it.
            let Source { kind, root, dims } = &self.sources[part];
            for (whole, channels) in wholes.get(&part).into_iter().flatten() {
                let Source { kind, root: of, .. } = &self.sources[*whole];
                if of != root && !matches!(kind, Kind::Joined(_)) {
                    continue;
                }
                let order = order.iter().map(|channel| channels[*channel as usize]).collect();
                pending.push((*whole, order));
            }
            let is_value = !dims.is_empty() || matches!(kind, Kind::Given(..));
            if is_value && is_byte(self.graph, *root) {
                found.insert(part, order);
            }
        }
        if found.is_empty() {
            found.insert(source, all);
        }
        found.into_iter().collect()
    }
}

/// The sources of which sources are some channels, with these channels.
type Wholes = BTreeMap<SourceId, Vec<(SourceId, Vec<u64>)>>;

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

    /// Adds channels of a value to what is stored.
    fn store(&self, whole: SourceId, order: &[u64], parts: &[Operand], results: &mut Results) {
        let value = self.build.sources[whole].root;
        let Results { all, places } = results;
        let (place, stored) = places.entry(value).or_insert_with(|| {
            let channels = self.build.shape(whole).channels;
            let dims = self.dims(whole);
            all.push(Stored { value, dims, parts: vec![], order: vec![], channels });
            (all.len() - 1, BTreeSet::new())
        });
        if order.iter().any(|channel| !stored.contains(channel)) {
            stored.extend(order);
            all[*place].parts.extend_from_slice(parts);
            all[*place].order.extend_from_slice(order);
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
                let name = self.build.encoding.names.get(&value).cloned();
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
            let channels = operand.channels(&self.network);
            placed.push((start, operand));
            start += channels;
        }
        placed.sort_by_key(|(_, operand)| match operand {
            Operand::Value { .. } => 0,
            Operand::Layer(layer) => layer + 1,
        });
        let (starts, operands): (Vec<u64>, Vec<Operand>) = placed.into_iter().unzip();
        let layers = |operands: &[Operand]| -> Vec<usize> {
            operands.iter().filter_map(Operand::layer).collect()
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
