//! The order in which a tree runs layers, and on which cores.

use std::ops::Range;

use crate::diagnostic::{Result, error};
use crate::evaluate::Evaluation;
use crate::layout::Parts;
use crate::machine::Machine;
use crate::mapper;
use crate::mesh::{Mesh, Place};
use crate::network::Network;
use crate::objective::Objective;
use crate::partition::Scheme;
use crate::shape::Region;
use crate::tree::{Cut, CutStep, Extent, Facts, LeafStep, Step, StepKind, Tree, resolve};

/// A layer that runs once, for some images.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its index in the network.
    pub layer: usize,
    /// Images of the batch.
    pub images: Range<u64>,
    /// Numbers of the cores.
    pub cores: Range<u64>,
    /// Its scheme.
    pub scheme: Scheme,
    /// Layers whose results are passed directly from the cores that computed them; others come from DRAM.
    pub direct: Vec<usize>,
    /// Whether the result goes to DRAM.
    pub stores: bool,
    /// The number of the segment that it belongs to: each run of each child of a temporal root is one.
    pub segment: usize,
    /// Cycles of a core, without waiting for data.
    pub cycles: u64,
    parts: Parts,
}

impl Run {
    /// The parts of the result, images counted from those of the batch, in the order of channels, images, rows
    /// and columns. Some may be empty.
    pub fn parts(&self) -> Vec<Region> {
        self.parts.regions().into_iter().map(|region| self.of_batch(region)).collect()
    }

    /// The parts that overlap a region, by number.
    pub fn meeting(&self, mut region: Region) -> Vec<(usize, Region)> {
        let first = self.images.start;
        region.images.from = region.images.from.saturating_sub(first);
        region.images.to = region.images.to.saturating_sub(first);
        let mut found = vec![];
        self.parts.meeting(region, false, |part, region| found.push((part, self.of_batch(region))));
        found
    }

    /// The cores of the parts.
    pub fn places(&self, mesh: Mesh) -> Vec<Place> {
        let core = |core: usize| mesh.place(self.cores.start + core as u64);
        self.scheme.cores().into_iter().map(core).collect()
    }

    fn of_batch(&self, mut region: Region) -> Region {
        region.images.from += self.images.start;
        region.images.to += self.images.start;
        region
    }
}

/// All runs of the layers of an evaluated tree, each after those whose results it reads.
///
/// # Errors
/// An invalid tree, or an evaluation of another tree.
pub fn runs(
    network: &Network,
    machine: &Machine,
    tree: &Tree,
    evaluation: &Evaluation,
    objective: Objective,
) -> Result<Vec<Run>> {
    let root = resolve(tree, network, &Facts::new(network, machine), Extent::Whole)?;
    let mut walk = Walk { layers: vec![], runs: vec![], segment: 0 };
    for layer in &evaluation.layers {
        let node = &network.nodes()[layer.layer];
        let partition = layer.scheme.partition;
        let mapping = mapper::map(node, partition, layer.batch, machine, objective);
        walk.layers.push(Leaf {
            cores: layer.cores.clone(),
            scheme: layer.scheme,
            cycles: mapping.map_or(0, |mapping| mapping.time),
            parts: Parts::new(node, partition, layer.batch),
        });
    }
    if walk.layers.len() != network.nodes().len() {
        return Err(error("cost-tree-layer", "the evaluation is of another tree"));
    }
    walk.step(&root, 0, &mut 0, true);
    Ok(walk.runs)
}

/// What all runs of a leaf share.
struct Leaf {
    cores: Range<u64>,
    scheme: Scheme,
    cycles: u64,
    parts: Parts,
}

struct Walk {
    /// The leaves, in the order of the tree.
    layers: Vec<Leaf>,
    runs: Vec<Run>,
    segment: usize,
}

impl Walk {
    /// Runs a node whose first leaf is at `next`, which is moved behind its last one.
    fn step(&mut self, step: &Step<'_>, first: u64, next: &mut usize, is_root: bool) {
        match &step.kind {
            StepKind::Leaf(leaf) => {
                self.leaf(leaf, first..first + step.batch, *next);
                *next += 1;
            }
            StepKind::Cut(cut, inner) => match cut {
                Cut::Time => self.time(inner, first, next, is_root),
                Cut::Space => self.space(inner, first, next),
            },
        }
    }

    fn time(&mut self, cut: &CutStep<'_>, first: u64, next: &mut usize, is_root: bool) {
        let start = *next;
        for group in 0..cut.groups {
            *next = start;
            for child in &cut.children {
                self.step(child, first + group * child.batch, next, false);
                self.segment += usize::from(is_root);
            }
        }
    }

    fn space(&mut self, cut: &CutStep<'_>, first: u64, next: &mut usize) {
        // The leaves before each child.
        let mut starts = vec![];
        for child in &cut.children {
            starts.push(*next);
            *next += child.leaves();
        }
        for turn in 0..cut.groups + cut.stages {
            for (index, child) in cut.children.iter().enumerate() {
                let Some(group) = turn.checked_sub(cut.delays[index]) else { continue };
                if group < cut.groups {
                    self.step(child, first + group * child.batch, &mut { starts[index] }, false);
                }
            }
        }
    }

    fn leaf(&mut self, leaf: &LeafStep, images: Range<u64>, at: usize) {
        let own = &self.layers[at];
        self.runs.push(Run {
            layer: leaf.layer,
            images,
            cores: own.cores.clone(),
            scheme: own.scheme,
            direct: leaf.direct.clone(),
            stores: leaf.stores,
            segment: self.segment,
            cycles: own.cycles,
            parts: own.parts.clone(),
        });
    }
}
