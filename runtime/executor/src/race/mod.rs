//! Finds the first two unordered tasks that access the same bytes.
//!
//! The happens-before relation is that of the validator: tasks of a processor group are unordered, even
//! on one processor, whose slots run concurrently; ops of one task are ordered. Between groups,
//! barriers order the tasks of their processors; between ranks, messages do. A race is found
//! in any order of execution, provided that both tasks run.

mod clock;
mod report;
mod shadow;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use irc_ark_format::plan::tiling::{self, Cover, Grid};
use irc_ark_format::plan::{Plan, PlanOp};

use crate::comm::op::{Action, CommOp, Touch};
use crate::comm::view::View;
use crate::layout::is_local;
use crate::{Error, Rank};
use clock::{Clock, ProcessorClock, barrier};
pub use report::{Race, Side};
use shadow::{Access, Shadow};

/// The bytes of a tensor that the tasks of an op access.
struct OperandAccess {
    slot: usize,
    view: View,
    extents: [i64; 4],
    cover: [Cover; 4],
    is_write: bool,
}

/// The tasks of one op.
struct Tiles {
    grid: Grid,
    touched: Vec<OperandAccess>,
}

/// The current task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    /// Index of the rank among the local ones.
    pub rank: usize,
    /// Processor of the world.
    pub processor: usize,
    /// Index of the processor group.
    pub group: usize,
    /// Index of the task group.
    pub number: usize,
    /// Index of the task info.
    pub info: usize,
    /// The task index.
    pub task: i64,
}

/// The key of a link for signals or synchronisations: sender, receiver, and the tag of a signal.
type LinkKey = (i64, i64, Option<i64>);

/// The state of a link.
struct LinkState {
    /// Its index in clocks.
    place: usize,
    /// Number of messages sent.
    sent: u32,
    /// Messages not yet received: the knowledge of the sender, and the number of the message.
    messages: VecDeque<(Clock, u32)>,
}

/// The state of a checked run.
pub(crate) struct Checker<'r> {
    ranks: Vec<&'r Rank>,
    /// First processor of each rank.
    first: Vec<usize>,
    /// Processors that are used by some group.
    used: Vec<usize>,
    known: Vec<ProcessorClock>,
    tiles: BTreeMap<(usize, usize, usize), Tiles>,
    shadows: BTreeMap<(usize, usize), Shadow>,
    links: BTreeMap<LinkKey, LinkState>,
    /// What the current task of each processor has accessed, if it may signal.
    touched: BTreeMap<usize, Vec<(usize, usize, u64, u64)>>,
}

impl<'r> Checker<'r> {
    /// Creates a checker for the ranks of a world, with the index of their first processor.
    ///
    /// # Errors
    /// If the tasks of an op cannot be determined.
    pub(crate) fn new(ranks: &[(&'r Rank, usize)]) -> Result<Self, Error> {
        let processors: i64 = ranks.iter().map(|(rank, _)| rank.plan.num_processors).sum();
        let mut count = processors as usize;
        let mut links = BTreeMap::new();
        for key in all_links(ranks) {
            links.entry(key).or_insert_with(|| {
                count += 1;
                LinkState { place: count - 1, sent: 0, messages: VecDeque::new() }
            });
        }
        let mut tiles = BTreeMap::new();
        for (index, (rank, _)) in ranks.iter().enumerate() {
            prepare(index, rank, &mut tiles)?;
        }
        Ok(Self {
            ranks: ranks.iter().map(|(rank, _)| *rank).collect(),
            first: ranks.iter().map(|(_, first)| *first).collect(),
            used: used(ranks),
            known: vec![ProcessorClock::new(count); processors as usize],
            tiles,
            shadows: BTreeMap::new(),
            links,
            touched: BTreeMap::new(),
        })
    }

    /// All processors of a range have reached a barrier.
    pub(crate) fn barrier(&mut self, members: Range<usize>) {
        barrier(&mut self.known, members);
        let all_know = |processor: usize| {
            let progress = self.known[processor].progress;
            self.used.iter().all(|&other| self.known[other].clock[processor] >= progress)
        };
        // Groups that every processor knows to be finished cannot race with later accesses.
        if self.used.iter().all(|&processor| all_know(processor)) {
            self.shadows.values_mut().for_each(Shadow::clear);
        }
    }

    /// A task runs ops on its own rank's memory.
    ///
    /// # Errors
    /// [`Error::Race`].
    pub(crate) fn compute(&mut self, site: Site, ops: &[usize]) -> Result<(), Error> {
        self.known[site.processor].progress = site.group as u32 + 1;
        for &op in ops {
            let Some(tiles) = self.tiles.get(&(site.rank, site.info, op)) else { continue };
            let digits = tiles.grid.digits(site.task);
            let mut uses = vec![];
            for touched in &tiles.touched {
                let window = tiling::window(touched.extents, touched.cover, digits);
                let runs = touched.view.window(window.begin, window.extent);
                uses.push((touched.slot, runs, touched.is_write));
            }
            for (slot, runs, is_write) in uses {
                let touch = Touch { peer: None, slot, runs, is_write, is_packets: false };
                self.touch(site, op, &touch)?;
            }
        }
        Ok(())
    }

    /// A task starts a communication op.
    pub(crate) fn announce(&mut self, site: Site, op: &CommOp) {
        self.known[site.processor].progress = site.group as u32 + 1;
        let Action::Sync { peers } = &op.action else { return };
        let here = self.ranks[site.rank].plan.rank;
        for &peer in peers {
            self.signal(site, (here, peer, None));
        }
    }

    /// A task has run a communication op from one phase to another.
    ///
    /// # Errors
    /// [`Error::Race`].
    pub(crate) fn communicate(
        &mut self,
        site: Site,
        index: usize,
        op: &CommOp,
        (from, to): (usize, usize),
        is_done: bool,
    ) -> Result<(), Error> {
        let here = self.ranks[site.rank].plan.rank;
        match &op.action {
            Action::Sync { peers } => {
                for &peer in peers.iter().take(to.saturating_sub(1)).skip(from.saturating_sub(1)) {
                    self.receive(site, (peer, here, None), 1);
                }
            }
            _ if !is_done => return Ok(()),
            Action::Recv { link: Some(((peer, tag), count)) } => {
                self.receive(site, (*peer, here, Some(*tag)), *count);
            }
            _ => {}
        }
        for touch in op.touches(site.task) {
            self.touch(site, index, &touch)?;
        }
        if let Action::Send { to, signal: Some(tag), .. } = &op.action {
            self.signal(site, (here, to.peer.unwrap_or(here), Some(*tag)));
        }
        Ok(())
    }

    /// A task with communication is done.
    pub(crate) fn end_task(&mut self, processor: usize) {
        self.known[processor].end_task();
        self.touched.remove(&processor);
    }

    fn signal(&mut self, site: Site, link: LinkKey) {
        let Some(LinkState { place, sent, messages }) = self.links.get_mut(&link) else { return };
        *sent += 1;
        messages.push_back((self.known[site.processor].now().clone(), *sent));
        let access = Access { signal: Some((*place, *sent)), ..access(site, 0) };
        for &(rank, slot, begin, end) in self.touched.get(&site.processor).into_iter().flatten() {
            self.shadows.entry((rank, slot)).or_default().signal((begin, end), &access);
        }
    }

    fn receive(&mut self, site: Site, link: LinkKey, count: u64) {
        let Some(LinkState { place, messages, .. }) = self.links.get_mut(&link) else { return };
        for _ in 0..count {
            let Some((mut clock, number)) = messages.pop_front() else { return };
            let entry = &mut std::sync::Arc::make_mut(&mut clock)[*place];
            *entry = (*entry).max(number);
            self.known[site.processor].learn(&clock);
        }
    }

    fn touch(&mut self, site: Site, op: usize, touch: &Touch) -> Result<(), Error> {
        let rank = match touch.peer {
            None => Some(site.rank),
            Some(peer) => self.ranks.iter().position(|rank| rank.plan.rank == peer),
        };
        let Some(rank) = rank else { return Ok(()) };
        let mut access = access(site, op);
        let known = self.known[site.processor].now().clone();
        access.packets = (touch.is_packets && touch.is_write).then(|| known.clone());
        let mut learnt = vec![];
        let shadow = self.shadows.entry((rank, touch.slot)).or_default();
        for &(begin, len) in &touch.runs {
            let bytes = (begin, begin + len);
            let brought = touch.is_packets.then_some(&mut learnt);
            let found = match touch.is_write {
                true => shadow.write(bytes, &access, &known),
                false => shadow.read(bytes, &access, &known, brought),
            };
            found.map_err(|conflict| {
                let later = (&access, touch.is_write);
                let buffer = self.ranks[rank].layout.buffers[touch.slot].id;
                let race = Race::new(&self.ranks, &self.first, (rank, buffer), conflict, later);
                Error::Race(Box::new(race))
            })?;
            if let Some(touched) = self.touched.get_mut(&site.processor) {
                touched.push((rank, touch.slot, bytes.0, bytes.1));
            }
        }
        learnt.iter().for_each(|clock| self.known[site.processor].learn(clock));
        Ok(())
    }

    /// A task with communication starts.
    pub(crate) fn start_task(&mut self, processor: usize) {
        self.touched.insert(processor, vec![]);
    }
}

fn access(site: Site, op: usize) -> Access {
    Access {
        processor: site.processor,
        group: site.group as u32,
        number: site.number as u32,
        task: (site.info, site.task, op),
        signal: None,
        packets: None,
    }
}

/// All links for signals and synchronisations.
fn all_links(ranks: &[(&Rank, usize)]) -> Vec<LinkKey> {
    let numbers: Vec<i64> = ranks.iter().map(|(rank, _)| rank.plan.rank).collect();
    let mut links = vec![];
    for (rank, _) in ranks {
        let here = rank.plan.rank;
        links.extend(rank.manifest.sends.iter().map(|end| (here, end.peer, Some(end.tag))));
        if rank.manifest.synchronises {
            links.extend(numbers.iter().map(|&peer| (here, peer, None)));
        }
    }
    links
}

/// Processors that run any task.
fn used(ranks: &[(&Rank, usize)]) -> Vec<usize> {
    let mut found = std::collections::BTreeSet::new();
    for (rank, first) in ranks {
        for range in rank.script.iter().map(|entry| entry.range()) {
            let end = range.end.min(rank.plan.num_processors);
            found.extend((range.begin..end).map(|number| first + number as usize));
        }
    }
    found.into_iter().collect()
}

/// The tiles of every compute op of a rank.
fn prepare(
    index: usize,
    rank: &Rank,
    tiles: &mut BTreeMap<(usize, usize, usize), Tiles>,
) -> Result<(), Error> {
    for (info, task) in rank.plan.task_infos.iter().enumerate() {
        let computed = rank.tasks[info].steps.iter().filter(|step| step.computes());
        for &op in computed.flat_map(|step| step.ops()) {
            let plan_op = &task.ops[op];
            let found = tiles_of(&rank.plan, rank, plan_op).ok_or_else(|| Error::Plan {
                place: format!("rank {}, $.TaskInfos[{info}].Ops[{op}]", rank.plan.rank),
                reason: format!(
                    "what the tasks of {} '{}' touch is not known, so races cannot be checked",
                    plan_op.op.kind, plan_op.op.name
                ),
            })?;
            tiles.insert((index, info, op), found);
        }
    }
    Ok(())
}

fn tiles_of(plan: &Plan, rank: &Rank, plan_op: &PlanOp) -> Option<Tiles> {
    let op = &plan_op.op;
    let grid = tiling::grid(plan_op)?;
    let mut touched = vec![];
    let mut add = |tensor: &irc_ark_format::model::Tensor, cover, is_write| {
        let slot = rank.layout.slot(tensor.buffer.id).filter(|_| is_local(plan, tensor))?;
        let (view, extents) = (View::of(tensor), tiling::extents(op, tensor));
        touched.push(OperandAccess { slot, view, extents, cover, is_write });
        Some(())
    };
    for (index, tensor) in op.reads.iter().enumerate() {
        add(tensor, tiling::reads(op, &grid, index)?, false)?;
    }
    for tensor in &op.writes {
        add(tensor, tiling::writes(&grid), true)?;
    }
    Some(Tiles { grid, touched })
}
