//! Shared values: computed once for the tasks of a task group that share operands.
//!
//! Tasks of one task group are unordered, so in a plan without races none of them writes data that
//! another reads: a value computed from a window of an operand stays valid until the task group ends,
//! and no longer. Therefore each task group of a processor group has its own store, from the first
//! processor that enters it to the last that leaves it.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use irc_ark_format::plan::Range;

use super::bound::{BoundStep, BoundTask, shared};
use crate::memory::Block;

/// The stores of a rank, and their memory.
pub(crate) struct StoreTable {
    memory: *mut u8,
    bytes: u64,
    /// By entry of the script, with the number of processors that have not finished the entry.
    open: Mutex<BTreeMap<usize, (Arc<Store>, i64)>>,
}

// Safety: the memory outlives the run, and each part of it belongs to one store.
unsafe impl Send for StoreTable {}
// Safety: as above.
unsafe impl Sync for StoreTable {}

/// The shared values of one task group: for each step, those of each function that has one.
pub(crate) struct Store {
    steps: Vec<Vec<SharedSlots>>,
    /// Its offset in the rank's memory.
    bytes: std::ops::Range<u64>,
}

/// The shared values of one function.
pub(crate) struct SharedSlots {
    memory: *mut u8,
    /// Bytes of a slot.
    bytes: usize,
    /// Slots indexed by window, as many as there is memory for.
    slots: Vec<Slot>,
}

// Safety: a slot is written by the one task that found it empty, and read only after that has finished.
unsafe impl Send for SharedSlots {}
// Safety: as above.
unsafe impl Sync for SharedSlots {}

/// The state of the value of a slot.
#[derive(Default)]
pub(crate) struct Slot(AtomicU8);

const EMPTY: u8 = 0;
const BUSY: u8 = 1;
const FILLED: u8 = 2;

/// The result of a task's lookup of a slot.
pub(crate) enum Lookup<'s> {
    /// The value, which another task has computed.
    Filled(*mut c_void),
    /// Memory in which this task computes the value.
    Empty(&'s Slot, *mut c_void),
    /// Another task is computing it, or there is no memory.
    Busy,
}

impl StoreTable {
    /// Creates a table in this memory.
    pub(crate) fn new(memory: Option<(&mut Block, u64)>) -> Self {
        let open = Mutex::default();
        match memory {
            Some((block, bytes)) => Self { memory: block.address().cast(), bytes, open },
            None => Self { memory: std::ptr::null_mut(), bytes: 0, open },
        }
    }

    fn open_stores(&self) -> MutexGuard<'_, BTreeMap<usize, (Arc<Store>, i64)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store of an entry of the script, for one of its processors; `None` if its tasks have no
    /// shared values.
    pub(crate) fn open(
        &self,
        entry: usize,
        task: &BoundTask,
        processors: Range,
    ) -> Option<Arc<Store>> {
        if task.shared_bytes == 0 || self.bytes == 0 {
            return None;
        }
        let mut open = self.open_stores();
        if let Some((store, _)) = open.get(&entry) {
            return Some(store.clone());
        }
        let taken = open.values().map(|(store, _)| store.bytes.clone());
        let bytes = gap(self.bytes, task.shared_bytes, taken);
        let store = Arc::new(Store::new(self.memory, bytes, &task.steps));
        open.insert(entry, (store.clone(), processors.len()));
        Some(store)
    }

    /// Closes the store of an entry that a processor has finished.
    pub(crate) fn close(&self, entry: usize) {
        let mut open = self.open_stores();
        let Some((_, missing)) = open.get_mut(&entry) else { return };
        *missing -= 1;
        if *missing == 0 {
            open.remove(&entry);
        }
    }
}

/// The first gap of `wanted` bytes between allocated ranges, or the largest gap if there is none.
fn gap(
    bytes: u64,
    wanted: u64,
    taken: impl Iterator<Item = std::ops::Range<u64>>,
) -> std::ops::Range<u64> {
    let mut taken: Vec<_> = taken.collect();
    taken.sort_by_key(|range| range.start);
    let ends = std::iter::once(0).chain(taken.iter().map(|range| range.end));
    let starts = taken.iter().map(|range| range.start).chain([bytes]);
    let mut best = 0..0;
    for (begin, end) in ends.zip(starts) {
        let size = end.saturating_sub(begin);
        if size >= wanted {
            return begin..begin + wanted;
        }
        if size > best.end - best.start {
            best = begin..end;
        }
    }
    best
}

impl Store {
    fn new(memory: *mut u8, bytes: std::ops::Range<u64>, steps: &[BoundStep]) -> Self {
        let mut at = bytes.start;
        let mut shelf = |(windows, size): (u64, u64)| {
            let count = windows.min((bytes.end - at) / size);
            let memory = memory.wrapping_add(at as usize);
            at += count * size;
            SharedSlots {
                memory,
                bytes: size as usize,
                slots: (0..count).map(|_| Slot::default()).collect(),
            }
        };
        let steps = steps.iter().map(|step| shared(step).into_iter().map(&mut shelf).collect());
        Self { steps: steps.collect(), bytes }
    }

    /// The shared values of the functions of a step.
    pub(crate) fn step(&self, step: usize) -> &[SharedSlots] {
        &self.steps[step]
    }
}

impl SharedSlots {
    /// Looks up the value of a window.
    pub(crate) fn find(&self, window: u64) -> Lookup<'_> {
        let index = usize::try_from(window).unwrap_or(usize::MAX);
        let Some(slot) = self.slots.get(index) else { return Lookup::Busy };
        let address = self.memory.wrapping_add(index * self.bytes).cast();
        match slot.0.compare_exchange(EMPTY, BUSY, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => {
                mark(address, 0);
                Lookup::Empty(slot, address)
            }
            Err(FILLED) => Lookup::Filled(address),
            Err(_) => Lookup::Busy,
        }
    }
}

impl Slot {
    /// Publishes the value that a kernel has computed at an address.
    pub(crate) fn put(&self, address: *mut c_void) {
        mark(address, 1);
        self.0.store(FILLED, Ordering::Release);
    }
}

/// Marks the value at an address as filled or not, for kernels.
fn mark(address: *mut c_void, is_filled: u64) {
    // Safety: the slot is in the rank's memory, aligned, and owned by this task until it is filled.
    unsafe { AtomicU64::from_ptr(address.cast()) }.store(is_filled, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_do_not_overlap() {
        let gap = |wanted, taken: &[(u64, u64)]| {
            gap(100, wanted, taken.iter().map(|&(begin, end)| begin..end))
        };
        assert_eq!(gap(40, &[]), 0..40);
        assert_eq!(gap(40, &[(0, 40)]), 40..80);
        assert_eq!(gap(20, &[(40, 80), (0, 10)]), 10..30);
        assert_eq!(gap(40, &[(40, 80), (0, 10)]), 10..40, "the largest");
        assert_eq!(gap(40, &[(0, 100)]), 0..0);
    }
}
