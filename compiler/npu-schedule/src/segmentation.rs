//! The first schedules: dynamic programming over segments of consecutive layers, and layers alone.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use irc_diag::Diagnostic;
use irc_npu_cost::{Cut, Model, Result, Tree};

use crate::bound::Bounds;
use crate::state::{Priced, Problem, State};

/// Maximum number of layers of a segment of the first schedule.
const MAX_LAYERS: usize = 12;
/// Maximum number of layers of a spatial cut of the first schedule.
const MAX_SPATIAL_LAYERS: usize = 4;
/// Number of consecutive lengths without a valid segment after which longer ones are not tried.
const MAX_FAILURES: usize = 2;
/// The factor by which the price of a cycle may change between sweeps.
const PRICES: f64 = 4.0;
/// Maximum number of sweeps, each with the price of a cycle of the one before.
const MAX_SWEEPS: usize = 8;

/// The best schedule of segments that are one flat cut each, for so many images at a time.
pub fn segmentation(
    problem: &Problem<'_>,
    model: &mut Model<'_>,
    images: u64,
    evaluations: &AtomicU64,
) -> Result<State> {
    let count = problem.network.nodes().len();
    let mut layers = vec![];
    for layer in 0..count {
        layers.push(Arc::new(alone(problem, model, layer, images, &[], evaluations)?));
    }
    let mut totals = problem.totals(images, layers.iter().map(|segment| &segment.cost));
    let mut options: Vec<Vec<Vec<Arc<Priced>>>> = vec![vec![]; count];
    let prices = vec![Some(problem.price(totals)); count];
    let price = problem.price(totals);
    for first in 0..count {
        options[first].push(vec![layers[first].clone()]);
        if let Ok(again) = alone(problem, model, first, images, &prices, evaluations) {
            options[first][0].push(Arc::new(again));
        }
    }
    let bounds = Bounds::new(problem.network, problem.machine, problem.batch);
    for first in 0..count {
        let mut failures = 0;
        for end in first + 2..=count.min(first + MAX_LAYERS) {
            let bound = bounds.of(first..end, images);
            let apart = |price: f64| {
                let each = options[first..end].iter().map(|of| {
                    let all = of[0].iter().map(|segment| value(segment, price));
                    all.fold(f64::INFINITY, f64::min)
                });
                each.sum::<f64>() <= bound.energy + price * bound.latency as f64
            };
            let found = match apart(price / PRICES) && apart(price * PRICES) {
                true => vec![],
                false => flat_cuts(problem, model, first..end, images, &prices, evaluations),
            };
            failures = if found.is_empty() { failures + 1 } else { 0 };
            if failures > MAX_FAILURES {
                break;
            }
            options[first].push(found);
        }
    }
    let mut best = layers;
    for _ in 0..MAX_SWEEPS {
        let next = cheapest(&options, problem.price(totals).clamp(price / PRICES, price * PRICES));
        let then = problem.totals(images, next.iter().map(|segment| &segment.cost));
        if problem.value(then) >= problem.value(totals) {
            break;
        }
        (best, totals) = (next, then);
    }
    Ok(problem.state(images, best))
}

/// Each layer alone: those that read no others first, then those that read these, and so on. Exchanges of layers seldom
/// lead to this order from that of the network.
pub fn layers_by_depth(
    problem: &Problem<'_>,
    model: &mut Model<'_>,
    images: u64,
    evaluations: &AtomicU64,
) -> Result<State> {
    let nodes = problem.network.nodes();
    let mut depths = vec![0; nodes.len()];
    for (layer, node) in nodes.iter().enumerate() {
        depths[layer] = node.reads().map(|made| depths[made] + 1).max().unwrap_or(0);
    }
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|layer| depths[*layer]);
    let mut segments = vec![];
    for layer in order {
        segments.push(Arc::new(alone(problem, model, layer, images, &[], evaluations)?));
    }
    Ok(problem.state(images, segments))
}

/// Segments of consecutive layers in one cut.
fn flat_cuts(
    problem: &Problem<'_>,
    model: &mut Model<'_>,
    layers: Range<usize>,
    images: u64,
    prices: &[Option<f64>],
    evaluations: &AtomicU64,
) -> Vec<Arc<Priced>> {
    let mut found = vec![];
    for cut in [Cut::Time, Cut::Space] {
        if cut == Cut::Space && layers.len() > MAX_SPATIAL_LAYERS {
            continue;
        }
        let sizes = if images == 1 { vec![1] } else { vec![images, 1] };
        for at_a_time in sizes {
            let leaves = layers.clone().map(|layer| Tree::leaf(layer, at_a_time)).collect();
            evaluations.fetch_add(1, Ordering::Relaxed);
            let tree = Tree::cut(cut, images, leaves);
            found.extend(problem.segment(model, tree, prices).map(Arc::new));
        }
    }
    found
}

fn value(segment: &Priced, price: f64) -> f64 {
    segment.cost.cost.energy + price * segment.cost.cost.latency as f64
}

/// A segment of one layer, with as many images at a time as its cores hold.
fn alone(
    problem: &Problem<'_>,
    model: &mut Model<'_>,
    layer: usize,
    images: u64,
    prices: &[Option<f64>],
    evaluations: &AtomicU64,
) -> Result<Priced> {
    let mut last = None;
    for at_a_time in (1..=images).rev().filter(|by| images.is_multiple_of(*by)) {
        let mut tree = Tree::leaf(layer, at_a_time);
        if at_a_time < images {
            tree = Tree::cut(Cut::Time, images, vec![tree]);
        }
        evaluations.fetch_add(1, Ordering::Relaxed);
        // SET's search leaves out uneven partitions, of which some may fit.
        let found = problem.segment(model, tree.clone(), prices);
        let even = vec![Some(problem.price((1.0, 1.0))); problem.network.nodes().len()];
        match found.or_else(|_| problem.segment(model, tree, &even)) {
            Ok(segment) => return Ok(segment),
            Err(diagnostic) => last = Some(diagnostic),
        }
    }
    Err(last.unwrap_or_else(|| Box::new(Diagnostic::error("cost-tree-batch", "no images"))))
}

/// The sequence of segments with the least energy plus price times delay.
fn cheapest(options: &[Vec<Vec<Arc<Priced>>>], price: f64) -> Vec<Arc<Priced>> {
    let count = options.len();
    // From each layer on: the cost, and the first segment with its number of layers.
    let mut from = vec![(f64::INFINITY, None); count];
    from.push((0.0, None));
    for first in (0..count).rev() {
        for (more, segments) in options[first].iter().enumerate() {
            let rest = from[first + more + 1].0;
            for segment in segments {
                let value = value(segment, price) + rest;
                if value < from[first].0 {
                    from[first] = (value, Some((more + 1, segment)));
                }
            }
        }
    }
    let (mut at, mut segments) = (0, vec![]);
    while let Some((layers, segment)) = from[at].1 {
        segments.push(segment.clone());
        at += layers;
    }
    segments
}
