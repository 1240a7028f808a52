//! Before which steps of a program for a GPU all blocks wait for each other.
//!
//! A step waits if it reads or writes memory that a step since the last wait writes, or writes memory that one reads. Other
//! steps run side by side: a block that has no part in one, or has done its part, goes on to the next.
use crate::attributes::{ACCESSES, WORKERS};
use irc_mlir::OperationRef;
use std::collections::BTreeMap;

/// The most blocks by which a step is moved: a word of the table has the bits for it.
pub const MAX_SHIFT: u64 = (1 << 11) - 1;

/// What a kernel does with the memory of its operands.
#[derive(Clone, Debug)]
pub struct Accesses {
    /// The number of operands that it only reads, which are the first.
    reads: usize,
    /// The bytes of each operand.
    bytes: Vec<u64>,
    /// The number of blocks that have a part of its work, if it is known.
    workers: u64,
}

impl Accesses {
    /// Those of a kernel; `None` if they are not known.
    pub fn of(kernel: &OperationRef<'_, '_>) -> Option<Self> {
        let numbers = ACCESSES.read(kernel)?;
        let (reads, bytes) = numbers.split_first()?;
        let number = |value: &i64| u64::try_from(*value).unwrap_or_default();
        Some(Self {
            reads: usize::try_from(*reads).ok()?,
            bytes: bytes.iter().map(number).collect(),
            workers: WORKERS.read(kernel).as_ref().map_or(0, number),
        })
    }
}

/// Where the memory of an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// At a byte of a memory, which shares no byte with others.
    At(usize, u64),
    /// Among constants, which are only read.
    Constant,
    /// Anywhere.
    Unknown,
}

/// How a step begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Begin {
    /// Whether all blocks wait for each other before it.
    pub waits: bool,
    /// By how many blocks its work is moved, so that blocks without a part in the steps beside it have one in this.
    pub shift: u64,
}

/// What steps access since all blocks waited for each other.
#[derive(Debug, Default)]
pub struct Since {
    reads: Ranges,
    writes: Ranges,
    workers: u64,
    /// The number of steps, and whether what one of them accesses is not known.
    steps: usize,
    has_unknown: bool,
}

impl Since {
    /// How a step begins that follows; what its kernel accesses is not known for `None`.
    pub fn begin(&mut self, kernel: Option<&Accesses>, operands: &[Memory]) -> Begin {
        let own = kernel.and_then(|kernel| accessed(kernel, operands));
        let conflicts = |own: &Vec<Access>| {
            own.iter().any(|access| {
                self.writes.overlap(access) || access.is_write && self.reads.overlap(access)
            })
        };
        let is_free = own.as_ref().is_some_and(|own| !conflicts(own)) && !self.has_unknown;
        let waits = self.steps > 0 && !is_free;
        if waits {
            *self = Self::default();
        }
        let shift = self.workers % (MAX_SHIFT + 1);
        self.steps += 1;
        self.has_unknown = own.is_none();
        self.workers += kernel.map_or(0, |kernel| kernel.workers);
        for access in own.into_iter().flatten() {
            let ranges = if access.is_write { &mut self.writes } else { &mut self.reads };
            ranges.insert(access);
        }
        Begin { waits, shift }
    }
}

/// Bytes of a memory that a step accesses.
#[derive(Clone, Copy, Debug)]
struct Access {
    memory: usize,
    start: u64,
    end: u64,
    is_write: bool,
}

/// What a step accesses; `None` if that is not known.
fn accessed(kernel: &Accesses, operands: &[Memory]) -> Option<Vec<Access>> {
    let mut found = vec![];
    for (index, (operand, bytes)) in operands.iter().zip(&kernel.bytes).enumerate() {
        let is_write = index >= kernel.reads;
        match *operand {
            _ if *bytes == 0 => {}
            Memory::Constant if !is_write => {}
            Memory::At(memory, start) => {
                found.push(Access { memory, start, end: start.saturating_add(*bytes), is_write });
            }
            _ => return None,
        }
    }
    (operands.len() == kernel.bytes.len()).then_some(found)
}

/// Bytes of memories: the end of each range by its memory and start. Ranges share no byte.
#[derive(Debug, Default)]
struct Ranges(BTreeMap<(usize, u64), u64>);

impl Ranges {
    /// The last range with a byte of an access.
    fn last(&self, access: &Access) -> Option<(u64, u64)> {
        let Access { memory, start, end, .. } = *access;
        let (place, last) = self.0.range((memory, 0)..(memory, end)).next_back()?;
        (*last > start).then_some((place.1, *last))
    }

    fn overlap(&self, access: &Access) -> bool {
        self.last(access).is_some()
    }

    /// Adds a range, joined with those that it overlaps.
    fn insert(&mut self, mut access: Access) {
        while let Some((start, end)) = self.last(&access) {
            self.0.remove(&(access.memory, start));
            access = Access { start: access.start.min(start), end: access.end.max(end), ..access };
        }
        self.0.insert((access.memory, access.start), access.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(reads: usize, bytes: &[u64]) -> Accesses {
        Accesses { reads, bytes: bytes.to_vec(), workers: 3 }
    }

    #[test]
    fn steps_wait_for_what_they_read_and_overwrite() {
        let copy = kernel(1, &[8, 8]);
        let at = Memory::At;
        let mut since = Since::default();
        let mut begin = |from, to| {
            let begin = since.begin(Some(&copy), &[from, to]);
            (begin.waits, begin.shift)
        };
        // Two readers of one value, and a third beside them.
        assert_eq!(begin(at(0, 0), at(1, 0)), (false, 0));
        assert_eq!(begin(at(0, 0), at(1, 8)), (false, 3));
        assert_eq!(begin(Memory::Constant, at(1, 16)), (false, 6));
        // Reads a byte of the second; after that, nothing conflicts with those before.
        assert_eq!(begin(at(1, 15), at(2, 0)), (true, 0));
        assert_eq!(begin(at(0, 0), at(1, 0)), (false, 3));
        // Writes what the one before it reads, and what the one before that writes.
        assert_eq!(begin(at(2, 8), at(0, 7)), (true, 0));
        assert_eq!(begin(at(2, 0), at(0, 0)), (true, 0));
        // What is not known conflicts with everything.
        assert_eq!(begin(Memory::Unknown, at(3, 0)), (true, 0));
        assert_eq!(begin(at(4, 0), at(5, 0)), (true, 0));
        assert_eq!(begin(at(4, 0), Memory::Constant), (true, 0));
    }

    #[test]
    fn ranges_are_joined() {
        let range = |start, end| Access { memory: 7, start, end, is_write: false };
        let mut ranges = Ranges::default();
        [(0, 4), (8, 12), (2, 9), (20, 24)].map(|(start, end)| ranges.insert(range(start, end)));
        assert_eq!(ranges.0, BTreeMap::from([((7, 0), 12), ((7, 20), 24)]));
        assert!(ranges.overlap(&range(11, 13)) && !ranges.overlap(&range(12, 20)));
        assert!(!ranges.overlap(&Access { memory: 6, ..range(0, 100) }));
    }
}
