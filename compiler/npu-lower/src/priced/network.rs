//! The network of a schedule.
//!
//! A schedule states what its workloads read and compute, how large weights are, and how long a workload takes. It does
//! not state windows, strides and groups: of those that are consistent with everything that is read, the layer
//! has the first with which its workloads take the time that is stated.

use irc_diag::{Diagnostic, counted};
use irc_gemini_format::schedule::{
    Extent, LayerKind, LayerWindow, ResidentKind, Schedule, Source, Transfers, Workload,
};
use irc_npu_cost::{
    Axis, Layer, Machine, Network, Node, Objective, Op, Reads, Region, Shape, Window, map,
};
use std::collections::{BTreeMap, BTreeSet};

use super::runs::{Run, region, runs};

/// Maximum window of a pool that does not read all rows, and maximum stride.
const MAX_KERNEL: u64 = 16;
const MAX_STRIDE: u64 = 8;

/// The workloads that are compared with a window, at most.
const MAX_COMPARED: usize = 512;

/// What the workloads of a layer state about it.
struct Facts<'s> {
    name: &'s str,
    workloads: Vec<&'s Workload>,
    output: Shape,
    /// Tensors that it reads: the first channel, in the order of channels. Layers, or tensors from outside
    /// with their channels, rows and columns.
    inputs: Vec<(i64, Read)>,
    /// Layers whose results are its weights, in the order of channels.
    weights: Vec<usize>,
    /// Layers of which the first comes before the second in the network, as it does in what is concatenated.
    pairs: Vec<(usize, usize)>,
    /// Elements of constant weights for each output channel.
    elements: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    Layer(usize),
    Outside(Shape),
}

/// The network of a valid schedule.
///
/// # Errors
/// `layer-schedule` at the first workload of a layer that no operation explains.
pub fn network(
    schedule: &Schedule,
    machine: &Machine,
    objective: Objective,
) -> Result<Network, Box<Diagnostic>> {
    let facts = facts(schedule)?;
    let runs = runs(schedule);
    let first_runs: BTreeMap<&str, &Run<'_>> =
        runs.iter().rev().map(|run| (run.layer, run)).collect();
    let mut network = Network::new("schedule");
    // The index in the network of each layer.
    let mut placed: Vec<Option<usize>> = vec![None; facts.len()];
    // Other tools may list the operands of elementwise layers in another order.
    let ordered = order(&facts, true).or_else(|| order(&facts, false));
    for layer in ordered.ok_or_else(|| {
        let message = "no order of layers has the results that each concatenates in their order";
        Box::new(Diagnostic::error("layer-schedule", message))
    })? {
        let own = &facts[layer];
        let index = |of: usize| placed[of].unwrap_or(usize::MAX);
        let inputs: Vec<usize> =
            own.inputs.iter().filter_map(|(_, read)| layer_of(*read)).collect();
        let inputs: Vec<usize> = inputs.into_iter().map(index).collect();
        let weights: Vec<usize> = own.weights.iter().copied().map(index).collect();
        let reads = Reads { inputs: &inputs, external: own.outside(), weights: &weights };
        let mut best: Option<Layer> = None;
        let run = first_runs.get(own.name);
        let stated = schedule.windows.iter().flatten().find(|one| one.layer_name == own.name);
        let ops = own.ops(&facts).into_iter();
        let ops: Vec<Op> = match stated {
            Some(stated) => ops.take(1).map(|op| with_window(op, stated, &own.weights)).collect(),
            None => ops.collect(),
        };
        for op in ops {
            let layer = Layer::new(own.name, op, own.output);
            let Ok(node) = network.node_of(layer, reads) else { continue };
            if !own.is_read_by(&node) {
                continue;
            }
            let is_timed = run.is_some_and(|run| {
                let mapping = map(&node, run.partition(), run.batch(), machine, objective);
                mapping.is_some_and(|mapping| run.takes(&node, mapping.time))
            });
            if best.is_none() || is_timed {
                best = Some(node.layer);
            }
            if is_timed {
                break;
            }
        }
        let found = best.ok_or_else(|| own.unexplained(schedule))?;
        network.add_reading(found, reads)?;
        placed[layer] = Some(network.nodes().len() - 1);
    }
    Ok(network)
}

fn layer_of(read: Read) -> Option<usize> {
    match read {
        Read::Layer(layer) => Some(layer),
        Read::Outside(_) => None,
    }
}

fn facts(schedule: &Schedule) -> Result<Vec<Facts<'_>>, Box<Diagnostic>> {
    let transfers = Transfers::new(schedule);
    let mut all: Vec<(i64, &Workload)> =
        schedule.workloads().map(|(_, _, workload)| (workload.workload_id, workload)).collect();
    all.sort_by_key(|(id, _)| *id);
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut facts: Vec<Facts<'_>> = vec![];
    for (_, workload) in &all {
        let name = workload.layer_name.as_str();
        let number = *numbers.entry(name).or_insert_with(|| {
            facts.push(Facts {
                name,
                workloads: vec![],
                output: Shape::new(1, 1, 1),
                inputs: vec![],
                weights: vec![],
                pairs: vec![],
                elements: None,
            });
            facts.len() - 1
        });
        let own = &mut facts[number];
        own.workloads.push(workload);
        let end = |axis: usize| (workload.extent.axis(axis).1 + 1).max(1) as u64;
        let Shape { channels, rows, columns } = own.output;
        own.output = Shape::new(channels.max(end(1)), rows.max(end(2)), columns.max(end(3)));
    }
    for own in &mut facts {
        read(own, &numbers, &transfers);
    }
    Ok(facts)
}

/// The sources of a workload's operands of a kind.
fn sources(workload: &Workload, kind: ResidentKind) -> impl Iterator<Item = &Source> {
    let own = move |resident: &&irc_gemini_format::schedule::Resident| {
        resident.kind == kind && resident.workload_id == Some(workload.workload_id)
    };
    workload.buffer.iter().filter(own).flat_map(|resident| resident.sources())
}

fn read(own: &mut Facts<'_>, numbers: &BTreeMap<&str, usize>, transfers: &Transfers<'_>) {
    let mut inputs: BTreeMap<(i64, &str), (usize, Extent)> = BTreeMap::new();
    // By first channel; SET states the same one for all, and lists them in their order.
    let mut weights: Vec<(i64, usize)> = vec![];
    let mut listed_weights: Vec<usize> = vec![];
    let place = |source: &Source| {
        let extent = source.extent()?;
        let low = source.channel.map_or(extent.axis(1).0, |[low, _]| low);
        Some((low - extent.axis(1).0, extent))
    };
    for workload in &own.workloads {
        for source in sources(workload, ResidentKind::Ifmap) {
            let Some((first, extent)) = place(source) else { continue };
            let name = source.layer_name.as_deref().unwrap_or("");
            let count = inputs.len();
            let entry = inputs.entry((first, name)).or_insert((count, extent));
            entry.1 = entry.1.joined(&extent);
        }
        for source in sources(workload, ResidentKind::Weight) {
            let known = source.layer_name.as_deref().and_then(|name| numbers.get(name));
            let Some((number, (first, _))) = known.zip(place(source)) else { continue };
            if !weights.contains(&(first, *number)) {
                weights.push((first, *number));
            }
        }
        let Some(weight) = &workload.weight else { continue };
        if weight.from_ofmap == Some(true) {
            // SET lists no sources of results that serve as weights, only their transfers.
            for id in weight.transfers().filter(|_| own.weights.is_empty()) {
                let Some(number) = made_by(id, transfers).and_then(|name| numbers.get(name)) else {
                    continue;
                };
                if !listed_weights.contains(number) {
                    listed_weights.push(*number);
                }
            }
            continue;
        }
        let block = weight.transfers().find_map(|id| transfers.dram_out(id));
        if let Some((block, (low, high))) =
            block.filter(|one| one.is_weight()).zip(weight.channels())
        {
            own.elements = Some((block.size / 8 / (high - low + 1).max(1)).max(0) as u64);
        }
    }
    let is_eltwise = own.is_eltwise();
    let mut all: Vec<((i64, usize), i64, Read)> = inputs
        .into_iter()
        .map(|((first, name), (appeared, extent))| {
            let end = |axis: usize| (extent.axis(axis).1 + 1).max(1) as u64;
            let outside = Read::Outside(Shape::new(end(1), end(2), end(3)));
            let read = numbers.get(name).map_or(outside, |number| Read::Layer(*number));
            ((if is_eltwise { 0 } else { first }, appeared), first, read)
        })
        .collect();
    all.sort_by_key(|(key, ..)| *key);
    own.inputs = all.into_iter().map(|(_, first, read)| (first, read)).collect();
    own.weights = match weights.is_empty() {
        true => listed_weights,
        false => {
            weights.sort_by_key(|(first, _)| *first);
            weights.into_iter().map(|(_, number)| number).collect()
        }
    };
    own.add_rest();
    let chain = |layers: &[usize]| layers.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let inputs: Vec<usize> = own.inputs.iter().filter_map(|(_, read)| layer_of(*read)).collect();
    let mut pairs: BTreeSet<(usize, usize)> = match is_eltwise {
        // Operands overlap in channels: each workload lists what it reads in order.
        true => own.workloads.iter().flat_map(|workload| listed(workload, numbers)).collect(),
        false => chain(&inputs),
    };
    pairs.append(&mut chain(&own.weights));
    own.pairs = pairs.into_iter().filter(|(a, b)| a != b).collect();
}

/// The layer that computes a transfer, or that has stored the block that it loads.
fn made_by<'s>(id: i64, transfers: &Transfers<'s>) -> Option<&'s str> {
    let place = transfers.producer(id).or_else(|| transfers.storers(id).next())?;
    transfers.layer(place)
}

/// The layers whose results a workload lists one after the other.
fn listed(workload: &Workload, numbers: &BTreeMap<&str, usize>) -> Vec<(usize, usize)> {
    let known = |source: &Source| numbers.get(source.layer_name.as_deref()?).copied();
    let all: Vec<usize> = sources(workload, ResidentKind::Ifmap).filter_map(known).collect();
    all.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// The layers in an order in which each follows those that it reads, and results that a layer concatenates are
/// in the order of their channels.
fn order(facts: &[Facts<'_>], with_operands: bool) -> Option<Vec<usize>> {
    let mut after: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); facts.len()];
    let mut waits = vec![0_usize; facts.len()];
    let mut edge = |from: usize, to: usize| {
        if from != to && after[from].insert(to) {
            waits[to] += 1;
        }
    };
    for (layer, own) in facts.iter().enumerate() {
        if with_operands || !own.is_eltwise() {
            own.pairs.iter().for_each(|(first, second)| edge(*first, *second));
        }
        let inputs = own.inputs.iter().filter_map(|(_, read)| layer_of(*read));
        inputs.chain(own.weights.iter().copied()).for_each(|read| edge(read, layer));
    }
    let mut ready: BTreeSet<usize> = (0..facts.len()).filter(|layer| waits[*layer] == 0).collect();
    let mut order = vec![];
    while let Some(layer) = ready.pop_first() {
        order.push(layer);
        for next in &after[layer] {
            waits[*next] -= 1;
            if waits[*next] == 0 {
                ready.insert(*next);
            }
        }
    }
    (order.len() == facts.len()).then_some(order)
}

impl Facts<'_> {
    fn is_eltwise(&self) -> bool {
        self.workloads.iter().any(|one| one.layer_type == Some(LayerKind::ElementWise))
    }

    /// What it reads from outside of the network, as one tensor.
    fn outside(&self) -> Option<Shape> {
        let shapes = self.inputs.iter().filter_map(|(_, read)| match read {
            Read::Outside(shape) => Some(*shape),
            Read::Layer(_) => None,
        });
        shapes.reduce(|all, next| {
            Shape::new(
                all.channels + next.channels,
                all.rows.max(next.rows),
                all.columns.max(next.columns),
            )
        })
    }

    /// Adds channels that workloads read from outside the network without a source.
    fn add_rest(&mut self) {
        let reads = self.workloads.iter().filter_map(|workload| workload.ifmaps().first());
        let ends = reads.map(|ifmap| ifmap.extent().axis(1).1 + 1);
        let (wanted, is_eltwise) = (ends.max().unwrap_or(0).max(0) as u64, self.is_eltwise());
        let known = self.inputs.iter().map(|(first, read)| match read {
            Read::Outside(shape) => *first as u64 + shape.channels,
            Read::Layer(_) => wanted,
        });
        let known = known.max().unwrap_or(0);
        if known < wanted && !is_eltwise {
            let Shape { rows, columns, .. } = self.output;
            let rest = Read::Outside(Shape::new(wanted - known, rows, columns));
            self.inputs.push((known as i64, rest));
        }
    }

    /// Channels of all that it reads, and the rows and columns.
    fn given(&self, facts: &[Facts<'_>]) -> Shape {
        let shapes = self.inputs.iter().map(|(_, read)| match read {
            Read::Outside(shape) => *shape,
            Read::Layer(layer) => facts[*layer].output,
        });
        let joined = shapes.reduce(|all, next| {
            Shape::new(
                all.channels + next.channels,
                all.rows.max(next.rows),
                all.columns.max(next.columns),
            )
        });
        joined.unwrap_or(self.output)
    }

    /// The operations that it may be, the most likely first.
    fn ops(&self, facts: &[Facts<'_>]) -> Vec<Op> {
        let given = self.given(facts);
        let kind = self.workloads[0].layer_type;
        let is_product = !self.weights.is_empty() || self.workloads[0].weight.is_some();
        match kind {
            Some(LayerKind::Conv2d | LayerKind::Fc | LayerKind::Pe) | None if is_product => {
                self.products(given)
            }
            Some(LayerKind::Pool) => self.windows(given, None).into_iter().map(Op::Pool).collect(),
            Some(LayerKind::ElementWise) => {
                vec![Op::Eltwise { operands: given.channels.div_ceil(self.output.channels) }]
            }
            Some(LayerKind::PointToPoint) => vec![Op::Pointwise],
            _ => {
                let axes = [Axis::Channels, Axis::Rows, Axis::Columns];
                let orders = [[1, 0, 2], [2, 1, 0], [0, 2, 1], [1, 2, 0], [2, 0, 1]];
                let order = |order: [usize; 3]| Op::Transpose { order: order.map(|at| axes[at]) };
                orders.into_iter().map(order).collect()
            }
        }
    }

    /// Convolutions, perhaps grouped.
    fn products(&self, given: Shape) -> Vec<Op> {
        let (channels, filters) = (given.channels, self.output.channels);
        let made = !self.weights.is_empty();
        let is_divisor =
            |groups: &u64| channels.is_multiple_of(*groups) && filters.is_multiple_of(*groups);
        let mut all = vec![];
        for groups in (1..=channels.min(filters)).filter(is_divisor) {
            // Weights that are results have windows of one element.
            let area = match (self.elements, made) {
                (Some(elements), false) if (elements * groups).is_multiple_of(channels) => {
                    elements * groups / channels
                }
                (_, true) => 1,
                _ => continue,
            };
            if area == 0 || area > given.rows.max(MAX_KERNEL) * given.columns.max(MAX_KERNEL) {
                continue;
            }
            let windows = match made {
                true => vec![Window::POINT],
                false => self.windows(given, Some(area)),
            };
            all.extend(windows.into_iter().map(|window| match groups == 1 && !made {
                true => Op::Conv { channels, window },
                false => Op::GroupedConv { channels, window, groups },
            }));
        }
        all
    }

    /// Windows of so many elements, if they are known; square ones, and small strides first.
    fn windows(&self, given: Shape, area: Option<u64>) -> Vec<Window> {
        let Shape { rows, columns, .. } = given;
        let mut kernels: Vec<[u64; 2]> = vec![];
        match area {
            Some(area) => {
                let divisors = (1..=area).filter(|divisor| area.is_multiple_of(*divisor));
                kernels.extend(divisors.map(|divisor| [divisor, area / divisor]));
                kernels.sort_by_key(|[a, b]| (a.abs_diff(*b), *a));
            }
            None => {
                let small = || 1..=MAX_KERNEL;
                kernels.extend(small().map(|side| [side, side]));
                kernels.push([rows, columns]);
                kernels.extend(small().flat_map(|side| [[side, 1], [1, side]]));
            }
        }
        // Along an axis with one result, any stride is the same.
        let strides = |count: u64| if count == 1 { 1..=1 } else { 1..=MAX_STRIDE };
        let mut all = vec![];
        for kernel in kernels {
            let mut strides: Vec<[u64; 2]> = strides(self.output.rows)
                .flat_map(|a| strides(self.output.columns).map(move |b| [a, b]))
                .collect();
            strides.sort_by_key(|[a, b]| (a.abs_diff(*b), *a));
            all.extend(strides.into_iter().map(|stride| Window { kernel, stride }));
        }
        all
    }

    /// Whether its workloads read what a node does.
    fn is_read_by(&self, node: &Node) -> bool {
        let [kernel_rows, kernel_columns] = node.layer.window().kernel;
        let mut compared = self.workloads.iter().take(MAX_COMPARED).filter_map(|workload| {
            let read = workload.ifmaps().first()?.extent();
            Some((region(&workload.extent), region(&read)))
        });
        let mut paddings: Vec<[u64; 2]> = vec![node.padding];
        // Models may have more padding before the first row than after the last, or less.
        paddings.extend((0..kernel_rows).flat_map(|rows| {
            (0..kernel_columns)
                .filter(move |columns| *columns == rows || rows * columns == 0)
                .map(move |columns| [rows, columns])
        }));
        let all: Vec<(Region, Region)> = compared.by_ref().collect();
        let is_eltwise = matches!(node.layer.op, Op::Eltwise { .. });
        paddings.into_iter().any(|padding| {
            all.iter().all(|(made, read)| {
                let wanted = node.layer.input_region(*made, node.input, padding);
                let same = (wanted.rows, wanted.columns) == (read.rows, read.columns);
                same && (is_eltwise || wanted.channels == read.channels)
            })
        })
    }

    fn unexplained(&self, schedule: &Schedule) -> Box<Diagnostic> {
        let is_own =
            |(_, _, workload): &(usize, usize, &Workload)| workload.layer_name == self.name;
        let place = schedule.workloads().find(is_own).map(|(core, index, _)| (core, index));
        let message = format!(
            "layer {}: no operation reads what its workloads read: {}, {} of weights for each output channel",
            self.name,
            counted(self.inputs.len(), "input"),
            counted(self.elements.unwrap_or(0), "element")
        );
        let found = Diagnostic::error("layer-schedule", message);
        Box::new(match place {
            Some(place) => found.path(schedule.workload_path(place)),
            None => found,
        })
    }
}

/// An operation with the window and groups that a schedule states.
fn with_window(op: Op, stated: &LayerWindow, weights: &[usize]) -> Op {
    let size = |pair: [i64; 2]| pair.map(|number| number.max(1) as u64);
    let window = Window { kernel: size(stated.kernel), stride: size(stated.stride) };
    let groups = stated.groups.max(1) as u64;
    match op {
        Op::Pool(_) => Op::Pool(window),
        Op::Conv { channels, .. } | Op::GroupedConv { channels, .. } => {
            match groups == 1 && weights.is_empty() {
                true => Op::Conv { channels, window },
                false => Op::GroupedConv { channels, window, groups },
            }
        }
        other => other,
    }
}
