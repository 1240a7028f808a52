//! Detection of races: two accesses to the same bytes by different threads, of which one writes, that no
//! barrier and no release and acquire orders.
//!
//! Each thread has a vector clock, as in FastTrack; most threads share most of it, so it is an own time and a
//! shared base. Each word of 4 bytes has up to [`CELLS`] accesses, as in ThreadSanitizer: with more concurrent
//! readers some are forgotten, so that a race with them may go unnoticed; no race is reported that is none.
//!
//! An agent is what can be unordered with others: a thread, or the asynchronous copies or matrix products of a
//! thread. Agents are numbered by warp: first all threads, then their copies, then their bulk operations.

use crate::row::WARP;
use std::collections::HashMap;
use std::sync::Arc;

/// Accesses that a word remembers.
const CELLS: usize = 4;
/// Words of a page of the shadow of global memory.
const PAGE: usize = 1024;
/// Agents that a cell can name.
const MAX_AGENTS: u64 = 1 << 24;

/// The times of threads that something is ordered after: blocks of the threads of a warp, by warp.
#[derive(Debug, Clone, Default)]
pub struct Clock(Vec<(u32, Arc<[u32; WARP]>)>);

impl Clock {
    #[inline(always)]
    fn get(&self, agent: u32) -> u32 {
        let warp = agent / WARP as u32;
        match self.0.binary_search_by_key(&warp, |(warp, _)| *warp) {
            Ok(index) => self.0[index].1[agent as usize % WARP],
            Err(_) => 0,
        }
    }

    /// The times of the threads of a warp.
    fn block(&mut self, warp: u32) -> &mut [u32; WARP] {
        let index = match self.0.binary_search_by_key(&warp, |(warp, _)| *warp) {
            Ok(index) => index,
            Err(index) => {
                self.0.insert(index, (warp, Arc::new([0; WARP])));
                index
            }
        };
        Arc::make_mut(&mut self.0[index].1)
    }

    fn raise(&mut self, agent: u32, time: u32) {
        if self.get(agent) < time {
            self.block(agent / WARP as u32)[agent as usize % WARP] = time;
        }
    }

    fn join(&self, other: &Clock) -> Clock {
        let mut joined = Vec::with_capacity(self.0.len().max(other.0.len()));
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        loop {
            let (first, second) = match (a.peek(), b.peek()) {
                (None, None) => return Clock(joined),
                (Some(x), Some(y)) => (x.0 <= y.0, y.0 <= x.0),
                (x, _) => (x.is_some(), x.is_none()),
            };
            let x = if first { a.next() } else { None };
            let y = if second { b.next() } else { None };
            joined.extend(match (x, y) {
                (Some(x), Some(y)) if !Arc::ptr_eq(&x.1, &y.1) => {
                    let mut block = *x.1;
                    block
                        .iter_mut()
                        .zip(y.1.iter())
                        .for_each(|(time, other)| *time = (*time).max(*other));
                    let block = if block == *x.1 { x.1.clone() } else { Arc::new(block) };
                    Some((x.0, block))
                }
                (Some(x), _) => Some(x.clone()),
                (None, y) => y.cloned(),
            });
        }
    }
}

#[derive(Debug, Clone)]
struct Thread {
    base: Arc<Clock>,
    time: u32,
    /// The times of the last copy and bulk operation that the thread waited for.
    done: [u32; 2],
    /// What the last fence released, for strong writes that follow it.
    fence: Option<Arc<Clock>>,
    /// What strong reads read since the last fence, which acquires it.
    pending: Option<Arc<Clock>>,
}

/// An access in the shadow of a word.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    agent: u32,
    time: u32,
    at: u32,
    /// Bytes of the word in bits 0 to 3; then whether it writes, and whether it is strong. Zero: no access.
    flags: u8,
}

const WRITE: u8 = 1 << 4;
const STRONG: u8 = 1 << 5;

type Cells = [Cell; CELLS];

/// The shadow of a memory: the accesses of each word, in pages.
#[derive(Debug, Clone, Default)]
pub struct Shadow(Vec<Vec<Cells>>);

impl Shadow {
    #[inline(always)]
    fn cells(&mut self, word: usize) -> &mut Cells {
        let page = word / PAGE;
        if self.0.get(page).is_none_or(Vec::is_empty) {
            self.add(page);
        }
        &mut self.0[page][word % PAGE]
    }

    #[cold]
    fn add(&mut self, page: usize) {
        if page >= self.0.len() {
            self.0.resize_with(page + 1, Vec::new);
        }
        self.0[page] = vec![Cells::default(); PAGE];
    }
}

/// Who accesses memory, and how.
#[derive(Debug, Clone)]
pub struct Accessor {
    /// The agent.
    agent: u32,
    time: u32,
    /// The agent that it is a part of, and the time of its start.
    owner: (u32, u32),
    base: Arc<Clock>,
    done: [u32; 2],
    /// The instruction.
    at: u32,
}

/// Two accesses that are not ordered.
#[derive(Debug, Clone, Copy)]
pub struct Race {
    /// The instruction of the earlier access.
    pub at: u32,
    /// The warp and lane of its thread.
    pub thread: (u32, u32),
    /// Whether it wrote.
    pub wrote: bool,
}

/// What a write to an address released.
#[derive(Debug, Clone)]
struct Released {
    clock: Arc<Clock>,
    /// The CTA that released it.
    from: u32,
    /// Whether it is released to that CTA only.
    limited: bool,
}

/// The state of the detector for a launch.
#[derive(Debug, Clone)]
pub struct Races {
    /// Warps of the launch.
    warps: u32,
    /// The threads of the warps that run.
    threads: Vec<Option<Box<[Thread; WARP]>>>,
    released: HashMap<u64, Released>,
    /// Shadows of the buffers.
    global: Vec<Shadow>,
    /// The last join, since the threads of a warp often do the same one.
    last: Option<(Arc<Clock>, Arc<Clock>, Arc<Clock>)>,
}

/// The memory of an access.
#[derive(Debug)]
pub enum Shadowed<'s> {
    /// A buffer.
    Buffer(usize),
    /// Memory with a shadow of its own.
    Own(&'s mut Shadow),
}

/// The bytes of an access.
#[derive(Debug, Clone, Copy)]
pub struct Bytes {
    /// The first byte.
    pub start: usize,
    /// The number of bytes.
    pub size: usize,
    /// Whether it writes.
    pub write: bool,
    /// Whether it may be concurrent with other such accesses.
    pub strong: bool,
}

fn shadow<'s>(buffers: &'s mut [Shadow], place: Shadowed<'s>) -> &'s mut Shadow {
    match place {
        Shadowed::Buffer(buffer) => &mut buffers[buffer],
        Shadowed::Own(shadow) => shadow,
    }
}

fn new_threads() -> Box<[Thread; WARP]> {
    let base = Arc::new(Clock::default());
    let thread = Thread { base, time: 1, done: [0; 2], fence: None, pending: None };
    Box::new(std::array::from_fn(|_| thread.clone()))
}

/// An accessor and its clock.
struct View<'c> {
    agent: u32,
    time: u32,
    owner: (u32, u32),
    base: &'c Clock,
    done: [u32; 2],
    at: u32,
    /// Threads of the launch.
    threads: u32,
}

impl View<'_> {
    fn is_ordered(&self, cell: &Cell) -> bool {
        if cell.agent == self.owner.0 {
            return cell.time <= self.owner.1;
        }
        if cell.agent >= self.threads && cell.agent % self.threads == self.owner.0 {
            let kind = (cell.agent / self.threads - 1) as usize;
            if cell.time <= self.done[kind] {
                return true;
            }
        }
        cell.time <= self.base.get(cell.agent)
    }

    /// Records an access.
    #[inline(always)]
    fn access(&self, shadow: &mut Shadow, access: &Bytes) -> Option<Race> {
        let end = access.start + access.size;
        let mut race = None;
        let mut at = access.start;
        while at < end {
            let next = ((at / 4 + 1) * 4).min(end);
            let bytes = ((1_u8 << (next - at)) - 1) << (at % 4);
            race =
                self.access_word(shadow.cells(at / 4), bytes, access.write, access.strong).or(race);
            at = next;
        }
        race
    }

    #[inline(always)]
    fn access_word(&self, cells: &mut Cells, bytes: u8, write: bool, strong: bool) -> Option<Race> {
        let mut race = None;
        let mut slot = None;
        for (index, cell) in cells.iter_mut().enumerate() {
            if cell.flags == 0 {
                slot = slot.or(Some(index));
                continue;
            }
            if cell.flags & bytes & 15 == 0 {
                continue;
            }
            let wrote = cell.flags & WRITE != 0;
            let covered = cell.flags & 15 & !bytes == 0 && (write || !wrote);
            let ordered = cell.agent == self.agent || self.is_ordered(cell);
            if !ordered && (write || wrote) && !(strong && cell.flags & STRONG != 0) {
                let thread = cell.agent % self.threads;
                let thread = (thread / WARP as u32, thread % WARP as u32);
                race = race.or(Some(Race { at: cell.at, thread, wrote }));
            }
            // What is ordered before this access is ordered before all that this one is.
            if covered && ordered {
                cell.flags = 0;
                slot = Some(index);
            }
        }
        let slot = slot.unwrap_or_else(|| {
            // Reads are forgotten before writes.
            let start = (self.time ^ self.agent.wrapping_mul(0x9e37)) as usize;
            let mut order = (0..CELLS).map(|index| (start + index) % CELLS);
            order.find(|index| cells[*index].flags & WRITE == 0).unwrap_or(start % CELLS)
        });
        let flags = bytes | if write { WRITE } else { 0 } | if strong { STRONG } else { 0 };
        cells[slot] = Cell { agent: self.agent, time: self.time, at: self.at, flags };
        race
    }
}

/// Kinds of asynchronous operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Async {
    /// `cp.async`.
    Copy = 0,
    /// `cp.async.bulk` and `wgmma`.
    Bulk = 1,
}

impl Races {
    /// A detector for a launch of some warps; `None` if they are too many.
    pub fn new(warps: u64, buffers: usize) -> Option<Self> {
        (warps * WARP as u64 * 3 <= MAX_AGENTS).then(|| Self {
            warps: warps as u32,
            threads: (0..warps).map(|_| None).collect(),
            released: HashMap::new(),
            global: (0..buffers).map(|_| Shadow::default()).collect(),
            last: None,
        })
    }

    /// A warp starts.
    pub fn start(&mut self, warp: u32) {
        self.threads[warp as usize] = Some(new_threads());
    }

    /// A warp has ended.
    pub fn end(&mut self, warp: u32) {
        self.threads[warp as usize] = None;
    }

    fn thread(&mut self, agent: u32) -> &mut Thread {
        let warp = self.threads[agent as usize / WARP].get_or_insert_with(new_threads);
        &mut warp[agent as usize % WARP]
    }

    fn part(&self, agent: u32, kind: Async) -> u32 {
        agent + self.warps * WARP as u32 * (1 + kind as u32)
    }

    /// The number of an agent: that of a thread.
    pub fn agent(warp: u32, lane: u32) -> u32 {
        warp * WARP as u32 + lane
    }

    /// An asynchronous operation that a thread starts, as accessor.
    pub fn asynchronous(&mut self, agent: u32, kind: Async, at: u32) -> Accessor {
        let part = self.part(agent, kind);
        let thread = self.thread(agent);
        let time = thread.time;
        thread.time += 1;
        Accessor {
            agent: part,
            time,
            owner: (agent, time),
            base: thread.base.clone(),
            done: thread.done,
            at,
        }
    }

    /// A thread has waited for its asynchronous operations up to one.
    pub fn waited(&mut self, agent: u32, kind: Async, operation: &Accessor) {
        let done = &mut self.thread(agent).done[kind as usize];
        *done = (*done).max(operation.time);
    }

    /// Records an access of a thread to bytes of a buffer, or of another shadow.
    #[inline(always)]
    pub fn access(
        &mut self,
        place: Shadowed<'_>,
        agent: u32,
        at: u32,
        access: &Bytes,
    ) -> Option<Race> {
        let thread = &self.threads[agent as usize / WARP].as_ref()?[agent as usize % WARP];
        let (time, base, done) = (thread.time, &*thread.base, thread.done);
        let view = View {
            agent,
            time,
            owner: (agent, time),
            base,
            done,
            at,
            threads: self.warps * WARP as u32,
        };
        view.access(shadow(&mut self.global, place), access)
    }

    /// Records accesses of threads of a warp, each with its lane, and adds their races to those found.
    pub fn access_together(
        &mut self,
        place: Shadowed<'_>,
        warp: u32,
        at: u32,
        accesses: impl Iterator<Item = (usize, Bytes)>,
        found: &mut Vec<(usize, Race)>,
    ) {
        let threads = self.warps * WARP as u32;
        let Some(warp_threads) = &self.threads[warp as usize] else { return };
        let shadow = shadow(&mut self.global, place);
        for (lane, access) in accesses {
            let Thread { base, time, done, .. } = &warp_threads[lane];
            let agent = Self::agent(warp, lane as u32);
            let (time, done) = (*time, *done);
            let view = View { agent, time, owner: (agent, time), base, done, at, threads };
            found.extend(view.access(shadow, &access).map(|race| (lane, race)));
        }
    }

    /// Records an access of an asynchronous operation.
    pub fn access_async(
        &mut self,
        place: Shadowed<'_>,
        accessor: &Accessor,
        access: &Bytes,
    ) -> Option<Race> {
        let Accessor { agent, time, owner, ref base, done, at } = *accessor;
        let view = View { agent, time, owner, base, done, at, threads: self.warps * WARP as u32 };
        view.access(shadow(&mut self.global, place), access)
    }

    fn joined(&mut self, a: &Arc<Clock>, b: &Arc<Clock>) -> Arc<Clock> {
        if Arc::ptr_eq(a, b) {
            return a.clone();
        }
        if let Some((x, y, joined)) = &self.last
            && Arc::ptr_eq(x, a)
            && Arc::ptr_eq(y, b)
        {
            return joined.clone();
        }
        let joined = Arc::new(a.join(b));
        self.last = Some((a.clone(), b.clone(), joined.clone()));
        joined
    }

    /// All that a thread is ordered after, and itself.
    fn full(&mut self, agent: u32) -> Clock {
        let parts = [self.part(agent, Async::Copy), self.part(agent, Async::Bulk)];
        let thread = self.thread(agent);
        let mut clock = (*thread.base).clone();
        clock.raise(agent, thread.time);
        for (part, done) in parts.into_iter().zip(thread.done) {
            if done > 0 {
                clock.raise(part, done);
            }
        }
        clock
    }

    /// A barrier of threads: each is ordered after what all did before. Threads of a warp follow one another.
    pub fn barrier(&mut self, agents: &[u32]) {
        let mut joined: Option<Arc<Clock>> = None;
        let mut last: Option<Arc<Clock>> = None;
        for agent in agents {
            let base = &self.thread(*agent).base;
            if last.as_ref().is_some_and(|last| Arc::ptr_eq(last, base)) {
                continue;
            }
            let base = base.clone();
            joined = Some(match joined {
                Some(joined) => self.joined(&joined, &base),
                None => base.clone(),
            });
            last = Some(base);
        }
        let Some(joined) = joined else { return };
        let mut clock = (*joined).clone();
        for warp in agents.chunk_by(|a, b| a / WARP as u32 == b / WARP as u32) {
            let block = clock.block(warp[0] / WARP as u32);
            for agent in warp {
                let lane = *agent as usize % WARP;
                block[lane] = block[lane].max(self.thread(*agent).time);
            }
            for agent in warp {
                for kind in [Async::Copy, Async::Bulk] {
                    let done = self.thread(*agent).done[kind as usize];
                    if done > 0 {
                        clock.raise(self.part(*agent, kind), done);
                    }
                }
            }
        }
        let clock = Arc::new(clock);
        for agent in agents {
            let thread = self.thread(*agent);
            thread.base = clock.clone();
            thread.time += 1;
        }
    }

    /// What a thread releases now.
    pub fn release(&mut self, agent: u32) -> Arc<Clock> {
        let clock = Arc::new(self.full(agent));
        self.thread(agent).time += 1;
        clock
    }

    /// What an asynchronous operation releases as it completes.
    pub fn release_async(&mut self, operation: &Accessor) -> Arc<Clock> {
        let mut clock = Clock::default();
        clock.raise(operation.agent, operation.time);
        Arc::new(clock)
    }

    /// A thread is ordered after what a clock says.
    pub fn acquire(&mut self, agent: u32, clock: &Arc<Clock>) {
        let base = self.thread(agent).base.clone();
        let joined = self.joined(&base, clock);
        self.thread(agent).base = joined;
    }

    /// The clock of two clocks together.
    pub fn join(&mut self, a: Option<Arc<Clock>>, b: Arc<Clock>) -> Arc<Clock> {
        match a {
            Some(a) => self.joined(&a, &b),
            None => b,
        }
    }

    /// A fence: what precedes it is released by strong writes that follow, and what strong reads read before
    /// is acquired.
    pub fn fence(&mut self, agent: u32) {
        if let Some(pending) = self.thread(agent).pending.take() {
            self.acquire(agent, &pending);
        }
        let clock = self.release(agent);
        self.thread(agent).fence = Some(clock);
    }

    /// A strong write to an address. A read that is part of the same atomic operation precedes it.
    pub fn strong_write(
        &mut self,
        agent: u32,
        cta: u32,
        address: u64,
        release: bool,
        cta_only: bool,
        atomic: bool,
    ) {
        let clock =
            if release { Some(self.release(agent)) } else { self.thread(agent).fence.clone() };
        let previous = if atomic { self.released.get(&address).cloned() } else { None };
        let released = match (clock, previous) {
            (Some(clock), Some(previous)) => {
                // A release sequence: what the atomic operation read stays released.
                let visible = !previous.limited || previous.from == cta;
                let clock = if visible { self.join(Some(previous.clock), clock) } else { clock };
                Released { clock, from: cta, limited: cta_only }
            }
            (Some(clock), None) => Released { clock, from: cta, limited: cta_only },
            (None, Some(previous)) => previous,
            (None, None) => {
                self.released.remove(&address);
                return;
            }
        };
        self.released.insert(address, released);
    }

    /// A strong read of an address.
    pub fn strong_read(
        &mut self,
        agent: u32,
        cta: u32,
        address: u64,
        acquire: bool,
        cta_only: bool,
    ) {
        let Some(released) = self.released.get(&address) else { return };
        if (cta_only || released.limited) && released.from != cta {
            return;
        }
        let clock = released.clock.clone();
        if acquire {
            self.acquire(agent, &clock);
        } else {
            let pending = self.thread(agent).pending.take();
            let joined = self.join(pending, clock);
            self.thread(agent).pending = Some(joined);
        }
    }
}
