//! Loops that only wait: threads that repeat one sleep until another thread writes a word that they read.

use super::access::Place;
use super::{Fragment, Machine, Wait, Warp, lanes};
use crate::code::Op;
use std::collections::{BTreeSet, HashMap};

/// The times that a branch is taken, without a change of memory, before its state is looked at.
const PATIENCE: u32 = 8;
/// Words that a loop can sleep on.
const MAX_WORDS: usize = 256;

/// A word of 4 bytes: the number of its memory among [`Sleepers::bits`], and its number there.
type Word = (u32, u64);

/// What is known of the loop that a fragment runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Spin {
    /// The branch backwards, and the number of calls that it is in.
    at: u32,
    depth: u32,
    /// The times that it was taken since the version of memory.
    count: u32,
    version: u64,
    /// A hash of the state at the branch, when the count was a power of two; 0 if there is none.
    hash: u64,
    /// Whether it has slept, so that its state is looked at again soon.
    has_slept: bool,
    /// The words that were read since that state, and whether they are not all that the loop depends on.
    words: Vec<Word>,
    is_open: bool,
}

impl Spin {
    /// Whether what a fragment reads is recorded.
    #[inline(always)]
    fn is_recorded(&self) -> bool {
        self.count >= PATIENCE
    }

    /// Threads joined that may have read other words.
    pub(super) fn join(&mut self) {
        self.is_open = true;
    }

    /// The state is not that of the threads any more.
    pub(super) fn forget(&mut self) {
        self.hash = 0;
    }

    /// A call has ended: registers of the caller, which are not in the hash, may change from now on.
    pub(super) fn leave(&mut self, depth: usize) {
        if (depth as u32) < self.depth {
            *self = Self::default();
        }
    }

    /// The threads run again as a word was written: if the loop goes on, they soon sleep again.
    pub(super) fn wake(&mut self, version: u64) {
        (self.count, self.version, self.hash, self.has_slept) = (PATIENCE - 1, version, 0, true);
    }

    /// An instruction of the loop runs.
    #[inline(always)]
    pub(super) fn run(&mut self, op: &Op) {
        if self.is_recorded() && !depends_on_words(op) {
            self.is_open = true;
        }
    }
}

/// Whether an instruction writes nothing, and depends on nothing, but registers and words of memory that `read_words`
/// records.
fn depends_on_words(op: &Op) -> bool {
    matches!(
        op,
        Op::Nop
            | Op::Unary(..)
            | Op::Binary(..)
            | Op::Ternary(..)
            | Op::Insert(..)
            | Op::Table(..)
            | Op::Convert(..)
            | Op::Pack(..)
            | Op::Move(..)
            | Op::Split(..)
            | Op::Join(..)
            | Op::Compare(..)
            | Op::Select(..)
            | Op::PredicateLogic(..)
            | Op::PredicateMove(..)
            | Op::PredicateConstant(..)
            | Op::Carry(..)
            | Op::FrameAddress(..)
            | Op::IsSpace(..)
            | Op::ToGeneric(..)
            | Op::FromGeneric(..)
            | Op::Branch(_)
            | Op::BranchIndexed(..)
            | Op::Call(_)
            | Op::Return
            | Op::Sleep
            | Op::Load(_)
            | Op::Atomic(_)
            | Op::Fence
    )
}

/// Warps of which threads sleep until a word is written.
#[derive(Debug, Default)]
pub(super) struct Sleepers {
    /// The words, a bit each: of each buffer, then of the shared memory of each slot.
    bits: Vec<Vec<u64>>,
    buffers: usize,
    /// Who sleeps on each word.
    words: BTreeSet<(Word, u64)>,
    /// The warp and the words of each that sleeps.
    asleep: HashMap<u64, (usize, Vec<Word>)>,
    next: u64,
}

impl Sleepers {
    pub(super) fn new(buffers: usize, slots: usize) -> Self {
        Self { bits: vec![vec![]; buffers + slots], buffers, ..Self::default() }
    }

    /// The memory of a place that several threads access, and the byte there.
    fn memory_of(&self, slot: usize, place: Place) -> Option<(usize, usize)> {
        match place {
            Place::Global(buffer, at) => Some((buffer, at)),
            Place::Shared(at) => Some((self.buffers + slot, at)),
            _ => None,
        }
    }

    pub(super) fn is_asleep(&self, id: u64) -> bool {
        self.asleep.contains_key(&id)
    }

    fn add(&mut self, warp: usize, words: Vec<Word>) -> u64 {
        let id = self.next;
        self.next += 1;
        for word in &words {
            let bits = &mut self.bits[word.0 as usize];
            let at = (word.1 / 64) as usize;
            if bits.len() <= at {
                bits.resize(at + 1, 0);
            }
            bits[at] |= 1 << (word.1 % 64);
            self.words.insert((*word, id));
        }
        self.asleep.insert(id, (warp, words));
        id
    }

    /// The warps that sleep on some bytes, which sleep no more.
    #[cold]
    fn wake(&mut self, memory: usize, words: std::ops::RangeInclusive<usize>) -> Vec<usize> {
        let mut warps = vec![];
        let (first, last) = (*words.start() as u64, *words.end() as u64);
        let range = ((memory as u32, first), 0)..=((memory as u32, last), u64::MAX);
        let ids: Vec<u64> = self.words.range(range).map(|(_, id)| *id).collect();
        for id in ids {
            let Some((warp, words)) = self.asleep.remove(&id) else { continue };
            warps.push(warp);
            for word in words {
                self.words.remove(&(word, id));
                let others = self.words.range((word, 0)..=(word, u64::MAX)).next();
                if others.is_none() {
                    self.bits[word.0 as usize][(word.1 / 64) as usize] &= !(1 << (word.1 % 64));
                }
            }
        }
        warps
    }

    /// Whether a thread sleeps on one of some words.
    #[inline(always)]
    fn has(&self, memory: usize, words: &std::ops::RangeInclusive<usize>) -> bool {
        let bits = &self.bits[memory];
        let (first, last) = (words.start() / 64, words.end() / 64);
        if bits.len() <= first {
            return false;
        }
        if first == last {
            let count = words.end() - words.start() + 1;
            return bits[first] & (u64::MAX >> (64 - count) << (words.start() % 64)) != 0;
        }
        // Words near the range wake no one, as they are looked up.
        bits[first..bits.len().min(last + 1)].iter().any(|bits| *bits != 0)
    }
}

/// The words of some bytes.
fn words(at: usize, size: usize) -> std::ops::RangeInclusive<usize> {
    at / 4..=(at + size.max(1) - 1) / 4
}

impl Machine<'_> {
    /// Records that a loop reads bytes, if it may be one that only waits.
    #[inline(always)]
    pub(super) fn read_words(
        &self,
        warp: &Warp,
        fragment: &mut Fragment,
        mask: u32,
        places: impl Fn(usize) -> Place,
        size: u64,
    ) {
        if !fragment.spin.is_recorded() {
            return;
        }
        for lane in lanes(mask) {
            let Some((memory, at)) = self.sleepers.memory_of(warp.slot, places(lane)) else {
                continue;
            };
            for word in at / 4..(at + size as usize).div_ceil(4) {
                let word = (memory as u32, word as u64);
                if fragment.spin.words.last() == Some(&word) {
                    continue;
                }
                if fragment.spin.words.len() == MAX_WORDS {
                    fragment.spin.is_open = true;
                    return;
                }
                fragment.spin.words.push(word);
            }
        }
    }

    /// Whether threads sleep on words.
    #[inline(always)]
    pub(super) fn has_sleepers(&self) -> bool {
        !self.sleepers.words.is_empty()
    }

    /// Whether threads may sleep on some bytes.
    #[inline(always)]
    pub(super) fn is_slept_on(&self, slot: usize, place: Place, size: usize) -> bool {
        let memory = self.sleepers.memory_of(slot, place);
        memory.is_some_and(|(memory, at)| self.sleepers.has(memory, &words(at, size)))
    }

    /// Bytes have changed: threads that sleep on them run again.
    #[inline(always)]
    pub(super) fn written(&mut self, slot: usize, place: Place, size: usize) {
        if !self.has_sleepers() {
            return;
        }
        let Some((memory, at)) = self.sleepers.memory_of(slot, place) else { return };
        let words = words(at, size);
        if self.sleepers.has(memory, &words) {
            for warp in self.sleepers.wake(memory, words) {
                self.queue(warp);
            }
        }
    }

    /// Detects that threads at a branch backwards repeat the same state, which only a change of memory ends: what they
    /// then wait for.
    pub(super) fn spins(&self, warp: &Warp, fragment: &mut Fragment) -> bool {
        let depth = fragment.frames.len() as u32;
        let spin = &mut fragment.spin;
        if (spin.at, spin.depth, spin.version) != (fragment.at, depth, self.version) {
            spin.words.clear();
            (spin.at, spin.depth, spin.version) = (fragment.at, depth, self.version);
            (spin.count, spin.hash, spin.has_slept) = (0, 0, false);
            return false;
        }
        spin.count += 1;
        // The state is compared with that at the last power of two.
        let is_power = spin.count.is_power_of_two();
        let follows = spin.has_slept && (spin.count - 1).is_power_of_two();
        if spin.count < PATIENCE || !(is_power || follows) {
            return false;
        }
        let now = self.hash(warp, fragment);
        let spin = &mut fragment.spin;
        if spin.hash == now {
            return true;
        }
        if is_power {
            spin.hash = now;
            spin.words.clear();
            spin.is_open = false;
        }
        false
    }

    /// What threads that repeat the same state wait for.
    pub(super) fn wait_of_loop(&mut self, warp: &Warp, fragment: &mut Fragment) -> Wait {
        let spin = &mut fragment.spin;
        // All orders are explored without sleep.
        if spin.is_open || self.is_frozen {
            return Wait::Spin { version: self.version };
        }
        let mut words = std::mem::take(&mut spin.words);
        words.sort_unstable();
        words.dedup();
        let at = warp.slot * self.warps_per_cta + warp.index as usize;
        Wait::Words { id: self.sleepers.add(at, words) }
    }

    /// A hash of the registers of the function that threads are in: others do not change before it returns.
    fn hash(&self, warp: &Warp, fragment: &Fragment) -> u64 {
        const STREAMS: usize = 8;
        let code = &self.program.functions[fragment.function as usize];
        let mut hashes = [0xcbf2_9ce4_8422_2325_u64 ^ u64::from(fragment.mask); STREAMS];
        let add = |hash: &mut u64, value: u64| {
            *hash = (*hash ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        };
        let start = fragment.registers as usize;
        for row in &warp.registers[start..start + code.registers as usize] {
            if fragment.mask == u32::MAX {
                for values in row.chunks_exact(STREAMS) {
                    hashes.iter_mut().zip(values).for_each(|(hash, value)| add(hash, *value));
                }
            } else {
                lanes(fragment.mask).for_each(|lane| add(&mut hashes[lane % STREAMS], row[lane]));
            }
        }
        let start = fragment.predicates as usize;
        for mask in &warp.predicates[start..start + code.predicates as usize] {
            add(&mut hashes[0], u64::from(mask & fragment.mask));
        }
        add(&mut hashes[0], u64::from(warp.carry & fragment.mask));
        fragment.frames.iter().for_each(|frame| add(&mut hashes[0], frame.at.into()));
        let [mut hash, rest @ ..] = hashes;
        rest.into_iter().for_each(|other| add(&mut hash, other));
        hash | 1
    }
}
