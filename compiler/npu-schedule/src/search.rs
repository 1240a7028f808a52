//! The search: a first schedule for each number of images at a time, and rounds of local searches, of which
//! the best go on.
//!
//! Local searches of a round are independent, so that they can run on any number of threads. Each thread has
//! a model of its own, which remembers layers; what it remembers does not change costs.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use irc_npu_cost::{Model, Objective, Result};

use crate::anneal::{Run, anneal};
use crate::options::{Options, Progress};
use crate::random::Random;
use crate::recombine::recombine;
use crate::segmentation::segmentation;
use crate::state::{Problem, State};

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

/// The number of layers of a network to which the heats apply as they are.
const USUAL_LAYERS: f64 = 72.0;

/// Maximum number of different numbers of images at a time.
const MAX_GROUPS: usize = 5;

/// What is common to the threads.
struct Shared<'a, 'o> {
    problem: Problem<'a>,
    options: &'o Options<'o>,
    budget: u64,
    evaluations: AtomicU64,
    /// The bits of the best objective; those of positive numbers are ordered as they are.
    best: AtomicU64,
}

/// The best schedule, and the number of evaluations.
///
/// # Errors
/// `cost-machine`; the diagnostic of the smallest number of images at a time if there is no first schedule.
pub fn search(problem: Problem<'_>, options: &Options<'_>) -> Result<(State, u64)> {
    let threads = options.threads.max(1);
    let new = |_| Model::new(problem.network, problem.machine, options.objective).map(Mutex::new);
    let models: Vec<Mutex<Model<'_>>> = (0..threads).map(new).collect::<Result<_>>()?;
    let shared = Shared {
        problem,
        options,
        budget: options.evaluations(problem.network, problem.machine),
        evaluations: AtomicU64::new(0),
        best: AtomicU64::new(f64::INFINITY.to_bits()),
    };
    let groups = images_at_a_time(problem.batch);
    let evaluations = &shared.evaluations;
    let first = shared.all(&models, groups.len(), |model, at| {
        segmentation(&problem, model, groups[at], evaluations)
    });
    let mut failed = None;
    let mut states = vec![];
    for state in first {
        match state {
            Ok(state) => states.push(state),
            Err(diagnostic) => failed = Some(diagnostic),
        }
    }
    if let (true, Some(diagnostic)) = (states.is_empty(), failed) {
        return Err(diagnostic);
    }
    shared.sort(&mut states);
    let left = shared.budget.saturating_sub(shared.evaluations.load(Ordering::Relaxed));
    let (seed, mut stream) = (options.seed, 0);
    for round in &ROUNDS {
        let count = round.heats.len();
        let budget = (left as f64 * round.share) as u64 / count as u64;
        let starts = &states[..states.len().min(round.starts)];
        let found = shared.all(&models, count, |model, at| {
            let run = Run { budget, heat: round.heats[at] * warmth(&problem) };
            let mut random = Random::new(seed, stream + at as u64);
            let start = starts[at % starts.len()].clone();
            anneal(&problem, model, start, run, &mut random, evaluations)
        });
        states.extend(found);
        let groups: BTreeSet<u64> = states.iter().map(|state| state.images).collect();
        for images in groups {
            let same: Vec<&State> = states.iter().filter(|state| state.images == images).collect();
            let better = recombine(&problem, &same);
            states.extend(better);
        }
        shared.sort(&mut states);
        stream += count as u64;
    }
    Ok((states.swap_remove(0), shared.evaluations.into_inner()))
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

impl Shared<'_, '_> {
    fn value(&self, state: &State) -> f64 {
        self.problem.value(state.totals(&self.problem))
    }

    /// The best first; equal ones in the order they were found. Equal ones are dropped.
    fn sort(&self, states: &mut Vec<State>) {
        states.sort_by(|a, b| self.value(a).total_cmp(&self.value(b)));
        states.dedup_by(|a, b| self.value(a) == self.value(b));
        if let Some(best) = states.first() {
            self.best.store(self.value(best).to_bits(), Ordering::Relaxed);
        }
    }

    /// The results of a task for each index up to `count`, on all threads.
    fn all<'m, T: Send>(
        &self,
        models: &[Mutex<Model<'m>>],
        count: usize,
        task: impl Fn(&mut Model<'m>, usize) -> T + Sync,
    ) -> Vec<T> {
        let next = AtomicUsize::new(0);
        let (done, results) = mpsc::channel();
        let mut found: Vec<Option<T>> = (0..count).map(|_| None).collect();
        std::thread::scope(|scope| {
            for model in models.iter().take(count) {
                let (done, next, task) = (done.clone(), &next, &task);
                scope.spawn(move || {
                    let Ok(mut model) = model.lock() else { return };
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        if at >= count || done.send((at, task(&mut model, at))).is_err() {
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
