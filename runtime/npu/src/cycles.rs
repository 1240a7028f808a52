//! Start and end of instructions: engines run in order, with tokens and transfers between cores.
//!
//! An instruction starts at the first cycle at which the previous one on its engine has ended and
//! every token that it takes has been given; both ends of a transfer start together.
//! Nothing else delays an instruction, unless cores share a [`Mesh`].

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;

use irc_npu::op::{SiMov, SoMov};
use irc_npu::{Engine, Op, Program, Time};

use crate::durations::{NoTime, Rates, Work, WorkloadTimes, works};
use crate::noc::{Mesh, Traffic, TrafficTotals, cycles};

/// Options of the timing.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Cycles of workloads.
    pub times: WorkloadTimes,
    /// Constants of the formulas.
    pub rates: Rates,
    /// Cycles of the control instructions in program order, by index of the core, instead of
    /// [`Rates::control`]; see [`control_durations`].
    pub control: Option<Vec<Vec<u64>>>,
    /// The mesh that cores share; without one, each core has its own bandwidth.
    pub mesh: Option<Mesh>,
}

/// The times of all instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Time of each instruction, by index of the core.
    pub times: Vec<Vec<Time>>,
    /// The cycle at which the last instruction ended.
    pub cycles: u64,
    /// The traffic over the links of the mesh and DRAM, if cores share one.
    pub carried: Option<TrafficTotals>,
}

/// Why a program has no timing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// An instruction's duration is unknown.
    NoTime(NoTime),
    /// Instructions that never start: number of the core, index. The verifier reports the reason.
    Stuck(Vec<(u32, usize)>),
    /// A core that has no coordinates on the mesh.
    NoPlace(u32),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTime(fault) => fault.fmt(f),
            Self::NoPlace(core) => write!(f, "core {core} has no place on the mesh"),
            Self::Stuck(heads) => {
                write!(f, "the program stops; these never start: ")?;
                for (i, (core, index)) in heads.iter().enumerate() {
                    let comma = if i > 0 { ", " } else { "" };
                    write!(f, "{comma}instruction {} of core {core}", index + 1)?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for Error {}

/// Cycles of the control instructions of a trace, by index of the core.
pub fn control_durations(program: &Program, times: &[Vec<Time>]) -> Vec<Vec<u64>> {
    let of_core = |(core, times): (&irc_npu::Core, &Vec<Time>)| {
        let control = core.code.iter().zip(times).filter(|(i, _)| i.op.engine() == Engine::Ct);
        control.map(|(_, time)| time.end - time.start).collect()
    };
    program.cores.iter().zip(times).map(of_core).collect()
}

/// Times of all instructions.
///
/// # Errors
/// If a duration is unknown, a core has no coordinates on the mesh, or some instruction never starts.
pub fn run(program: &Program, options: &Options) -> Result<Timing, Error> {
    if let Some(mesh) = &options.mesh
        && let Some(core) = program.cores.iter().find(|core| !mesh.has(core.id))
    {
        return Err(Error::NoPlace(core.id));
    }
    let mut works = works(program, &options.times, &options.rates).map_err(Error::NoTime)?;
    if let Some(control) = &options.control {
        set_control(program, control, &mut works);
    }
    let mut machine = Machine::new(program, options, works);
    for engine in 0..machine.queues.len() {
        machine.consider(engine);
    }
    while let Some(Reverse((start, engine))) = machine.ready.pop() {
        machine.start(engine as usize, start);
    }
    machine.finish()
}

fn set_control(program: &Program, control: &[Vec<u64>], works: &mut [Vec<Work>]) {
    for ((core, control), works) in program.cores.iter().zip(control).zip(works) {
        let all = core.code.iter().zip(works);
        let of_control = all.filter(|(i, _)| i.op.engine() == Engine::Ct);
        for ((_, work), duration) in of_control.zip(control) {
            *work = Work::Cycles(*duration);
        }
    }
}

/// The parts of an instruction that affect timing.
#[derive(Clone, Copy)]
struct Step {
    /// Index in the program of its core.
    index: u32,
    /// One bit for each engine whose token it takes.
    prev: u16,
    /// One bit for each engine to which it gives a token.
    next: u16,
    work: Work,
}

/// The instructions of an engine.
struct Queue {
    steps: Vec<Step>,
    next: usize,
    /// The cycle at which the engine is free.
    free: u64,
    /// Whether the head is queued for its start.
    queued: bool,
}

/// Tokens of a pair of engines that are not taken: when each was given.
type Tokens = VecDeque<u64>;

struct Machine<'p> {
    program: &'p Program,
    rates: Rates,
    /// By core, by engine.
    queues: Vec<Queue>,
    /// By giving engine of a core, by taking engine.
    tokens: Vec<Tokens>,
    /// Start and engine of heads that can start.
    ready: BinaryHeap<Reverse<(u64, u32)>>,
    traffic: Option<Traffic>,
    times: Vec<Vec<Time>>,
}

impl<'p> Machine<'p> {
    fn new(program: &'p Program, options: &Options, works: Vec<Vec<Work>>) -> Self {
        let engines = program.cores.len() * Engine::COUNT;
        let queue = |_| Queue { steps: vec![], next: 0, free: 0, queued: false };
        let mut queues: Vec<Queue> = (0..engines).map(queue).collect();
        for (place, (core, works)) in program.cores.iter().zip(works).enumerate() {
            for (index, (instruction, work)) in core.code.iter().zip(works).enumerate() {
                let mask = |engines: irc_npu::Engines| {
                    engines.iter().fold(0, |mask, engine| mask | 1 << engine as u16)
                };
                let (prev, next) = (mask(instruction.tokens.prev), mask(instruction.tokens.next));
                let step = Step { index: index as u32, prev, next, work };
                let engine = place * Engine::COUNT + instruction.op.engine() as usize;
                queues[engine].steps.push(step);
            }
            let own = &mut queues[place * Engine::COUNT..][..Engine::COUNT];
            own.iter_mut().for_each(|queue| queue.steps.shrink_to_fit());
        }
        let zero = Time { start: 0, end: 0 };
        Self {
            program,
            rates: options.rates,
            queues,
            tokens: vec![Tokens::new(); engines * Engine::COUNT],
            ready: BinaryHeap::new(),
            traffic: options.mesh.clone().map(Traffic::new),
            times: program.cores.iter().map(|core| vec![zero; core.code.len()]).collect(),
        }
    }

    /// The cycle at which the head of an engine has all its tokens; `None` while one is missing.
    fn has_tokens(&self, engine: usize) -> Option<(u64, Step)> {
        let queue = &self.queues[engine];
        let step = *queue.steps.get(queue.next)?;
        let mut start = queue.free;
        for from in bits(step.prev) {
            start = start.max(*self.tokens[pair(engine, from)].front()?);
        }
        Some((start, step))
    }

    /// Queues the head of an engine if it can start; for a transfer, its sending end.
    fn consider(&mut self, engine: usize) {
        let Some((start, step)) = self.has_tokens(engine) else { return };
        let Some((peer_core, transfer)) = self.peer(engine, step) else {
            return self.queue(engine, start);
        };
        let Some((peer, other_start)) = self.other_end(engine, peer_core, transfer) else { return };
        let sends = engine % Engine::COUNT == Engine::So as usize;
        self.queue(if sends { engine } else { peer }, start.max(other_start));
    }

    fn queue(&mut self, engine: usize, start: u64) {
        if !self.queues[engine].queued {
            self.queues[engine].queued = true;
            self.ready.push(Reverse((start, engine as u32)));
        }
    }

    /// Engine and time of the other end of a transfer, if that end is ready.
    fn other_end(&self, engine: usize, core: u32, transfer: u32) -> Option<(usize, u64)> {
        let peer = self.program.cores.binary_search_by_key(&core, |core| core.id).ok()?;
        let sends = engine % Engine::COUNT == Engine::So as usize;
        let kind = if sends { Engine::Si } else { Engine::So };
        let peer = peer * Engine::COUNT + kind as usize;
        let (start, step) = self.has_tokens(peer)?;
        let own = self.program.cores[engine / Engine::COUNT].id;
        (self.peer(peer, step) == Some((own, transfer))).then_some((peer, start))
    }

    /// The other core and the number of a transfer.
    fn peer(&self, engine: usize, step: Step) -> Option<(u32, u32)> {
        let core = &self.program.cores[engine / Engine::COUNT];
        match core.code[step.index as usize].op {
            Op::SoMov(SoMov { core, xfer, .. }) | Op::SiMov(SiMov { core, xfer, .. }) => {
                Some((core, xfer))
            }
            _ => None,
        }
    }

    fn start(&mut self, engine: usize, start: u64) {
        let queue = &self.queues[engine];
        let step = queue.steps[queue.next];
        let peer = self.peer(engine, step);
        let end = self.end(engine, step.work, peer, start);
        if let Some((core, transfer)) = peer
            && let Some((other, _)) = self.other_end(engine, core, transfer)
        {
            self.complete(other, Time { start, end });
            self.complete(engine, Time { start, end });
            self.wake(other);
        } else {
            self.complete(engine, Time { start, end });
        }
        self.wake(engine);
    }

    /// The cycle at which work that starts now ends.
    fn end(&mut self, engine: usize, work: Work, peer: Option<(u32, u32)>, start: u64) -> u64 {
        match work {
            Work::Cycles(cycles) => start + cycles,
            Work::Dram { bytes, extra } => {
                let alone = start + self.rates.moving(bytes);
                let core = self.program.cores[engine / Engine::COUNT].id;
                let stores = engine % Engine::COUNT == Engine::St as usize;
                let shared = self.traffic.as_mut();
                let shared = shared.map_or(0, |traffic| traffic.dram(core, bytes, stores, start));
                alone.max(shared) + extra
            }
            Work::Transfer { bytes } => {
                let from = self.program.cores[engine / Engine::COUNT].id;
                let (to, transfer) = peer.unwrap_or((from, 0));
                let arrived = match &mut self.traffic {
                    Some(traffic) => traffic.transfer((from, to), transfer, bytes, start),
                    None => start + cycles(bytes, self.rates.dram),
                };
                arrived + self.rates.transfer
            }
        }
    }

    /// Completes the head of an engine: tokens, time, the next instruction.
    fn complete(&mut self, engine: usize, time: Time) {
        let queue = &mut self.queues[engine];
        let step = queue.steps[queue.next];
        queue.next += 1;
        queue.free = time.end;
        queue.queued = false;
        self.times[engine / Engine::COUNT][step.index as usize] = time;
        for from in bits(step.prev) {
            self.tokens[pair(engine, from)].pop_front();
        }
        let first = engine / Engine::COUNT * Engine::COUNT;
        for to in bits(step.next) {
            let from = engine % Engine::COUNT;
            self.tokens[pair(first + to, from)].push_back(time.end);
        }
    }

    /// Considers engines that may start because of the instruction that an engine has just run.
    fn wake(&mut self, engine: usize) {
        let first = engine / Engine::COUNT * Engine::COUNT;
        let queue = &self.queues[engine];
        let next = queue.steps[queue.next - 1].next;
        for to in bits(next) {
            self.consider(first + to);
        }
        self.consider(engine);
    }

    fn finish(self) -> Result<Timing, Error> {
        let mut stuck = vec![];
        for (engine, queue) in self.queues.iter().enumerate() {
            if let Some(head) = queue.steps.get(queue.next) {
                stuck.push((self.program.cores[engine / Engine::COUNT].id, head.index as usize));
            }
        }
        if !stuck.is_empty() {
            return Err(Error::Stuck(stuck));
        }
        let cycles = self.queues.iter().map(|queue| queue.free).max().unwrap_or(0);
        let carried = self.traffic.map(Traffic::into_carried);
        Ok(Timing { times: self.times, cycles, carried })
    }
}

/// Index of the tokens that an engine takes from another of its core.
fn pair(engine: usize, from: usize) -> usize {
    engine * Engine::COUNT + from
}

/// Indices of the bits that are set.
fn bits(mut mask: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then_some(mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs of 256 cores have tens of millions of instructions.
    #[test]
    fn a_step_takes_few_bytes() {
        assert!(size_of::<Step>() <= 32, "{} bytes", size_of::<Step>());
    }
}
