//! The search: a first schedule for each number of images at a time, and rounds of local searches, of which
//! the best go on.
//!
//! Local searches of a round are independent, so that they can run on any number of threads. Each thread has
//! a model of its own, which remembers layers; what it remembers does not change costs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use irc_diag::Diagnostic;
use irc_npu_cost::{Model, Objective, Result};

use crate::anneal::{Run, anneal};
use crate::options::{FEW_LAYERS, OBJECTIVES, Options, Progress};
use crate::random::Random;
use crate::recombine::recombine;
use crate::segmentation::{layers_by_depth, segmentation};
use crate::state::{Priced, Problem, State};

/// A round of local searches: its share of the budget, and the heat of each search. The search at an index
/// starts from the schedule at that index, modulo their number.
struct Round {
    share: f64,
    heats: &'static [f64],
    /// Number of schedules that the round starts from.
    starts: usize,
}

/// The rounds. Heats that differ make searches differ: none is the best for all networks.
const ROUNDS: [Round; 3] = [
    Round { share: 0.4, heats: &[0.02, 0.02, 0.005, 0.005, 0.02, 0.02, 0.001, 0.001], starts: 8 },
    Round { share: 0.35, heats: &[0.01, 0.01, 0.005, 0.005], starts: 4 },
    Round { share: 0.25, heats: &[0.004, 0.004], starts: 2 },
];

/// The rounds of several islands: more of them, as each ends with an exchange.
const ROUNDS_OF_ISLANDS: [Round; 6] = [
    Round { share: 0.25, heats: &[0.02, 0.02, 0.005, 0.005, 0.02, 0.02, 0.001, 0.001], starts: 8 },
    Round { share: 0.2, heats: &[0.02, 0.01, 0.005, 0.001], starts: 4 },
    Round { share: 0.2, heats: &[0.02, 0.01, 0.005, 0.001], starts: 4 },
    Round { share: 0.15, heats: &[0.02, 0.01, 0.005, 0.001], starts: 4 },
    Round { share: 0.1, heats: &[0.01, 0.004], starts: 2 },
    Round { share: 0.1, heats: &[0.01, 0.004], starts: 2 },
];

/// The number of layers of a network to which the heats apply as they are.
const USUAL_LAYERS: f64 = 72.0;

/// Maximum number of different numbers of images at a time.
const MAX_GROUPS: usize = 5;

/// Schedules for one objective, which also selects mappings. Islands search independently during a round, and then
/// exchange schedules.
struct Island<'a> {
    problem: Problem<'a>,
    /// The best first.
    states: Vec<State>,
}

/// What a search found.
pub struct Found {
    /// The best schedule.
    pub state: State,
    /// The objective that selects its mappings.
    pub mappings: Objective,
    /// The number of evaluations.
    pub evaluations: u64,
}

/// What is common to the threads.
struct Shared<'o> {
    options: &'o Options<'o>,
    budget: u64,
    evaluations: AtomicU64,
    /// The bits of the best objective; those of positive numbers are ordered as they are.
    best: AtomicU64,
}

/// The models of a thread, one for each island.
type Models<'a> = Mutex<Vec<Model<'a>>>;

/// The best schedule.
///
/// # Errors
/// `cost-machine`; the diagnostic of the smallest number of images at a time if there is no first schedule.
pub fn search(problem: Problem<'_>, options: &Options<'_>) -> Result<Found> {
    let objectives = objectives(&problem);
    let count = objectives.len();
    let new = |_| {
        let of = |objective: &Objective| Model::new(problem.network, problem.machine, *objective);
        objectives.iter().map(of).collect::<Result<_>>().map(Mutex::new)
    };
    let models: Vec<Models<'_>> = (0..options.threads.max(1)).map(new).collect::<Result<_>>()?;
    let shared = Shared {
        options,
        budget: options.evaluations(problem.network, problem.machine),
        evaluations: AtomicU64::new(0),
        best: AtomicU64::new(f64::INFINITY.to_bits()),
    };
    let mut islands = vec![];
    for objective in objectives {
        islands.push(Island { problem: Problem { objective, ..problem }, states: vec![] });
    }
    shared.start(&mut islands, &models)?;
    shared.note_best(&islands, problem.objective);
    let left = shared.budget.saturating_sub(shared.evaluations.load(Ordering::Relaxed));
    let (seed, evaluations, mut stream) = (options.seed, &shared.evaluations, 0);
    let rounds = if count > 1 { &ROUNDS_OF_ISLANDS[..] } else { &ROUNDS };
    for round in rounds {
        let each = round.heats.len();
        let budget = (left as f64 * round.share) as u64 / (each * count) as u64;
        let found = shared.all(&models, each * count, |models, at| {
            let (island, at) = (at / each, at % each);
            let Island { problem, states } = &islands[island];
            let run = Run { budget, heat: round.heats[at] * warmth(problem) };
            let mut random = Random::new(seed, stream + (island * each + at) as u64);
            let start = states[at % states.len().min(round.starts)].clone();
            anneal(problem, &mut models[island], start, run, &mut random, evaluations)
        });
        let exchanged = shared.all(&models, count, |models, island| {
            let (problem, model) = (&islands[island].problem, &mut models[island]);
            let mut states = islands[island].states.clone();
            for (at, state) in found.iter().enumerate() {
                match at / each == island {
                    true => states.push(state.clone()),
                    false => states.extend(repriced(problem, model, state, evaluations)),
                }
            }
            recombined(problem, states)
        });
        for (island, states) in islands.iter_mut().zip(exchanged) {
            island.states = states;
        }
        shared.note_best(&islands, problem.objective);
        stream += (each * count) as u64;
    }
    best(&islands, problem.objective, shared.evaluations.into_inner())
}

/// The objectives of the islands.
fn objectives(problem: &Problem<'_>) -> Vec<Objective> {
    let mut all = vec![];
    if problem.network.nodes().len() as u64 <= FEW_LAYERS {
        all.extend(OBJECTIVES);
    }
    if !all.contains(&problem.objective) {
        all.push(problem.objective);
    }
    all
}

/// A schedule with the mappings of another objective.
fn repriced(
    problem: &Problem<'_>,
    model: &mut Model<'_>,
    state: &State,
    evaluations: &AtomicU64,
) -> Option<State> {
    let mut segments = vec![];
    for segment in &state.segments {
        evaluations.fetch_add(1, Ordering::Relaxed);
        let priced = problem.segment(model, segment.with_schemes(), &[]).ok()?;
        segments.push(Arc::new(Priced { tree: segment.tree.clone(), ..priced }));
    }
    let multiples = state.multiples.clone();
    Some(State { multiples, ..problem.state(state.images, segments) })
}

/// Schedules and what they are recombined to.
fn recombined(problem: &Problem<'_>, mut states: Vec<State>) -> Vec<State> {
    let groups: BTreeSet<u64> = states.iter().map(|state| state.images).collect();
    for images in groups {
        let same: Vec<&State> = states.iter().filter(|state| state.images == images).collect();
        let better = recombine(problem, &same);
        states.extend(better);
    }
    sorted(problem, states)
}

/// The best first; equal ones in the order they were found. Equal ones are dropped.
fn sorted(problem: &Problem<'_>, mut states: Vec<State>) -> Vec<State> {
    let value = |state: &State| problem.value(state.totals(problem));
    states.sort_by(|a, b| value(a).total_cmp(&value(b)));
    states.dedup_by(|a, b| value(a) == value(b));
    states
}

/// The factor of heats. A change touches a few layers, so that it changes the objective of a small network
/// more; and a product of few factors changes less.
fn warmth(problem: &Problem<'_>) -> f64 {
    let Objective { energy, delay } = problem.guide();
    let by_layers = USUAL_LAYERS / problem.network.nodes().len() as f64;
    by_layers.clamp(0.2, 20.0) * f64::from(energy + delay) / 2.0
}

/// The numbers of images at a time that are tried: the divisors of the batch, or some of them.
fn images_at_a_time(batch: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (1..=batch).filter(|by| batch.is_multiple_of(*by)).collect();
    while all.len() > MAX_GROUPS {
        // Every second one, but always all of the batch, and one.
        let last = all.len() - 1;
        all = (0..=last).filter(|at| at % 2 == 0 || *at == last).map(|at| all[at]).collect();
    }
    all
}

/// Of the best schedules of each island by each of their objectives, the best by the requested objective.
fn best(islands: &[Island<'_>], requested: Objective, evaluations: u64) -> Result<Found> {
    let mut best: Option<([f64; 2], &Island<'_>, &State)> = None;
    for island in islands {
        let Problem { network, machine, objective, .. } = island.problem;
        let mut model = Model::new(network, machine, objective)?;
        for by in islands.iter().map(|island| &island.problem) {
            let value = |state: &State| by.value(state.totals(by));
            let states = island.states.iter();
            let Some(state) = states.min_by(|a, b| value(a).total_cmp(&value(b))) else { continue };
            let cost = model.evaluate(&state.tree(by))?.cost;
            let problem = Problem { objective: requested, ..*by };
            let totals = (cost.energy, cost.latency as f64);
            let values = [requested.of(cost.energy, cost.latency), problem.value(totals)];
            if best.as_ref().is_none_or(|(least, ..)| values < *least) {
                best = Some((values, island, state));
            }
        }
    }
    let (_, island, state) =
        best.ok_or_else(|| Box::new(Diagnostic::error("cost-tree-batch", "no images")))?;
    Ok(Found { state: state.clone(), mappings: island.problem.objective, evaluations })
}

impl Shared<'_> {
    /// The first schedules of each island, for each number of images at a time: one, or two if there are several islands.
    fn start<'a>(&self, islands: &mut [Island<'a>], models: &[Models<'a>]) -> Result<()> {
        let problems: Vec<Problem<'a>> = islands.iter().map(|island| island.problem).collect();
        let groups = images_at_a_time(problems[0].batch);
        let kinds = islands.len().min(2);
        let (each, evaluations) = (groups.len() * kinds, &self.evaluations);
        let first = self.all(models, each * islands.len(), |models, at| {
            let (island, at) = (at / each, at % each);
            let (problem, model) = (&problems[island], &mut models[island]);
            match at % kinds {
                0 => segmentation(problem, model, groups[at / kinds], evaluations),
                _ => layers_by_depth(problem, model, groups[at / kinds], evaluations),
            }
        });
        let mut failed = None;
        for (at, state) in first.into_iter().enumerate() {
            match state {
                Ok(state) => islands[at / each].states.push(state),
                Err(diagnostic) => failed = Some(diagnostic),
            }
        }
        for island in islands.iter_mut() {
            if let (true, Some(diagnostic)) = (island.states.is_empty(), &failed) {
                return Err(diagnostic.clone());
            }
            island.states = sorted(&island.problem, std::mem::take(&mut island.states));
        }
        Ok(())
    }

    /// Notes the objective of the best schedule, for reports of progress.
    fn note_best(&self, islands: &[Island<'_>], requested: Objective) {
        let of = islands.iter().find(|island| island.problem.objective == requested);
        if let Some((problem, best)) = of.and_then(|of| Some((&of.problem, of.states.first()?))) {
            let value = problem.value(best.totals(problem));
            self.best.store(value.to_bits(), Ordering::Relaxed);
        }
    }

    /// The results of a task for each index up to `count`, on all threads.
    fn all<'m, T: Send>(
        &self,
        models: &[Models<'m>],
        count: usize,
        task: impl Fn(&mut [Model<'m>], usize) -> T + Sync,
    ) -> Vec<T> {
        let next = AtomicUsize::new(0);
        let (done, results) = mpsc::channel();
        let mut found: Vec<Option<T>> = (0..count).map(|_| None).collect();
        std::thread::scope(|scope| {
            for models in models.iter().take(count) {
                let (done, next, task) = (done.clone(), &next, &task);
                scope.spawn(move || {
                    let Ok(mut models) = models.lock() else { return };
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        if at >= count || done.send((at, task(&mut models, at))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(done);
            loop {
                match results.recv_timeout(Duration::from_millis(200)) {
                    Ok((at, result)) => found[at] = Some(result),
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                }
                self.report();
            }
        });
        found.into_iter().flatten().collect()
    }

    fn report(&self) {
        if let Some(progress) = self.options.progress {
            progress(Progress {
                evaluations: self.evaluations.load(Ordering::Relaxed),
                budget: self.budget,
                best: f64::from_bits(self.best.load(Ordering::Relaxed)),
            });
        }
    }
}
