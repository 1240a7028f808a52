//! The cost of workloads and transfers, without a tree.
//!
//! Energies are those of the model: of the mapping of every workload, of what buffers exchange, of every transfer over
//! the links of its route, of DRAM. A layer runs as soon as its cores are free and what it reads on the chip is computed;
//! a segment takes at least as long as links and DRAM need for its data.

use crate::report::{LayerReport, Report, SegmentReport};
use irc_diag::Diagnostic;
use irc_gemini_format::schedule::{Ids, Place, Schedule, Segments, Target, Transfers, Workload};
use irc_npu_cost::{
    Bound, Cost, Energy, Flow, Machine, Network, Node, Objective, Partition, Place as CorePlace,
    SegmentCost, map,
};
use std::collections::{BTreeMap, BTreeSet};

use super::runs::{Run, region, runs};

/// Layers whose mappings take another time than their workloads.
pub fn others(
    schedule: &Schedule,
    network: &Network,
    machine: &Machine,
    objective: Objective,
) -> Vec<(String, u64, u64)> {
    let mut seen = BTreeSet::new();
    let mut others = vec![];
    for run in runs(schedule).iter().filter(|run| seen.insert(run.layer)) {
        let Some(layer) = network.find(run.layer) else { continue };
        let node = &network.nodes()[layer];
        let mapping = map(node, run.partition(), run.batch(), machine, objective);
        let time = mapping.map_or(0, |mapping| mapping.time);
        if !run.takes(node, time) {
            others.push((run.layer.to_owned(), run.time(), time));
        }
    }
    others
}

/// The costs of a segment in one group of images.
struct RunningSegment {
    energy: Energy,
    flow: Flow,
    /// Cycles at which each core is free.
    free: BTreeMap<usize, u64>,
    /// Cycles at which workloads end.
    ends: BTreeMap<Place, u64>,
    layers: Vec<LayerReport>,
    /// Transfers from DRAM that have been counted.
    loaded: BTreeSet<i64>,
}

/// The cost of a schedule by its workloads.
///
/// # Errors
/// `layer-schedule` for a workload that no core's memories hold.
pub fn report(
    schedule: &Schedule,
    network: &Network,
    machine: &Machine,
    objective: Objective,
) -> Result<Report, Box<Diagnostic>> {
    let (segments, transfers) = (Segments::new(schedule), Transfers::new(schedule));
    let mut running: BTreeMap<(usize, usize), RunningSegment> = BTreeMap::new();
    let mut batch = 1;
    for run in runs(schedule) {
        let Some((place, first)) = run.workloads.first() else { continue };
        let Some(node) = network.find(run.layer).map(|layer| &network.nodes()[layer]) else {
            continue;
        };
        batch = batch.max(first.extent.axis(0).1.max(0) as u64 + 1);
        let partition = run.partition();
        let mapping = map(node, partition, run.batch(), machine, objective).ok_or_else(|| {
            let message = format!("layer {}: no core holds a part of it", run.layer);
            let path = schedule.workload_path(*place);
            Box::new(Diagnostic::error("layer-schedule", message).path(path))
        })?;
        let segment =
            running.entry(segments.of(place.0, place.1)).or_insert_with(|| RunningSegment {
                energy: Energy::default(),
                flow: Flow::new(machine.mesh),
                free: BTreeMap::new(),
                ends: BTreeMap::new(),
                layers: vec![],
                loaded: BTreeSet::new(),
            });
        let cores = run.cores().len() as f64;
        let moved = segment.moves(schedule, &transfers, &run, node, machine);
        let parts = Energy {
            buffer: moved.exchange + mapping.global * cores,
            local: mapping.local * cores,
            bus: mapping.bus * cores,
            compute: mapping.compute * cores,
            ..Energy::default()
        };
        let latency = run.time().max(moved.dram.div_ceil(machine.dram_bandwidth));
        segment.run(&transfers, &run, latency);
        let energy = &mut segment.energy;
        energy.buffer += parts.buffer;
        energy.local += parts.local;
        energy.bus += parts.bus;
        energy.compute += parts.compute;
        let dram = moved.dram as f64 * machine.dram;
        let parts = Energy { dram, ..parts };
        if !segment.layers.iter().any(|known| known.name == run.layer) {
            segment.layers.push(LayerReport {
                name: run.layer.to_owned(),
                images: run.batch(),
                cores: run.cores().len() as u64,
                scheme: text(partition),
                cost: Cost {
                    latency,
                    energy: parts.total(),
                    parts,
                    traffic: moved.dram.div_ceil(machine.dram_bandwidth),
                },
            });
        }
    }
    Ok(total(running, batch, segments.layers.len(), machine))
}

/// Data that a run moves.
struct Moved {
    /// pJ of filling and reading the global buffers.
    exchange: f64,
    /// Bytes from and to DRAM.
    dram: u64,
}

impl RunningSegment {
    fn moves(
        &mut self,
        schedule: &Schedule,
        transfers: &Transfers<'_>,
        run: &Run<'_>,
        node: &Node,
        machine: &Machine,
    ) -> Moved {
        let (mut written, mut read, mut dram) = (0.0, 0.0, 0);
        let operands = match node.layer.op {
            irc_npu_cost::Op::Eltwise { operands } => operands,
            _ => 1,
        };
        for ((core, index), workload) in &run.workloads {
            let part = region(&workload.extent);
            read += part.volume() as f64;
            let inputs =
                workload.ifmaps().first().map_or(0, |ifmap| region(&ifmap.extent()).volume());
            written += (inputs * operands) as f64;
            if let Some(weights) = node.layer.weight_region(part) {
                let bytes = irc_npu_cost::Region { images: irc_npu_cost::Span::upto(1), ..weights };
                let is_new = node.has_made_weights()
                    || workload
                        .weight
                        .iter()
                        .flat_map(|weight| weight.transfers())
                        .all(|id| self.is_first(transfers, id, (*core, *index)));
                written += if is_new { bytes.volume() as f64 } else { 0.0 };
            }
            let at = place_of(schedule, schedule.cores[*core].id);
            let weights = workload.weight.iter().flat_map(|weight| weight.transfers());
            let inputs = workload.ifmaps().iter().flat_map(|ifmap| ifmap.transfer_id.iter());
            for id in inputs.chain(weights) {
                let Some(block) = transfers.dram_out(id) else { continue };
                if !self.loaded.insert(id) {
                    continue;
                }
                let bytes = (block.size / 8).max(0) as u64;
                let mut to = places(schedule, &block.destination);
                // Files list the readers of a block; one that they omit reads it here.
                to.extend((to.is_empty()).then_some(at));
                self.flow.load(&to, bytes);
                dram += bytes;
            }
            for part in results(workload) {
                let bytes = part.extent.volume().max(0) as u64;
                let stores = part.destination.iter().any(|target| target.core().is_none());
                if stores {
                    self.flow.store(at, bytes);
                    dram += bytes;
                }
                let to = places(schedule, part.destination);
                self.flow.send(at, &to, bytes);
            }
        }
        Moved { exchange: written * machine.buffer.write + read * machine.buffer.read, dram }
    }

    /// Whether a workload is the first of its core that reads a block of DRAM.
    fn is_first(&self, transfers: &Transfers<'_>, id: i64, (core, index): Place) -> bool {
        transfers.users(id).iter().filter(|user| user.0 == core).all(|user| user.1 >= index)
    }

    fn run(&mut self, transfers: &Transfers<'_>, run: &Run<'_>, latency: u64) {
        let cores = run.cores();
        let free = cores.iter().filter_map(|core| self.free.get(core)).max();
        let mut start = free.copied().unwrap_or(0);
        for (_, workload) in &run.workloads {
            let weights = workload.weight.iter().flat_map(|weight| weight.transfers());
            let inputs = workload.ifmaps().iter().flat_map(|ifmap| ifmap.transfer_id.iter());
            let direct = inputs.chain(weights).filter(|id| transfers.dram_out(*id).is_none());
            for producer in direct.filter_map(|id| transfers.producer(id)) {
                start = start.max(self.ends.get(&producer).copied().unwrap_or(0));
            }
        }
        self.free.extend(cores.into_iter().map(|core| (core, start + latency)));
        self.ends.extend(run.workloads.iter().map(|(place, _)| (*place, start + latency)));
    }
}

/// A part of a result with its readers.
struct Sent<'s> {
    extent: irc_gemini_format::schedule::Extent,
    destination: &'s [Target],
}

/// The parts of a workload's result: in the workload, or in dialect C in the buffer.
fn results(workload: &Workload) -> Vec<Sent<'_>> {
    let own = workload.ofmaps().iter();
    let mut all: Vec<Sent<'_>> =
        own.map(|part| Sent { extent: part.extent(), destination: &part.destination }).collect();
    let is_own = |resident: &&irc_gemini_format::schedule::Resident| {
        resident.workload_id == Some(workload.workload_id)
    };
    for resident in workload.buffer.iter().filter(is_own) {
        for part in resident.destinations.iter().flatten() {
            let extent = irc_gemini_format::schedule::Extent::new(part.lower, part.upper);
            all.push(Sent { extent, destination: &part.destination });
        }
    }
    all
}

/// The places of the cores among some targets, each once, in ascending order.
fn places(schedule: &Schedule, targets: &[Target]) -> Vec<CorePlace> {
    let cores: BTreeSet<CorePlace> = targets
        .iter()
        .filter(|target| target.core().is_some())
        .flat_map(|target| target.id.iter().flat_map(Ids::iter).chain(target.core_id))
        .map(|id| place_of(schedule, id))
        .collect();
    cores.into_iter().collect()
}

fn place_of(schedule: &Schedule, id: i64) -> CorePlace {
    let columns = schedule.xlen + 2;
    let x = (id.rem_euclid(columns) - 1).clamp(0, schedule.xlen - 1);
    CorePlace { x: x as u64, y: id.div_euclid(columns).clamp(0, schedule.ylen - 1) as u64 }
}

fn text(Partition([channels, images, rows, columns]): Partition) -> String {
    format!("(K:{channels},B:{images},H:{rows},W:{columns})")
}

/// The report of all groups of all segments.
fn total(
    running: BTreeMap<(usize, usize), RunningSegment>,
    batch: u64,
    count: usize,
    machine: &Machine,
) -> Report {
    let mut reports: Vec<SegmentReport> = (0..count)
        .map(|_| SegmentReport {
            cost: Cost::default(),
            bound: Bound::Compute.name(),
            layers: vec![],
        })
        .collect();
    let mut sum = Cost::default();
    for ((_, number), segment) in running {
        let traffic = segment.flow.traffic();
        let parts = Energy {
            links: traffic.link_energy(machine),
            dram: traffic.dram_energy(machine),
            ..segment.energy
        };
        let cores = segment.free.values().copied().max().unwrap_or(0);
        let dram = traffic.dram.div_ceil(machine.dram_bandwidth);
        let links = traffic.busiest().div_ceil(machine.link_bandwidth);
        let latency = cores.max(dram).max(links);
        let cost = Cost { latency, energy: parts.total(), parts, traffic: dram.max(links) };
        let priced = SegmentCost { cost, cores, dram, links, layers: vec![] };
        let report = &mut reports[number];
        if report.layers.is_empty() {
            report.layers = segment.layers;
            report.bound = priced.bound(machine).name();
        }
        report.cost += &cost;
        sum += &cost;
    }
    Report { batch, cost: sum, segments: reports }
}
