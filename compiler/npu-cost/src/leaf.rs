//! One layer on its cores: the best partition, placement and mapping.
//!
//! For each partition the parts' operands are laid out; they must fit into the global buffer;
//! a core's part is mapped; then placements are compared by the data that they move. The bandwidth of
//! links is ignored here, that of DRAM is not (SET, `layerengine.cpp`).

use irc_diag::counted;
use std::ops::Range;
use std::sync::Arc;

use crate::diagnostic::{Result, error};
use crate::layer::Op;
use crate::layout::{Parts, ProducedParts, ScatteredPart, Shares};
use crate::machine::Machine;
use crate::mapper::{self, Mapping};
use crate::mesh::Place;
use crate::moves::{Moves, Operand};
use crate::network::{Network, Node};
use crate::objective::Objective;
use crate::partition::{Partition, PartitionRequest, Scheme};
use crate::placement::{Pieces, Placement};
use crate::shape::{Region, Span};
use crate::traffic::{Dram, Traffic, link_energy};
use crate::usage::Usage;

/// Maximum number of partitions of which placements are compared when a price is given.
const MAX_COMPARED: usize = 12;

/// Share of the global buffers that the input of a convolution may fill.
const INPUT_SHARE: f64 = 0.8;

/// A layer to be placed.
pub struct Task<'a> {
    /// The network.
    pub network: &'a Network,
    /// The index of the layer in it.
    pub layer: usize,
    /// Images at a time.
    pub batch: u64,
    /// Number of repetitions until all images are done.
    pub times: u64,
    /// Core numbers.
    pub cores: Range<u64>,
    /// The places of results that are passed directly from core to core, by the index of their layer;
    /// others are in DRAM.
    pub made: &'a [Option<Arc<ProducedParts>>],
    /// Layers whose results are passed directly.
    pub direct: &'a [usize],
    /// Whether the result goes to DRAM.
    pub stores: bool,
    /// The scheme, if it is given; otherwise the best one is searched.
    pub scheme: Option<Scheme>,
    /// If it is searched: pJ that a cycle is worth, instead of the objective.
    pub price: Option<f64>,
    /// Whether the machine is on dies, so that movements are counted as in Gemini's program.
    pub on_dies: bool,
    /// The placement of each layer, if placements are given.
    pub placements: &'a [Option<Placement>],
    /// If placements are given: the layers of the same segment that come before this one.
    pub beside: Vec<usize>,
}

/// A layer with its scheme.
#[derive(Clone, Debug)]
pub struct PlacedLayer {
    /// The scheme.
    pub scheme: Scheme,
    /// Total energy in pJ.
    pub energy: f64,
    /// Cycles, disregarding links.
    pub time: u64,
    /// The mapping on one core.
    pub mapping: Mapping,
    /// Energy in pJ to fill the global buffers, and to read results from them.
    pub exchange: f64,
    /// The data movements, by link.
    pub traffic: Traffic,
    /// The places of the result.
    pub made: Arc<ProducedParts>,
    /// Inputs in the buffers.
    pub inputs: Usage,
    /// Weights in the buffers.
    pub weights: Usage,
}

/// A partition with its operands and the cost of its mapping, which depend on nothing else in a tree.
pub struct Layout {
    parts: Parts,
    regions: Vec<Region>,
    inputs: Shares,
    weights: Shares,
    mapping: Mapping,
}

/// A layout with what a placement does not change.
struct Cut<'l> {
    layout: &'l Layout,
    partition: Partition,
    /// Energy in pJ to fill and read the global buffers.
    exchange: f64,
    /// Bytes to and from DRAM.
    dram: u64,
    /// Energy in pJ, without links.
    energy: f64,
    /// Cycles, disregarding links.
    time: u64,
}

/// A scheme with its cost before links are distinguished.
struct Choice {
    value: f64,
    scheme: Scheme,
    energy: f64,
}

/// The layout of a partition; `None` if it does not fit.
pub type Layouts<'a> = dyn FnMut(Partition) -> Option<Arc<Layout>> + 'a;

/// What one image of a layer needs in the global buffer of a core, in bytes, under the partition that
/// needs least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// The partition.
    pub partition: Partition,
    /// Reserved for the result.
    pub output: u64,
    /// Inputs on the fullest core.
    pub inputs: u64,
    /// Weights on the fullest core.
    pub weights: u64,
    /// Whether a core has a mapping for a part.
    pub is_mapped: bool,
}

impl Need {
    /// The need of a layer on all cores.
    pub fn of(network: &Network, layer: usize, machine: &Machine) -> Self {
        let node = &network.nodes()[layer];
        let need = |partition: Partition| {
            let regions = Parts::new(node, partition, 1).regions();
            let mapping = mapper::map(node, partition, 1, machine, Objective::EDP);
            Self {
                partition,
                output: machine.output_tile,
                inputs: Shares::of_inputs(node, partition, &regions).largest(),
                weights: Shares::of_weights(node, partition, &regions).largest(),
                is_mapped: mapping.is_some(),
            }
        };
        let all = Partition::all(machine.mesh.cores()).into_iter().map(need);
        let least = all.min_by_key(|need| (!need.is_mapped, need.bytes()));
        least.unwrap_or_else(|| need(Partition([1; 4])))
    }

    /// All bytes.
    pub fn bytes(&self) -> u64 {
        self.output + self.inputs + self.weights
    }

    /// Whether a core can hold it and compute.
    pub fn fits(&self, machine: &Machine) -> bool {
        self.is_mapped && self.bytes() <= machine.buffer.size
    }
}

impl Layout {
    /// The layout of `batch` images of a layer; `None` if it does not fit the memories of the cores.
    pub fn new(
        node: &Node,
        partition: Partition,
        batch: u64,
        machine: &Machine,
        objective: Objective,
    ) -> Option<Self> {
        // Gemini's model has no empty parts.
        if machine.package.is_some() && !partition.fills(node.layer.output, batch) {
            return None;
        }
        let parts = Parts::new(node, partition, batch);
        let regions = parts.regions();
        let inputs = Shares::of_inputs(node, partition, &regions);
        let weights = Shares::of_weights(node, partition, &regions);
        if machine.output_tile + inputs.largest() + weights.largest() > machine.buffer.size {
            return None;
        }
        let mapping = mapper::map(node, partition, batch, machine, objective)?;
        Some(Self { parts, regions, inputs, weights, mapping })
    }
}

impl Task<'_> {
    /// The best scheme; `None` if no partition fits the memories of the cores.
    ///
    /// # Errors
    /// `cost-scheme` if the number of parts of a given scheme is not the number of cores.
    pub fn place(
        &self,
        machine: &Machine,
        objective: Objective,
        layouts: &mut Layouts<'_>,
    ) -> Result<Option<PlacedLayer>> {
        let mut fitting = |partitions: Vec<Partition>| {
            let all = partitions.into_iter();
            let found = all.filter_map(|partition| Some((partition, layouts(partition)?)));
            found.collect::<Vec<(Partition, Arc<Layout>)>>()
        };
        let mut layouts = fitting(self.partitions(machine)?);
        if layouts.is_empty() && self.price.is_some() && self.scheme.is_none() {
            // Uneven partitions, which SET's search leaves out.
            layouts = fitting(Partition::all(self.core_count()));
        }
        let cuts = layouts.iter().map(|(partition, layout)| self.cut(*partition, layout, machine));
        // A bound: links add to the energy.
        let bounded = cuts.map(|cut| (self.value(objective, cut.energy, cut.time), cut));
        let mut cuts: Vec<(f64, usize, Cut<'_>)> =
            bounded.enumerate().map(|(at, (bound, cut))| (bound, at, cut)).collect();
        cuts.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        // Of equal schemes, that of the first partition is the best.
        let mut best: Option<(Choice, usize, &Cut<'_>)> = None;
        let most = if self.price.is_some() { MAX_COMPARED } else { cuts.len() };
        for (bound, at, cut) in cuts.iter().take(most) {
            if best.as_ref().is_some_and(|(choice, ..)| *bound > choice.value) {
                break;
            }
            let Some(choice) = self.choose(cut, machine, objective) else { continue };
            let is_better = best.as_ref().is_none_or(|(least, first, _)| {
                choice.value < least.value || choice.value == least.value && at < first
            });
            if is_better {
                best = Some((choice, *at, cut));
            }
        }
        Ok(best.map(|(choice, _, cut)| self.finish(&choice, cut, machine)))
    }

    /// The layer as a placement states it; `None` if no tile of it fits a core.
    pub fn placed(
        &self,
        placement: &Placement,
        machine: &Machine,
        objective: Objective,
    ) -> Option<PlacedLayer> {
        let (node, partition) = (self.node(), placement.partition);
        let all = Parts::new(node, partition, self.batch);
        let scattered = placement.scattered(&all);
        let parts: Vec<ScatteredPart> = scattered.iter().map(|(_, part)| *part).collect();
        let inputs = Shares::of_scattered_inputs(node, partition, &parts);
        let weights = Shares::of_scattered_weights(node, partition, &parts);
        let largest = partition.largest(node.layer.output, self.batch);
        let pieces = placement.pieces.unwrap_or(Pieces::WHOLE);
        let mapping = mapper::map_part(node, pieces.of(largest), machine, objective)?;
        let count = pieces.count() as i64;
        let mapping = mapping.repeated(count, count);
        let exchange = self.exchange(&inputs, &weights, pieces.fetches, machine);
        let regions: Vec<Region> = parts.iter().map(|part| part.region).collect();
        let places: Vec<Place> =
            scattered.iter().map(|(core, _)| machine.mesh.place(*core)).collect();
        let traffic = self.moves_of([&inputs, &weights], &regions).carry(&places, machine);
        let links = traffic.link_energy(machine) + traffic.dram_energy(machine);
        let held = |shares: &Shares, bytes: &dyn Fn(Region) -> u64| {
            let each = shares.each_held(bytes).map(|(part, bytes)| (places[part], bytes));
            Usage::of(each, machine.mesh)
        };
        Some(PlacedLayer {
            scheme: placement.scheme(),
            energy: mapping.energy * places.len() as f64 + exchange + links,
            time: mapping.time.max(traffic.dram_time(machine)),
            mapping,
            exchange,
            inputs: held(&inputs, &|region| pieces.input(&node.layer, region)),
            weights: held(&weights, &|region| pieces.weights(region)),
            traffic,
            made: Arc::new(ProducedParts {
                scheme: placement.scheme(),
                first: 0,
                parts: all,
                places: placement.cores_by_channel().map(|core| machine.mesh.place(core)).collect(),
                batch: self.batch,
            }),
        })
    }

    fn value(&self, objective: Objective, energy: f64, time: u64) -> f64 {
        match self.price {
            Some(price) => energy + price * time as f64,
            None => objective.of(energy, time),
        }
    }

    fn node(&self) -> &Node {
        &self.network.nodes()[self.layer]
    }

    fn core_count(&self) -> u64 {
        self.cores.end - self.cores.start
    }

    fn partitions(&self, machine: &Machine) -> Result<Vec<Partition>> {
        if let Some(scheme) = self.scheme {
            let (parts, cores) = (scheme.partition.parts(), self.core_count());
            if parts == cores {
                return Ok(vec![scheme.partition]);
            }
            let (parts, cores) = (counted(parts, "part"), counted(cores, "core"));
            return Err(error("cost-scheme", format!("the scheme has {parts} for {cores}")));
        }
        let wanted = PartitionRequest {
            cores: self.core_count(),
            output: self.node().layer.output,
            batch: self.batch,
            least_cuts: self.least_cuts(machine),
            least_even: machine.least_even,
        };
        Ok(wanted.partitions())
    }

    /// Partitions that leave space for the input of a convolution that needs all channels.
    fn least_cuts(&self, machine: &Machine) -> u64 {
        let Op::Conv { .. } = self.node().layer.op else { return 0 };
        let input = (self.node().input.volume() * self.batch) as f64;
        let room = (machine.buffer.size * self.core_count()) as f64;
        (input / (room * INPUT_SHARE) + 1.0) as u64
    }

    fn cut<'l>(&self, partition: Partition, layout: &'l Layout, machine: &Machine) -> Cut<'l> {
        let exchange = self.exchange(&layout.inputs, &layout.weights, 1, machine);
        let dram = self.dram(layout);
        let computing = layout.mapping.energy * self.core_count() as f64 + exchange;
        let energy = computing + dram as f64 * machine.dram;
        let time = layout.mapping.time.max(dram.div_ceil(machine.dram_bandwidth));
        Cut { layout, partition, exchange, dram, energy, time }
    }

    /// Energy in pJ to fill the global buffers with operands, constants once for all batches, and to read
    /// the result; weights are fetched so many times.
    fn exchange(&self, inputs: &Shares, weights: &Shares, fetches: u64, machine: &Machine) -> f64 {
        let result = self.node().layer.output.volume() * self.batch;
        let mut constants = weights.total() as f64 * machine.buffer.write;
        if !self.node().has_made_weights() {
            constants /= self.times as f64;
        }
        let exchange = constants * fetches as f64 + result as f64 * machine.buffer.read;
        exchange + inputs.total() as f64 * machine.buffer.write
    }

    /// Bytes to and from DRAM.
    fn dram(&self, layout: &Layout) -> u64 {
        let node = self.node();
        let from_dram = |needed: &Shares, layers: &[usize], first: u64, channels: u64| {
            let (mut first, mut bytes) = (first, 0);
            for &layer in layers {
                let next = first + self.network.nodes()[layer].layer.output.channels;
                if !self.passes(layer) {
                    bytes += needed.volume(Span { from: first, to: next });
                }
                first = next % channels;
            }
            bytes
        };
        let weights = match node.has_made_weights() {
            true => from_dram(&layout.weights, &node.weights, 0, u64::MAX),
            false => layout.weights.volume(Span::upto(u64::MAX)) / self.times.max(1),
        };
        let channels = self.operand_channels();
        let inputs = from_dram(&layout.inputs, &node.inputs, node.external % channels, channels);
        let external = layout.inputs.volume(Span::upto(node.external));
        let stores = layout.regions.iter().map(|part| part.volume()).sum::<u64>();
        weights + inputs + external + if self.stores { stores } else { 0 }
    }

    /// Whether a result comes directly from the cores that computed it.
    fn passes(&self, layer: usize) -> bool {
        self.made[layer].is_some() && self.direct.contains(&layer)
    }

    /// Channels of an operand of an element-wise layer.
    fn operand_channels(&self) -> u64 {
        match self.node().layer.op {
            Op::Eltwise { .. } => self.node().layer.output.channels,
            _ => u64::MAX,
        }
    }

    fn moves<'l>(&self, layout: &'l Layout) -> Moves<'l> {
        self.moves_of([&layout.inputs, &layout.weights], &layout.regions)
    }

    /// The movements of inputs, weights and the regions of the result.
    fn moves_of<'l>(&self, [inputs, weights]: [&'l Shares; 2], regions: &[Region]) -> Moves<'l> {
        let node = self.node();
        let mut moves = Moves::default();
        let placement = self.placements.get(self.layer).and_then(Option::as_ref);
        let dram = |operand: usize| placement.and_then(|placement| placement.drams[operand]);
        match node.has_made_weights() {
            true => {
                let mut operand = moves.made_weights(weights);
                self.bring(&mut operand, &node.weights, 0, u64::MAX);
            }
            false => moves.load_constants(weights, self.times, dram(1)),
        }
        if let Some(pieces) = placement.and_then(|placement| placement.pieces) {
            moves.fetch(pieces.fetches);
        }
        let channels = self.operand_channels();
        let mut operand = moves.operand(inputs);
        operand.load(Span::upto(node.external), dram(0));
        self.bring(&mut operand, &node.inputs, node.external % channels, channels);
        if self.stores {
            moves.store(regions, dram(2));
        }
        moves
    }

    /// The DRAM that a result is read from.
    ///
    /// As in Gemini's program, the results of other segments are spread over all controllers for those that read them,
    /// wherever they were written.
    fn dram_of(&self, layer: usize) -> Option<Dram> {
        let placement = self.placements.get(layer).and_then(Option::as_ref)?;
        let is_beside = self.beside.contains(&layer);
        if is_beside { placement.drams[2] } else { Some(Dram::Interleaved) }
    }

    /// Adds the movements of results that are concatenated from channel `first` on; channel `channels`
    /// starts the next operand.
    fn bring(&self, operand: &mut Operand<'_, '_>, layers: &[usize], first: u64, channels: u64) {
        let mut first = first;
        for &layer in layers {
            let next = first + self.network.nodes()[layer].layer.output.channels;
            match &self.made[layer] {
                Some(made) if self.passes(layer) => {
                    operand.send(made, first, self.batch, self.on_dies);
                }
                _ => {
                    operand.load(Span { from: first, to: next }, self.dram_of(layer));
                }
            }
            first = next % channels;
        }
    }

    /// The best placement of a partition.
    fn choose(&self, cut: &Cut<'_>, machine: &Machine, objective: Objective) -> Option<Choice> {
        let computing = cut.layout.mapping.energy * self.core_count() as f64 + cut.exchange;
        let (moves, dram) = (self.moves(cut.layout), cut.dram as f64 * machine.dram);
        let mut best: Option<Choice> = None;
        let schemes = self.scheme.map_or_else(|| Scheme::all(cut.partition), |given| vec![given]);
        for scheme in schemes {
            let (hops, crossings) = moves.hops(&self.places(scheme, machine), machine);
            let energy = computing + (link_energy(hops, crossings, machine) + dram);
            let value = self.value(objective, energy, cut.time);
            if best.as_ref().is_none_or(|choice| value < choice.value) {
                best = Some(Choice { value, scheme, energy });
            }
        }
        best
    }

    /// The core of each part.
    fn places(&self, scheme: Scheme, machine: &Machine) -> Vec<Place> {
        let place = |core| machine.mesh.place(self.cores.start + core as u64);
        scheme.cores().into_iter().map(place).collect()
    }

    fn finish(&self, choice: &Choice, cut: &Cut<'_>, machine: &Machine) -> PlacedLayer {
        let places = self.places(choice.scheme, machine);
        let held = |shares: &Shares| {
            Usage::of(shares.each().map(|(part, bytes)| (places[part], bytes)), machine.mesh)
        };
        PlacedLayer {
            scheme: choice.scheme,
            energy: choice.energy,
            time: cut.time,
            mapping: cut.layout.mapping,
            exchange: cut.exchange,
            traffic: self.moves(cut.layout).carry(&places, machine),
            inputs: held(&cut.layout.inputs),
            weights: held(&cut.layout.weights),
            made: Arc::new(ProducedParts {
                scheme: choice.scheme,
                first: self.cores.start,
                parts: cut.layout.parts.clone(),
                places,
                batch: self.batch,
            }),
        }
    }
}
