//! The local search: simulated annealing over trees, in which a change prices only the segments it touches.
//!
//! The time of a step does not grow with the network, but for copies of lists of segments, which are as long
//! as the schedule.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use irc_npu_cost::{Cut, Kind, Model, Tree};

use crate::moves::{self, Context};
use crate::random::Random;
use crate::state::{Priced, Problem, State, place};

/// Number of steps after which prices and sums are computed anew.
const REFRESH: u64 = 256;
/// The share of the budget after which the search goes on from the best schedule.
const LAST: f64 = 0.85;
/// Number of layers of a segment from which on it is drawn with each attempt.
const LONG: usize = 16;

/// Number of layers of a segment up to which pricing it is one evaluation. Pricing takes time in proportion to them.
const LAYERS: usize = 128;

/// Parameters of a run.
#[derive(Clone, Copy)]
pub struct Run {
    /// Evaluations of segments.
    pub budget: u64,
    /// Relative increase of the objective that is accepted with probability 1/e at first.
    pub heat: f64,
}

/// A run in progress.
struct Search<'a, 'r> {
    problem: &'a Problem<'a>,
    random: &'r mut Random,
    state: State,
    /// Energy and delay.
    totals: (f64, f64),
    /// pJ that a cycle is worth to each layer.
    prices: Vec<Option<f64>>,
    evaluations: u64,
    /// Layers of long segments that no evaluation accounts for yet.
    rest: usize,
}

/// A priced change.
struct Proposal {
    totals: (f64, f64),
    /// The segments that it replaces.
    first: usize,
    removed: usize,
    segments: Vec<Arc<Priced>>,
    /// A layer and its multiple before the change.
    undo: Option<(usize, f64)>,
}

/// Improves a schedule; returns the best one, and adds the number of evaluations to `total`.
pub fn anneal(
    problem: &Problem<'_>,
    model: &mut Model<'_>,
    start: State,
    run: Run,
    random: &mut Random,
    total: &AtomicU64,
) -> State {
    let totals = start.totals(problem);
    let mut best = start.clone();
    let mut search =
        Search { problem, random, state: start, totals, prices: vec![], evaluations: 0, rest: 0 };
    let mut now = problem.value(totals);
    let (mut least, mut is_best, mut cooled) = (now, true, false);
    for step in 0.. {
        if search.evaluations >= run.budget {
            break;
        }
        let done = search.evaluations as f64 / run.budget as f64;
        if done > LAST && !cooled {
            cooled = true;
            if !is_best {
                (search.state, now, is_best) = (best.clone(), least, true);
            }
            search.refresh();
        } else if step % REFRESH == 0 {
            search.refresh();
        }
        let heat = run.heat * (1.0 - done) / (1.0 + 8.0 * done);
        let before = search.evaluations;
        search.evaluations += 1;
        let proposal = search.propose(model);
        total.fetch_add(search.evaluations - before, Ordering::Relaxed);
        let Some(proposal) = proposal else { continue };
        let value = problem.value(proposal.totals);
        if value > now && search.random.unit() >= exponential((value / now - 1.0) / heat) {
            search.undo(proposal.undo);
            continue;
        }
        if is_best && value >= least {
            // The last moment at which the best schedule is at hand.
            best.clone_from(&search.state);
            if let Some((layer, multiple)) = proposal.undo {
                best.multiples[layer] = multiple;
            }
            is_best = false;
        }
        search.accept(proposal);
        now = value;
        if now < least {
            (least, is_best) = (now, true);
        }
    }
    if is_best { search.state } else { best }
}

/// `e` to the power of `-x`, nearly; in operations that are the same on every machine.
fn exponential(x: f64) -> f64 {
    let root = (1.0 - x / 1024.0).max(0.0);
    (0..10).fold(root, |power, _| power * power)
}

impl Search<'_, '_> {
    fn refresh(&mut self) {
        self.totals = self.state.totals(self.problem);
        let price = self.problem.price(self.totals);
        self.prices.clear();
        self.prices.extend(self.state.multiples.iter().map(|by| Some(price * by)));
    }

    fn undo(&mut self, undo: Option<(usize, f64)>) {
        if let Some((layer, multiple)) = undo {
            let price = self.problem.price(self.totals);
            self.state.multiples[layer] = multiple;
            self.prices[layer] = Some(price * multiple);
        }
    }

    fn accept(&mut self, proposal: Proposal) {
        let Proposal { totals, first, removed, segments, .. } = proposal;
        for segment in &segments {
            place(&mut self.state.placed, &segment.cost.layers);
        }
        self.state.segments.splice(first..first + removed, segments);
        self.totals = totals;
    }

    fn propose(&mut self, model: &mut Model<'_>) -> Option<Proposal> {
        let (first, count) = self.window();
        let old = &self.state.segments[first..first + count];
        let trees = old.iter().map(|segment| segment.tree.clone()).collect();
        let mut root = Tree::cut(Cut::Time, self.state.images, trees);
        let mut context = Context {
            network: self.problem.network,
            placed: &self.state.placed,
            multiples: &mut self.state.multiples,
            undo: None,
        };
        let applied = moves::change(&mut root, &mut context, self.random);
        let undo = context.undo;
        if let Some((layer, _)) = undo {
            let price = self.problem.price(self.totals);
            self.prices[layer] = Some(price * self.state.multiples[layer]);
        }
        let segments = match root.kind {
            Kind::Cut(_, trees) if applied => self.price(model, first, count, trees, undo),
            _ => None,
        };
        let Some(segments) = segments else {
            self.undo(undo);
            return None;
        };
        let (removed, added) = (
            self.problem.totals(self.state.images, costs(&self.state.segments[first..][..count])),
            self.problem.totals(self.state.images, costs(&segments)),
        );
        let totals = (self.totals.0 - removed.0 + added.0, self.totals.1 - removed.1 + added.1);
        Some(Proposal { totals, first, removed: count, segments, undo })
    }

    /// Prices the segments that differ from the old ones; `None` if one is not valid.
    fn price(
        &mut self,
        model: &mut Model<'_>,
        first: usize,
        count: usize,
        trees: Vec<Tree>,
        undo: Option<(usize, f64)>,
    ) -> Option<Vec<Arc<Priced>>> {
        let old = &self.state.segments[first..first + count];
        let mut segments = vec![];
        for tree in trees {
            let is_same = |segment: &&Arc<Priced>| {
                let touched = undo.is_some_and(|(layer, _)| {
                    segment.cost.layers.iter().any(|cost| cost.layer == layer)
                });
                !touched && segment.tree == tree
            };
            if let Some(known) = old.iter().find(is_same) {
                segments.push(known.clone());
                continue;
            }
            self.rest += moves::count(&tree).max(LAYERS);
            self.evaluations += (self.rest / LAYERS) as u64;
            self.rest %= LAYERS;
            segments.push(Arc::new(self.problem.segment(model, tree, &self.prices).ok()?));
        }
        Some(segments)
    }

    /// Some segments in sequence, the more likely the more layers there are.
    fn window(&mut self) -> (usize, usize) {
        let count = self.state.segments.len();
        let at = loop {
            let at = self.random.below(count);
            if self.random.below(LONG) < self.state.segments[at].cost.layers.len() {
                break at;
            }
        };
        let wide = [1, 1, 1, 2, 2, 2, 3, 4][self.random.below(8)];
        let first = at.saturating_sub(self.random.below(wide));
        (first, wide.min(count - first))
    }
}

fn costs(segments: &[Arc<Priced>]) -> impl Iterator<Item = &irc_npu_cost::SegmentCost> {
    segments.iter().map(|segment| &segment.cost)
}
