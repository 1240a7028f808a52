//! The record of a launch: where each warp is, which a host can read after a fault.
//!
//! Words of 8 bytes: the nanoseconds after which a block that waits for others traps, or 0 if it waits for ever; one more
//! than the number of the warp that has trapped so; the number of the first block of the launch among those of all launches
//! of the program; and for each warp of the grid its place.
use super::GpuKernel;
use irc_json::{At, Node, Reader};
use serde::Serialize;
use std::fmt::Write;

/// Words before those of the warps.
const HEADER: usize = 3;

/// The bits of a place that are the task.
pub const TASK_BITS: u32 = 40;

/// The most steps of a kernel.
pub const MAX_STEPS: usize = 1 << 23;

/// The most tasks of a step.
pub const MAX_TASKS: u64 = 1 << TASK_BITS;

/// The place of a warp that has ended.
const ENDED: u64 = u64::MAX;

/// Lines of a report.
const MAX_LINES: usize = 12;

/// The maximum number of events of a launch.
const MAX_EVENTS: u64 = 1 << 26;

/// Words of an event: when it began and ended, and the number of its warp in the grid.
const EVENT: usize = 3;

/// An event of a launch: a task, the wait of a processor, or a kernel as run by a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The number of the step.
    pub step: usize,
    /// The task, if the step has tasks.
    pub task: u64,
    /// The block.
    pub block: u64,
    /// The warp in it, which is the first one if there are several.
    pub warp: u64,
    /// When it began and ended, in nanoseconds, or in instructions of an emulator.
    pub begin: u64,
    /// When it ended.
    pub end: u64,
}

/// A step of a kernel: the tasks of a task group, a barrier between processors, or a kernel of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The ops of the tasks; the barrier; or the kernel.
    pub name: String,
    /// The task info and its tasks, the last exclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<(u64, [u64; 2])>,
    /// The processors that take part, the last exclusive; otherwise all blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<[u64; 2]>,
}

/// The place of a warp at the first task of a step.
pub const fn place_of(step: usize) -> i64 {
    (step as i64 + 1) << TASK_BITS
}

impl Step {
    /// The number of its events in a launch of some blocks, and the task of the first.
    fn events(&self, blocks: u32) -> (u64, u64) {
        let [begin, end] = match (&self.tasks, self.processors) {
            (Some((_, tasks)), _) => *tasks,
            (None, Some([begin, end])) => [0, end.saturating_sub(begin)],
            (None, None) => [0, blocks.into()],
        };
        (end.saturating_sub(begin), begin)
    }
}

impl GpuKernel {
    /// The record before a launch of some blocks, from a first one on. A block traps after it has waited for `limit`
    /// nanoseconds, unless that is 0.
    pub fn record(&self, blocks: u32, limit: u64, first: u64) -> Vec<u8> {
        let mut bytes = vec![0; self.record_bytes(blocks)];
        bytes[..8].copy_from_slice(&limit.to_le_bytes());
        bytes[16..24].copy_from_slice(&first.to_le_bytes());
        bytes
    }

    /// Bytes of the record of a launch of some blocks.
    pub(crate) fn record_bytes(&self, blocks: u32) -> usize {
        8 * (HEADER + blocks as usize * self.warps())
    }

    /// Bytes of the events of a launch of some blocks.
    ///
    /// # Errors
    /// More than 2^26 of them.
    pub fn trace_bytes(&self, blocks: u32) -> Result<usize, String> {
        let events = self.steps.iter().map(|step| step.events(blocks).0);
        let events = events.fold(0, u64::saturating_add);
        match events <= MAX_EVENTS {
            true => Ok(8 * EVENT * events as usize),
            false => {
                Err(format!("a launch has {events} events, and at most {MAX_EVENTS} are recorded"))
            }
        }
    }

    /// The events of a launch of some blocks.
    pub fn events(&self, trace: &[u8], blocks: u32) -> Vec<Event> {
        let mut found = vec![];
        let mut all = trace.chunks_exact(8 * EVENT);
        for (number, step) in self.steps.iter().enumerate() {
            let (count, first) = step.events(blocks);
            for (at, event) in all.by_ref().take(count as usize).enumerate() {
                let words: Vec<u64> = words(event).collect();
                let warps = self.warps() as u64;
                let (begin, end, warp) = (words[0], words[1], words[2]);
                // What has not run has no times.
                if end > 0 {
                    let (block, warp) = (warp / warps, warp % warps);
                    found.push(Event {
                        step: number,
                        task: first + at as u64,
                        block,
                        warp,
                        begin,
                        end,
                    });
                }
            }
        }
        found
    }

    fn warps(&self) -> usize {
        self.threads.div_ceil(32) as usize
    }

    /// The rank of a block, if there are several, and its number in the rank.
    pub fn rank_of(&self, block: u64) -> (Option<usize>, u64) {
        let mut first = 0;
        for (rank, blocks) in self.ranks.iter().enumerate() {
            if block < first + u64::from(*blocks) {
                return (Some(rank), block - first);
            }
            first += u64::from(*blocks);
        }
        (None, block)
    }

    /// What a block is called.
    pub fn block_name(&self, block: u64) -> String {
        let unit = if self.blocks.is_some() { "processor" } else { "block" };
        match self.rank_of(block) {
            (Some(rank), number) => format!("{unit} {number} of rank {rank}"),
            (None, number) => format!("{unit} {number}"),
        }
    }

    /// Where a warp is at a task of a step.
    fn place_in(&self, step: usize, task: u64) -> Option<String> {
        let Step { name, tasks, processors } = self.steps.get(step)?;
        Some(match (tasks, processors) {
            (Some((info, _)), _) => format!("task {task} of task info {info}, '{name}'"),
            (None, Some([begin, end])) => {
                let (rank, first) = self.rank_of(*begin);
                let last = first + (end.saturating_sub(1)).saturating_sub(*begin);
                let of = rank.map_or(String::new(), |rank| format!(" of rank {rank}"));
                format!("the barrier of processors {first} to {last}{of} {name}")
            }
            (None, None) => name.clone(),
        })
    }

    /// The number of the first block of a launch, by its record.
    fn first_block(record: &[u8]) -> u64 {
        words(record).nth(2).unwrap_or(0)
    }

    /// The step and the task that a warp is at, by the record.
    fn at(&self, record: &[u8], block: usize, warp: usize) -> Option<(usize, u64)> {
        let first = block.checked_mul(self.warps())?.checked_add(HEADER)?;
        words(record).nth(first.checked_add(warp)?).and_then(decode)
    }

    /// Where a warp is, by the record.
    pub fn place(&self, record: &[u8], block: usize, warp: usize) -> Option<String> {
        let (step, task) = self.at(record, block, warp)?;
        let name = self.block_name(Self::first_block(record) + block as u64);
        Some(format!("{name}, warp {warp} is at {}", self.place_in(step, task)?))
    }

    /// Where all warps are, by the record: the block that has waited for too long, and for each step the warps there,
    /// those of barriers last.
    pub fn places(&self, record: &[u8]) -> Vec<String> {
        let mut lines = vec![];
        let first = Self::first_block(record);
        let name = |block: usize| self.block_name(first + block as u64);
        let stuck = words(record).nth(1).and_then(|word| word.checked_sub(1));
        if let Some(number) = stuck {
            let (block, warp) = (number as usize / self.warps(), number as usize % self.warps());
            let at = self.at(record, block, warp);
            let at = at.and_then(|(step, task)| self.place_in(step, task)).unwrap_or_default();
            lines.push(format!("{} has waited too long at {at}", name(block)));
        }
        // By step: the first warp, its task, and the number of warps.
        let mut steps: Vec<Option<(usize, u64, usize)>> = vec![None; self.steps.len()];
        for (number, word) in words(record).skip(HEADER).enumerate() {
            let Some((step, task)) = decode(word) else { continue };
            let Some(found) = steps.get_mut(step) else { continue };
            found.get_or_insert((number, task, 0)).2 += 1;
        }
        let all = steps.iter().flatten().count();
        let found = || steps.iter().enumerate().filter_map(|(step, at)| Some((step, (*at)?)));
        let of_tasks = found().filter(|(step, _)| self.steps[*step].tasks.is_some());
        let others = found().filter(|(step, _)| self.steps[*step].tasks.is_none());
        for (step, (number, task, count)) in of_tasks.chain(others).take(MAX_LINES) {
            let (block, warp) = (number / self.warps(), number % self.warps());
            let place = self.place_in(step, task).unwrap_or_default();
            let mut line = format!("at {place}: {}, warp {warp}", name(block));
            if count > 1 {
                let _ = write!(line, ", and {} other warps at this step", count - 1);
            }
            lines.push(line);
        }
        if all > MAX_LINES {
            lines.push(format!("warps at {} further steps are not shown", all - MAX_LINES));
        }
        lines
    }
}

/// A step in the description of a kernel.
pub(super) fn step(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Step> {
    let object = r.object(value, at)?;
    let name = r.required(&object, "name")?;
    let name = r.string(name, &at.key("name"))?.to_owned();
    let tasks = match object.get("tasks") {
        Some(tasks) => {
            let at = at.key("tasks");
            match r.array(tasks, &at)? {
                [info, tasks] => {
                    let info = r.integer(info, &at.index(0), "a number")?;
                    Some((info, range(r, tasks, &at.index(1))?))
                }
                _ => return wrong(r, "a task info and its tasks", tasks, &at),
            }
        }
        None => None,
    };
    let processors = match object.get("processors") {
        Some(processors) => Some(range(r, processors, &at.key("processors"))?),
        None => None,
    };
    Some(Step { name, tasks, processors })
}

/// The first number and the end.
fn range(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<[u64; 2]> {
    let number =
        |r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>| r.integer(value, at, "a number");
    let ends: Vec<u64> = r.list(value, at, number)?;
    <[u64; 2]>::try_from(ends).ok().or_else(|| wrong(r, "two numbers", value, at))
}

fn wrong<T>(r: &mut Reader<'_>, expected: &str, value: &Node<'_>, at: &At<'_>) -> Option<T> {
    r.wrong_type(expected, value, at);
    None
}

fn words(record: &[u8]) -> impl Iterator<Item = u64> {
    record
        .chunks_exact(8)
        .map(|word| word.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// The step and the task of a place; `None` before the first step and after the end.
fn decode(word: u64) -> Option<(usize, u64)> {
    let step = (word >> TASK_BITS).checked_sub(1).filter(|_| word != ENDED)?;
    Some((step as usize, word & (MAX_TASKS - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_steps_and_tasks() {
        let tasks = Step { name: "exp".into(), tasks: Some((1, [0, 9])), processors: Some([0, 2]) };
        let barrier =
            Step { name: "before processor group 1".into(), tasks: None, processors: Some([0, 2]) };
        let kernel = GpuKernel {
            blocks: Some(2),
            threads: 64,
            steps: vec![tasks, barrier],
            ..GpuKernel::default()
        };
        let mut record = kernel.record(2, 7, 0);
        assert_eq!(record.len(), 8 * 7);
        assert_eq!(kernel.place(&record, 0, 0), None);
        let mut put =
            |at: usize, word: u64| record[8 * at..][..8].copy_from_slice(&word.to_le_bytes());
        put(1, 1);
        put(3, place_of(1).cast_unsigned());
        put(4, place_of(1).cast_unsigned());
        put(5, place_of(0).cast_unsigned() + 5);
        put(6, ENDED);
        let place = kernel.place(&record, 1, 0).expect("known");
        assert_eq!(place, "processor 1, warp 0 is at task 5 of task info 1, 'exp'");
        assert_eq!(
            kernel.places(&record),
            [
                "processor 0 has waited too long at the barrier of processors 0 to 1 before processor group 1",
                "at task 5 of task info 1, 'exp': processor 1, warp 0",
                "at the barrier of processors 0 to 1 before processor group 1: processor 0, warp 0, and 1 other warps \
                 at this step",
            ]
        );
        // A launch of the second of two ranks.
        let kernel = GpuKernel { blocks: Some(4), ranks: vec![2, 2], ..kernel };
        record[16] = 2;
        let place = kernel.place(&record, 1, 0).expect("known");
        assert_eq!(place, "processor 1 of rank 1, warp 0 is at task 5 of task info 1, 'exp'");
    }
}
