//! The last accesses to each byte of a buffer, as intervals.

use std::collections::BTreeMap;

use super::clock::Clock;

/// An access of one task to some bytes.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// Processor of the world.
    pub processor: usize,
    /// Index of its processor group.
    pub group: u32,
    /// Index of its task group.
    pub number: u32,
    /// Task info, task index, op.
    pub task: (usize, i64, usize),
    /// A signal sent after the access: link and number.
    pub signal: Option<(usize, u32)>,
    /// For packets, the knowledge of the task that wrote them: their flags pass it to the reader.
    pub packets: Option<Clock>,
}

impl Access {
    /// Whether a task with this knowledge comes after the access.
    fn is_before(&self, known: &Clock) -> bool {
        known[self.processor] > self.group
            || self.signal.is_some_and(|(link, number)| known[link] >= number)
    }

    /// Whether both are accesses of one run of a task.
    fn is_same_task(&self, other: &Access) -> bool {
        let of = |access: &Access| (access.processor, access.number, access.task.1);
        of(self) == of(other)
    }

    fn races(&self, later: &Access, known: &Clock) -> bool {
        !self.is_same_task(later) && !self.is_before(known)
    }
}

/// The last accesses to an interval of bytes.
#[derive(Clone, Debug)]
struct Cell {
    end: u64,
    write: Option<Access>,
    /// Reads since the write; two tasks of the same processor and group are enough to race with any
    /// third.
    reads: Vec<Access>,
}

impl Cell {
    /// Checks that an access to the cell, which begins at a byte, comes after those with which it conflicts.
    fn check(
        &self,
        access: &Access,
        known: &Clock,
        is_write: bool,
        begin: u64,
    ) -> Result<(), Conflict> {
        let write = self.write.iter().map(|write| (write, true));
        let reads = self.reads.iter().filter(|_| is_write).map(|read| (read, false));
        let found = write.chain(reads).find(|(earlier, _)| earlier.races(access, known));
        found.map_or(Ok(()), |(earlier, is_earlier_write)| {
            let earlier = earlier.clone();
            Err(Conflict { earlier, is_earlier_write, begin, end: self.end })
        })
    }
}

/// Two unordered accesses to the same bytes.
#[derive(Debug)]
pub(super) struct Conflict {
    pub earlier: Access,
    pub is_earlier_write: bool,
    pub begin: u64,
    pub end: u64,
}

/// The bytes of one buffer.
#[derive(Default, Debug)]
pub(super) struct Shadow(BTreeMap<u64, Cell>);

impl Shadow {
    /// Removes all accesses.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The cell of exactly these bytes, which is the usual case because ops have equal tiles.
    fn exact(&mut self, (begin, end): (u64, u64)) -> Option<&mut Cell> {
        self.0.get_mut(&begin).filter(|cell| cell.end == end)
    }

    /// Splits the cell that contains a byte.
    fn cut(&mut self, at: u64) {
        let Some((_, cell)) = self.0.range_mut(..at).next_back() else { return };
        if cell.end > at {
            let rest = cell.clone();
            cell.end = at;
            self.0.insert(at, rest);
        }
    }

    /// A task with some knowledge reads bytes. Knowledge from packets there is added to `learnt`.
    pub(super) fn read(
        &mut self,
        (begin, end): (u64, u64),
        access: &Access,
        known: &Clock,
        learnt: Option<&mut Vec<Clock>>,
    ) -> Result<(), Conflict> {
        let carries = |write: &Access| write.packets.is_some();
        if let Some(cell) = self.exact((begin, end))
            && !cell.write.as_ref().is_some_and(carries)
        {
            cell.check(access, known, false, begin)?;
            note(&mut cell.reads, access);
            return Ok(());
        }
        self.cut(begin);
        self.cut(end);
        let mut gaps = vec![];
        let mut at = begin;
        let mut brought = learnt;
        for (&start, cell) in self.0.range_mut(begin..end) {
            if at < start {
                gaps.push((at, start));
            }
            at = cell.end;
            if let (Some(brought), Some(packets)) =
                (&mut brought, cell.write.as_ref().and_then(|write| write.packets.clone()))
            {
                // Whatever comes after this read comes after the packets too.
                brought.push(packets);
                cell.write = None;
            }
            cell.check(access, known, false, start)?;
            note(&mut cell.reads, access);
        }
        if at < end {
            gaps.push((at, end));
        }
        for (begin, end) in gaps {
            self.0.insert(begin, Cell { end, write: None, reads: vec![access.clone()] });
        }
        Ok(())
    }

    /// A task with some knowledge writes bytes.
    pub(super) fn write(
        &mut self,
        (begin, end): (u64, u64),
        access: &Access,
        known: &Clock,
    ) -> Result<(), Conflict> {
        if let Some(cell) = self.exact((begin, end)) {
            cell.check(access, known, true, begin)?;
            (cell.write, cell.reads) = (Some(access.clone()), vec![]);
            return Ok(());
        }
        self.cut(begin);
        self.cut(end);
        let mut covered = vec![];
        for (&start, cell) in self.0.range(begin..end) {
            covered.push(start);
            cell.check(access, known, true, start)?;
        }
        covered.iter().for_each(|start| {
            self.0.remove(start);
        });
        self.0.insert(begin, Cell { end, write: Some(access.clone()), reads: vec![] });
        Ok(())
    }

    /// Records that a task's access happened before a signal.
    pub(super) fn signal(&mut self, (begin, end): (u64, u64), access: &Access) {
        for (_, cell) in self.0.range_mut(begin..end) {
            let own = cell.write.iter_mut().chain(&mut cell.reads);
            for earlier in own.filter(|earlier| earlier.is_same_task(access)) {
                earlier.signal = access.signal;
            }
        }
    }
}

/// Adds a read to the reads of a cell.
fn note(reads: &mut Vec<Access>, access: &Access) {
    let of = |access: &Access| (access.processor, access.group);
    // What comes after a processor's later group also comes after its earlier ones.
    reads.retain(|read| read.processor != access.processor || read.group >= access.group);
    let mine = || reads.iter().filter(|read| of(read) == of(access));
    if mine().count() < 2 && !mine().any(|read| read.is_same_task(access)) {
        reads.push(access.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn access(processor: usize, group: u32, task: i64) -> Access {
        Access { processor, group, number: 0, task: (0, task, 0), signal: None, packets: None }
    }

    #[test]
    fn overlapping_writes_race_unless_one_is_known() {
        let (nothing, first) = (Arc::new(vec![0, 0]), Arc::new(vec![1, 0]));
        let mut shadow = Shadow::default();
        shadow.write((0, 16), &access(0, 0, 0), &nothing).expect("the first");
        shadow.write((16, 32), &access(1, 0, 1), &nothing).expect("other bytes");
        let conflict = shadow.write((8, 20), &access(1, 0, 2), &nothing).expect_err("a race");
        assert_eq!((conflict.begin, conflict.end, conflict.is_earlier_write), (8, 16, true));
        shadow.write((8, 16), &access(1, 1, 3), &first).expect("ordered");
        let conflict = shadow.read((0, 16), &access(0, 1, 4), &first, None).expect_err("a race");
        assert_eq!((conflict.begin, conflict.end, conflict.earlier.task.1), (8, 16, 3));
    }

    #[test]
    fn a_write_races_with_every_read_before_it() {
        let nothing = Arc::new(vec![0, 0]);
        let mut shadow = Shadow::default();
        for task in 0..3 {
            shadow.read((0, 8), &access(0, 0, task), &nothing, None).expect("reads do not race");
        }
        // The third read is not stored, but the race is found through the other two.
        let conflict = shadow.write((4, 5), &access(0, 0, 2), &nothing).expect_err("a race");
        assert!(!conflict.is_earlier_write && conflict.earlier.task.1 == 0);
        let mut alone = Shadow::default();
        alone.read((0, 8), &access(0, 0, 2), &nothing, None).expect("a read");
        alone.write((4, 5), &access(0, 0, 2), &nothing).expect("of the same task");
    }

    /// An access: processor, whether in its next group, task, bytes, whether it writes, and
    /// known groups of the others.
    type Use = (usize, bool, i64, (u64, u64), bool, [u32; 3]);

    fn uses() -> impl Strategy<Value = Vec<Use>> {
        let bytes = (0u64..24, 1u64..9).prop_map(|(begin, len)| (begin, begin + len));
        let known = prop::array::uniform3(0u32..6);
        let one = (0usize..3, any::<bool>(), 0i64..3, bytes, any::<bool>(), known);
        prop::collection::vec(one, 1..40)
    }

    /// All accesses to each byte, and whether a new one conflicts with any since the last write.
    fn conflicts(
        bytes: &mut BTreeMap<u64, Vec<(Access, bool)>>,
        range: (u64, u64),
        access: &Access,
        is_write: bool,
        known: &Clock,
    ) -> bool {
        let mut found = false;
        for at in range.0..range.1 {
            let uses = bytes.entry(at).or_default();
            let conflicts = uses.iter().filter(|(_, wrote)| *wrote || is_write);
            found |= conflicts.map(|(earlier, _)| earlier).any(|e| e.races(access, known));
            if is_write {
                uses.clear();
            }
            uses.push((access.clone(), is_write));
        }
        found
    }

    proptest! {
        #[test]
        fn intervals_find_what_single_bytes_do(uses in uses()) {
            let (mut shadow, mut bytes) = (Shadow::default(), BTreeMap::new());
            let mut groups = [0; 3];
            for (processor, moves_on, task, range, is_write, others) in uses {
                groups[processor] += u32::from(moves_on);
                let group = groups[processor];
                let access = Access { number: group, ..access(processor, group, task) };
                let mut known = others.to_vec();
                known[processor] = group;
                let known = Arc::new(known);
                let expected = conflicts(&mut bytes, range, &access, is_write, &known);
                let found = match is_write {
                    true => shadow.write(range, &access, &known),
                    false => shadow.read(range, &access, &known, None),
                };
                prop_assert_eq!(found.is_err(), expected);
                if expected {
                    break;
                }
            }
        }
    }
}
