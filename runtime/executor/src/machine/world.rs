//! Runs all processors of all ranks of this process.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::bound::{BoundStep, BoundTask};
use super::call::{Caller, Walk};
use super::deadlock::waits;
use super::pool::{Next, Pool};
use super::processor::{Place, Processor, StopReason};
use super::shared_values::{Store, StoreTable};
use irc_ark_format::plan::Range;

use crate::comm::manifest::{self, Manifest};
use crate::comm::message::{Inbox, Message};
use crate::comm::step::Port;
use crate::comm::transport::{Activity, GlobalState, InProcess, LocalRanks, Transport};
use crate::memory::{Addresses, Memory};
use crate::race::{Checker, Site};
use crate::script::{Entry, Share};
use crate::trace::{Trace, Track};
use crate::{Error, Rank};

/// Options of a run.
pub struct Options {
    /// Number of threads that run the processors; at least one is used.
    pub threads: usize,
    /// Stop at the first two unordered tasks that access the same bytes. Runs on one thread.
    pub race_check: bool,
    /// Destination of a timeline, as JSON for Perfetto.
    pub trace: Option<Box<dyn Write + Send>>,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: 1, race_check: false, trace: None }
    }
}

/// Statistics of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of tasks, over all ranks of this process.
    pub tasks: u64,
}

/// Runs the plans of all ranks of a world once, each on its own memory.
///
/// # Errors
/// [`Error::World`] before the run starts, if ranks or tags do not match; [`Error::Deadlock`];
/// [`Error::Kernel`]; [`Error::Race`]; [`Error::Trace`].
///
/// # Panics
/// If a memory does not belong to its rank.
pub fn run(ranks: &[&Rank], memories: &mut [Memory], options: Options) -> Result<Report, Error> {
    run_over(&InProcess, ranks, memories, options)
}

/// Runs the plans of the local ranks, which communicate with the others by a transport.
pub(crate) fn run_over(
    transport: &dyn Transport,
    ranks: &[&Rank],
    memories: &mut [Memory],
    mut options: Options,
) -> Result<Report, Error> {
    assert_eq!(ranks.len(), memories.len(), "each rank has its memory");
    let manifests = manifests(transport, ranks)?;
    let trace = options.trace.take();
    let mut world = World::new(transport, ranks, memories, &manifests, &options)?;
    let plans: Vec<_> = ranks.iter().map(|rank| &rank.plan).collect();
    world.trace = trace.map(|out| Trace::new(out, &plans));
    let others = if options.race_check { 0 } else { options.threads.max(1) - 1 };
    std::thread::scope(|scope| {
        for _ in 0..others {
            scope.spawn(|| world.work(false));
        }
        world.work(transport.is_distributed());
    });
    let failure = world.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    let tasks = (0..world.processors.len()).map(|index| world.processor(index).tasks).sum();
    let written = world.trace.take().map_or(Ok(()), Trace::finish);
    failure.map_or(written.map(|()| Report { tasks }), Err)
}

/// The manifests of all ranks, with matching tags.
fn manifests(transport: &dyn Transport, ranks: &[&Rank]) -> Result<BTreeMap<i64, Manifest>, Error> {
    let mut own = BTreeMap::new();
    for rank in ranks {
        let number = rank.plan.rank;
        if own.insert(number, rank.manifest.clone()).is_some() {
            return Err(Error::World(format!("two plans are of rank {number}")));
        }
    }
    let all = transport.exchange(own)?;
    manifest::check(&all)?;
    Ok(all)
}

/// A rank in a run.
pub(super) struct Bound<'r> {
    pub rank: &'r Rank,
    /// Its index among the local ranks.
    index: usize,
    /// Index of its first processor among all processors.
    pub first: usize,
    pub tasks: Vec<BoundTask>,
    /// For each entry of the script, the number of processors that have not arrived.
    pub missing: Vec<AtomicI64>,
    addresses: Addresses,
    inbox: Inbox,
    stores: StoreTable,
}

impl<'r> Bound<'r> {
    fn track(&self, processor: usize) -> Track {
        let (rank, processor) = (self.rank.plan.rank, (processor - self.first) as i64);
        Track { index: self.index, rank, processor }
    }

    fn site(&self, share: &Share, processor: usize, task: i64) -> Site {
        let Share { group, number, task: info, .. } = *share;
        Site { rank: self.index, processor, group, number, info, task }
    }

    fn new(
        rank: &'r Rank,
        (index, first): (usize, usize),
        memory: &mut Memory,
        manifests: &BTreeMap<i64, Manifest>,
    ) -> Result<Self, Error> {
        let fits = rank.layout.buffers.len() == memory.tensors.len();
        assert!(fits, "a memory is used with the rank it was made for");
        let addresses = Addresses::of(memory);
        let missing = rank.script.iter().map(|entry| AtomicI64::new(entry.range().len()));
        let links = rank.manifest.receives.iter().map(|end| (end.peer, end.tag));
        let inbox = Inbox::new(links, manifests.keys().copied());
        let tasks = BoundTask::all(rank, &addresses, manifests)?;
        let wanted = rank.script.iter().map(|entry| match entry {
            Entry::Tasks(share) => tasks[share.task].shared_bytes,
            Entry::Barrier { .. } => 0,
        });
        let wanted = wanted.fold(0, u64::saturating_add);
        Ok(Self {
            rank,
            index,
            first,
            tasks,
            missing: missing.collect(),
            addresses,
            inbox,
            stores: StoreTable::new(memory.shared(wanted)),
        })
    }
}

struct World<'r> {
    transport: &'r dyn Transport,
    ranks: Vec<Bound<'r>>,
    processors: Vec<Mutex<Processor>>,
    pool: Pool,
    scratch_bytes: u64,
    shared_bytes: u64,
    races: Option<Mutex<Checker<'r>>>,
    trace: Option<Trace>,
    failure: Mutex<Option<Error>>,
}

impl<'r> World<'r> {
    fn new(
        transport: &'r dyn Transport,
        ranks: &[&'r Rank],
        memories: &mut [Memory],
        manifests: &BTreeMap<i64, Manifest>,
        options: &Options,
    ) -> Result<Self, Error> {
        let mut bound = vec![];
        let mut count = 0;
        for (rank, memory) in ranks.iter().zip(memories) {
            bound.push(Bound::new(rank, (bound.len(), count), memory, manifests)?);
            count += usize::try_from(rank.plan.num_processors).unwrap_or_default();
        }
        if options.race_check && transport.is_distributed() {
            return Err(Error::System("races are checked with all ranks in one process".into()));
        }
        let races = options.race_check.then(|| {
            let places: Vec<_> = bound.iter().map(|bound| (bound.rank, bound.first)).collect();
            Checker::new(&places).map(Mutex::new)
        });
        Ok(Self {
            transport,
            races: races.transpose()?,
            trace: None,
            ranks: bound,
            processors: (0..count).map(|_| Mutex::default()).collect(),
            pool: Pool::new(count, options.threads.max(1), transport.is_distributed()),
            scratch_bytes: ranks.iter().map(|rank| rank.scratch_bytes).max().unwrap_or_default(),
            shared_bytes: ranks.iter().map(|rank| rank.shared_bytes).max().unwrap_or_default(),
            failure: Mutex::default(),
        })
    }

    fn processor(&self, index: usize) -> MutexGuard<'_, Processor> {
        self.processors[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn races(&self) -> Option<MutexGuard<'_, Checker<'r>>> {
        self.races.as_ref().map(|races| races.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the run with its first error.
    fn fail(&self, error: Error) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.pool.stop();
    }

    /// The main loop of a thread; with `watch`, it also sends and receives.
    fn work(&self, watch: bool) {
        let _guard = StopOnPanic(&self.pool);
        if let Err(error) = self.try_work(watch) {
            self.fail(error);
        }
    }

    fn try_work(&self, watch: bool) -> Result<(), Error> {
        let mut caller =
            Caller::new(self.scratch_bytes, self.shared_bytes).map_err(Error::System)?;
        let (mut batch, mut finished) = (vec![], 0);
        loop {
            let next = self.pool.take(&mut batch, finished, watch);
            finished = 0;
            match next {
                Next::Over => return Ok(()),
                Next::Stuck => return Err(Error::Deadlock { waits: self.waits() }),
                Next::Batch | Next::Idle | Next::Waiting | Next::Finished => {}
            }
            if watch && self.watch(&next)? == GlobalState::Over {
                self.pool.stop();
            }
            for &index in &batch {
                finished += usize::from(self.advance(index, &mut caller)? == StopReason::Finished);
            }
        }
    }

    /// Sends and receives pending messages.
    fn watch(&self, next: &Next) -> Result<GlobalState, Error> {
        let activity = match next {
            Next::Waiting => Activity::Waiting(self.waits()),
            Next::Finished => Activity::Finished,
            _ => Activity::Busy,
        };
        self.transport.poll(self, activity)
    }

    /// The start of a wait, if a trace is written.
    fn waiting(&self, what: impl FnOnce() -> String) -> Option<(Instant, String)> {
        self.trace.as_ref().map(|_| (Instant::now(), what()))
    }

    /// The rank of a processor.
    fn rank_of(&self, index: usize) -> &Bound<'r> {
        let after = self.ranks.partition_point(|bound| bound.first <= index);
        &self.ranks[after - 1]
    }

    /// Runs a processor until it must wait or is finished.
    fn advance(&self, index: usize, caller: &mut Caller) -> Result<StopReason, Error> {
        let bound = self.rank_of(index);
        let number = (index - bound.first) as i64;
        let mut processor = self.processor(index);
        if let (Some(trace), Some((since, what))) = (&self.trace, processor.waits.take()) {
            trace.wait(bound.track(index), &what, since);
        }
        while let Some(entry) = bound.rank.script.get(processor.entry) {
            let range = entry.range();
            if number < range.begin || number >= range.end {
                processor.entry += 1;
                continue;
            }
            match entry {
                Entry::Barrier { range, before } => {
                    let at = processor.entry;
                    processor.entry += 1;
                    processor.waits = self.waiting(|| {
                        let Range { begin, end, .. } = range;
                        format!("barrier over [{begin}, {end}) before group {before}")
                    });
                    if !self.arrive(bound, at, index) {
                        return Ok(StopReason::Parked);
                    }
                    processor.waits = None;
                }
                Entry::Tasks(share) if bound.tasks[share.task].communicates => {
                    if !self.talk(bound, share, index, &mut processor, caller)? {
                        return Ok(StopReason::Parked);
                    }
                    processor.entry += 1;
                }
                Entry::Tasks(share) => {
                    let (at, task) = (processor.entry, &bound.tasks[share.task]);
                    let store = bound.stores.open(at, task, range);
                    processor.tasks +=
                        self.compute(bound, (share, store.as_deref()), index, caller)?;
                    if store.is_some() {
                        bound.stores.close(at);
                    }
                    processor.entry += 1;
                }
            }
        }
        Ok(StopReason::Finished)
    }

    /// Arrives at a barrier; the last processor wakes the others and continues.
    fn arrive(&self, bound: &Bound<'_>, entry: usize, index: usize) -> bool {
        if bound.missing[entry].fetch_sub(1, Ordering::AcqRel) > 1 {
            return false;
        }
        let range = bound.rank.script[entry].range();
        let members = bound.first + range.begin as usize..bound.first + range.end as usize;
        if let Some(mut races) = self.races() {
            races.barrier(members.clone());
        }
        self.pool.wake(members.filter(|&member| member != index));
        true
    }

    /// Runs a processor's tasks of a task group without communication; returns their number.
    fn compute(
        &self,
        bound: &Bound<'_>,
        (share, store): (&Share, Option<&Store>),
        processor: usize,
        caller: &mut Caller,
    ) -> Result<u64, Error> {
        let steps = &bound.tasks[share.task].steps;
        let (mut cursor, mut count) = (share.distribution.of((processor - bound.first) as i64), 0);
        let Some(mut task) = share.distribution.advance(&mut cursor) else { return Ok(count) };
        let mut slice = self.trace.as_ref().map(|trace| Slice::new(trace, task));
        let mut walks = walks(steps, share, task);
        loop {
            for (index, (step, walk)) in steps.iter().zip(&mut walks).enumerate() {
                if let (BoundStep::Kernel(kernel), Some(walk)) = (step, walk) {
                    if let Some(mut races) = self.races() {
                        let site = bound.site(share, processor, task);
                        races.compute(site, bound.rank.tasks[share.task].steps[index].ops())?;
                    }
                    caller
                        .call(kernel, walk, task, store.map(|store| store.step(index)))
                        .map_err(|code| kernel_failed(bound, share, task, index, code))?;
                }
            }
            count += 1;
            let next = share.distribution.advance(&mut cursor);
            if let Some(slice) = &mut slice {
                slice.end_task(bound.track(processor), share.task, task, next);
            }
            match next {
                Some(next) => task = next,
                None => return Ok(count),
            }
        }
    }

    /// Runs a processor's tasks of a task group with communication, from its current position; returns
    /// whether they are done. If not, the next message wakes the processor.
    fn talk(
        &self,
        bound: &Bound<'_>,
        share: &Share,
        index: usize,
        processor: &mut Processor,
        caller: &mut Caller,
    ) -> Result<bool, Error> {
        let steps = &bound.tasks[share.task].steps;
        let mut cursor = *processor
            .cursor
            .get_or_insert_with(|| share.distribution.of((index - bound.first) as i64));
        loop {
            let at = processor.at.take().or_else(|| {
                let task = share.distribution.advance(&mut cursor)?;
                Some(Place { info: share.task, task, step: 0, phase: 0 })
            });
            processor.cursor = Some(cursor);
            let Some(mut at) = at else {
                processor.cursor = None;
                return Ok(true);
            };
            let mut slice = self.trace.as_ref().map(|trace| Slice::each(trace, at.task));
            if let Some(mut races) = self.races().filter(|_| at.step == 0 && at.phase == 0) {
                races.start_task(index);
            }
            while let Some(step) = steps.get(at.step) {
                let version = bound.inbox.version();
                if !self.talk_step(bound, share, index, step, &mut at, caller)? {
                    processor.at = Some(at);
                    let BoundStep::Communicate(op) = step else { continue };
                    processor.waits = self
                        .waiting(|| format!("{} waits for {}", op.name, op.waits_for(at.phase)));
                    if bound.inbox.park(index, version) {
                        return Ok(false);
                    }
                    processor.waits = None;
                }
            }
            if let Some(slice) = &mut slice {
                slice.end_task(bound.track(index), share.task, at.task, Some(at.task));
            }
            if let Some(mut races) = self.races() {
                races.end_task(index);
            }
            processor.at = None;
            processor.tasks += 1;
        }
    }

    /// Runs a step of a task, unless it must wait.
    fn talk_step(
        &self,
        bound: &Bound<'_>,
        share: &Share,
        index: usize,
        step: &BoundStep,
        at: &mut Place,
        caller: &mut Caller,
    ) -> Result<bool, Error> {
        let site = bound.site(share, index, at.task);
        match step {
            BoundStep::Kernel(kernel) => {
                if let Some(mut races) = self.races() {
                    races.compute(site, bound.rank.tasks[share.task].steps[at.step].ops())?;
                }
                let mut walk = Walk::new(kernel, at.task, 1);
                caller
                    .call(kernel, &mut walk, at.task, None)
                    .map_err(|code| kernel_failed(bound, share, at.task, at.step, code))?;
            }
            BoundStep::Communicate(op) => {
                let post = |message: Message| self.transport.post(message, self);
                let port = Port {
                    rank: bound.rank.plan.rank,
                    memory: &bound.addresses,
                    inbox: &bound.inbox,
                    post: &post,
                };
                if at.phase == 0
                    && let Some(mut races) = self.races()
                {
                    races.announce(site, op);
                }
                let before = at.phase;
                let is_done = op.run(at.task, &mut at.phase, &port)?;
                if let Some(mut races) = self.races() {
                    let ops = bound.rank.tasks[share.task].steps[at.step].ops();
                    races.communicate(site, ops[0], op, (before, at.phase), is_done)?;
                }
                if !is_done {
                    return Ok(false);
                }
            }
        }
        (at.step, at.phase) = (at.step + 1, 0);
        Ok(true)
    }

    /// What all processors wait for.
    fn waits(&self) -> String {
        let of = |bound: &Bound<'r>| {
            let count = bound.rank.plan.num_processors as usize;
            let places = (0..count).map(|number| self.processor(bound.first + number).at);
            waits(bound.rank, &bound.tasks, &bound.missing, &places.collect::<Vec<_>>())
        };
        self.ranks.iter().flat_map(of).collect::<Vec<_>>().join("\n")
    }
}

impl LocalRanks for World<'_> {
    fn deliver(&self, message: Message) -> Result<(), Error> {
        let bound = self.ranks.iter().find(|bound| bound.rank.plan.rank == message.to);
        let problem = |reason: String| {
            let Message { from, to, .. } = message;
            Error::Transport(format!("a message from rank {from} to rank {to}: {reason}"))
        };
        let bound = bound.ok_or_else(|| problem("that rank is not here".into()))?;
        let woken = bound.inbox.deliver(&message, &bound.addresses).map_err(problem)?;
        if !woken.is_empty() {
            self.pool.wake(woken.into_iter());
        }
        Ok(())
    }
}

/// Tasks that form a slice of the trace.
struct Slice<'t> {
    trace: &'t Trace,
    by_task: bool,
    since: Instant,
    first: i64,
    count: u64,
}

impl<'t> Slice<'t> {
    fn new(trace: &'t Trace, first: i64) -> Self {
        Self { trace, by_task: trace.by_task, since: Instant::now(), first, count: 0 }
    }

    /// A slice for each task, or one for all of them.
    fn each(trace: &'t Trace, task: i64) -> Self {
        Self { by_task: true, ..Self::new(trace, task) }
    }

    /// Ends a task, which may be followed by another.
    fn end_task(&mut self, track: Track, info: usize, task: i64, next: Option<i64>) {
        self.count += 1;
        if self.by_task || next.is_none() {
            self.trace.tasks(track, info, (self.first, task, self.count), self.since);
            let by_task = self.by_task;
            *self = Self { by_task, ..Self::new(self.trace, next.unwrap_or(task)) };
        }
    }
}

/// The initial digits of each kernel.
fn walks(steps: &[BoundStep], share: &Share, task: i64) -> Vec<Option<Walk>> {
    let jump = share.distribution.jump();
    let walk = |step: &BoundStep| match step {
        BoundStep::Kernel(kernel) => Some(Walk::new(kernel, task, jump)),
        BoundStep::Communicate(_) => None,
    };
    steps.iter().map(walk).collect()
}

fn kernel_failed(bound: &Bound<'_>, share: &Share, task: i64, step: usize, code: i32) -> Error {
    let info = &bound.rank.plan.task_infos[share.task];
    let ops = bound.rank.tasks[share.task].steps[step].ops();
    let names: Vec<_> = ops.iter().map(|&op| info.ops[op].op.name.as_str()).collect();
    Error::Kernel {
        rank: bound.rank.plan.rank,
        task: format!("{}[{task}]", share.task),
        op: names.join(", "),
        code,
    }
}

/// Ends the run if a thread panics, so that the others do not wait for it.
struct StopOnPanic<'p>(&'p Pool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}
