//! Races: unordered accesses to the same bytes.

use super::Effects;
use super::order::{Step, place};
use super::report::{At, Report, name};
use crate::access::{Access, Space};
use crate::{Engine, Op, Program};

/// Accesses of an engine to one memory, in its order.
#[derive(Default)]
struct Log {
    /// Index on the engine, index in the program, access.
    entries: Vec<(u32, At, Access)>,
}

impl Log {
    /// Entries of instructions starting at an index.
    fn from(&self, turn: u32) -> &[(u32, At, Access)] {
        let begin = self.entries.partition_point(|entry| entry.0 < turn);
        &self.entries[begin..]
    }
}

/// Reads and writes of a memory.
#[derive(Default)]
struct Logs {
    reads: Log,
    writes: Log,
}

/// The accesses of every engine so far.
pub struct Races<'p> {
    program: &'p Program,
    effects: &'p Effects,
    /// By index of the engine, by memory.
    logs: Vec<Vec<(Space, Logs)>>,
    /// Index of the last store to DRAM of each engine.
    stores: Vec<Option<(u32, At)>>,
    /// Ends of tasks, and the instructions that have ended before them.
    ends: Vec<(At, Vec<u32>)>,
}

impl<'p> Races<'p> {
    /// No accesses.
    pub fn new(program: &'p Program, effects: &'p Effects) -> Self {
        let engines = program.cores.len() * Engine::COUNT;
        let logs = (0..engines).map(|_| vec![]).collect();
        Self { program, effects, logs, stores: vec![None; engines], ends: vec![] }
    }

    /// Compares an instruction with all that are not known to have ended, and logs it.
    pub fn step(&mut self, step: Step<'_>, report: &mut Report<'_>) {
        let at = (step.core, step.index);
        let mut found: Vec<(Space, bool)> = vec![];
        for access in &self.effects[step.core][step.index] {
            let race = self.race(&step, access);
            // One of a kind per instruction; the others have the same cause.
            if let Some((other, write, bytes)) = race
                && !found.contains(&(access.space, write))
            {
                found.push((access.space, write));
                let mine = (at, access.write);
                // Within a core the order of the program determines which comes first.
                let swapped = other.0 == at.0 && other.1 > at.1;
                let (later, first) =
                    if swapped { ((other, write), mine) } else { (mine, (other, write)) };
                self.report(later, first, (access.space, bytes), report);
            }
        }
        self.log(&step);
        if matches!(self.program.cores[step.core].code[step.index].op, Op::CtEd(_)) {
            self.ends.push((at, step.clock.to_vec()));
        }
    }

    /// The first conflicting access: its position, whether it writes, bytes in common.
    fn race(&self, step: &Step<'_>, access: &Access) -> Option<(At, bool, (i64, i64))> {
        let engines = match access.space {
            Space::Dram(_) => 0..self.logs.len(),
            _ => place(step.core, Engine::Ct)..place(step.core, Engine::Ct) + Engine::COUNT,
        };
        for engine in engines.filter(|engine| *engine != step.engine) {
            let logs = self.logs[engine].iter().find(|(space, _)| *space == access.space);
            let Some((_, logs)) = logs else { continue };
            let ended = step.clock[engine];
            let reads = if access.write { logs.reads.from(ended) } else { &[] };
            for (_, at, other) in logs.writes.from(ended).iter().chain(reads) {
                if let Some(bytes) = access.area.common(&other.area) {
                    return Some((*at, other.write, bytes));
                }
            }
        }
        None
    }

    fn log(&mut self, step: &Step<'_>) {
        let at = (step.core, step.index);
        for access in &self.effects[step.core][step.index] {
            let of_engine = &mut self.logs[step.engine];
            let found = of_engine.iter().position(|(space, _)| *space == access.space);
            let found = found.unwrap_or_else(|| {
                of_engine.push((access.space, Logs::default()));
                of_engine.len() - 1
            });
            let logs = &mut of_engine[found].1;
            let log = if access.write { &mut logs.writes } else { &mut logs.reads };
            log.entries.push((step.turn, at, *access));
            if access.write && matches!(access.space, Space::Dram(_)) {
                self.stores[step.engine] = Some((step.turn, at));
            }
        }
    }

    /// Reports that two instructions, each with whether it writes, access the same bytes.
    fn report(
        &self,
        (at, writes): (At, bool),
        (first, first_writes): (At, bool),
        (space, (start, end)): (Space, (i64, i64)),
        report: &mut Report<'_>,
    ) {
        let verb = |writes| if writes { "writes" } else { "reads" };
        let code = match (writes, first_writes) {
            (false, _) => "npu-read-after-write",
            (true, false) => "npu-write-after-read",
            (true, true) => "npu-write-after-write",
        };
        let (memory, does, did) = (name(space), verb(writes), verb(first_writes));
        let other = report.name(first);
        let message = format!(
            "{does} {start} to {end} of {memory} that {other} {did}, and they are not ordered"
        );
        let diagnostic = report.diagnostic(code, message, at);
        let diagnostic = report.also(diagnostic, first, did);
        let (from, to) = (self.engine(first), self.engine(at));
        report.sink.push(diagnostic.help(match first.0 == at.0 {
            true => format!("let {from} give {to} a token between them"),
            false => "order them by a transfer between their cores, which may be empty".into(),
        }));
    }

    fn engine(&self, (core, index): At) -> Engine {
        self.program.cores[core].code[index].op.engine()
    }

    /// The stores of a core must have ended when its task ends.
    pub fn finish(&self, report: &mut Report<'_>) {
        for (end, clock) in &self.ends {
            let first = place(end.0, Engine::Ct);
            let engines = self.stores.iter().zip(clock).skip(first).take(Engine::COUNT);
            for (store, ended) in engines {
                let Some((turn, at)) = *store else { continue };
                if *ended <= turn {
                    let message = "may end the task before the last store".into();
                    let diagnostic = report.diagnostic("npu-early-end", message, *end);
                    let diagnostic = report.also(diagnostic, at, "may still run");
                    report.sink.push(diagnostic);
                }
            }
        }
    }
}
