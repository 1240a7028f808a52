//! Tokens: the waits between instructions.
//!
//! An instruction must wait:
//!
//! * for other accesses to its bytes, one of the two writing ([`hazards`](crate::hazards)). The
//!   tiles of a vector workload count as accessing all bytes of the workload;
//! * if it is a movement to or from DRAM, for the previous one, which may use the same bytes of DRAM; the
//!   first of a workload for the last result of the previous workload, so as not to run too early;
//! * if it is the first tile of a workload, for the last of the previous workload; not in programs of several cores, whose
//!   engines compute workloads at the same time;
//! * if it is the first instruction of an engine, for the ring table; the end for the last store.
//!
//! An instruction waits only for the last of each engine. A wait is redundant if another between
//! the same engines begins no earlier and ends no later, so tokens are taken in the
//! order in which they are given, and at most one per engine.
//!
//! The later tools also omit waits that follow from other waits and the order of engines, where they
//! treat LW's loads from DRAM and from L2 as two engines. The first tools omit none,
//! and have PE and VP wait for themselves.

use irc_npu::access::{Space, accesses};
use irc_npu::registers::Registers;
use irc_npu::{Engine, Instruction, Op};

use crate::diagnostic::{Result, error};
use crate::hazards::{Bytes, Hazards, LastByStream, STREAMS, StreamIndex, join};

/// An instruction of a core with the workload it is issued with.
pub type IssuedInstruction = (Instruction, usize);

/// Rules for the choice of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// Those of the first published tools.
    First,
    /// Those of the later tools.
    Later,
    /// For several cores: those of the later tools, but engines run as early as what they access allows, and
    /// stores are announced to other cores.
    Mesh,
}

/// Assigns tokens to the instructions of a core.
///
/// # Errors
/// When an instruction accesses bytes outside of its memory.
pub fn synchronize(code: &mut [IssuedInstruction], rules: Rules, path: &str) -> Result<()> {
    let effects = effects(code, path)?;
    let waits = waits(code, &effects, rules);
    let edges = match rules {
        Rules::First => all(code, &waits),
        Rules::Later | Rules::Mesh => reduced(code, &waits, &effects),
    };
    for (from, to) in in_turn(code, edges) {
        let (giver, taker) = (code[from].0.op.engine(), code[to].0.op.engine());
        code[from].0.tokens.next.push(taker);
        code[to].0.tokens.prev.push(giver);
    }
    Ok(())
}

/// The accesses of an instruction.
#[derive(Clone, Default)]
struct Effect {
    reads: Vec<Bytes>,
    writes: Vec<Bytes>,
    /// Whether it moves data to or from DRAM.
    is_dram: bool,
}

impl Effect {
    /// An instruction of this effect with its stream.
    fn by(&self, engine: Engine, index: usize) -> StreamIndex {
        match engine == Engine::Lw && !self.is_dram {
            true => (Engine::COUNT, index),
            false => (engine as usize, index),
        }
    }
}

fn effects(code: &[IssuedInstruction], path: &str) -> Result<Vec<Effect>> {
    let mut registers = Registers::default();
    let mut all: Vec<Effect> = Vec::with_capacity(code.len());
    for (instruction, workload) in code {
        let rejected = |why: String| error("emit-access", &format!("{path}[{workload}]"), why);
        registers.write(instruction).map_err(|why| rejected(why.into()))?;
        let mut effect = Effect::default();
        let touched = accesses(&registers, &instruction.op);
        for access in touched.map_err(|why| rejected(why.to_string()))? {
            effect.is_dram |= matches!(access.space, Space::Dram(_));
            let (start, end) = (access.area.start, access.area.end());
            let bytes = Bytes { space: access.space, start, end };
            let list = if access.write { &mut effect.writes } else { &mut effect.reads };
            list.push(bytes);
        }
        all.push(effect);
    }
    share_vector_effects(code, &mut all);
    Ok(all)
}

/// Extends the accesses of every tile of a vector workload to those of all its tiles.
fn share_vector_effects(code: &[IssuedInstruction], all: &mut [Effect]) {
    let tiles: Vec<usize> = (0..code.len()).filter(|i| is_run(&code[*i], Engine::Vp)).collect();
    for tiles in tiles.chunk_by(|a, b| code[*a].1 == code[*b].1).filter(|tiles| tiles.len() > 1) {
        let mut shared = Effect::default();
        for tile in tiles {
            shared.reads.extend(&all[*tile].reads);
            shared.writes.extend(&all[*tile].writes);
        }
        for tile in tiles {
            all[*tile] = shared.clone();
        }
    }
}

fn is_run((instruction, _): &IssuedInstruction, engine: Engine) -> bool {
    instruction.op.engine() == engine && !instruction.op.is_config()
}

fn is_tile(issued: &IssuedInstruction) -> bool {
    is_run(issued, Engine::Pe) || is_run(issued, Engine::Vp)
}

/// For every instruction, the last instruction of each engine that it waits for.
fn waits(code: &[IssuedInstruction], effects: &[Effect], rules: Rules) -> Vec<LastByStream> {
    let mut hazards = Hazards::default();
    let mut all = Vec::with_capacity(code.len());
    let mut state = State::default();
    for (index, issued) in code.iter().enumerate() {
        let mut last = LastByStream::default();
        let engine = issued.0.op.engine();
        if !issued.0.op.is_config() {
            let effect = &effects[index];
            // The first tools ignore that LW reads L2: waits for LW's readers suffice.
            let is_kept = !(rules == Rules::First && engine == Engine::Lw);
            // On one core, the order of movements covers DRAM.
            let counts =
                |bytes: &&Bytes| rules == Rules::Mesh || !matches!(bytes.space, Space::Dram(_));
            for bytes in effect.reads.iter().filter(counts) {
                hazards.read(bytes, effect.by(engine, index), is_kept, &mut last);
            }
            for bytes in effect.writes.iter().filter(counts) {
                hazards.write(bytes, effect.by(engine, index), &mut last);
            }
            state.order(code, index, effects, rules, &mut last);
        }
        all.push(last);
    }
    all
}

/// Constraints on the order of instructions other than shared bytes.
#[derive(Default)]
struct State {
    /// The last movement to or from DRAM.
    dram: Option<usize>,
    /// The last tile of the current workload and of the one before it.
    tiles: [Option<usize>; 2],
    /// The last instruction of each engine, by its number.
    engines: LastByStream,
    /// The last announcement by another core that its store has ended.
    announced: Option<usize>,
    /// The first instruction, which begins the task.
    begin: Option<usize>,
}

impl State {
    fn order(
        &mut self,
        code: &[IssuedInstruction],
        index: usize,
        effects: &[Effect],
        rules: Rules,
        last: &mut LastByStream,
    ) {
        let issued = &code[index];
        let engine = issued.0.op.engine();
        self.begin = self.begin.or(Some(index));
        let effect = &effects[index];
        let by = |on: usize| effects[on].by(code[on].0.op.engine(), on);
        let wait = |last: &mut LastByStream, on: Option<usize>| {
            if let Some(on) = on {
                join(last, by(on));
            }
        };
        match &issued.0.op {
            Op::SoMov(op) if op.tile == [0; 4] => wait(last, self.engines[Engine::St as usize]),
            Op::SiMov(op) if op.tile == [0; 4] => self.announced = Some(index),
            _ if effect.is_dram => wait(last, self.announced),
            _ => {}
        }
        if effect.is_dram && rules != Rules::Mesh {
            if self.dram.is_none_or(|dram| code[dram].1 != issued.1) {
                wait(last, self.tile_before(code, issued.1));
            }
            wait(last, self.dram);
            self.dram = Some(index);
        }
        if is_tile(issued) && rules != Rules::Mesh {
            wait(last, self.tile_before(code, issued.1));
            let is_next = self.tiles[0].is_some_and(|tile| code[tile].1 != issued.1);
            self.tiles[1] = if is_next { self.tiles[0] } else { self.tiles[1] };
            self.tiles[0] = Some(index);
        }
        match &issued.0.op {
            Op::CtEd(_) => self.end(last),
            _ if engine != Engine::Ct && self.engines[engine as usize].is_none() => {
                // Loads of WL0 from DRAM use no ring region.
                let needs_rings = effect.reads.iter().any(|bytes| bytes.space == Space::L2);
                match rules == Rules::First && engine == Engine::Lw && !needs_rings {
                    true => last[Engine::Ct as usize] = self.begin,
                    false => wait(last, self.engines[Engine::Ct as usize]),
                }
            }
            _ => {}
        }
        join(&mut self.engines, (engine as usize, index));
    }

    /// The last tile before a workload.
    fn tile_before(&self, code: &[IssuedInstruction], workload: usize) -> Option<usize> {
        self.tiles.into_iter().flatten().find(|tile| code[*tile].1 != workload)
    }

    /// The end waits for stores and transfers to other cores; without any, for all instructions.
    fn end(&self, last: &mut LastByStream) {
        let out = [Engine::St, Engine::So, Engine::Si];
        let is_out = |engine: Engine| out.contains(&engine);
        let any = out.into_iter().any(|engine| self.engines[engine as usize].is_some());
        for engine in Engine::ALL.into_iter().filter(|engine| *engine != Engine::Ct) {
            if let Some(index) = self.engines[engine as usize].filter(|_| is_out(engine) || !any) {
                join(last, (engine as usize, index));
            }
        }
    }
}

/// All waits; those within an engine only for engines that the first tools do not treat as
/// in order.
fn all(code: &[IssuedInstruction], waits: &[LastByStream]) -> Vec<(usize, usize)> {
    let mut edges = vec![];
    let mut begun = [false; Engine::COUNT];
    let is_control = |issued: &IssuedInstruction| issued.0.op.engine() == Engine::Ct;
    let first_table = code.iter().take_while(|issued| is_control(issued)).count();
    for (to, last) in waits.iter().enumerate().filter(|(to, _)| !code[*to].0.op.is_config()) {
        let engine = code[to].0.op.engine();
        let is_first = !std::mem::replace(&mut begun[engine as usize], true);
        for from in last.iter().flatten() {
            let giver = code[*from].0.op.engine();
            if giver == engine && !matches!(engine, Engine::Pe | Engine::Vp) {
                continue;
            }
            // The first instruction of an engine waits for the table, unless it follows another wait.
            let follows = matches!(engine, Engine::St | Engine::Dt);
            if giver == Engine::Ct && *from < first_table && (!is_first || follows) {
                continue;
            }
            edges.push((*from, to));
        }
    }
    edges
}

/// How many instructions of every stream have ended.
type Clock = [u32; STREAMS];

/// The waits that do not follow from others and the order of streams.
fn reduced(
    code: &[IssuedInstruction],
    waits: &[LastByStream],
    effects: &[Effect],
) -> Vec<(usize, usize)> {
    let stream = |index: usize| effects[index].by(code[index].0.op.engine(), index).0;
    let mut edges = vec![];
    let mut done: [Clock; STREAMS] = [[0; STREAMS]; STREAMS];
    // The instructions that have ended when an instruction has, including itself.
    let mut clocks: Vec<Clock> = vec![[0; STREAMS]; code.len()];
    for to in (0..code.len()).filter(|index| !code[*index].0.op.is_config()) {
        let own = stream(to);
        let mut clock = done[own];
        let known = |clock: &Clock, from: usize| clock[stream(from)] >= clocks[from][stream(from)];
        let engine = code[to].0.op.engine();
        let others = waits[to].iter().flatten().copied();
        let wanted: Vec<usize> =
            others.filter(|from| code[*from].0.op.engine() != engine).collect();
        for &from in &wanted {
            let follows = |other: &usize| *other != from && known(&clocks[*other], from);
            if !known(&done[own], from) && !wanted.iter().any(follows) {
                edges.push((from, to));
                clock.iter_mut().zip(clocks[from]).for_each(|(a, b)| *a = (*a).max(b));
            }
        }
        clock[own] += 1;
        clocks[to] = clock;
        done[own] = clock;
    }
    edges
}

/// The waits without those that another between the same engines makes redundant.
fn in_turn(code: &[IssuedInstruction], edges: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    let pair = |(from, to): &(usize, usize)| (code[*from].0.op.engine(), code[*to].0.op.engine());
    let mut by_pair: Vec<Vec<(usize, usize)>> = vec![vec![]; Engine::COUNT * Engine::COUNT];
    for edge in edges {
        let (from, to) = pair(&edge);
        by_pair[from as usize * Engine::COUNT + to as usize].push(edge);
    }
    let mut kept = vec![];
    for mut edges in by_pair {
        edges.sort_unstable();
        edges.dedup();
        // From the last: a wait is redundant if one that begins no earlier ends no later.
        let mut earliest = usize::MAX;
        let first = kept.len();
        for (from, to) in edges.into_iter().rev() {
            if to >= earliest {
                continue;
            }
            // Of two waits with the same begin, the one that ends first was visited last.
            if kept.len() > first && kept.last().is_some_and(|(other, _)| *other == from) {
                kept.pop();
            }
            earliest = to;
            kept.push((from, to));
        }
    }
    kept.sort_unstable_by_key(|(from, to)| (*to, *from));
    kept
}
