//! The cost of a tree: that of leaves with their best schemes, combined at cuts.
//!
//! A temporal cut takes the sum of its children's times, a spatial cut the time of its slowest child
//! for each group and each stage of filling the pipeline. A child of a temporal root, a segment,
//! takes at least as long as links and DRAM need for all its data (SET, `schnode.cpp`).

use irc_diag::counted;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::diagnostic::{Result, error};
use crate::layout::ProducedParts;
use crate::leaf::{PlacedLayer, Task};
use crate::machine::Machine;
use crate::memo::Memo;
use crate::mesh;
use crate::network::Network;
use crate::objective::Objective;
use crate::partition::{Partition, Scheme};
use crate::placement::Placement;
use crate::traffic::Traffic;
use crate::tree::{Cut, CutStep, Extent, Facts, Kind, LeafStep, Step, StepKind, Tree, resolve};
use crate::usage::{Room, Usage};

/// Energy in pJ of each part of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy {
    /// Global buffers.
    pub buffer: f64,
    /// Smaller memories of the cores.
    pub local: f64,
    /// Between processing elements of a core.
    pub bus: f64,
    /// Computing.
    pub compute: f64,
    /// Links between cores, and between dies.
    pub links: f64,
    /// DRAM.
    pub dram: f64,
}

impl Energy {
    /// All parts together.
    pub fn total(&self) -> f64 {
        self.buffer + self.local + self.bus + self.compute + self.links + self.dram
    }
}

/// A cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Cycles.
    pub latency: u64,
    /// pJ, accumulated leaf by leaf: the sum of the parts, up to rounding.
    pub energy: f64,
    /// pJ by part.
    pub parts: Energy,
    /// Cycles that links and DRAM need for all data.
    pub traffic: u64,
}

impl std::ops::AddAssign<&Self> for Cost {
    fn add_assign(&mut self, other: &Self) {
        self.latency += other.latency;
        self.energy += other.energy;
        self.traffic += other.traffic;
        let (to, from) = (&mut self.parts, &other.parts);
        to.buffer += from.buffer;
        to.local += from.local;
        to.bus += from.bus;
        to.compute += from.compute;
        to.links += from.links;
        to.dram += from.dram;
    }
}

/// A scheduled layer.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerCost {
    /// Its index in the network.
    pub layer: usize,
    /// Images at a time.
    pub batch: u64,
    /// Core numbers.
    pub cores: Range<u64>,
    /// Its scheme.
    pub scheme: Scheme,
    /// The cost for its images at a time.
    pub cost: Cost,
}

/// The result of evaluating a tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// The cost of all images.
    pub cost: Cost,
    /// Layers in the order of the tree.
    pub layers: Vec<LayerCost>,
}

/// A network on a machine. Results are memoised, so that further trees take less time.
pub struct Model<'a> {
    network: &'a Network,
    machine: &'a Machine,
    objective: Objective,
    memo: Memo,
    facts: Facts,
    /// The places of results, by layer; between evaluations none.
    made: Vec<Option<Arc<ProducedParts>>>,
}

/// What limits the speed of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The cores.
    Compute,
    /// The busiest link of the network on chip.
    Links,
    /// DRAM.
    Dram,
}

impl Bound {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Links => "links",
            Self::Dram => "dram",
        }
    }
}

/// The result of evaluating a segment: a child of a temporal root.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentCost {
    /// The cost of its images.
    pub cost: Cost,
    /// Cycles that the cores need, before the limits of links and DRAM for all its data.
    pub cores: u64,
    /// Cycles that DRAM needs.
    pub dram: u64,
    /// Cycles that the busiest link needs.
    pub links: u64,
    /// Its layers in the order of the tree.
    pub layers: Vec<LayerCost>,
}

impl SegmentCost {
    /// What limits the speed of the segment. Of a segment that its cores limit, layers may wait for DRAM one by
    /// one: if they are the larger part, DRAM is the limit.
    pub fn bound(&self, machine: &Machine) -> Bound {
        if self.cost.latency > self.cores {
            return if self.dram >= self.links { Bound::Dram } else { Bound::Links };
        }
        let (mut waiting, mut computing) = (0, 0);
        for layer in &self.layers {
            let bytes = (layer.cost.parts.dram / machine.dram).round() as u64;
            let latency = layer.cost.latency;
            match latency == machine.delay(bytes.div_ceil(machine.dram_bandwidth)) {
                true => waiting += latency,
                false => computing += latency,
            }
        }
        if waiting > computing { Bound::Dram } else { Bound::Compute }
    }
}

/// An evaluated node.
struct NodeCost {
    latency: u64,
    /// Cycles before the last bound by links and DRAM.
    unbounded: u64,
    energy: f64,
    /// Cycles without links and DRAM.
    parts: Energy,
    traffic: Traffic,
    /// Inputs that must be present before the node runs.
    inputs: Usage,
    /// Weights that stay in the buffers while it runs.
    weights: Usage,
    /// Contents of the buffers while it runs, except weights.
    working: Usage,
}

/// The context of a node: which parts of buffer usage are ignored there.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    /// Below a temporal root: all inputs and results pass through DRAM.
    Segment,
    Inner,
}

/// A traversal of a tree.
struct Walk<'m, 'a> {
    model: &'m mut Model<'a>,
    /// Images for which constant weights are loaded once.
    batch: u64,
    /// pJ that a cycle is worth to each layer without a scheme, instead of the objective.
    prices: &'m [Option<f64>],
    /// The placement of each layer, if placements are given.
    placements: &'m [Option<Placement>],
    layers: Vec<LayerCost>,
    /// The index of the first layer of the segment.
    segment: usize,
}

impl<'a> Model<'a> {
    /// A network on a machine, with the objective that selects schemes.
    ///
    /// # Errors
    /// `cost-machine` if a parameter of the machine is invalid.
    pub fn new(network: &'a Network, machine: &'a Machine, objective: Objective) -> Result<Self> {
        machine.check()?;
        let facts = Facts::new(network, machine);
        let made = vec![None; network.nodes().len()];
        Ok(Self { network, machine, objective, memo: Memo::default(), facts, made })
    }

    /// The cost of a tree.
    ///
    /// # Errors
    /// A tree that is not valid (`cost-tree-…`), a layer without a scheme (`cost-scheme`,
    /// `cost-no-scheme`), buffers that overflow (`cost-no-room`), or a spatial cut whose cores
    /// cannot be divided among its children (`cost-no-cores`), at the node concerned.
    pub fn evaluate(&mut self, tree: &Tree) -> Result<Evaluation> {
        let root = resolve(tree, self.network, &self.facts, Extent::Whole)?;
        let of_segment = match &root.kind {
            StepKind::Cut(Cut::Time, cut) => cut.children.first().map_or(1, |child| child.batch),
            _ => root.batch,
        };
        let loaded = if self.machine.reloads { of_segment } else { root.batch };
        let (done, layers) = self.walk(&root, loaded, &[], &[], Level::Root)?;
        Ok(Evaluation { cost: done.cost(self.machine), layers })
    }

    /// The cost of a tree whose layers are placed core by core: a sequence of pipelines, as in Gemini.
    ///
    /// # Errors
    /// As [`Model::evaluate`]; `cost-placement` for a placement that is not valid or missing, or a core with parts of
    /// two layers of a pipeline.
    pub fn evaluate_placed(
        &mut self,
        tree: &Tree,
        placements: &[Option<Placement>],
    ) -> Result<Evaluation> {
        check_placements(tree, self.network, placements)?;
        let root = resolve(tree, self.network, &self.facts, Extent::Whole)?;
        let (done, layers) = self.walk(&root, root.batch, &[], placements, Level::Root)?;
        Ok(Evaluation { cost: done.cost(self.machine), layers })
    }

    /// The cost of a child of the temporal root of a tree of `batch` images. It depends on nothing else in
    /// the tree, since all data from and to other segments pass through DRAM.
    ///
    /// A layer without a scheme gets the best one by the objective, or, if `prices` has a number of pJ for
    /// it, by its energy plus so much for each cycle.
    ///
    /// # Errors
    /// As [`Model::evaluate`], for the layers of the segment.
    pub fn segment(
        &mut self,
        tree: &Tree,
        batch: u64,
        prices: &[Option<f64>],
    ) -> Result<SegmentCost> {
        let step = resolve(tree, self.network, &self.facts, Extent::Segment(batch))?;
        let loaded = if self.machine.reloads { tree.batch } else { batch };
        let (done, layers) = self.walk(&step, loaded, prices, &[], Level::Segment)?;
        let (cost, machine) = (done.cost(self.machine), self.machine);
        let dram = machine.delay(done.traffic.dram_time(machine));
        let links = machine.delay(done.traffic.link_time(machine));
        Ok(SegmentCost { cost, cores: done.unbounded, dram, links, layers })
    }

    fn walk(
        &mut self,
        step: &Step<'_>,
        batch: u64,
        prices: &[Option<f64>],
        placements: &[Option<Placement>],
        level: Level,
    ) -> Result<(NodeCost, Vec<LayerCost>)> {
        let cores = 0..self.machine.mesh.cores();
        let mut walk = Walk { batch, prices, placements, layers: vec![], segment: 0, model: self };
        let done = walk.node(step, cores, level);
        let layers = walk.layers;
        layers.iter().for_each(|layer| self.made[layer.layer] = None);
        Ok((done?, layers))
    }
}

/// Checks that a tree is a sequence of pipelines of layers with placements, and that no core has two layers of one.
fn check_placements(
    tree: &Tree,
    network: &Network,
    placements: &[Option<Placement>],
) -> Result<()> {
    let wrong = |message: String| Err(error("cost-placement", message));
    let Kind::Cut(Cut::Time, segments) = &tree.kind else {
        return wrong("expected a temporal cut of spatial cuts of layers".into());
    };
    for segment in segments {
        let Kind::Cut(Cut::Space, leaves) = &segment.kind else {
            return wrong("expected spatial cuts below the root".into());
        };
        let mut taken: BTreeMap<u64, usize> = BTreeMap::new();
        for leaf in leaves {
            let Kind::Leaf(layer, _) = leaf.kind else {
                return wrong("expected layers below spatial cuts".into());
            };
            let name =
                |layer: usize| network.nodes().get(layer).map_or("?", |node| &node.layer.name);
            let Some(placement) = placements.get(layer).and_then(Option::as_ref) else {
                return wrong(format!("layer {} has no placement", name(layer)));
            };
            for &core in &placement.cores {
                if let Some(other) = taken.insert(core, layer).filter(|other| *other != layer) {
                    return wrong(format!(
                        "core {core} has parts of {} and {}",
                        name(other),
                        name(layer)
                    ));
                }
            }
        }
    }
    Ok(())
}

/// The cost of a tree of a network on a machine, with schemes chosen by the energy-delay product.
///
/// # Errors
/// As [`Model::new`] and [`Model::evaluate`].
pub fn evaluate(network: &Network, machine: &Machine, tree: &Tree) -> Result<Cost> {
    let mut model = Model::new(network, machine, Objective::EDP)?;
    Ok(model.evaluate(tree)?.cost)
}

impl Walk<'_, '_> {
    fn capacity(&self) -> Room {
        let Machine { buffer, mesh, .. } = self.model.machine;
        Room { capacity: buffer.size, mesh: *mesh }
    }

    fn node(&mut self, step: &Step<'_>, cores: Range<u64>, level: Level) -> Result<NodeCost> {
        let done = match &step.kind {
            StepKind::Leaf(leaf) => self.leaf(leaf, step.batch, cores, level),
            StepKind::Cut(Cut::Time, cut) => self.time(cut, cores, level),
            StepKind::Cut(Cut::Space, cut) => self.space(cut, cores, level),
        };
        done.map_err(|diagnostic| step.locate(diagnostic, self.model.network))
    }

    fn leaf(
        &mut self,
        leaf: &LeafStep,
        batch: u64,
        cores: Range<u64>,
        level: Level,
    ) -> Result<NodeCost> {
        let (model, layer) = (&mut *self.model, leaf.layer);
        let (machine, objective) = (model.machine, model.objective);
        let cores = match machine.package {
            // Gemini's model has no empty parts, so that a small layer leaves cores idle; so does any layer that cannot be
            // divided among all cores.
            Some(_) if self.placements.is_empty() => {
                let output = model.network.nodes()[layer].layer.output;
                let count = cores.end - cores.start;
                let is_small = output.volume().saturating_mul(batch) < count;
                let used = match is_small || count == machine.mesh.cores() {
                    true => Partition::most(count, output, batch),
                    false => count,
                };
                cores.start..cores.start + used
            }
            _ => cores,
        };
        let task = Task {
            network: model.network,
            layer,
            batch,
            times: self.batch / batch,
            cores: cores.clone(),
            made: &model.made,
            direct: &leaf.direct,
            stores: leaf.stores,
            scheme: leaf.scheme,
            price: self.prices.get(layer).copied().flatten(),
            on_dies: machine.package.is_some(),
            placements: self.placements,
            beside: match self.placements {
                [] => vec![],
                _ => self.layers[self.segment..].iter().map(|layer| layer.layer).collect(),
            },
        };
        let placement = self.placements.get(layer).and_then(Option::as_ref);
        let placed = match placement {
            Some(placement) => {
                placement.check(machine)?;
                let placed = task.placed(placement, machine, objective);
                Arc::new(placed.ok_or_else(|| {
                    error("cost-no-scheme", "no tile fits the memories of a core")
                })?)
            }
            None => model.memo.place(&task, machine, objective)?,
        };
        let scheme = placed.scheme;
        let count =
            placement.map_or(cores.end - cores.start, |placement| placement.cores.len() as u64);
        let done = self.place(&placed, layer, count, level)?;
        self.model.made[layer] = Some(placed.made.clone());
        let cost = done.cost(machine);
        self.layers.push(LayerCost { layer, batch, cores, scheme, cost });
        Ok(done)
    }

    fn place(
        &self,
        placed: &PlacedLayer,
        layer: usize,
        cores: u64,
        level: Level,
    ) -> Result<NodeCost> {
        let (machine, capacity) = (self.model.machine, self.capacity());
        let has_made_weights = self.model.network.nodes()[layer].has_made_weights();
        let (mut inputs, mut weights) = (placed.inputs.clone(), placed.weights.clone());
        if has_made_weights {
            inputs.add(&std::mem::take(&mut weights));
        }
        let working = inputs.clone().each_with(machine.output_tile).within(capacity)?;
        working.clone().and(&weights).within(capacity)?;
        let count = cores as f64;
        let parts = Energy {
            buffer: placed.exchange + placed.mapping.global * count,
            local: placed.mapping.local * count,
            bus: placed.mapping.bus * count,
            compute: placed.mapping.compute * count,
            ..Energy::default()
        };
        let (energy, traffic) = (placed.energy, placed.traffic.clone());
        // Gemini's model has the time of links in each layer, SET's in segments alone.
        let links = machine.package.map_or(0, |_| traffic.link_time(machine));
        let latency = machine.delay(placed.time.max(links));
        let unbounded = latency;
        let mut done =
            NodeCost { latency, unbounded, energy, parts, traffic, inputs, weights, working };
        if level != Level::Inner {
            done.bound(machine);
        }
        Ok(done)
    }

    fn time(&mut self, cut: &CutStep<'_>, cores: Range<u64>, level: Level) -> Result<NodeCost> {
        let groups = cut.groups;
        let below = if level == Level::Root { Level::Segment } else { Level::Inner };
        // Weights of a segment that runs once need not stay: they are loaded with the layer's inputs.
        let passing = level == Level::Segment && groups == 1;
        // Gemini's program counts the weights of such a segment for every run of it.
        let batch = self.batch;
        if passing && self.model.machine.package.is_some() {
            self.batch = cut.children.first().map_or(batch, |child| child.batch);
        }
        let mut sum = NodeCost::empty();
        let (mut first, mut last) = (None, None);
        for child in &cut.children {
            let done = self.node(child, cores.clone(), below)?;
            sum.add(&done);
            sum.latency = sum.latency.saturating_add(done.latency);
            if level != Level::Root {
                self.pass(&mut sum, last.as_ref(), &done, level, passing)?;
            }
            let held = ChildUsage::of(&done, passing);
            first.get_or_insert_with(|| held.clone());
            last = Some(held);
        }
        self.batch = batch;
        if let (Some(first), Some(last), true) = (first, last, level != Level::Root) {
            self.wrap(&mut sum, &first, &last, groups, level)?;
        }
        sum.repeat(groups, groups);
        if level == Level::Segment {
            sum.bound(self.model.machine);
        }
        Ok(sum)
    }

    /// The usage of buffers while one child runs and the inputs of the next are loaded.
    fn pass(
        &self,
        sum: &mut NodeCost,
        last: Option<&ChildUsage>,
        next: &NodeCost,
        level: Level,
        passing: bool,
    ) -> Result<()> {
        let capacity = self.capacity();
        if level == Level::Inner {
            sum.inputs = std::mem::take(&mut sum.inputs).and(&next.inputs).within(capacity)?;
        }
        if let Some(last) = last {
            let both = ChildUsage::of(next, passing).before.and(&last.during).within(capacity)?;
            sum.working = std::mem::take(&mut sum.working).or(&both);
        }
        if !passing {
            sum.weights = std::mem::take(&mut sum.weights).and(&next.weights).within(capacity)?;
        }
        Ok(())
    }

    /// The usage of buffers while the last child runs and before the first runs again.
    fn wrap(
        &self,
        sum: &mut NodeCost,
        first: &ChildUsage,
        last: &ChildUsage,
        groups: u64,
        level: Level,
    ) -> Result<()> {
        let capacity = self.capacity();
        let mut end = last.during.clone();
        if groups > 1 {
            end = end.and(&first.before);
            if level == Level::Inner {
                sum.inputs = std::mem::take(&mut sum.inputs).times(groups).within(capacity)?;
            }
        }
        sum.working = std::mem::take(&mut sum.working).or(&end.within(capacity)?);
        sum.working.clone().and(&sum.weights).within(capacity)?;
        Ok(())
    }

    fn space(&mut self, cut: &CutStep<'_>, cores: Range<u64>, level: Level) -> Result<NodeCost> {
        let CutStep { groups, stages, children, .. } = cut;
        if level == Level::Segment {
            self.segment = self.layers.len();
        }
        let (machine, capacity) = (self.model.machine, self.capacity());
        let times: Vec<f64> = children.iter().map(|child| child.time).collect();
        let shared = match self.placements {
            [] => mesh::share_out(cores.clone(), &times, machine.least_shared),
            _ => Some(vec![cores.clone(); children.len()]),
        };
        let Some(shared) = shared else {
            let (parts, count) = (children.len(), cores.end - cores.start);
            let message = format!(
                "{} cannot be divided evenly among {parts} children",
                counted(count, "core")
            );
            return Err(error("cost-no-cores", message));
        };
        let mut sum = NodeCost::empty();
        for (child, cores) in children.iter().zip(shared) {
            let done = self.node(child, cores, Level::Inner)?;
            sum.add(&done);
            sum.latency = sum.latency.max(done.latency);
            // With several groups, the next one's inputs are loaded while this one runs.
            if *groups > 1 {
                sum.working = sum.working.and(&done.inputs).within(capacity)?;
            }
            sum.working = sum.working.and(&done.working).within(capacity)?;
            sum.weights = sum.weights.and(&done.weights).within(capacity)?;
            if level == Level::Inner {
                sum.inputs = sum.inputs.and(&done.inputs).within(capacity)?;
            }
        }
        sum.working.clone().and(&sum.weights).within(capacity)?;
        sum.inputs = sum.inputs.times(*groups).within(capacity)?;
        sum.repeat(*groups, groups + stages);
        if level != Level::Inner {
            sum.bound(machine);
        }
        Ok(sum)
    }
}

/// The buffer usage of a child of a temporal cut.
#[derive(Clone)]
struct ChildUsage {
    /// Before it runs.
    before: Usage,
    /// While it runs.
    during: Usage,
}

impl ChildUsage {
    fn of(done: &NodeCost, passing: bool) -> Self {
        let (before, during) = (done.inputs.clone(), done.working.clone());
        match passing {
            true => Self { before: before.and(&done.weights), during: during.and(&done.weights) },
            false => Self { before, during },
        }
    }
}

impl NodeCost {
    fn empty() -> Self {
        Self {
            latency: 0,
            unbounded: 0,
            energy: 0.0,
            parts: Energy::default(),
            traffic: Traffic::default(),
            inputs: Usage::default(),
            weights: Usage::default(),
            working: Usage::default(),
        }
    }

    /// Adds the energy and the data movements of another cost.
    fn add(&mut self, other: &Self) {
        self.energy += other.energy;
        self.parts.buffer += other.parts.buffer;
        self.parts.local += other.parts.local;
        self.parts.bus += other.parts.bus;
        self.parts.compute += other.parts.compute;
        self.traffic.add(&other.traffic);
    }

    /// The cost of several groups, each of which takes one of `turns`.
    fn repeat(&mut self, groups: u64, turns: u64) {
        let by = groups as f64;
        // Nested pipelines with few groups can take arbitrarily long.
        self.latency = self.latency.saturating_mul(turns);
        self.energy *= by;
        self.parts.buffer *= by;
        self.parts.local *= by;
        self.parts.bus *= by;
        self.parts.compute *= by;
        self.traffic.multiply(groups);
    }

    /// Raises the time to at least that of the data movements.
    fn bound(&mut self, machine: &Machine) {
        self.unbounded = self.latency;
        self.latency = self.latency.max(machine.delay(self.traffic.time(machine)));
        self.energy += machine.idle_energy(self.latency);
    }

    fn cost(&self, machine: &Machine) -> Cost {
        let idle = machine.idle_energy(self.latency);
        let links = self.traffic.link_energy(machine) + idle;
        let dram = self.traffic.dram_energy(machine);
        Cost {
            latency: self.latency,
            energy: self.energy,
            parts: Energy { links, dram, ..self.parts },
            traffic: machine.delay(self.traffic.time(machine)),
        }
    }
}
