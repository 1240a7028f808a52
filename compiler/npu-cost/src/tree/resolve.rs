//! Properties derived from a tree alone: pipelines, data passed from core to core, and unit times.

use std::collections::BTreeMap;
use std::ops::Range;

use irc_diag::Diagnostic;

use crate::diagnostic::{Result, error};
use crate::machine::Machine;
use crate::mapper;
use crate::network::{MAX_BATCH, Network, Node};
use crate::partition::Scheme;

use super::{Cut, Kind, MAX_DEPTH, Tree};

/// A node of a valid tree.
pub struct Step<'t> {
    pub batch: u64,
    /// Cycles of one core for one image, in proportion to which cores are divided.
    pub time: f64,
    pub kind: StepKind<'t>,
    tree: &'t Tree,
}

/// The kind of a node.
pub enum StepKind<'t> {
    Leaf(LeafStep),
    Cut(Cut, CutStep<'t>),
}

/// A layer of a valid tree.
pub struct LeafStep {
    pub layer: usize,
    pub scheme: Option<Scheme>,
    /// Layers whose results are passed directly from the cores that computed them.
    pub direct: Vec<usize>,
    /// Whether the result goes to DRAM.
    pub stores: bool,
}

/// A cut of a valid tree.
pub struct CutStep<'t> {
    /// Number of runs of the children.
    pub groups: u64,
    /// Delay of the last stage of a pipeline, in groups.
    pub stages: u64,
    /// Delay of each child, in groups; empty in a temporal cut, where children run in turn.
    pub delays: Vec<u64>,
    pub children: Vec<Step<'t>>,
}

impl Step<'_> {
    /// The number of leaves.
    pub fn leaves(&self) -> usize {
        match &self.kind {
            StepKind::Leaf(_) => 1,
            StepKind::Cut(_, cut) => cut.children.iter().map(Step::leaves).sum(),
        }
    }

    /// A diagnostic at the node.
    pub fn locate(&self, diagnostic: Box<Diagnostic>, network: &Network) -> Box<Diagnostic> {
        locate(self.tree, diagnostic, network)
    }
}

/// The path from the root to a leaf: the index of the child at each cut.
type Path = Vec<usize>;

/// What trees of a network have in common.
pub struct Facts {
    /// The layers that read each layer.
    readers: Vec<Vec<usize>>,
    /// Cycles of one core for one image of each layer.
    times: Vec<f64>,
}

impl Facts {
    pub fn new(network: &Network, machine: &Machine) -> Self {
        let mut readers = vec![vec![]; network.nodes().len()];
        for (layer, node) in network.nodes().iter().enumerate() {
            node.reads().for_each(|made| readers[made].push(layer));
        }
        let time = |node: &Node| mapper::unit_time(&node.layer, machine);
        Self { readers, times: network.nodes().iter().map(time).collect() }
    }
}

/// How much of a network a tree is.
#[derive(Clone, Copy, PartialEq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// A child of the temporal root of a tree of so many images.
    Segment(u64),
}

/// A leaf of a valid tree.
struct Leaf<'t> {
    layer: usize,
    path: Path,
    tree: &'t Tree,
}

/// Properties collected in one traversal of a valid tree.
struct Shape<'t, 'f> {
    network: &'f Network,
    facts: &'f Facts,
    /// In the order of the tree.
    leaves: Vec<Leaf<'t>>,
    /// Layers and the index of their leaf, sorted.
    of_layers: Vec<(usize, usize)>,
    /// The stage of each child, for each spatial cut.
    stages: BTreeMap<Path, Vec<u64>>,
}

/// Validates a tree of a network.
///
/// # Errors
/// `cost-tree-form` if a cut has no child or is too deep, `cost-tree-layer` if the leaves are not
/// each layer once, `cost-tree-batch` if images cannot be divided into groups, `cost-tree-order` if a
/// layer precedes one that it reads.
pub fn resolve<'t>(
    root: &'t Tree,
    network: &Network,
    facts: &Facts,
    extent: Extent,
) -> Result<Step<'t>> {
    let mut leaves = vec![];
    let mut path = if extent == Extent::Whole { vec![] } else { vec![0] };
    check(root, &mut path, network, &mut leaves)?;
    let mut of_layers: Vec<(usize, usize)> =
        leaves.iter().enumerate().map(|(at, leaf): (usize, &Leaf<'_>)| (leaf.layer, at)).collect();
    of_layers.sort_unstable();
    if let Some(twice) = of_layers.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(repeated(leaves[twice[0].1].tree, leaves[twice[1].1].tree, network));
    }
    let batch = if let Extent::Segment(batch) = extent { batch } else { root.batch };
    if !(1..=MAX_BATCH).contains(&batch) {
        let message = format!("expected a batch of 1 to {MAX_BATCH} images");
        return Err(locate(root, error("cost-tree-batch", message), network));
    }
    if !batch.is_multiple_of(root.batch) {
        let message = "the images of a segment do not divide those of the tree";
        return Err(locate(root, error("cost-tree-batch", message), network));
    }
    let count = network.nodes().len();
    if extent == Extent::Whole && of_layers.len() < count {
        let missing = of_layers.iter().zip(0..).position(|((layer, _), at)| *layer != at);
        let missing = missing.unwrap_or(of_layers.len());
        let message = format!("layer {} is not in the tree", network.nodes()[missing].layer.name);
        return Err(locate(root, error("cost-tree-layer", message), network));
    }
    let mut shape = Shape { network, facts, leaves, of_layers, stages: BTreeMap::new() };
    path.truncate(if extent == Extent::Whole { 0 } else { 1 });
    shape.find_stages(root, &mut path, &mut 0);
    shape.step(root, &mut path, &mut 0)
}

fn repeated(first: &Tree, second: &Tree, network: &Network) -> Box<Diagnostic> {
    let mut diagnostic = error("cost-tree-layer", "the layer is in the tree twice");
    if let Some(span) = first.span.clone() {
        diagnostic = Box::new(diagnostic.also(span, "also here"));
    }
    match second.span.clone() {
        Some(span) => Box::new(diagnostic.at(span, "")),
        None => locate(second, diagnostic, network),
    }
}

fn locate(tree: &Tree, diagnostic: Box<Diagnostic>, network: &Network) -> Box<Diagnostic> {
    if !diagnostic.labels.is_empty() || diagnostic.path.is_some() {
        return diagnostic;
    }
    match (&tree.span, &tree.kind) {
        (Some(span), _) => Box::new(diagnostic.at(span.clone(), "")),
        (None, Kind::Leaf(layer, _)) => {
            let name = network.nodes().get(*layer).map_or("?", |node| &node.layer.name);
            Box::new(diagnostic.with_note(format!("layer {name}")))
        }
        (None, Kind::Cut(..)) => diagnostic,
    }
}

fn check<'t>(
    tree: &'t Tree,
    path: &mut Path,
    network: &Network,
    leaves: &mut Vec<Leaf<'t>>,
) -> Result<()> {
    let reject = |code, message: &str| Err(locate(tree, error(code, message), network));
    match &tree.kind {
        Kind::Leaf(layer, _) if *layer >= network.nodes().len() => {
            reject("cost-tree-layer", "the network has no such layer")
        }
        Kind::Leaf(layer, _) => {
            leaves.push(Leaf { layer: *layer, path: path.clone(), tree });
            Ok(())
        }
        Kind::Cut(_, children) => {
            let Some(first) = children.first() else {
                return reject("cost-tree-form", "the cut has no child");
            };
            if path.len() == MAX_DEPTH {
                return reject(
                    "cost-tree-form",
                    &format!("expected a depth of at most {MAX_DEPTH}"),
                );
            }
            if first.batch == 0 || !tree.batch.is_multiple_of(first.batch) {
                return reject(
                    "cost-tree-batch",
                    "the number of images of the children does not divide that of the cut",
                );
            }
            for (i, child) in children.iter().enumerate() {
                if child.batch != first.batch {
                    let message = "the children of a cut differ in their number of images";
                    return Err(locate(child, error("cost-tree-batch", message), network));
                }
                path.push(i);
                check(child, path, network, leaves)?;
                path.pop();
            }
            Ok(())
        }
    }
}

impl<'t> Shape<'t, '_> {
    /// The leaf of a layer, if it is in the tree.
    fn leaf(&self, layer: usize) -> Option<&Leaf<'t>> {
        let at = self.of_layers.binary_search_by_key(&layer, |(layer, _)| *layer).ok()?;
        self.leaves.get(self.of_layers[at].1)
    }

    /// Finds the stages of a subtree whose first leaf is at `next`.
    fn find_stages(&mut self, tree: &Tree, path: &mut Path, next: &mut usize) {
        let Kind::Cut(cut, children) = &tree.kind else {
            *next += 1;
            return;
        };
        let first = *next;
        for (i, child) in children.iter().enumerate() {
            path.push(i);
            self.find_stages(child, path, next);
            path.pop();
        }
        if *cut == Cut::Space {
            let stages = self.stages_of(path, children.len(), first..*next);
            self.stages.insert(path.clone(), stages);
        }
    }

    /// A child begins one group after the last of those it reads.
    fn stages_of(&self, cut: &Path, children: usize, leaves: Range<usize>) -> Vec<u64> {
        let mut stages: Vec<u64> = vec![0; children];
        for leaf in &self.leaves[leaves] {
            let reader = leaf.path[cut.len()];
            for made in self.network.nodes()[leaf.layer].reads() {
                let Some(made) = self.leaf(made).filter(|made| made.path.starts_with(cut)) else {
                    continue;
                };
                let made = made.path[cut.len()];
                if made < reader {
                    stages[reader] = stages[reader].max(stages[made] + 1);
                }
            }
        }
        stages
    }

    /// Whether a result stays on chip because its reader follows immediately: in the next child of a
    /// temporal cut, or the next stage of a pipeline. Between children of a temporal root all data pass
    /// through DRAM.
    fn is_direct(&self, made: usize, reader: usize) -> Result<bool> {
        let (Some(from), Some(to)) = (self.leaf(made), self.leaf(reader)) else { return Ok(false) };
        let common = from.path.iter().zip(&to.path).take_while(|(a, b)| a == b).count();
        let (first, second) = (from.path[common], to.path[common]);
        if first > second {
            let name = |layer: usize| &self.network.nodes()[layer].layer.name;
            let message = format!("{} comes before {}, which it reads", name(reader), name(made));
            return Err(locate(to.tree, error("cost-tree-order", message), self.network));
        }
        Ok(match self.stages.get(&to.path[..common]) {
            Some(stages) => stages[second] <= stages[first] + 1,
            None => common > 0 && second == first + 1,
        })
    }

    fn leaf_step(&self, layer: usize, scheme: Option<Scheme>) -> Result<LeafStep> {
        let mut direct = vec![];
        for made in self.network.nodes()[layer].reads() {
            if self.is_direct(made, layer)? {
                direct.push(made);
            }
        }
        let mut stores = !self.network.nodes()[layer].is_read;
        for &reader in &self.facts.readers[layer] {
            stores |= !self.is_direct(layer, reader)?;
        }
        Ok(LeafStep { layer, scheme, direct, stores })
    }

    fn step(&self, tree: &'t Tree, path: &mut Path, next: &mut usize) -> Result<Step<'t>> {
        let batch = tree.batch;
        let (cut, children) = match &tree.kind {
            Kind::Cut(cut, children) => (*cut, children),
            &Kind::Leaf(layer, scheme) => {
                *next += 1;
                let kind = StepKind::Leaf(self.leaf_step(layer, scheme)?);
                return Ok(Step { batch, time: self.facts.times[layer], kind, tree });
            }
        };
        let mut steps = vec![];
        for (i, child) in children.iter().enumerate() {
            path.push(i);
            steps.push(self.step(child, path, next)?);
            path.pop();
        }
        let groups = batch / children[0].batch;
        let delays = self.stages.get(path).cloned().unwrap_or_default();
        let stages = delays.iter().max().copied().unwrap_or(0);
        let mut time = steps.iter().fold(0.0, |sum, step| sum + step.time);
        if cut == Cut::Space {
            time = time * (groups + stages) as f64 / groups as f64;
        }
        let kind = StepKind::Cut(cut, CutStep { groups, stages, delays, children: steps });
        Ok(Step { batch, time, kind, tree })
    }
}
