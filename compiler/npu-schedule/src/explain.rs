//! Why a schedule is as it is: what limits each segment, and the best of the simple alternatives to it.

use irc_npu_cost::{Cost, Cut, Energy, Kind, Model, Network, Tree};

use crate::moves::layers;
use crate::result::{RunnerUp, Segment};
use crate::state::{Priced, Problem, State};

/// An alternative to a segment: one or several segments, or why it is not valid.
struct Alternative {
    shape: String,
    cost: Result<Cost, String>,
}

/// The segments of a schedule, explained.
pub fn explain(problem: &Problem<'_>, model: &mut Model<'_>, state: &State) -> Vec<Segment> {
    let totals = state.totals(problem);
    let prices = vec![Some(problem.price(totals)); problem.network.nodes().len()];
    let groups = problem.batch / state.images;
    let mut segments = vec![];
    for (at, segment) in state.segments.iter().enumerate() {
        let next = state.segments.get(at + 1).map(|next| &**next);
        let mut all = vec![];
        layers(&segment.tree, &mut all);
        segments.push(Segment {
            layers: all,
            shape: shape(&segment.tree, problem.network),
            cost: repeated(&segment.cost.cost, groups),
            bound: segment.cost.bound(problem.machine),
            cores: segment.cost.cores * groups,
            links: segment.cost.links * groups,
            dram: segment.cost.dram * groups,
            runner_up: runner_up(problem, model, (segment, next), totals, &prices, groups),
        });
    }
    segments
}

/// The tree in one line: cuts as letter, images, groups; layers with their images.
pub fn shape(tree: &Tree, network: &Network) -> String {
    match &tree.kind {
        Kind::Leaf(layer, _) => format!("{} {}", network.nodes()[*layer].layer.name, tree.batch),
        Kind::Cut(cut, children) => {
            let letter = if *cut == Cut::Time { 'T' } else { 'S' };
            let groups = children.first().map_or(1, |child| tree.batch / child.batch.max(1));
            let inner: Vec<String> = children.iter().map(|child| shape(child, network)).collect();
            format!("{letter} {}/{groups} ({})", tree.batch, inner.join(", "))
        }
    }
}

fn runner_up(
    problem: &Problem<'_>,
    model: &mut Model<'_>,
    (segment, next): (&Priced, Option<&Priced>),
    totals: (f64, f64),
    prices: &[Option<f64>],
    groups: u64,
) -> Option<RunnerUp> {
    let own = repeated(&segment.cost.cost, groups);
    let value = |instead_of: &Cost, cost: &Cost| {
        let energy = totals.0 - instead_of.energy + cost.energy;
        problem.value((energy, totals.1 - instead_of.latency as f64 + cost.latency as f64))
    };
    // What each alternative replaces: the segment, or the segment and the next one.
    let mut all: Vec<(Cost, Vec<Tree>)> =
        alternatives(&segment.tree).into_iter().map(|trees| (own, trees)).collect();
    if let Some(next) = next {
        let mut both = own;
        both += &repeated(&next.cost.cost, groups);
        let joined = [Cut::Time, Cut::Space].map(|cut| {
            let children = vec![segment.tree.clone(), next.tree.clone()];
            (both, vec![Tree::cut(cut, segment.tree.batch, children).without_schemes()])
        });
        all.extend(joined);
    }
    let mut best: Option<(f64, RunnerUp)> = None;
    let mut invalid: Option<RunnerUp> = None;
    for (instead_of, trees) in all {
        let found = price(problem, model, trees, prices);
        match found.cost {
            Ok(cost) => {
                let cost = repeated(&cost, groups);
                let value = value(&instead_of, &cost);
                if best.as_ref().is_none_or(|(least, _)| value < *least) {
                    let reason = difference(&instead_of, &cost);
                    best = Some((value, RunnerUp { shape: found.shape, cost: Some(cost), reason }));
                }
            }
            Err(reason) => {
                let runner = RunnerUp { shape: found.shape, cost: None, reason };
                invalid.get_or_insert(runner);
            }
        }
    }
    best.map(|(_, runner)| runner).or(invalid)
}

/// Simple alternatives to a segment: flat cuts, its halves, its layers alone.
fn alternatives(tree: &Tree) -> Vec<Vec<Tree>> {
    let Kind::Cut(cut, children) = &tree.kind else { return vec![] };
    let mut all = vec![];
    layers(tree, &mut all);
    let plain = tree.clone().without_schemes();
    let least = all_images(tree);
    let mut found = vec![];
    for cut in [Cut::Time, Cut::Space] {
        for images in [tree.batch, least] {
            let leaves = all.iter().map(|layer| Tree::leaf(*layer, images)).collect();
            found.push(vec![Tree::cut(cut, tree.batch, leaves)]);
        }
    }
    if let [_, _, ..] = children[..] {
        let Kind::Cut(_, children) = plain.kind else { return found };
        let (first, second) = children.split_at(children.len() / 2);
        let half = |part: &[Tree]| Tree::cut(*cut, tree.batch, part.to_vec());
        found.push(vec![half(first), half(second)]);
    }
    found.push(all.iter().map(|layer| Tree::leaf(*layer, tree.batch)).collect());
    found.retain(|trees| trees.len() > 1 || trees[0] != tree.clone().without_schemes());
    found.dedup();
    found
}

/// The least number of images at a time of a tree.
fn all_images(tree: &Tree) -> u64 {
    match &tree.kind {
        Kind::Leaf(..) => tree.batch,
        Kind::Cut(_, children) => children.iter().map(all_images).min().unwrap_or(tree.batch),
    }
}

fn price(
    problem: &Problem<'_>,
    model: &mut Model<'_>,
    trees: Vec<Tree>,
    prices: &[Option<f64>],
) -> Alternative {
    let shapes: Vec<String> = trees.iter().map(|tree| shape(tree, problem.network)).collect();
    let shape = shapes.join("; ");
    let mut sum = Cost::default();
    for tree in trees {
        match problem.segment(model, tree, prices) {
            Ok(Priced { cost, .. }) => sum += &cost.cost,
            Err(diagnostic) => {
                let parts = [diagnostic.message].into_iter().chain(diagnostic.notes);
                let reason = parts.collect::<Vec<_>>().join(", ");
                return Alternative { shape, cost: Err(reason) };
            }
        }
    }
    Alternative { shape, cost: Ok(sum) }
}

fn repeated(cost: &Cost, groups: u64) -> Cost {
    let by = groups as f64;
    let parts = cost.parts;
    Cost {
        latency: cost.latency * groups,
        energy: cost.energy * by,
        parts: Energy {
            buffer: parts.buffer * by,
            local: parts.local * by,
            bus: parts.bus * by,
            compute: parts.compute * by,
            links: parts.links * by,
            dram: parts.dram * by,
        },
        traffic: cost.traffic * groups,
    }
}

/// How another cost differs from that of a segment.
fn difference(own: &Cost, other: &Cost) -> String {
    let percent = |own: f64, other: f64| (other / own - 1.0) * 100.0;
    format!(
        "{:+.1} % cycles, {:+.1} % energy, {:+.1} % DRAM",
        percent(own.latency as f64, other.latency as f64),
        percent(own.energy, other.energy),
        percent(own.parts.dram.max(1.0), other.parts.dram),
    )
}
