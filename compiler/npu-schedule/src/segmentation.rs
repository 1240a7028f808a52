//! The first schedule: dynamic programming over segments of consecutive layers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use irc_diag::Diagnostic;
use irc_npu_cost::{Cut, Model, Result, Tree};

use crate::state::{Priced, Problem, State};

/// Maximum number of layers of a segment of the first schedule.
const LONGEST: usize = 12;

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
    for first in 0..count {
        options[first].push(vec![layers[first].clone()]);
        if let Ok(again) = alone(problem, model, first, images, &prices, evaluations) {
            options[first][0].push(Arc::new(again));
        }
        for last in first + 1..count.min(first + LONGEST) {
            let mut found = vec![];
            for cut in [Cut::Time, Cut::Space] {
                for at_a_time in [images, 1] {
                    if at_a_time == 1 && images == 1 && !found.is_empty() {
                        continue;
                    }
                    if cut == Cut::Space && last - first >= 4 {
                        continue;
                    }
                    let leaves = (first..=last).map(|layer| Tree::leaf(layer, at_a_time)).collect();
                    evaluations.fetch_add(1, Ordering::Relaxed);
                    let tree = Tree::cut(cut, images, leaves);
                    if let Ok(segment) = problem.segment(model, tree, &prices) {
                        found.push(Arc::new(segment));
                    }
                }
            }
            if found.is_empty() && last > first + 3 {
                break;
            }
            options[first].push(found);
        }
    }
    let mut best = layers;
    for _ in 0..8 {
        let price = problem.price(totals);
        let next = cheapest(&options, price);
        let then = problem.totals(images, next.iter().map(|segment| &segment.cost));
        if problem.value(then) >= problem.value(totals) {
            break;
        }
        (best, totals) = (next, then);
    }
    Ok(problem.state(images, best))
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
    let mut from: Vec<(f64, Option<(usize, &Arc<Priced>)>)> = vec![(f64::INFINITY, None); count];
    from.push((0.0, None));
    for first in (0..count).rev() {
        for (more, segments) in options[first].iter().enumerate() {
            let rest = from[first + more + 1].0;
            for segment in segments {
                let cost = &segment.cost.cost;
                let value = cost.energy + price * cost.latency as f64 + rest;
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
