//! Recombination: the best sequence of the segments of several schedules.
//!
//! A segment costs the same in every schedule. Where two schedules have run the same set of layers, one can
//! go on as the other does. The sets are the nodes of a graph, and segments are its edges; the best path is
//! found for a price of a cycle, which is then that of the path, until nothing changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::moves::layers;
use crate::random::Random;
use crate::state::{Priced, Problem, State};

/// Maximum number of sweeps.
const MAX_SWEEPS: usize = 8;

/// A segment that leads to a set of layers.
struct Edge<'s> {
    from: u128,
    segment: &'s Arc<Priced>,
    /// The schedule that it is from.
    state: usize,
}

/// The best schedule made of segments of others, all of which run as many images at a time; `None` if it
/// is not better than each of them.
pub fn recombine(problem: &Problem<'_>, states: &[&State]) -> Option<State> {
    let mut random = Random::new(0, 0);
    let count = problem.network.nodes().len();
    // A set is represented by the sum of random numbers of its layers.
    let marks: Vec<u128> =
        (0..count).map(|_| u128::from(random.next()) << 64 | u128::from(random.next())).collect();
    // For each set, by its number of layers: the segments that lead to it.
    let mut graph: BTreeMap<(usize, u128), Vec<Edge<'_>>> = BTreeMap::new();
    for (at, state) in states.iter().enumerate() {
        let (mut size, mut set) = (0, 0_u128);
        for segment in &state.segments {
            let mut inside = vec![];
            layers(&segment.tree, &mut inside);
            let from = set;
            size += inside.len();
            inside.iter().for_each(|layer| set = set.wrapping_add(marks[*layer]));
            graph.entry((size, set)).or_default().push(Edge { from, segment, state: at });
        }
    }
    let first = states.first()?;
    let best = states.iter().min_by(|a, b| {
        problem.value(a.totals(problem)).total_cmp(&problem.value(b.totals(problem)))
    })?;
    let (mut totals, mut found) = (best.totals(problem), None);
    for _ in 0..MAX_SWEEPS {
        let path = cheapest(&graph, problem.price(totals))?;
        let costs = path.iter().map(|edge| &edge.segment.cost);
        let then = problem.totals(first.images, costs);
        if problem.value(then) >= problem.value(totals) {
            break;
        }
        totals = then;
        let segments = path.iter().map(|edge| edge.segment.clone()).collect();
        let mut state = problem.state(first.images, segments);
        for edge in path {
            let mut inside = vec![];
            layers(&edge.segment.tree, &mut inside);
            let multiples = &states[edge.state].multiples;
            inside.into_iter().for_each(|layer| state.multiples[layer] = multiples[layer]);
        }
        found = Some(state);
    }
    found
}

/// The path to the set of all layers with the least energy plus price times delay.
fn cheapest<'e, 's>(
    graph: &'e BTreeMap<(usize, u128), Vec<Edge<'s>>>,
    price: f64,
) -> Option<Vec<&'e Edge<'s>>> {
    let mut least: BTreeMap<u128, (f64, Option<&'e Edge<'s>>)> = BTreeMap::new();
    least.insert(0, (0.0, None));
    let mut last = 0;
    for ((_, set), edges) in graph {
        for edge in edges {
            let cost = &edge.segment.cost.cost;
            let Some((before, _)) = least.get(&edge.from) else { continue };
            let value = before + cost.energy + price * cost.latency as f64;
            let known = least.entry(*set).or_insert((f64::INFINITY, None));
            if value < known.0 {
                *known = (value, Some(edge));
            }
        }
        last = *set;
    }
    let mut path = vec![];
    while let Some((_, Some(edge))) = least.get(&last) {
        path.push(*edge);
        last = edge.from;
    }
    path.reverse();
    (!path.is_empty()).then_some(path)
}
