//! A timeline of a run, in the JSON format of Perfetto and Chrome.
//!
//! Ranks are processes, processors are threads. A slice is one task, or, if a run has many, all
//! tasks of a task group on one processor; or one wait. Events are written as they end, so that a run
//! of any length takes no memory; after a million events the rest is omitted and counted.

use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use irc_ark_format::plan::Plan;

use crate::Error;

/// Maximum number of tasks of a run with a slice for each task.
pub const MAX_TASKS: i64 = 20_000;

/// Maximum number of events of a file.
const MAX_EVENTS: u64 = 1_000_000;

/// A timeline being written.
pub(crate) struct Trace {
    start: Instant,
    /// Whether each task gets a slice.
    pub by_task: bool,
    /// The ops of each task info, by rank in this process.
    names: Vec<Vec<String>>,
    file: Mutex<Timeline>,
}

/// A file of slices on tracks of processes.
pub struct Timeline {
    out: Box<dyn Write + Send>,
    events: u64,
    /// The first write error.
    error: Option<std::io::Error>,
}

/// The rank and processor of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Track {
    /// Index of the rank among the local ones.
    pub index: usize,
    /// The rank.
    pub rank: i64,
    /// The processor.
    pub processor: i64,
}

impl Trace {
    /// Starts a timeline of the plans of these ranks.
    pub(crate) fn new(out: Box<dyn Write + Send>, plans: &[&Plan]) -> Self {
        let mut file = Timeline::new(out);
        for plan in plans {
            let rank = plan.rank;
            file.process(rank, &format!("rank {rank}"));
            for processor in 0..plan.num_processors {
                file.track((rank, processor), &format!("processor {processor}"));
            }
        }
        Self {
            start: Instant::now(),
            by_task: plans.iter().fold(0i64, |sum, plan| sum.saturating_add(tasks(plan)))
                <= MAX_TASKS,
            names: plans.iter().map(|plan| names(plan)).collect(),
            file: Mutex::new(file),
        }
    }

    /// Records that some tasks of a task info have run: the first, the last, and their number.
    pub(crate) fn tasks(
        &self,
        track: Track,
        info: usize,
        (first, last, count): (i64, i64, u64),
        since: Instant,
    ) {
        let args = task_args(info as u64, (first.cast_unsigned(), last.cast_unsigned(), count));
        self.slice(track, &self.names[track.index][info], "task", &args, since);
    }

    /// Records the wait of a processor.
    pub(crate) fn wait(&self, track: Track, what: &str, since: Instant) {
        self.slice(track, what, "wait", "{}", since);
    }

    fn slice(&self, track: Track, name: &str, kind: &str, args: &str, since: Instant) {
        let begin = since.duration_since(self.start).as_nanos();
        let length = since.elapsed().as_nanos();
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.slice((track.rank, track.processor), (name, kind), args, (begin, length));
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The first write error.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.file.into_inner().unwrap_or_else(PoisonError::into_inner).finish(&[])
    }
}

/// What a slice says about tasks of a task info: the first, the last, and their number.
pub fn task_args(info: u64, (first, last, count): (u64, u64, u64)) -> String {
    format!(
        "{{\"task info\":{info},\"first task\":{first},\"last task\":{last},\"tasks\":{count}}}"
    )
}

impl Timeline {
    /// Starts a file.
    pub fn new(out: Box<dyn Write + Send>) -> Self {
        let mut file = Self { out, events: 0, error: None };
        file.write("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        file
    }

    /// Names a process.
    pub fn process(&mut self, process: i64, name: &str) {
        let name = serde_json::Value::from(name);
        self.event(&format!(
            "\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{process},\"args\":{{\"name\":{name}}}"
        ));
    }

    /// Names a track of a process.
    pub fn track(&mut self, (process, track): (i64, i64), name: &str) {
        let name = serde_json::Value::from(name);
        self.event(&format!(
            "\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{process},\"tid\":{track},\"args\":{{\"name\":{name}}}"
        ));
    }

    /// A slice: its track, its name and kind, what it says as a JSON object, and its begin and length in nanoseconds.
    pub fn slice(
        &mut self,
        (process, track): (i64, i64),
        (name, kind): (&str, &str),
        args: &str,
        (begin, length): (u128, u128),
    ) {
        // Microseconds, with a resolution of one nanosecond.
        let micros = |nanos: u128| format!("{}.{:03}", nanos / 1000, nanos % 1000);
        let name = serde_json::Value::from(name);
        self.event(&format!(
            "\"name\":{name},\"cat\":\"{kind}\",\"ph\":\"X\",\"ts\":{},\"dur\":{},\"pid\":{process},\
             \"tid\":{track},\"args\":{args}",
            micros(begin),
            micros(length),
        ));
    }

    fn event(&mut self, body: &str) {
        let comma = if self.events == 0 { "" } else { "," };
        self.events += 1;
        if self.events <= MAX_EVENTS {
            self.write(&format!("{comma}\n{{{body}}}"));
        }
    }

    /// Ends the file, with what else it says.
    ///
    /// # Errors
    /// The first write error.
    pub fn finish(mut self, more: &[(&str, &str)]) -> Result<(), Error> {
        let lost = self.events.saturating_sub(MAX_EVENTS);
        let more = more.iter().map(|(key, text)| {
            format!(",{}:{}", serde_json::Value::from(*key), serde_json::Value::from(*text))
        });
        let more: String = more.collect();
        self.write(&format!("\n],\"otherData\":{{\"events left out\":\"{lost}\"{more}}}}}\n"));
        if let Err(error) = self.out.flush() {
            self.error.get_or_insert(error);
        }
        self.error.map_or(Ok(()), |error| Err(Error::Trace(error)))
    }

    fn write(&mut self, text: &str) {
        if self.error.is_none() {
            self.error = self.out.write_all(text.as_bytes()).err();
        }
    }
}

/// Number of tasks that a plan runs.
fn tasks(plan: &Plan) -> i64 {
    let resources = plan.processor_groups.iter().flat_map(|group| &group.resource_groups);
    let groups = resources.flat_map(|resource| &resource.task_groups);
    groups.fold(0, |sum: i64, group| sum.saturating_add(group.task_range.len()))
}

/// The names of the ops of each task info.
fn names(plan: &Plan) -> Vec<String> {
    let of = |info: &irc_ark_format::plan::TaskInfo| {
        let names: Vec<_> = info.ops.iter().map(|op| op.op.name.as_str()).collect();
        names.join(" + ")
    };
    plan.task_infos.iter().map(of).collect()
}
