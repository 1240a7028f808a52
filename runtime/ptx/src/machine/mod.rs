//! The machine: CTAs, warps, and the order in which they run.

mod access;
mod atomic;
mod bulk;
mod call;
mod error;
mod explore;
mod spin;
mod step;
mod sync;
mod transfer;
mod warp;

use crate::code::{Constant, NONE, Program, Src};
use crate::launch::{Argument, Launch, Report, Schedule};
use crate::memory::Memory;
use crate::race::{Accessor, Races, Shadow};
use crate::row::{Row, WARP, lanes};
use crate::statistics::Statistics;
use error::Error;
use irc_diag::Diagnostic;
use spin::{Sleepers, Spin};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use sync::{BarrierState, Mbarrier};

/// Threads of a CTA beyond which a launch is rejected.
const MAX_BLOCK: u64 = 1024;
/// Threads that run at the same time by default.
const RESIDENT_THREADS: u64 = 128 * 2048;
/// Bytes of registers and memory of the CTAs that run at the same time.
const MAX_RESIDENT_BYTES: u64 = 8 << 30;
/// CTAs of a launch beyond which it is rejected.
const MAX_CTAS: u64 = 1 << 26;
/// Barriers of a CTA, and one that stands for that of its cluster.
const BARRIERS: usize = 17;
/// Calls that a thread can be in.
const MAX_DEPTH: usize = 512;
/// Diagnostics of a launch.
const MAX_DIAGNOSTICS: usize = 32;
/// Bytes that a kernel can print.
const MAX_OUTPUT: usize = 1 << 24;

/// The first generic address of shared memory, of local memory, and of parameters.
pub(crate) const SHARED_WINDOW: u64 = 0x7e00_0000_0000;
pub(crate) const LOCAL_WINDOW: u64 = 0x7e10_0000_0000;
pub(crate) const PARAM_WINDOW: u64 = 0x7e20_0000_0000;
/// Bytes of each.
pub(crate) const WINDOW: u64 = 1 << 34;

/// A call that a thread is in.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    /// The call.
    at: u32,
    function: u32,
    registers: u32,
    predicates: u32,
    local: u64,
}

/// Why threads do not run.
#[derive(Debug, Clone, PartialEq)]
enum Wait {
    /// They run.
    None,
    /// For a phase of a barrier of the CTA.
    Barrier { id: usize, generation: u64 },
    /// For the other threads of a mask to reach the same instruction.
    Warp(u32),
    /// For the end of a phase of an mbarrier, which was not complete at a version of memory.
    Mbarrier { address: u64, version: u64 },
    /// For a change of memory since a version: they repeat a loop that reads it.
    Spin { version: u64 },
    /// For a change of the words that a loop reads, which they repeat: they are among the sleepers until then.
    Words { id: u64 },
}

/// Threads of a warp that run together.
#[derive(Debug, Clone)]
struct Fragment {
    at: u32,
    mask: u32,
    function: u32,
    /// The first register, predicate and byte of local memory of the frame.
    registers: u32,
    predicates: u32,
    local: u64,
    frames: Vec<Frame>,
    wait: Wait,
    /// Whether what it waited for has happened.
    resumed: bool,
    /// For the detection of loops that only wait.
    spin: Spin,
    /// Turns that pass before it runs.
    delay: u32,
    /// Whether its last wait for an mbarrier ended before the phase did.
    tried: bool,
}

/// A copy of `cp.async` that is not complete.
#[derive(Debug, Clone)]
struct Copy {
    lane: u32,
    /// The number of the group; that of the next group until it is committed.
    group: u32,
    to: u64,
    from: u64,
    size: u32,
    source_size: u32,
    at: u32,
    accessor: Option<Accessor>,
    /// Whether the bytes have arrived, but were not waited for.
    done: bool,
}

/// A `wgmma` that is not complete.
#[derive(Debug, Clone)]
struct Group {
    at: u32,
    registers: u32,
    group: u32,
    /// The descriptors of A and B, and whether D is added.
    operands: (Option<u64>, u64, bool),
    accessor: Option<Accessor>,
    /// Whether it is computed, but not waited for.
    done: bool,
}

#[derive(Debug, Clone, Default)]
struct Warp {
    /// The slot of its CTA, and its number in it.
    slot: usize,
    index: u32,
    /// Its number in the launch.
    number: u32,
    /// Threads that have not exited.
    live: u32,
    registers: Vec<Row>,
    predicates: Vec<u32>,
    carry: u32,
    local: Vec<Vec<u8>>,
    fragments: Vec<Fragment>,
    /// Whether the scheduler has it among the warps that run.
    queued: bool,
    turn: u32,
    copies: Vec<Copy>,
    /// Groups of copies that each thread has committed.
    committed: [u32; WARP],
    groups: Vec<Group>,
    groups_committed: u32,
    /// Registers of `wgmma` that were used since the last `wgmma.fence`.
    unfenced: HashSet<u32>,
    fenced: bool,
    /// Groups of bulk copies that each thread has committed, and whether one is open.
    bulk_committed: [u32; WARP],
}

#[derive(Debug, Clone)]
struct Cta {
    id: [u32; 3],
    /// The number of its launch.
    grid: usize,
    linear: u64,
    shared: Vec<u8>,
    /// Bytes of shared memory that were written, a bit each.
    written: Vec<u64>,
    shadow: Shadow,
    barriers: [BarrierState; BARRIERS],
    mbarriers: HashMap<u64, Mbarrier>,
    /// Warps that have not ended.
    warps: usize,
}

/// Random numbers of a seed.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let bits = self.0 ^ self.0 >> 33;
        (bits.wrapping_mul(0xff51_afd7_ed55_8ccd) >> 32) % limit.max(1)
    }
}

struct Machine<'r> {
    program: &'r Program,
    memory: &'r mut Memory,
    /// The last two buffers that were looked up.
    recent: Cell<[usize; 2]>,
    launch: &'r Launch,
    observer: &'r dyn Fn(u64),
    /// The number of instructions at which the observer is called next.
    observed: u64,
    constants: Vec<Row>,
    /// The extents and the parameters of each launch.
    grids: Vec<([u32; 3], Vec<u8>)>,
    shared_bytes: u64,
    warps_per_cta: usize,
    slots: Vec<Option<Box<Cta>>>,
    warps: Vec<Warp>,
    /// Warps that may run, by slot.
    ready: Vec<Vec<usize>>,
    /// Slots that may have such warps, and whether each slot is among them.
    active: Vec<usize>,
    is_active: Vec<bool>,
    /// The position in `active` of the slot that runs, and the turns that it has left: a CTA runs for many, as its
    /// state then stays in the cache of the processor.
    current: usize,
    burst: u64,
    /// Warps that wait for any change of memory, and for a change of some words.
    spinning: Vec<usize>,
    sleepers: Sleepers,
    cursor: usize,
    next_cta: u64,
    ctas: u64,
    races: Option<Races>,
    reported: HashSet<(u32, u32)>,
    random: Random,
    /// Counts changes of memory and of barriers.
    version: u64,
    bulk: Vec<bulk::Pending>,
    /// The turns since a bulk copy was last completed.
    bulk_turns: u32,
    /// The threads that wait at a barrier of a slot, and what others that arrived released.
    barrier_agents: HashMap<(usize, usize), (Vec<u32>, SharedClock)>,
    /// Results of `bar.red` that threads wait for: warp, threads, frame, barrier, what, destination.
    reductions: Vec<(u32, u32, u32, u32, usize, crate::code::Reduction, u32)>,
    statistics: Statistics,
    executed: u64,
    /// Whether clocks stand still.
    is_frozen: bool,
    diagnostics: Vec<Diagnostic>,
    errors: usize,
    output: Vec<u8>,
}

/// Instructions between two calls of an observer.
const OBSERVED: u64 = 1 << 22;

impl Launch {
    /// Runs a kernel on a memory.
    ///
    /// An invalid launch, and a kernel that fails, give a report with diagnostics that is not complete.
    pub fn run(&self, program: &Program, memory: &mut Memory) -> Report {
        self.run_observed(program, memory, &|_| ())
    }

    /// As [`Launch::run`], and calls the observer with the number of instructions so far, after every few millions.
    pub fn run_observed(
        &self,
        program: &Program,
        memory: &mut Memory,
        observer: &dyn Fn(u64),
    ) -> Report {
        match Machine::new(self, program, memory) {
            Ok(mut machine) => {
                machine.observer = observer;
                let completed = machine.run();
                Report {
                    completed,
                    clock: machine.clock(),
                    diagnostics: machine.diagnostics,
                    statistics: machine.statistics,
                    output: machine.output,
                }
            }
            Err(message) => Report {
                completed: false,
                diagnostics: vec![Diagnostic::error("ptx-launch", message)],
                statistics: Statistics::default(),
                output: vec![],
                clock: self.clock,
            },
        }
    }
}

/// What a turn of a fragment ended with.
enum Flow {
    /// The next instruction is next.
    Next,
    /// The next instruction is another.
    Jump(u32),
    /// It waits, and runs the same instruction again.
    Wait(Wait),
    /// It waits, and then runs the next instruction.
    WaitThenNext(Wait),
    /// Another fragment runs first.
    Yield,
    /// Its threads have exited, or it has become part of others.
    End,
}

impl<'r> Machine<'r> {
    fn new(
        launch: &'r Launch,
        program: &'r Program,
        memory: &'r mut Memory,
    ) -> Result<Self, String> {
        let threads: u64 = launch.block.iter().map(|extent| u64::from(*extent)).product();
        let ctas = launch
            .grid
            .iter()
            .try_fold(1_u64, |product, extent| product.checked_mul(u64::from(*extent)));
        let beside = launch.beside.iter().map(|(ctas, _)| u64::from(*ctas)).sum::<u64>();
        let ctas = ctas
            .and_then(|ctas| ctas.checked_add(beside))
            .filter(|ctas| *ctas <= MAX_CTAS)
            .ok_or(format!("a grid of {:?} CTAs exceeds the limit of {MAX_CTAS}", launch.grid))?;
        if threads == 0 || threads > MAX_BLOCK || ctas == 0 {
            return Err(format!(
                "a grid of {:?} CTAs of {:?} threads: a CTA has 1 to {MAX_BLOCK}",
                launch.grid, launch.block
            ));
        }
        if let Some(most) = program.max_threads.filter(|most| threads > *most) {
            return Err(format!(
                "{threads} threads of a CTA exceed the {most} of the kernel's `.maxntid`"
            ));
        }
        if let Some(required) = program.required_block.filter(|required| *required != launch.block)
        {
            return Err(format!(
                "CTAs of {:?} threads: the kernel requires {required:?}",
                launch.block
            ));
        }
        let dynamic = program.shared.next_multiple_of(1024);
        let dynamic = if launch.shared_bytes == 0 { program.shared } else { dynamic };
        let shared_bytes = dynamic.saturating_add(launch.shared_bytes);
        if shared_bytes > launch.max_shared_bytes {
            return Err(format!(
                "{shared_bytes} bytes of shared memory exceed the limit of {}",
                launch.max_shared_bytes
            ));
        }
        let mut grids = vec![(launch.grid, params(&launch.arguments, program, memory)?)];
        for (ctas, arguments) in &launch.beside {
            grids.push(([*ctas, 1, 1], params(arguments, program, memory)?));
        }
        let resolve = |constant: &Constant, bases: &[u64]| match constant {
            Constant::Value(value) => *value,
            Constant::Global(number, offset) => {
                bases[*number as usize].wrapping_add_signed(*offset)
            }
            Constant::DynamicShared(offset) => dynamic.wrapping_add_signed(*offset),
        };
        let bases = memory.load(program, resolve);
        let constants =
            program.constants.iter().map(|constant| [resolve(constant, &bases); WARP]).collect();
        let warps_per_cta = threads.div_ceil(WARP as u64);
        let resident = (RESIDENT_THREADS / threads).max(1);
        let resident = launch.resident.map_or(resident, |resident| resident as u64);
        let entry = &program.functions[0];
        let warp_bytes = WARP as u64 * (8 * u64::from(entry.registers) + entry.local);
        let cta_bytes = (warps_per_cta * warp_bytes + 20 * shared_bytes).max(1);
        if cta_bytes > MAX_RESIDENT_BYTES {
            return Err(format!(
                "a CTA needs {cta_bytes} bytes for its registers and memory; the limit is {MAX_RESIDENT_BYTES}"
            ));
        }
        let resident = resident.min(MAX_RESIDENT_BYTES / cta_bytes).clamp(1, ctas) as usize;
        let races = match launch.checks.races {
            true => Races::new(ctas * warps_per_cta, memory.buffers.len()),
            false => None,
        };
        let seed = match launch.schedule {
            Schedule::RoundRobin => 0,
            Schedule::Random(seed) | Schedule::Adversarial(seed) => seed,
        };
        let mut machine = Self {
            program,
            memory,
            recent: Cell::new([0; 2]),
            launch,
            observer: &|_| (),
            observed: OBSERVED,
            constants,
            grids,
            shared_bytes,
            warps_per_cta: warps_per_cta as usize,
            slots: vec![],
            warps: vec![],
            ready: vec![vec![]; resident],
            active: vec![],
            is_active: vec![false; resident],
            current: 0,
            burst: 0,
            spinning: vec![],
            sleepers: Sleepers::default(),
            cursor: 0,
            next_cta: 0,
            ctas,
            races,
            reported: HashSet::new(),
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d),
            version: 1,
            bulk: vec![],
            bulk_turns: 0,
            barrier_agents: HashMap::new(),
            reductions: vec![],
            statistics: Statistics::default(),
            executed: 0,
            is_frozen: false,
            diagnostics: vec![],
            errors: 0,
            output: vec![],
        };
        if launch.checks.races && machine.races.is_none() {
            let message =
                format!("races are not checked: {} warps are too many", ctas * warps_per_cta);
            machine.diagnostics.push(Diagnostic::warning("ptx-race", message));
        }
        machine.sleepers = Sleepers::new(machine.memory.buffers.len(), resident);
        for slot in 0..resident {
            machine.slots.push(None);
            machine.warps.extend((0..warps_per_cta).map(|_| Warp::default()));
            machine.start_cta(slot);
        }
        Ok(machine)
    }

    /// The clocks, which count instructions of all threads.
    fn clock(&self) -> u64 {
        let executed = if self.is_frozen { 0 } else { self.executed };
        self.launch.clock.wrapping_add(executed)
    }

    /// Starts the next CTA in a slot, if there is one.
    fn start_cta(&mut self, slot: usize) {
        if self.next_cta >= self.ctas {
            return;
        }
        let linear = self.next_cta;
        self.next_cta += 1;
        let (grid, id) = self.place_of(linear);
        let threads: u64 = self.launch.block.iter().map(|extent| u64::from(*extent)).product();
        self.slots[slot] = Some(Box::new(Cta {
            id,
            grid,
            linear,
            // The contents of unwritten memory are arbitrary.
            shared: vec![0xcd; self.shared_bytes as usize],
            written: vec![0; (self.shared_bytes as usize).div_ceil(64)],
            shadow: Shadow::default(),
            barriers: std::array::from_fn(|_| BarrierState::default()),
            mbarriers: HashMap::new(),
            warps: self.warps_per_cta,
        }));
        let entry = &self.program.functions[0];
        for index in 0..self.warps_per_cta {
            let at = slot * self.warps_per_cta + index;
            let lanes = (threads - index as u64 * WARP as u64).min(WARP as u64) as u32;
            let live = if lanes == 32 { u32::MAX } else { (1 << lanes) - 1 };
            let number = (linear * self.warps_per_cta as u64 + index as u64) as u32;
            let old = std::mem::take(&mut self.warps[at]);
            let mut registers = old.registers;
            registers.clear();
            registers.resize(entry.registers as usize, [0; WARP]);
            self.warps[at] = Warp {
                slot,
                index: index as u32,
                number,
                live,
                registers,
                predicates: vec![0; entry.predicates as usize],
                local: (0..WARP).map(|_| vec![0; entry.local as usize]).collect(),
                fragments: vec![Fragment {
                    at: entry.entry,
                    mask: live,
                    function: 0,
                    registers: 0,
                    predicates: 0,
                    local: 0,
                    frames: vec![],
                    wait: Wait::None,
                    resumed: false,
                    spin: Spin::default(),
                    delay: 0,
                    tried: false,
                }],
                queued: true,
                ..Warp::default()
            };
            if let Some(races) = &mut self.races {
                races.start(number);
            }
            self.add_ready(at);
        }
    }

    /// The launch of a CTA, and its coordinates there.
    fn place_of(&self, linear: u64) -> (usize, [u32; 3]) {
        let (mut rest, mut number) = (linear, 0);
        while let Some((grid, _)) = self.grids.get(number + 1).and(self.grids.get(number)) {
            let ctas = grid.iter().map(|extent| u64::from(*extent)).product();
            if rest < ctas {
                break;
            }
            (rest, number) = (rest - ctas, number + 1);
        }
        let [x, y, _] = self.grids[number].0.map(u64::from);
        (number, [rest % x, rest / x % y, rest / x / y].map(|index| index as u32))
    }

    /// Runs until all CTAs have ended; whether they have.
    fn run(&mut self) -> bool {
        match self.run_all() {
            Ok(completed) => completed,
            Err(fault) => {
                self.report_fault(fault);
                false
            }
        }
    }

    fn run_all(&mut self) -> Result<bool, Error> {
        loop {
            if self.executed > self.launch.max_instructions {
                self.watchdog();
                return Ok(false);
            }
            if self.executed >= self.observed {
                (self.observer)(self.executed);
                self.observed = self.executed + OBSERVED;
            }
            if self.errors >= MAX_DIAGNOSTICS {
                return Ok(false);
            }
            self.maybe_complete_bulk()?;
            let Some(warp) = self.choose() else {
                if self.wake_spinning() || self.complete_bulk()? || self.time_out() {
                    continue;
                }
                if self.slots.iter().all(Option::is_none) {
                    return Ok(true);
                }
                self.deadlock();
                return Ok(false);
            };
            self.turn(warp)?;
        }
    }

    /// The next warp to run.
    fn choose(&mut self) -> Option<usize> {
        let random = self.launch.schedule != Schedule::RoundRobin;
        while let Some(slot) =
            self.active.get(self.current).copied().or(self.active.first().copied())
        {
            let ready = &self.ready[slot];
            if ready.is_empty() || self.current >= self.active.len() || self.burst == 0 {
                if ready.is_empty() {
                    self.is_active[slot] = false;
                    self.active.swap_remove(if self.current < self.active.len() {
                        self.current
                    } else {
                        0
                    });
                } else {
                    self.current += 1;
                }
                let slots = self.active.len();
                (self.current, self.burst) = match random {
                    true => (self.random.below(slots as u64) as usize, 1 + self.random.below(48)),
                    false => (if self.current < slots { self.current } else { 0 }, 512),
                };
                continue;
            }
            self.burst -= 1;
            let index = if random {
                self.random.below(ready.len() as u64) as usize
            } else {
                self.cursor = if self.cursor + 1 < ready.len() { self.cursor + 1 } else { 0 };
                self.cursor
            };
            return Some(self.ready[slot][index]);
        }
        None
    }

    fn add_ready(&mut self, warp: usize) {
        let slot = warp / self.warps_per_cta;
        self.ready[slot].push(warp);
        if !std::mem::replace(&mut self.is_active[slot], true) {
            self.active.push(slot);
        }
    }

    /// Puts warps that wait for a change of memory among those that run, if there was a change.
    fn wake_spinning(&mut self) -> bool {
        let spinning = std::mem::take(&mut self.spinning);
        let mut woken = false;
        for warp in spinning {
            let ready = self.warps[warp]
                .fragments
                .iter()
                .any(|fragment| self.is_ready(&self.warps[warp], fragment));
            if ready {
                woken = true;
                self.queue(warp);
            } else {
                self.spinning.push(warp);
            }
        }
        woken
    }

    fn queue(&mut self, warp: usize) {
        if !self.warps[warp].queued && !self.warps[warp].fragments.is_empty() {
            self.warps[warp].queued = true;
            self.add_ready(warp);
        }
    }

    /// Puts the warps of a CTA among those that run: something they may wait for has happened.
    fn wake_cta(&mut self, slot: usize) {
        for warp in slot * self.warps_per_cta..(slot + 1) * self.warps_per_cta {
            self.queue(warp);
        }
    }

    fn is_ready(&self, warp: &Warp, fragment: &Fragment) -> bool {
        match &fragment.wait {
            Wait::None => true,
            Wait::Barrier { id, generation } => self.slots[warp.slot]
                .as_ref()
                .is_none_or(|cta| cta.barriers[*id].generation != *generation),
            Wait::Warp(mask) => {
                let here = warp.fragments.iter().filter(|other| {
                    other.at == fragment.at
                        && other.frames == fragment.frames
                        && matches!(other.wait, Wait::Warp(_))
                });
                let arrived = here.fold(0, |arrived, other| arrived | other.mask);
                mask & warp.live & !arrived == 0
            }
            Wait::Mbarrier { version, address } => match self.slots[warp.slot].as_ref() {
                Some(cta) => {
                    cta.mbarriers.get(address).is_none_or(|barrier| barrier.completed != *version)
                }
                None => true,
            },
            Wait::Spin { version } => self.version != *version,
            Wait::Words { id } => !self.sleepers.is_asleep(*id),
        }
    }

    /// Runs a warp for a turn.
    fn turn(&mut self, at: usize) -> Result<(), Error> {
        let mut warp = std::mem::take(&mut self.warps[at]);
        let result = self.turn_of(&mut warp);
        let mut spins = false;
        let mut ready = false;
        if result.is_ok() {
            for fragment in &warp.fragments {
                if self.is_ready(&warp, fragment) {
                    ready = true;
                }
                spins |= matches!(fragment.wait, Wait::Spin { .. });
            }
        }
        let ended = warp.fragments.is_empty();
        let slot = warp.slot;
        let number = warp.number;
        if !ready {
            warp.queued = false;
            if let Some(index) = self.ready[slot].iter().position(|warp| *warp == at) {
                self.ready[slot].swap_remove(index);
            }
            if spins {
                self.spinning.push(at);
            }
        }
        self.warps[at] = warp;
        result?;
        if ended {
            if let Some(races) = &mut self.races {
                races.end(number);
            }
            self.end_warp(slot);
        }
        // Spinning warps see what others changed from time to time, and when nothing else runs.
        if !self.spinning.is_empty() && self.executed & 63 == 0 {
            self.wake_spinning();
        }
        Ok(())
    }

    fn end_warp(&mut self, slot: usize) {
        let Some(cta) = &mut self.slots[slot] else { return };
        cta.warps -= 1;
        if cta.warps == 0 {
            self.finish_bulk(slot);
            self.slots[slot] = None;
            self.start_cta(slot);
        } else {
            self.version += 1;
            self.check_barriers(slot);
        }
    }

    fn turn_of(&mut self, warp: &mut Warp) -> Result<(), Error> {
        warp.turn = warp.turn.wrapping_add(1);
        let quantum = match self.launch.schedule {
            Schedule::RoundRobin => 192,
            Schedule::Random(_) => 1 + self.random.below(96) as u32,
            Schedule::Adversarial(_) => {
                1 + self.random.below(if self.random.0 & 1 == 0 { 8 } else { 400 }) as u32
            }
        };
        if warp.fragments.len() > 1 {
            merge(&mut warp.fragments);
        }
        let Some(index) = self.choose_fragment(warp) else { return Ok(()) };
        let mut fragment = self.take(warp, index);
        if matches!(self.launch.schedule, Schedule::Adversarial(_)) {
            self.disturb(warp, &mut fragment);
        }
        self.run_fragment(warp, fragment, quantum)
    }

    /// Takes a fragment of a warp, which no longer waits; with those that it waited for, if they were of its warp.
    fn take(&self, warp: &mut Warp, index: usize) -> Fragment {
        let mut fragment = warp.fragments.swap_remove(index);
        if let Wait::Warp(mask) = fragment.wait {
            // All are here: they go on together.
            let mut others = std::mem::take(&mut warp.fragments);
            others.retain(|other| {
                let together = matches!(other.wait, Wait::Warp(_))
                    && other.at == fragment.at
                    && other.frames == fragment.frames;
                if together {
                    if other.wait != Wait::Warp(mask) {
                        fragment.spin.forget();
                    }
                    fragment.mask |= other.mask;
                    fragment.spin.join();
                }
                !together
            });
            warp.fragments = others;
            fragment.resumed = true;
        }
        match fragment.wait {
            Wait::Mbarrier { .. } => fragment.resumed = true,
            Wait::Words { .. } => fragment.spin.wake(self.version),
            _ => {}
        }
        fragment.wait = Wait::None;
        fragment
    }

    /// Splits threads that run together, and delays one part.
    fn disturb(&mut self, warp: &mut Warp, fragment: &mut Fragment) {
        if fragment.resumed || self.random.below(16) != 0 || fragment.mask.count_ones() < 2 {
            return;
        }
        let mask = fragment.mask & (self.random.below(1 << 32) as u32);
        if mask == 0 || mask == fragment.mask {
            return;
        }
        let mut other = fragment.clone();
        other.mask = mask;
        other.delay = self.random.below(6) as u32;
        fragment.mask &= !mask;
        warp.fragments.push(other);
    }

    /// The fragment of a warp that runs next: the one in the most calls and, of these, the first in the code,
    /// so that others can be joined; now and then another, so that each makes progress.
    fn choose_fragment(&mut self, warp: &mut Warp) -> Option<usize> {
        if let [fragment] = &warp.fragments[..] {
            return self.is_ready(warp, fragment).then_some(0);
        }
        let ready: Vec<usize> = (0..warp.fragments.len())
            .filter(|index| self.is_ready(warp, &warp.fragments[*index]))
            .collect();
        for index in &ready {
            let delay = &mut warp.fragments[*index].delay;
            *delay = delay.saturating_sub(1);
        }
        let timely: Vec<usize> =
            ready.iter().copied().filter(|index| warp.fragments[*index].delay == 0).collect();
        let candidates = if timely.is_empty() { ready } else { timely };
        if candidates.is_empty() {
            return None;
        }
        if warp.turn % 4 == 3 {
            return Some(candidates[warp.turn as usize / 4 % candidates.len()]);
        }
        let key = |index: &usize| {
            let fragment = &warp.fragments[*index];
            (std::cmp::Reverse(fragment.frames.len()), fragment.at)
        };
        candidates.into_iter().min_by_key(key)
    }

    fn run_fragment(
        &mut self,
        warp: &mut Warp,
        mut fragment: Fragment,
        quantum: u32,
    ) -> Result<(), Error> {
        let mut left = quantum;
        loop {
            let at = fragment.at;
            let flow = match self.step(warp, &mut fragment) {
                Ok(flow) => flow,
                Err(fault) => return Err(fault.located(at, warp)),
            };
            match flow {
                Flow::Next => fragment.at = at + 1,
                Flow::Jump(to) => fragment.at = to,
                Flow::Wait(wait) => {
                    fragment.wait = wait;
                    warp.fragments.push(fragment);
                    return Ok(());
                }
                Flow::WaitThenNext(wait) => {
                    fragment.wait = wait;
                    fragment.at = at + 1;
                    warp.fragments.push(fragment);
                    return Ok(());
                }
                Flow::Yield => {
                    fragment.at = at + 1;
                    left = 1;
                }
                Flow::End => return Ok(()),
            }
            left -= 1;
            if left == 0 {
                warp.fragments.push(fragment);
                return Ok(());
            }
            // Others may be here, or before: it stops so that they are joined.
            if !warp.fragments.is_empty() {
                let meets = warp.fragments.iter().any(|other| {
                    other.frames.len() >= fragment.frames.len()
                        && other.at <= fragment.at
                        && other.wait == Wait::None
                });
                if meets {
                    warp.fragments.push(fragment);
                    merge(&mut warp.fragments);
                    return Ok(());
                }
            }
        }
    }

    fn agent(&self, warp: &Warp, lane: usize) -> u32 {
        Races::agent(warp.number, lane as u32)
    }
}

/// Joins fragments that are at the same instruction in the same calls.
fn merge(fragments: &mut Vec<Fragment>) {
    let mut index = 0;
    while index < fragments.len() {
        let mut other = index + 1;
        while other < fragments.len() {
            let (a, b) = (&fragments[index], &fragments[other]);
            let same = a.at == b.at
                && a.wait == Wait::None
                && b.wait == Wait::None
                && a.frames == b.frames;
            if same && !a.resumed && !b.resumed && a.delay == 0 && b.delay == 0 {
                fragments[index].mask |= fragments[other].mask;
                fragments[index].spin.join();
                fragments.swap_remove(other);
            } else {
                other += 1;
            }
        }
        index += 1;
    }
}

/// The block of parameters of a kernel.
fn params(arguments: &[Argument], program: &Program, memory: &Memory) -> Result<Vec<u8>, String> {
    let (given, expected) = (arguments.len(), program.params.len());
    if given != expected {
        return Err(format!(
            "{given} arguments: `{}` has {expected} parameters",
            program.functions[0].name
        ));
    }
    let mut block = vec![0; program.param_bytes as usize];
    for (argument, param) in arguments.iter().zip(&program.params) {
        let bytes = match argument {
            Argument::Buffer(buffer) => memory.address(*buffer).to_le_bytes().to_vec(),
            Argument::U32(value) => value.to_le_bytes().to_vec(),
            Argument::U64(value) => value.to_le_bytes().to_vec(),
            Argument::F32(value) => value.to_le_bytes().to_vec(),
            Argument::F64(value) => value.to_le_bytes().to_vec(),
            Argument::Bytes(bytes) => bytes.clone(),
            Argument::TensorMap(map) => map.to_bytes()?.to_vec(),
        };
        if bytes.len() as u64 != param.size {
            return Err(format!(
                "an argument of {} bytes: the parameter `{}` has {}",
                bytes.len(),
                param.name,
                param.size
            ));
        }
        block[param.offset as usize..][..bytes.len()].copy_from_slice(&bytes);
    }
    Ok(block)
}

/// The value of an operand.
#[inline(always)]
fn get<'a>(constants: &'a [Row], registers: &'a [Row], base: u32, src: Src) -> &'a Row {
    match src.index() {
        Ok(constant) => &constants[constant],
        Err(register) => &registers[base as usize + register],
    }
}

/// Writes a result for the threads of a mask.
#[inline(always)]
fn put(registers: &mut [Row], base: u32, d: u32, mask: u32, value: &Row) {
    if d == NONE {
        return;
    }
    let row = &mut registers[base as usize + d as usize];
    if mask == u32::MAX {
        *row = *value;
    } else {
        for lane in 0..WARP {
            if mask >> lane & 1 == 1 {
                row[lane] = value[lane];
            }
        }
    }
}

/// Writes a predicate for the threads of a mask.
#[inline(always)]
fn put_predicate(predicates: &mut [u32], base: u32, d: u32, mask: u32, value: u32) {
    if d != NONE {
        let predicate = &mut predicates[base as usize + d as usize];
        *predicate = (*predicate & !mask) | (value & mask);
    }
}

/// A clock that may be there.
type SharedClock = Option<Arc<crate::race::Clock>>;
