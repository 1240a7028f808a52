//! Hazards: which instructions must have ended before another starts, due to shared bytes.

use std::collections::BTreeMap;

use irc_npu::Engine;
use irc_npu::access::Space;

/// Number of in-order instruction streams: engines, with LW's loads from L2 separate.
pub const STREAMS: usize = Engine::COUNT + 1;

/// The last instruction of each stream.
pub type LastByStream = [Option<usize>; STREAMS];

/// A stream and the index of an instruction.
pub type StreamIndex = (usize, usize);

/// Bytes with the same history of accesses.
#[derive(Clone, Copy, Default)]
struct Run {
    end: i64,
    /// The last writer.
    writer: Option<StreamIndex>,
    /// The last reader of each stream since.
    readers: LastByStream,
}

/// The last writer and readers of every byte of a core's memories.
#[derive(Default)]
pub struct Hazards {
    /// By memory, by first byte; runs do not overlap.
    memories: BTreeMap<Space, BTreeMap<i64, Run>>,
}

impl Hazards {
    /// Records a read, and adds the instructions that must precede it to `last`.
    ///
    /// A reader that is not `kept` is not recorded, so later writers do not wait for it.
    pub fn read(&mut self, bytes: &Bytes, by: StreamIndex, is_kept: bool, last: &mut LastByStream) {
        let memory = self.memory(bytes);
        let mut from = bytes.start;
        let mut unknown = vec![];
        for (start, run) in memory.range_mut(bytes.start..bytes.end) {
            if let Some(writer) = run.writer {
                join(last, writer);
            }
            if is_kept {
                join(&mut run.readers, by);
            }
            if from < *start {
                unknown.push((from, *start));
            }
            from = run.end;
        }
        if from < bytes.end {
            unknown.push((from, bytes.end));
        }
        for (start, end) in unknown.into_iter().filter(|_| is_kept) {
            let mut run = Run { end, ..Run::default() };
            join(&mut run.readers, by);
            memory.insert(start, run);
        }
    }

    /// Records a write, and adds the instructions that must precede it to `last`: the readers of the
    /// old value, or its writer if there was none.
    pub fn write(&mut self, bytes: &Bytes, by: StreamIndex, last: &mut LastByStream) {
        let memory = self.memory(bytes);
        let over: Vec<i64> =
            memory.range(bytes.start..bytes.end).map(|(start, _)| *start).collect();
        for start in over {
            let Some(run) = memory.remove(&start) else { continue };
            let others = |reader: &Option<usize>| reader.is_some_and(|reader| reader != by.1);
            match run.writer {
                _ if run.readers.iter().any(others) => {
                    for (stream, reader) in run.readers.into_iter().enumerate() {
                        if let Some(reader) = reader.filter(|reader| *reader != by.1) {
                            join(last, (stream, reader));
                        }
                    }
                }
                Some(writer) if writer != by => join(last, writer),
                _ => {}
            }
        }
        let run = Run { end: bytes.end, writer: Some(by), readers: LastByStream::default() };
        memory.insert(bytes.start, run);
    }

    /// The runs of the memory, split where the bytes begin and end.
    fn memory(&mut self, bytes: &Bytes) -> &mut BTreeMap<i64, Run> {
        let memory = self.memories.entry(bytes.space).or_default();
        for at in [bytes.start, bytes.end] {
            let before = memory.range_mut(..at).next_back();
            if let Some((_, run)) = before.filter(|(_, run)| run.end > at) {
                let rest = *run;
                run.end = at;
                memory.insert(at, rest);
            }
        }
        memory
    }
}

/// A range of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// The memory.
    pub space: Space,
    /// First byte.
    pub start: i64,
    /// First byte after them.
    pub end: i64,
}

/// Records an instruction unless a later one of its stream is present.
pub fn join(last: &mut LastByStream, (stream, index): StreamIndex) {
    let slot = &mut last[stream];
    *slot = (*slot).max(Some(index));
}
