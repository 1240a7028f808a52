//! Runs a program without time to determine its partial order.

use std::collections::VecDeque;
use std::rc::Rc;

use super::report::{At, Report};
use crate::op::{SiMov, SoMov};
use crate::{Engine, Op, Program};

/// For each engine of each core, how many instructions are known to have ended.
pub type Clock = Rc<[u32]>;

/// An instruction that starts.
#[derive(Clone, Copy, Debug)]
pub struct Step<'c> {
    /// Index of the core.
    pub core: usize,
    /// Index of the instruction.
    pub index: usize,
    /// Index of its engine in clocks.
    pub engine: usize,
    /// Index among the instructions of its engine.
    pub turn: u32,
    /// The instructions that have ended before it starts.
    pub clock: &'c [u32],
}

/// Index of an engine in clocks.
pub fn place(core: usize, engine: Engine) -> usize {
    core * Engine::COUNT + engine as usize
}

/// What an engine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A token of another engine of its core.
    Token(Engine),
    /// The other end of a transfer, by index of the engine.
    Transfer(usize),
    /// The other end of a transfer, on a core that does not exist.
    NoCore(u32),
}

/// An engine that is blocked.
#[derive(Clone, Copy, Debug)]
pub struct BlockedEngine {
    /// The instruction.
    pub at: At,
    /// Index of its engine.
    pub engine: usize,
    /// What it waits for.
    pub wait: Wait,
}

/// Runs the program, and calls `visit` when an instruction starts; returns the engines that are blocked.
pub fn run(program: &Program, mut visit: impl FnMut(Step<'_>)) -> Vec<BlockedEngine> {
    let mut machine = Machine::new(program);
    let engines = machine.queues.len();
    let mut work: VecDeque<usize> = (0..engines).collect();
    while let Some(engine) = work.pop_front() {
        while let Ok(partner) = machine.ready(engine) {
            let mut clock = machine.take_tokens(engine);
            if let Some(partner) = partner {
                join(&mut clock, &machine.take_tokens(partner));
                machine.start(partner, &clock, &mut work, &mut visit);
                work.push_back(partner);
            }
            machine.start(engine, &clock, &mut work, &mut visit);
        }
    }
    (0..engines).filter_map(|engine| machine.stuck(engine)).collect()
}

struct Queue {
    code: Vec<u32>,
    next: usize,
    clock: Clock,
}

struct Machine<'p> {
    program: &'p Program,
    /// By index of the engine.
    queues: Vec<Queue>,
    /// Tokens given and not taken: by index of the giving engine, by taking engine.
    tokens: Vec<[VecDeque<Clock>; Engine::COUNT]>,
}

impl<'p> Machine<'p> {
    fn new(program: &'p Program) -> Self {
        let engines = program.cores.len() * Engine::COUNT;
        let zero: Clock = vec![0; engines].into();
        let queue = |_| Queue { code: vec![], next: 0, clock: zero.clone() };
        let mut queues: Vec<Queue> = (0..engines).map(queue).collect();
        for (core, code) in program.cores.iter().enumerate() {
            for (i, instruction) in code.code.iter().enumerate() {
                queues[place(core, instruction.op.engine())].code.push(i as u32);
            }
        }
        let tokens = (0..engines).map(|_| Default::default()).collect();
        Self { program, queues, tokens }
    }

    fn head(&self, engine: usize) -> Option<At> {
        let queue = &self.queues[engine];
        let index = *queue.code.get(queue.next)?;
        Some((engine / Engine::COUNT, index as usize))
    }

    /// The first missing token of the next instruction of an engine.
    fn missing(&self, engine: usize, (core, index): At) -> Option<Engine> {
        let to = engine % Engine::COUNT;
        let prev = self.program.cores[core].code[index].tokens.prev;
        prev.iter().find(|from| self.tokens[place(core, *from)][to].is_empty())
    }

    /// Whether the next instruction of an engine can start, and the other end of its transfer.
    fn ready(&self, engine: usize) -> Result<Option<usize>, Option<Wait>> {
        let at = self.head(engine).ok_or(None)?;
        if let Some(from) = self.missing(engine, at) {
            return Err(Some(Wait::Token(from)));
        }
        let Some((core, kind)) = self.other_end(at) else { return Ok(None) };
        let peer = self.program.cores.binary_search_by_key(&core, |core| core.id);
        let peer = place(peer.map_err(|_| Some(Wait::NoCore(core)))?, kind);
        let wait = Some(Wait::Transfer(peer));
        let there = self.head(peer).ok_or(wait)?;
        match self.matches(at, there) && self.missing(peer, there).is_none() {
            true => Ok(Some(peer)),
            false => Err(wait),
        }
    }

    /// Core and engine of the other end of a transfer.
    fn other_end(&self, (core, index): At) -> Option<(u32, Engine)> {
        match self.program.cores[core].code[index].op {
            Op::SoMov(SoMov { core, .. }) => Some((core, Engine::Si)),
            Op::SiMov(SiMov { core, .. }) => Some((core, Engine::So)),
            _ => None,
        }
    }

    /// Whether two instructions that wait for each other's core are the ends of one transfer.
    fn matches(&self, a: At, b: At) -> bool {
        let transfer = |(core, index): At| match self.program.cores[core].code[index].op {
            Op::SoMov(SoMov { core: to, xfer, .. }) => {
                Some((self.program.cores[core].id, to, xfer))
            }
            Op::SiMov(SiMov { core: from, xfer, .. }) => {
                Some((from, self.program.cores[core].id, xfer))
            }
            _ => None,
        };
        transfer(a) == transfer(b)
    }

    /// Takes the tokens of the next instruction of an engine; returns the instructions that have then ended.
    fn take_tokens(&mut self, engine: usize) -> Vec<u32> {
        let mut clock = self.queues[engine].clock.to_vec();
        let Some((core, index)) = self.head(engine) else { return clock };
        for from in self.program.cores[core].code[index].tokens.prev.iter() {
            let given = self.tokens[place(core, from)][engine % Engine::COUNT].pop_front();
            if let Some(given) = given {
                join(&mut clock, &given);
            }
        }
        clock
    }

    /// Runs the next instruction of an engine, which gives its tokens.
    fn start(
        &mut self,
        engine: usize,
        clock: &[u32],
        work: &mut VecDeque<usize>,
        visit: &mut impl FnMut(Step<'_>),
    ) {
        let Some((core, index)) = self.head(engine) else { return };
        let turn = self.queues[engine].next as u32;
        visit(Step { core, index, engine, turn, clock });
        let mut after = clock.to_vec();
        after[engine] = turn + 1;
        let after: Clock = after.into();
        for to in self.program.cores[core].code[index].tokens.next.iter() {
            self.tokens[engine][to as usize].push_back(after.clone());
            work.push_back(place(core, to));
        }
        self.queues[engine].clock = after;
        self.queues[engine].next += 1;
        // The following instruction may be the other end of a waiting transfer.
        if let Some(Err(Some(Wait::Transfer(peer)))) = self.head(engine).map(|_| self.ready(engine))
        {
            work.push_back(peer);
        }
    }

    fn stuck(&self, engine: usize) -> Option<BlockedEngine> {
        let at = self.head(engine)?;
        let wait = self.ready(engine).err().flatten()?;
        Some(BlockedEngine { at, engine, wait })
    }
}

fn join(clock: &mut [u32], other: &[u32]) {
    for (mine, theirs) in clock.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}

/// Reports blocked instructions: each cycle of waits once.
pub fn report(stuck: &[BlockedEngine], report: &mut Report<'_>) {
    let mut seen = vec![];
    for first in stuck {
        let cycle = cycle_from(first, stuck);
        if cycle.iter().any(|link| seen.contains(&link.engine)) {
            continue;
        }
        seen.extend(cycle.iter().map(|link| link.engine));
        let Some(head) = cycle.first() else { continue };
        let message = format!("never starts: {}", waits(head));
        let mut diagnostic = report.diagnostic("npu-deadlock", message, head.at);
        for link in &cycle[1..] {
            diagnostic = report.also(diagnostic, link.at, &waits(link));
        }
        report.sink.push(diagnostic);
    }
}

fn waits(stuck: &BlockedEngine) -> String {
    match stuck.wait {
        Wait::Token(from) => format!("waits for a token of {from}"),
        Wait::Transfer(_) => "waits for the counterpart of its transfer".into(),
        Wait::NoCore(core) => format!("waits for core {core}, which does not exist"),
    }
}

/// The cycle of waits that an engine's wait leads to.
fn cycle_from(first: &BlockedEngine, stuck: &[BlockedEngine]) -> Vec<BlockedEngine> {
    let mut path: Vec<BlockedEngine> = vec![*first];
    loop {
        let last = path[path.len() - 1];
        let next = match last.wait {
            Wait::Token(from) => place(last.at.0, from),
            Wait::Transfer(peer) => peer,
            Wait::NoCore(_) => return vec![last],
        };
        let Some(next) = stuck.iter().find(|stuck| stuck.engine == next) else {
            return vec![last];
        };
        if let Some(begin) = path.iter().position(|link| link.engine == next.engine) {
            return path.split_off(begin);
        }
        path.push(*next);
    }
}
