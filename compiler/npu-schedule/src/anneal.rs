//! The local search: simulated annealing over trees, in which a change prices only the segments it touches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use irc_npu_cost::{Cut, Model, Tree};

use crate::moves::{self, Context};
use crate::random::Random;
use crate::state::{Priced, Problem, State, place};

/// Parameters of a run.
#[derive(Clone, Copy)]
pub struct Run {
    /// Evaluations of segments.
    pub budget: u64,
    /// Relative increase of the objective that is accepted with probability 1/e at first.
    pub heat: f64,
}

/// Improves a schedule; returns the best one, and the number of evaluations.
pub fn anneal(
    problem: &Problem<'_>,
    model: &mut Model<'_>,
    start: State,
    run: Run,
    random: &mut Random,
    total: &AtomicU64,
) -> State {
    let (mut state, mut best) = (start.clone(), start);
    let mut now = problem.value(state.totals(problem));
    let mut least = now;
    let mut evaluations = 0;
    let mut cooled = false;
    while evaluations < run.budget {
        let done = evaluations as f64 / run.budget as f64;
        if done > 0.85 && !cooled {
            cooled = true;
            (state, now) = (best.clone(), least);
        }
        let heat = run.heat * (1.0 - done) / (1.0 + 8.0 * done);
        let before = evaluations;
        evaluations += 1;
        let step = propose(problem, model, &mut state, random, &mut evaluations);
        total.fetch_add(evaluations - before, Ordering::Relaxed);
        let Some(step) = step else { continue };
        let accepted =
            step.value <= now || random.unit() < (-(step.value / now - 1.0) / heat).exp();
        if !accepted {
            state.multiples = step.multiples;
            continue;
        }
        for segment in &step.segments {
            place(&mut state.placed, &segment.cost.layers);
        }
        state.segments.splice(step.first..step.first + step.removed, step.segments);
        now = step.value;
        if now < least {
            least = now;
            best = state.clone();
        }
    }
    best
}

/// A priced change.
struct Proposal {
    value: f64,
    /// The segments that it replaces.
    first: usize,
    removed: usize,
    segments: Vec<Arc<Priced>>,
    /// The multiples before it.
    multiples: Vec<f64>,
}

fn propose(
    problem: &Problem<'_>,
    model: &mut Model<'_>,
    state: &mut State,
    random: &mut Random,
    evaluations: &mut u64,
) -> Option<Proposal> {
    let (first, count) = window(state, random);
    let old = &state.segments[first..first + count];
    let trees = old.iter().map(|segment| segment.tree.clone()).collect();
    let mut root = Tree::cut(Cut::Time, state.images, trees);
    let multiples = state.multiples.clone();
    let mut context = Context {
        network: problem.network,
        placed: &state.placed,
        multiples: &mut state.multiples,
    };
    let applied = moves::change(&mut root, &mut context, random);
    let proposal = applied.then(|| {
        let irc_npu_cost::Kind::Cut(_, trees) = root.kind else { return None };
        let price = problem.price(state.totals(problem));
        let mut segments = vec![];
        for tree in trees {
            let known = old.iter().find(|segment| {
                segment.tree == tree && segment.tree.batch == tree.batch && {
                    let mut all = vec![];
                    moves::layers(&tree, &mut all);
                    all.iter().all(|layer| multiples[*layer] == state.multiples[*layer])
                }
            });
            if let Some(known) = known {
                segments.push(known.clone());
                continue;
            }
            let prices: Vec<Option<f64>> =
                state.multiples.iter().map(|by| Some(price * by)).collect();
            *evaluations += 1;
            segments.push(Arc::new(problem.segment(model, tree, &prices).ok()?));
        }
        let all =
            state.segments[..first].iter().chain(&segments).chain(&state.segments[first + count..]);
        let value = problem.value(problem.totals(state.images, all.map(|segment| &segment.cost)));
        Some(Proposal { value, first, removed: count, segments, multiples: multiples.clone() })
    });
    let proposal = proposal.flatten();
    if proposal.is_none() {
        state.multiples = multiples;
    }
    proposal
}

/// Some segments in sequence, the first of which has a random layer.
fn window(state: &State, random: &mut Random) -> (usize, usize) {
    let count = state.segments.len();
    let leaves: Vec<usize> = state.leaves().collect();
    let mut left = random.below(leaves.iter().sum());
    let mut first = 0;
    for (at, leaves) in leaves.iter().enumerate() {
        if left < *leaves {
            first = at;
            break;
        }
        left -= leaves;
    }
    let wide = [1, 1, 1, 2, 2, 2, 3, 4][random.below(8)];
    let back = random.below(wide);
    let first = first.saturating_sub(back);
    (first, wide.min(count - first))
}
