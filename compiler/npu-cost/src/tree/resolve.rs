//! Properties derived from a tree alone: pipelines, data passed from core to core, and unit times.

use std::collections::BTreeMap;

use irc_diag::Diagnostic;

use crate::diagnostic::{Result, error};
use crate::machine::Machine;
use crate::mapper;
use crate::network::{MAX_BATCH, Network};
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
    pub children: Vec<Step<'t>>,
}

impl Step<'_> {
    /// A diagnostic at the node.
    pub fn locate(&self, diagnostic: Box<Diagnostic>, network: &Network) -> Box<Diagnostic> {
        locate(self.tree, diagnostic, network)
    }
}

/// The path from the root to a leaf: the index of the child at each cut.
type Path = Vec<usize>;

/// Properties collected in one traversal of a valid tree.
struct Shape<'a> {
    network: &'a Network,
    machine: &'a Machine,
    root: &'a Tree,
    /// The path of each layer.
    paths: Vec<Path>,
    /// The stage of each child, for each spatial cut.
    stages: BTreeMap<Path, Vec<u64>>,
    /// For each layer, those whose results are passed directly.
    direct: Vec<Vec<usize>>,
    /// For each layer, whether its result goes to DRAM.
    stores: Vec<bool>,
}

/// Validates a tree of a network.
///
/// # Errors
/// `cost-tree-form` if a cut has no child or is too deep, `cost-tree-layer` if the leaves are not
/// each layer once, `cost-tree-batch` if images cannot be divided into groups, `cost-tree-order` if a
/// layer precedes one that it reads.
pub fn resolve<'t>(root: &'t Tree, network: &'t Network, machine: &'t Machine) -> Result<Step<'t>> {
    let count = network.nodes().len();
    let mut paths: Vec<Option<(Path, &Tree)>> = vec![None; count];
    check(root, &mut vec![], network, &mut paths)?;
    if !(1..=MAX_BATCH).contains(&root.batch) {
        let message = format!("expected a batch of 1 to {MAX_BATCH} images");
        return Err(locate(root, error("cost-tree-batch", message), network));
    }
    let mut known = vec![];
    for (layer, path) in paths.into_iter().enumerate() {
        let Some((path, _)) = path else {
            let message = format!("layer {} is not in the tree", network.nodes()[layer].layer.name);
            return Err(locate(root, error("cost-tree-layer", message), network));
        };
        known.push(path);
    }
    let stores = network.nodes().iter().map(|node| !node.is_read).collect();
    let (stages, direct) = (BTreeMap::new(), vec![vec![]; count]);
    let mut shape = Shape { network, machine, root, paths: known, stages, direct, stores };
    shape.find_stages(root, &mut vec![]);
    shape.find_direct()?;
    Ok(shape.step(root, &mut vec![]))
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
    paths: &mut [Option<(Path, &'t Tree)>],
) -> Result<()> {
    let reject = |code, message: &str| Err(locate(tree, error(code, message), network));
    match &tree.kind {
        Kind::Leaf(layer, _) => match paths.get_mut(*layer) {
            None => reject("cost-tree-layer", "the network has no such layer"),
            Some(Some((_, first))) => {
                let mut diagnostic = error("cost-tree-layer", "the layer is in the tree twice");
                if let Some(span) = first.span.clone() {
                    diagnostic = Box::new(diagnostic.also(span, "also here"));
                }
                let span = tree.span.clone();
                Err(span.map_or(diagnostic.clone(), |span| Box::new(diagnostic.at(span, ""))))
            }
            Some(free) => {
                *free = Some((path.clone(), tree));
                Ok(())
            }
        },
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
                check(child, path, network, paths)?;
                path.pop();
            }
            Ok(())
        }
    }
}

impl<'a> Shape<'a> {
    fn find_stages(&mut self, tree: &Tree, path: &mut Path) {
        let Kind::Cut(cut, children) = &tree.kind else { return };
        if *cut == Cut::Space {
            let stages = self.stages_of(path, children.len());
            self.stages.insert(path.clone(), stages);
        }
        for (i, child) in children.iter().enumerate() {
            path.push(i);
            self.find_stages(child, path);
            path.pop();
        }
    }

    /// A child begins one group after the last of those it reads.
    fn stages_of(&self, cut: &Path, children: usize) -> Vec<u64> {
        let child = |layer: usize| {
            let path = &self.paths[layer];
            path.starts_with(cut).then(|| path[cut.len()])
        };
        let mut reads = vec![vec![]; children];
        for (layer, node) in self.network.nodes().iter().enumerate() {
            if let Some(reader) = child(layer) {
                reads[reader].extend(node.reads().filter_map(child).filter(|made| *made < reader));
            }
        }
        let mut stages: Vec<u64> = vec![];
        for made in reads {
            stages.push(made.into_iter().map(|made| stages[made] + 1).max().unwrap_or(0));
        }
        stages
    }

    /// Results stay on chip if the reader follows immediately: in the next child of a temporal cut, or
    /// the next stage of a pipeline. Between children of a temporal root all data pass through DRAM.
    fn find_direct(&mut self) -> Result<()> {
        for (layer, node) in self.network.nodes().iter().enumerate() {
            let mut direct: Vec<usize> = vec![];
            for made in node.reads() {
                match self.is_direct(made, layer)? {
                    true => direct.push(made),
                    false => self.stores[made] = true,
                }
            }
            self.direct[layer] = direct;
        }
        Ok(())
    }

    fn is_direct(&self, made: usize, reader: usize) -> Result<bool> {
        let (from, to) = (&self.paths[made], &self.paths[reader]);
        let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        let (first, second) = (from[common], to[common]);
        if first > second {
            let name = |layer: usize| &self.network.nodes()[layer].layer.name;
            let message = format!("{} comes before {}, which it reads", name(reader), name(made));
            let leaf = self.leaf(to);
            return Err(locate(leaf, error("cost-tree-order", message), self.network));
        }
        let cut = &to[..common];
        Ok(match self.stages.get(cut) {
            Some(stages) => stages[second] <= stages[first] + 1,
            None => common > 0 && second == first + 1,
        })
    }

    fn leaf(&self, path: &Path) -> &'a Tree {
        path.iter().fold(self.root, |tree, child| match &tree.kind {
            Kind::Cut(_, children) => &children[*child],
            Kind::Leaf(..) => tree,
        })
    }

    fn step(&self, tree: &'a Tree, path: &mut Path) -> Step<'a> {
        let batch = tree.batch;
        let (cut, children) = match &tree.kind {
            Kind::Cut(cut, children) => (*cut, children),
            &Kind::Leaf(layer, scheme) => {
                let time = mapper::unit_time(&self.network.nodes()[layer].layer, self.machine);
                let (direct, stores) = (self.direct[layer].clone(), self.stores[layer]);
                let kind = StepKind::Leaf(LeafStep { layer, scheme, direct, stores });
                return Step { batch, time, kind, tree };
            }
        };
        let mut steps = vec![];
        for (i, child) in children.iter().enumerate() {
            path.push(i);
            steps.push(self.step(child, path));
            path.pop();
        }
        let groups = batch / children[0].batch;
        let stages = self.stages.get(path).and_then(|stages| stages.iter().max());
        let stages = stages.copied().unwrap_or(0);
        let mut time = steps.iter().fold(0.0, |sum, step| sum + step.time);
        if cut == Cut::Space {
            time = time * (groups + stages) as f64 / groups as f64;
        }
        let kind = StepKind::Cut(cut, CutStep { groups, stages, children: steps });
        Step { batch, time, kind, tree }
    }
}
