//! The first schedule: dynamic programming over segments of consecutive layers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
        evaluations.fetch_add(1, Ordering::Relaxed);
        layers.push(Arc::new(problem.segment(model, Tree::leaf(layer, images), &[])?));
    }
    let mut totals = problem.totals(images, layers.iter().map(|segment| &segment.cost));
    let mut options: Vec<Vec<Vec<Arc<Priced>>>> = vec![vec![]; count];
    let price = problem.price(totals);
    let prices = vec![price; count];
    for first in 0..count {
        options[first].push(vec![layers[first].clone()]);
        evaluations.fetch_add(1, Ordering::Relaxed);
        if let Ok(again) = problem.segment(model, Tree::leaf(first, images), &prices) {
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
        let price = problem.price(totals).unwrap_or(f64::MAX);
        let next = cheapest(&options, price);
        let then = problem.totals(images, next.iter().map(|segment| &segment.cost));
        if problem.value(then) >= problem.value(totals) {
            break;
        }
        (best, totals) = (next, then);
    }
    Ok(problem.state(images, best))
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
