//! One layer on its cores: the best partition, placement and mapping.
//!
//! For each partition the parts' operands are laid out; they must fit into the global buffer;
//! a core's part is mapped; then placements are compared by the data that they move. The bandwidth of
//! links is ignored here, that of DRAM is not (SET, `layerengine.cpp`).

use std::ops::Range;
use std::sync::Arc;

use crate::diagnostic::{Result, error};
use crate::layer::Op;
use crate::layout::{Parts, ProducedParts, Shares};
use crate::machine::Machine;
use crate::mapper::Mapping;
use crate::mesh::Place;
use crate::moves::Moves;
use crate::network::{Network, Node};
use crate::objective::Objective;
use crate::partition::{Partition, PartitionRequest, Scheme};
use crate::shape::{Region, Span};
use crate::traffic::Traffic;

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
    /// Bytes of inputs by core.
    pub inputs: Vec<(Place, u64)>,
    /// Bytes of weights by core.
    pub weights: Vec<(Place, u64)>,
}

/// A partition with its operands and the cost of its mapping.
struct Cut {
    parts: Parts,
    inputs: Shares,
    weights: Shares,
    mapping: Mapping,
    /// Energy in pJ to fill and read the global buffers.
    exchange: f64,
    moves: Moves,
}

/// A scheme with its cost before links are distinguished.
struct Choice {
    value: f64,
    scheme: Scheme,
    energy: f64,
    time: u64,
}

/// Finds the best mapping of the largest part of a partition for a number of images.
pub type Map<'a> = dyn FnMut(Partition, u64) -> Option<Mapping> + 'a;

impl Task<'_> {
    /// The best scheme.
    ///
    /// # Errors
    /// `cost-scheme` if the number of parts of a given scheme is not the number of cores, `cost-no-scheme`
    /// if no partition fits the memories of the cores.
    pub fn place(
        &self,
        machine: &Machine,
        objective: Objective,
        map: &mut Map<'_>,
    ) -> Result<PlacedLayer> {
        let mut best: Option<(Choice, Cut)> = None;
        for partition in self.partitions(machine)? {
            let Some(cut) = self.cut(partition, machine, map) else { continue };
            let least = best.as_ref().map_or(f64::INFINITY, |(choice, _)| choice.value);
            if let Some(choice) = self.choose(&cut, partition, least, machine, objective) {
                best = Some((choice, cut));
            }
        }
        match best {
            Some((choice, cut)) => Ok(self.finish(choice, cut, machine)),
            None => Err(error("cost-no-scheme", "no partition fits the memories of the cores")),
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
            let message = format!("the scheme has {parts} parts for {cores} cores");
            return match parts == cores {
                true => Ok(vec![scheme.partition]),
                false => Err(error("cost-scheme", message)),
            };
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

    /// Lays out and maps a partition; `None` if it does not fit.
    fn cut(&self, partition: Partition, machine: &Machine, map: &mut Map<'_>) -> Option<Cut> {
        let node = self.node();
        let parts = Parts::new(node, partition, self.batch);
        let regions = parts.regions();
        let inputs = Shares::of_inputs(node, partition, &regions);
        let weights = Shares::of_weights(node, partition, &regions);
        if machine.output_tile + inputs.largest() + weights.largest() > machine.buffer.size {
            return None;
        }
        let mapping = map(partition, self.batch)?;
        let exchange = self.exchange(&inputs, &weights, machine);
        let moves = self.moves(&inputs, &weights, &regions);
        Some(Cut { parts, inputs, weights, mapping, exchange, moves })
    }

    /// Energy in pJ to fill the global buffers with operands, constants once for all batches, and to read
    /// the result.
    fn exchange(&self, inputs: &Shares, weights: &Shares, machine: &Machine) -> f64 {
        let result = self.node().layer.output.volume() * self.batch;
        let mut constants = weights.total() as f64 * machine.buffer.write;
        if !self.node().has_made_weights() {
            constants /= self.times as f64;
        }
        let exchange = constants + result as f64 * machine.buffer.read;
        exchange + inputs.total() as f64 * machine.buffer.write
    }

    fn moves(&self, inputs: &Shares, weights: &Shares, regions: &[Region]) -> Moves {
        let node = self.node();
        let mut moves = Moves::default();
        match node.has_made_weights() {
            true => self.bring(&mut moves, &node.weights, weights, 0, u64::MAX),
            false => moves.load_constants(weights, self.times),
        }
        let operand = match node.layer.op {
            Op::Eltwise { .. } => node.layer.output.channels,
            _ => u64::MAX,
        };
        moves.load(inputs, Span::upto(node.external));
        self.bring(&mut moves, &node.inputs, inputs, node.external % operand, operand);
        if self.stores {
            moves.store(regions);
        }
        moves
    }

    /// Adds the movements of results that are concatenated from channel `first` on; channel `operand`
    /// starts the next operand.
    fn bring(
        &self,
        moves: &mut Moves,
        layers: &[usize],
        needed: &Shares,
        first: u64,
        operand: u64,
    ) {
        let mut first = first;
        for &layer in layers {
            let next = first + self.network.nodes()[layer].layer.output.channels;
            match &self.made[layer] {
                Some(made) if self.direct.contains(&layer) => {
                    moves.send(made, needed, first, self.batch);
                }
                _ => moves.load(needed, Span { from: first, to: next }),
            }
            first = next % operand;
        }
    }

    /// The best placement of a partition, if it is better than `least`.
    fn choose(
        &self,
        cut: &Cut,
        partition: Partition,
        least: f64,
        machine: &Machine,
        objective: Objective,
    ) -> Option<Choice> {
        let computing = cut.mapping.energy * self.core_count() as f64 + cut.exchange;
        let mut best: Option<Choice> = None;
        let schemes = self.scheme.map_or_else(|| Scheme::all(partition), |given| vec![given]);
        for scheme in schemes {
            let places = self.places(scheme, machine);
            let traffic = cut.moves.carry(&places, machine, Traffic::default());
            let energy = computing + (traffic.link_energy(machine) + traffic.dram_energy(machine));
            let time = cut.mapping.time.max(traffic.time(machine));
            let value = objective.of(energy, time);
            if value < best.as_ref().map_or(least, |choice| choice.value) {
                best = Some(Choice { value, scheme, energy, time });
            }
        }
        best
    }

    /// The core of each part.
    fn places(&self, scheme: Scheme, machine: &Machine) -> Vec<Place> {
        let place = |core| machine.mesh.place(self.cores.start + core as u64);
        scheme.cores().into_iter().map(place).collect()
    }

    fn finish(&self, choice: Choice, cut: Cut, machine: &Machine) -> PlacedLayer {
        let places = self.places(choice.scheme, machine);
        let held = |shares: &Shares| {
            let all = shares.each().filter(|(_, bytes)| *bytes > 0);
            all.map(|(part, bytes)| (places[part], bytes)).collect()
        };
        PlacedLayer {
            scheme: choice.scheme,
            energy: choice.energy,
            time: choice.time,
            mapping: cut.mapping,
            exchange: cut.exchange,
            traffic: cut.moves.carry(&places, machine, Traffic::on_links(machine.mesh)),
            inputs: held(&cut.inputs),
            weights: held(&cut.weights),
            made: Arc::new(ProducedParts {
                scheme: choice.scheme,
                first: self.cores.start,
                parts: cut.parts,
                places,
                batch: self.batch,
            }),
        }
    }
}
