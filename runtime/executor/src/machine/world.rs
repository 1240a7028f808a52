//! All processors of all ranks, run together.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::call::{BoundStep, BoundTask, Caller, Walk};
use super::pool::{Next, Pool};
use super::processor::{Processor, Stop};
use super::script::{Entry, Share};
use crate::memory::{Addresses, Memory};
use crate::{Error, Rank};

/// How to run.
#[derive(Debug)]
pub struct Options {
    /// Threads that share the processors; at least one runs.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: 1 }
    }
}

/// What was run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Tasks, over all ranks.
    pub tasks: u64,
}

/// Runs the plans of all ranks once, each on its memory.
///
/// # Errors
/// [`Error::World`], [`Error::Deadlock`], [`Error::Kernel`].
///
/// # Panics
/// When a memory is not its rank's.
pub fn run(ranks: &[&Rank], memories: &mut [Memory], options: Options) -> Result<Report, Error> {
    assert_eq!(ranks.len(), memories.len(), "each rank has its memory");
    let world = World::new(ranks, memories, &options)?;
    let others = options.threads.max(1) - 1;
    std::thread::scope(|scope| {
        for _ in 0..others {
            scope.spawn(|| world.work());
        }
        world.work();
    });
    let failure = world.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    let tasks = (0..world.processors.len()).map(|index| world.processor(index).tasks).sum();
    failure.map_or(Ok(Report { tasks }), Err)
}

/// A rank in a run.
struct Bound<'r> {
    rank: &'r Rank,
    /// Index of its first processor among all.
    first: usize,
    tasks: Vec<BoundTask>,
    /// For each entry of the script, processors that have yet to come to it.
    missing: Vec<AtomicI64>,
}

struct World<'r> {
    ranks: Vec<Bound<'r>>,
    processors: Vec<Mutex<Processor>>,
    pool: Pool,
    scratch_bytes: u64,
    failure: Mutex<Option<Error>>,
}

impl<'r> World<'r> {
    fn new(ranks: &[&'r Rank], memories: &mut [Memory], options: &Options) -> Result<Self, Error> {
        let mut bound = vec![];
        let mut count = 0;
        for (rank, memory) in ranks.iter().zip(memories) {
            let fits = rank.layout.buffers.len() == memory.tensors.len();
            assert!(fits, "a memory is used with the rank it was made for");
            let addresses = Addresses::of(memory);
            let tasks = rank.tasks.iter().map(|task| BoundTask::new(task, &addresses)).collect();
            let missing = rank.script.iter().map(|entry| AtomicI64::new(entry.range().len()));
            bound.push(Bound { rank, first: count, tasks, missing: missing.collect() });
            count += usize::try_from(rank.plan.num_processors).unwrap_or_default();
        }
        Ok(Self {
            ranks: bound,
            processors: (0..count).map(|_| Mutex::default()).collect(),
            pool: Pool::new(count, options.threads.max(1)),
            scratch_bytes: ranks.iter().map(|rank| rank.scratch_bytes).max().unwrap_or_default(),
            failure: Mutex::default(),
        })
    }

    fn processor(&self, index: usize) -> MutexGuard<'_, Processor> {
        self.processors[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first failure ends the run.
    fn fail(&self, error: Error) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.pool.stop();
    }

    /// What a thread does until all is over.
    fn work(&self) {
        let _guard = StopOnPanic(&self.pool);
        let mut caller = match Caller::new(self.scratch_bytes) {
            Ok(caller) => caller,
            Err(reason) => return self.fail(Error::System(reason)),
        };
        let (mut batch, mut finished) = (vec![], 0);
        loop {
            match self.pool.take(&mut batch, finished, false) {
                Next::Batch => finished = 0,
                Next::Idle => continue,
                Next::Over => return,
                Next::Stuck => return self.fail(self.deadlock()),
            }
            for &index in &batch {
                match self.advance(index, &mut caller) {
                    Ok(Stop::Finished) => finished += 1,
                    Ok(Stop::Parked) => {}
                    Err(error) => return self.fail(error),
                }
            }
        }
    }

    /// The rank of a processor.
    fn rank_of(&self, index: usize) -> &Bound<'r> {
        let after = self.ranks.partition_point(|bound| bound.first <= index);
        &self.ranks[after - 1]
    }

    /// Runs a processor until it must wait or is finished.
    fn advance(&self, index: usize, caller: &mut Caller) -> Result<Stop, Error> {
        let bound = self.rank_of(index);
        let number = (index - bound.first) as i64;
        let mut processor = self.processor(index);
        while let Some(entry) = bound.rank.script.get(processor.entry) {
            let range = entry.range();
            if number < range.begin || number >= range.end {
                processor.entry += 1;
                continue;
            }
            match entry {
                Entry::Barrier { .. } => {
                    let at = processor.entry;
                    processor.entry += 1;
                    if !self.arrive(bound, at, index) {
                        return Ok(Stop::Parked);
                    }
                }
                Entry::Tasks(share) => {
                    self.run_share(bound, share, number, &mut processor, caller)?;
                    processor.entry += 1;
                }
            }
        }
        Ok(Stop::Finished)
    }

    /// Comes to a barrier; the last one wakes the others and goes on.
    fn arrive(&self, bound: &Bound<'_>, entry: usize, index: usize) -> bool {
        if bound.missing[entry].fetch_sub(1, Ordering::AcqRel) > 1 {
            return false;
        }
        let range = bound.rank.script[entry].range();
        let members = bound.first + range.begin as usize..bound.first + range.end as usize;
        self.pool.wake(members.filter(|&member| member != index));
        true
    }

    /// Runs a processor's tasks of a task group.
    fn run_share(
        &self,
        bound: &Bound<'_>,
        share: &Share,
        number: i64,
        processor: &mut Processor,
        caller: &mut Caller,
    ) -> Result<(), Error> {
        let steps = &bound.tasks[share.task].steps;
        let mut hand = share.deal.of(number);
        let Some(mut task) = share.deal.draw(&mut hand) else { return Ok(()) };
        let jump = share.deal.jump();
        let walk = |step: &BoundStep| match step {
            BoundStep::Kernel(kernel) => Some(Walk::new(kernel, task, jump)),
            BoundStep::Communicate(_) => None,
        };
        let mut walks: Vec<Option<Walk>> = steps.iter().map(walk).collect();
        loop {
            for (index, (step, walk)) in steps.iter().zip(&mut walks).enumerate() {
                match (step, walk) {
                    (BoundStep::Kernel(kernel), Some(walk)) => caller
                        .call(kernel, walk, task)
                        .map_err(|code| self.kernel_failed(bound, share, task, index, code))?,
                    _ => return Err(Error::System("communication is not run yet".into())),
                }
            }
            processor.tasks += 1;
            match share.deal.draw(&mut hand) {
                Some(next) => task = next,
                None => return Ok(()),
            }
        }
    }

    fn kernel_failed(
        &self,
        bound: &Bound<'_>,
        share: &Share,
        task: i64,
        step: usize,
        code: i32,
    ) -> Error {
        let info = &bound.rank.plan.task_infos[share.task];
        let ops = match &bound.rank.tasks[share.task].steps[step] {
            crate::task::TaskStep::Kernel(kernel) => kernel.ops.clone(),
            crate::task::TaskStep::Communicate(op) => vec![*op],
        };
        let names: Vec<_> = ops.iter().map(|&op| info.ops[op].op.name.as_str()).collect();
        Error::Kernel {
            rank: bound.rank.plan.rank,
            task: format!("{}[{task}]", share.task),
            op: names.join(", "),
            code,
        }
    }

    /// Who waits for whom.
    fn deadlock(&self) -> Error {
        let mut waits = vec![];
        for bound in &self.ranks {
            let rank = bound.rank.plan.rank;
            for (entry, missing) in bound.rank.script.iter().zip(&bound.missing) {
                let Entry::Barrier { range, before } = entry else { continue };
                let missing = missing.load(Ordering::Acquire);
                if missing > 0 && missing < range.len() {
                    waits.push(format!(
                        "rank {rank}: the barrier over processors [{}, {}) before processor group \
                         {before} waits for {missing} more",
                        range.begin, range.end
                    ));
                }
            }
        }
        Error::Deadlock { waits: waits.join("\n") }
    }
}

/// Ends the run when a thread panics, so that the others do not wait for it.
struct StopOnPanic<'p>(&'p Pool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}
