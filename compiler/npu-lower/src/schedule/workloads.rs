//! The workloads of a schedule, and what they read.

use super::buffers::{self, LiveTensor};
use super::transfers::{AllTransfers, DRAM, Reader, Stored, range};
use super::{LayerFacts, Scheduled, known_layers};
use crate::target::{Goal, Target};
use irc_gemini_format::schedule::{
    Coords, Core, Dialect, Extent, Ids, Ifmap, LayerKind, LayerWindow, OneOrMany, PlaceKind,
    Schedule, Source, Weight, Workload,
};
use irc_npu_cost::{Cut, Kind, Network, Node, Op, Place, Region, Run, Span, Tree};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A run of a layer, with its workloads.
struct Done<'r> {
    run: &'r Run,
    /// The workload of each part, and of each image if `by_image`.
    workloads: BTreeMap<(usize, u64), i64>,
    by_image: bool,
}

/// The schedule under construction.
struct Writer<'a> {
    of: &'a Scheduled<'a>,
    transfers: AllTransfers,
    /// The workloads of each core, by its id.
    cores: BTreeMap<i64, Vec<Workload>>,
    /// What the buffer of each core holds, by its id.
    held: BTreeMap<i64, Vec<LiveTensor>>,
    /// The place of constant weights in it, by core and transfer.
    held_weights: BTreeMap<(i64, i64), usize>,
    /// The runs of each layer so far.
    done: Vec<Vec<Done<'a>>>,
    /// The core of each workload.
    computed: Vec<i64>,
    /// The name of each layer.
    names: Vec<Arc<str>>,
}

/// The schedule of runs.
pub fn write<'a>(of: &'a Scheduled<'a>, runs: &'a [Run]) -> Schedule {
    let mut writer = Writer {
        of,
        transfers: AllTransfers::default(),
        cores: BTreeMap::new(),
        held: BTreeMap::new(),
        held_weights: BTreeMap::new(),
        done: of.network.nodes().iter().map(|_| vec![]).collect(),
        computed: vec![],
        names: of.network.nodes().iter().map(|node| node.layer.name.as_str().into()).collect(),
    };
    runs.iter().for_each(|run| writer.run(run));
    writer.finish()
}

/// The id of a core: counted in rows, with a column of DRAM ports at either side.
fn core_id(place: Place, width: u64) -> i64 {
    (place.y * (width + 2) + place.x + 1) as i64
}

/// The corners of a region.
fn extent(of: Region) -> Extent {
    let low = [of.images.from, of.channels.from, of.rows.from, of.columns.from];
    let high = [of.images.to, of.channels.to, of.rows.to, of.columns.to];
    Extent::new(low.map(|at| at as i64), high.map(|at| at as i64 - 1))
}

/// A part of what a workload reads: some channels of a tensor.
struct Piece {
    /// The first channel among all that the layer reads.
    from: u64,
    /// The layer, or the number of the tensor from outside.
    of: Result<usize, usize>,
    /// Its channels in the tensor.
    channels: Range<u64>,
}

impl<'a> Writer<'a> {
    fn node(&self, layer: usize) -> &'a Node {
        &self.of.network.nodes()[layer]
    }

    fn run(&mut self, run: &'a Run) {
        let node = self.node(run.layer);
        let width = self.of.machine.mesh.width;
        // Weights that are results differ from image to image.
        let by_image = node.has_made_weights();
        let mut done = Done { run, workloads: BTreeMap::new(), by_image };
        let places = run.places(self.of.machine.mesh);
        for (index, part) in run.parts().into_iter().enumerate() {
            if part.volume() == 0 {
                continue;
            }
            let images = part.images;
            let each = if by_image { images.len() } else { 1 };
            for number in 0..each {
                let images = match by_image {
                    true => Span { from: images.from + number, to: images.from + number + 1 },
                    false => images,
                };
                let part = Region { images, ..part };
                let core = core_id(places[index], width);
                let id = self.workload(run, part, core, run.cycles / each.max(1));
                done.workloads.insert((index, if by_image { images.from } else { 0 }), id);
            }
        }
        self.done[run.layer].push(done);
    }

    /// Adds the workload that computes a part.
    fn workload(&mut self, run: &Run, part: Region, core: i64, cycles: u64) -> i64 {
        let node = self.node(run.layer);
        let id = self.computed.len() as i64;
        let own = extent(part);
        self.computed.push(core);
        let name = node.layer.name.clone();
        let layer = (run.layer, self.names[run.layer].clone());
        let reader = Reader { workload: id, core, layer };
        let padding = self.of.facts.get(run.layer).map_or(node.padding, |facts| facts.padding);
        let read = node.layer.input_region(part, node.input, padding);
        let sources = self.inputs(run, node, read, &reader);
        let ifmap = Ifmap {
            align: None,
            bitwidth: None,
            lower: extent(read).lower,
            max_workload_id: Some(self.last_producer(&sources)),
            size: None,
            transfer_id: Ids::List(ids(&sources)),
            upper: extent(read).upper,
            extra: Default::default(),
        };
        let index = self.cores.get(&core).map_or(0, Vec::len);
        self.hold(core, LiveTensor::input(&name, id, index, extent(read), sources));
        let weight = node.layer.weight_region(part).map(|region| match node.has_made_weights() {
            true => self.made_weights(run, region, &reader, index),
            false => self.constant_weights(run, region, &reader, index),
        });
        let is_output = self.of.facts.get(run.layer).is_some_and(|facts| facts.is_output);
        if run.stores || is_output {
            self.transfers.store(id, core, &name, own);
        }
        let workload = Workload {
            buffer: Default::default(),
            ifmap: Some(OneOrMany::One(ifmap)),
            layer_name: name,
            layer_type: Some(kind(&node.layer.op)),
            ofmap: None,
            ofmap_size: 8 * own.volume(),
            ring_buffer_info: None,
            tile_info: None,
            tile_padding_tblr: None,
            time: cycles as i64,
            weight,
            wl0_buffer: None,
            wl1_buffer: None,
            extent: own,
            workload_id: id,
            extra: Default::default(),
        };
        self.cores.entry(core).or_default().push(workload);
        id
    }

    fn hold(&mut self, core: i64, held: LiveTensor) {
        self.held.entry(core).or_default().push(held);
    }

    /// The last workload that computes some of what is read; 0 if none does.
    fn last_producer(&self, sources: &[(Source, Vec<i64>)]) -> i64 {
        sources.iter().flat_map(|(_, producers)| producers).copied().max().unwrap_or(0)
    }

    /// The parts of what a workload reads as activations, each with the workloads that compute it.
    fn inputs(
        &mut self,
        run: &Run,
        node: &Node,
        read: Region,
        reader: &Reader,
    ) -> Vec<(Source, Vec<i64>)> {
        let facts = self.of.facts.get(run.layer);
        let given = facts.map_or(&[][..], |facts| &facts.given);
        let mut pieces = vec![];
        let mut from = 0;
        for (number, (_, channels)) in given.iter().enumerate() {
            pieces.push(Piece { from, of: Err(number), channels: channels.clone() });
            from += channels.end - channels.start;
        }
        if given.is_empty() && node.external > 0 {
            pieces.push(Piece { from, of: Err(usize::MAX), channels: 0..node.external });
            from += node.external;
        }
        for input in &node.inputs {
            let channels = self.node(*input).layer.output.channels;
            pieces.push(Piece { from, of: Ok(*input), channels: 0..channels });
            from += channels;
        }
        // Operands of element-wise layers have the same channels.
        let each = match node.layer.op {
            Op::Eltwise { .. } => node.layer.output.channels,
            _ => from.max(1),
        };
        let mut sources = vec![];
        for piece in pieces {
            let Range { start, end } = piece.channels;
            let first = piece.from % each;
            let whole = Span { from: first, to: first + end - start };
            let shared = read.channels.overlap(whole);
            if shared.is_empty() {
                continue;
            }
            let channels =
                Span { from: start + shared.from - first, to: start + shared.to - first };
            // Of a piece of a layer, the channels that it reads are not those of the tensor.
            let first = first as i64 - start as i64;
            let wanted = Region { channels, ..read };
            match piece.of {
                Ok(layer) => sources.extend(self.results(run, layer, wanted, first, reader)),
                Err(number) => {
                    let name = given.get(number).map_or("input", |(name, _)| name).into();
                    sources.push((self.loaded(&name, wanted, first, &[], reader), vec![]));
                }
            }
        }
        sources
    }

    /// A part of a tensor in DRAM.
    fn loaded(
        &mut self,
        name: &Arc<str>,
        wanted: Region,
        first: i64,
        stored: &[i64],
        reader: &Reader,
    ) -> Source {
        let own = extent(wanted);
        let what = Stored::Tensor(name.to_string());
        let transfer = self.transfers.load(what, own, None, stored, reader);
        source(own, first, name, transfer, (DRAM, PlaceKind::Dram))
    }

    /// The parts of a region of a layer's result, whose channels begin at `first` of the reader's.
    fn results(
        &mut self,
        run: &Run,
        layer: usize,
        wanted: Region,
        first: i64,
        reader: &Reader,
    ) -> Vec<(Source, Vec<i64>)> {
        let name = self.names[layer].clone();
        let parts = self.parts_of(layer, wanted);
        if !run.direct.contains(&layer) {
            let producers: Vec<i64> = parts.iter().map(|(producer, _)| *producer).collect();
            let stored: Vec<i64> =
                producers.iter().filter_map(|producer| self.transfers.stored(*producer)).collect();
            return vec![(self.loaded(&name, wanted, first, &stored, reader), producers)];
        }
        let mut sources = vec![];
        for (producer, part) in parts {
            let own = extent(part);
            let transfer = self.transfers.send(producer, own, reader);
            let core = self.computed[producer as usize];
            let source = source(own, first, &name, transfer, (core, PlaceKind::Core));
            sources.push((source, vec![producer]));
        }
        sources
    }

    /// The workloads that compute parts of a region, and which.
    fn parts_of(&self, layer: usize, wanted: Region) -> Vec<(i64, Region)> {
        let done = &self.done[layer];
        // Runs of a layer are in the order of their images.
        let first = done.partition_point(|done| done.run.images.end <= wanted.images.from);
        let meets = |done: &&Done<'_>| done.run.images.start < wanted.images.to;
        let mut found = vec![];
        for done in done[first..].iter().take_while(meets) {
            for (index, part) in done.run.meeting(wanted) {
                let part = part.overlap(wanted);
                let images = if done.by_image { part.images.from..part.images.to } else { 0..1 };
                for image in images {
                    let Some(id) = done.workloads.get(&(index, image)) else { continue };
                    let images = match done.by_image {
                        true => Span { from: image, to: image + 1 },
                        false => part.images,
                    };
                    found.push((*id, Region { images, ..part }));
                }
            }
        }
        found
    }

    fn constant_weights(
        &mut self,
        run: &Run,
        region: Region,
        reader: &Reader,
        index: usize,
    ) -> Weight {
        let own = range(region.channels.from, region.channels.to);
        let bytes = region.channels.len() * region.rows.len() * region.columns.len();
        let what = Stored::Weights(run.segment);
        let transfer = self.transfers.load(what, own, Some(bytes as i64), &[], reader);
        let held = self.held.entry(reader.core).or_default();
        match self.held_weights.get(&(reader.core, transfer)) {
            Some(known) => held[*known].last = index,
            None => {
                self.held_weights.insert((reader.core, transfer), held.len());
                held.push(LiveTensor::weights(&reader.layer.1, index, own, bytes, transfer));
            }
        }
        constant_weight(&own, transfer)
    }

    /// Results that serve as weights: their channels are output channels, their rows input channels.
    fn made_weights(&mut self, run: &Run, region: Region, reader: &Reader, index: usize) -> Weight {
        let node = self.node(run.layer);
        let mut sources = vec![];
        let mut from = 0;
        for layer in &node.weights {
            let channels = self.node(*layer).layer.output.channels;
            let shared = region.channels.overlap(Span { from, to: from + channels });
            if !shared.is_empty() {
                let channels = Span { from: shared.from - from, to: shared.to - from };
                let wanted = Region { channels, columns: Span::upto(1), ..region };
                sources.extend(self.results(run, *layer, wanted, from as i64, reader));
            }
            from += channels;
        }
        let whole = extent(Region { columns: Span::upto(1), ..region });
        let corner = |of: Coords| Coords::list(&of.values()[..3]).unwrap_or(of);
        let weight = Weight {
            from_ofmap: Some(true),
            lower: corner(whole.lower),
            max_workload_id: Some(self.last_producer(&sources)),
            size: Some(8 * whole.volume()),
            transfer_id: Some(Ids::List(ids(&sources))),
            upper: corner(whole.upper),
            extra: Default::default(),
        };
        let held = LiveTensor::input(&reader.layer.1, reader.workload, index, whole, sources);
        self.hold(reader.core, held.into_weights());
        weight
    }

    fn finish(mut self) -> Schedule {
        let capacity = (self.of.machine.buffer.size / 1024) as i64;
        let mut cores = vec![];
        for (core, mut workloads) in std::mem::take(&mut self.cores) {
            for workload in &mut workloads {
                let sent = self.transfers.take_sent(workload.workload_id);
                workload.ofmap = Some(sent);
            }
            let held = self.held.remove(&core).unwrap_or_default();
            buffers::fill(core, &mut workloads, held, capacity);
            workloads.shrink_to_fit();
            cores.push(Core { id: core, workloads });
        }
        let mesh = self.of.machine.mesh;
        let mut schemes = self.of.evaluation.layers.iter().map(|layer| layer.scheme);
        let tree = self.of.tree.clone().with_schemes(&mut schemes);
        Schedule {
            dialect: Dialect::B,
            xlen: mesh.width as i64,
            ylen: mesh.height as i64,
            top_batch_cut: top_groups(self.of.tree),
            buffersize: None,
            dram: vec![self.transfers.into_dram()],
            cores,
            target: self.of.target.map(Target::to_string),
            tree: Some(tree.text(self.of.network)),
            objective: Goal::of(self.of.objective)
                .filter(|goal| *goal != Goal::default())
                .map(|goal| goal.name().into()),
            windows: Some(windows(self.of.network, self.of.facts)),
            ports: None,
            metadata_extra: Default::default(),
            extra: Default::default(),
        }
    }
}

/// The windows of layers that have some.
fn windows(network: &Network, facts: &[LayerFacts]) -> Vec<LayerWindow> {
    let known = known_layers(network, facts, &[]);
    let has_window = |op: &Op| matches!(op, Op::Conv { .. } | Op::GroupedConv { .. } | Op::Pool(_));
    let layers = network.nodes().iter().map(|node| &node.layer);
    let windows = layers.filter(|layer| has_window(&layer.op)).filter_map(|layer| {
        let known = known.get(&layer.name)?;
        Some(LayerWindow {
            groups: known.groups,
            kernel: known.kernel,
            layer_name: layer.name.clone(),
            padding: known.padding,
            stride: known.stride,
            extra: Default::default(),
        })
    });
    windows.collect()
}

/// Groups of the batch at the root.
fn top_groups(tree: &Tree) -> i64 {
    match &tree.kind {
        Kind::Cut(Cut::Time, children) => {
            children.first().map_or(1, |child| (tree.batch / child.batch.max(1)) as i64)
        }
        _ => 1,
    }
}

fn kind(op: &Op) -> LayerKind {
    match op {
        Op::Conv { .. } | Op::GroupedConv { .. } => LayerKind::Conv2d,
        Op::Pool(_) => LayerKind::Pool,
        Op::Eltwise { .. } => LayerKind::ElementWise,
        Op::Pointwise => LayerKind::PointToPoint,
        Op::Transpose { .. } => LayerKind::Dt,
    }
}

/// The transfers of parts.
pub fn ids(sources: &[(Source, Vec<i64>)]) -> Vec<i64> {
    sources.iter().map(|(source, _)| source.transfer_id).collect()
}

/// Weights of a model that a transfer brings.
pub fn constant_weight(own: &Extent, transfer: i64) -> Weight {
    Weight {
        from_ofmap: None,
        lower: own.lower,
        max_workload_id: None,
        size: None,
        transfer_id: Some(Ids::List(vec![transfer])),
        upper: own.upper,
        extra: Default::default(),
    }
}

/// A part of a tensor, whose channels begin at `first` of the reader's.
pub fn source(
    own: Extent,
    first: i64,
    name: &Arc<str>,
    transfer: i64,
    (id, kind): (i64, PlaceKind),
) -> Source {
    let (low, high) = own.axis(1);
    Source {
        channel: Some([first + low, first + high]),
        core_id: None,
        id: Some(Ids::Plain(id)),
        layer_name: Some(name.clone()),
        lower: Some(own.lower),
        size: 8 * own.volume(),
        transfer_id: transfer,
        kind,
        upper: Some(own.upper),
        extra: Default::default(),
    }
}
