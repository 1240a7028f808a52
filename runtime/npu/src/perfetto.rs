//! A timing as JSON for Perfetto (and Chrome's trace viewer).
//!
//! A process per core, a track per engine, a slice per instruction, and a counter of the bytes of L2
//! that are yet to be read. A cycle is shown as a microsecond.

use std::fmt::Write;

use irc_npu::access::{Access, Space, accesses};
use irc_npu::registers::Registers;
use irc_npu::{Core, Engine, Program};

use crate::cycles::Timing;

/// The trace of a program and its timing.
pub fn write(program: &Program, timing: &Timing) -> String {
    let mut events = vec![];
    for (core, times) in program.cores.iter().zip(&timing.times) {
        names(core, &mut events);
        for (index, (instruction, time)) in core.code.iter().zip(times).enumerate() {
            let origin = &instruction.origin;
            events.push(format!(
                r#"{{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":"{}","args":{{"instruction":{},"layer":{},"workload":{},"tile":{}}}}}"#,
                core.id,
                instruction.op.engine() as u8,
                time.start,
                time.end - time.start,
                instruction.op.name(),
                index + 1,
                origin.slyr,
                origin.wkl,
                origin.tile
            ));
        }
        for (at, bytes) in occupancy(core, times) {
            events.push(format!(
                r#"{{"ph":"C","pid":{},"ts":{at},"name":"L2","args":{{"bytes":{bytes}}}}}"#,
                core.id
            ));
        }
    }
    format!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}\n]}}\n", events.join(",\n"))
}

fn names(core: &Core, events: &mut Vec<String>) {
    let mut name = |what: &str, tid: u8, name: &str| {
        let mut event = String::new();
        // Writing to a String cannot fail.
        let _ = write!(
            event,
            r#"{{"ph":"M","pid":{},"tid":{tid},"name":"{what}","args":{{"name":"{name}"}}}}"#,
            core.id
        );
        events.push(event);
    };
    name("process_name", 0, &format!("core {}", core.id));
    for engine in Engine::ALL {
        name("thread_name", engine as u8, engine.name());
    }
}

/// The number of bytes of L2 between their write and their last read: pairs of a cycle and the new sum.
///
/// In units of 64 bytes. Bytes that are never read count while they are written.
pub fn occupancy(core: &Core, times: &[irc_npu::Time]) -> Vec<(u64, i64)> {
    let mut events = accesses_in_time(core, times);
    // Reads come before writes that begin when they end.
    events.sort_by_key(|event| (event.time, event.write));
    let mut lines: Vec<Line> = vec![];
    let mut changes = vec![];
    for Event { time, write, from, to, .. } in events {
        if lines.len() < to {
            lines.resize(to, Line::default());
        }
        for line in &mut lines[from..to] {
            // Adjacent writes of several tiles count from the first one.
            if write && (line.since.is_none() || line.since < Some(line.until)) {
                line.close(&mut changes);
                *line = Line { since: Some(time), until: time };
            } else if !write {
                line.until = time;
            }
        }
    }
    lines.iter_mut().for_each(|line| line.close(&mut changes));
    sums(changes)
}

/// Addresses above this are not counted: 256 MiB, far more than an L2.
const MAX_ADDRESS: i64 = 1 << 28;

/// Bytes of a line.
const LINE: i64 = 64;

/// The contents of a line of L2: since when, and when it was last read.
#[derive(Clone, Default)]
struct Line {
    since: Option<u64>,
    until: u64,
}

impl Line {
    fn close(&self, changes: &mut Vec<(u64, i64)>) {
        if let Some(since) = self.since
            && since < self.until
        {
            changes.push((since, LINE));
            changes.push((self.until, -LINE));
        }
    }
}

fn sums(mut changes: Vec<(u64, i64)>) -> Vec<(u64, i64)> {
    changes.sort_unstable_by_key(|change| change.0);
    let mut sums: Vec<(u64, i64)> = vec![];
    let mut sum = 0;
    for (time, change) in changes {
        sum += change;
        match sums.last_mut() {
            Some(last) if last.0 == time => last.1 = sum,
            _ => sums.push((time, sum)),
        }
    }
    sums
}

struct Event {
    time: u64,
    write: bool,
    from: usize,
    to: usize,
}

/// Writes at their start and reads at their end, in lines of L2.
fn accesses_in_time(core: &Core, times: &[irc_npu::Time]) -> Vec<Event> {
    let mut registers = Registers::default();
    let mut events = vec![];
    for (instruction, time) in core.code.iter().zip(times) {
        // The verifier reports errors of programs.
        let _ = registers.write(instruction);
        let accesses = accesses(&registers, &instruction.op).unwrap_or_default();
        for Access { space, write, area } in accesses {
            if space == Space::L2 && area.start >= 0 && area.end() <= MAX_ADDRESS {
                let (from, to) = (area.start / LINE, (area.end() + LINE - 1) / LINE);
                let time = if write { time.start } else { time.end };
                events.push(Event { time, write, from: from as usize, to: to as usize });
            }
        }
    }
    events
}
