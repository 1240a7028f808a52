//! What kernels keep for other tasks: made once where a task group's tasks share operands.
//!
//! Tasks of one task group are in no order, so in a plan without races none of them writes what
//! another reads: for the tasks that read the same window of an operand, what is made from it stays
//! valid until the task group ends, and no longer. So each task group of a processor group has a
//! store of its own, from the first processor that comes to it to the last that is through.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::call::{BoundKernel, BoundStep};
use crate::task::TaskKeeps;

/// Uninitialised memory, aligned for any vector unit, but for the word that it starts with.
pub(crate) struct Block(Vec<Line>);

/// A cache line.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Line(pub [u8; 64]);

impl Block {
    /// At least so many bytes, the first line zero; nothing if there is no memory.
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        let mut lines = Vec::new();
        let count = usize::try_from(bytes).ok()?.div_ceil(64).max(1);
        lines.try_reserve_exact(count).ok()?;
        lines.push(Line([0; 64]));
        Some(Self(lines))
    }

    /// Where it lies.
    pub(crate) fn address(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    /// Where it lies, for a function that only reads.
    pub(crate) fn shared_address(&self) -> *mut c_void {
        self.0.as_ptr().cast_mut().cast()
    }
}

/// The stores of a rank.
pub(crate) struct Keeper(Mutex<State>);

struct State {
    /// By entry of the script, with processors that are not through.
    open: BTreeMap<usize, (Arc<Store>, i64)>,
    /// Bytes that may yet be kept.
    left: u64,
}

/// What the tasks of one task group keep: for each step of theirs, each function that keeps.
pub(crate) struct Store {
    steps: Vec<Vec<Slots>>,
    bytes: u64,
}

/// What one function keeps.
pub(crate) struct Slots {
    bytes: u64,
    /// By number of the window, as far as there is memory.
    slots: Vec<Slot>,
}

#[derive(Default)]
pub(crate) struct Slot {
    is_claimed: AtomicBool,
    block: OnceLock<Block>,
}

/// What a task finds in a slot.
pub(crate) enum Found<'s> {
    /// What another task has made.
    Filled(&'s Block),
    /// Nothing: it fills the block, and puts it there.
    Empty(&'s Slot, Block),
    /// Another task is making it, or there is no memory.
    Busy,
}

impl Keeper {
    /// With so many bytes at most, all task groups together.
    pub(crate) fn new(bytes: u64) -> Self {
        Self(Mutex::new(State { open: BTreeMap::new(), left: bytes }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store of an entry of the script, for one of its `processors`; nothing if its tasks share
    /// nothing.
    pub(crate) fn open(
        &self,
        entry: usize,
        steps: &[BoundStep],
        processors: i64,
    ) -> Option<Arc<Store>> {
        if !steps.iter().any(|step| matches!(step, BoundStep::Kernel(kernel) if kernel.shares())) {
            return None;
        }
        let mut state = self.state();
        if let Some((store, _)) = state.open.get(&entry) {
            return Some(store.clone());
        }
        let store = Arc::new(Store::new(steps, state.left));
        state.left -= store.bytes;
        state.open.insert(entry, (store.clone(), processors));
        Some(store)
    }

    /// A processor is through with an entry whose store it opened.
    pub(crate) fn close(&self, entry: usize) {
        let mut state = self.state();
        let Some((_, missing)) = state.open.get_mut(&entry) else { return };
        *missing -= 1;
        if *missing == 0
            && let Some((store, _)) = state.open.remove(&entry)
        {
            state.left += store.bytes;
        }
    }
}

impl Store {
    fn new(steps: &[BoundStep], limit: u64) -> Self {
        let mut bytes = 0;
        let mut slots = |kernel: &BoundKernel, keeps: &TaskKeeps| {
            let room = (limit - bytes) / keeps.bytes.max(1);
            let windows =
                if keeps.shares(kernel.counts()) { keeps.windows(kernel.counts()) } else { 0 };
            let count = windows.min(room);
            bytes += count * keeps.bytes;
            let slots = (0..count).map(|_| Slot::default()).collect();
            Slots { bytes: keeps.bytes, slots }
        };
        let steps = steps.iter().map(|step| match step {
            BoundStep::Kernel(kernel) => {
                kernel.keeps().iter().map(|keeps| slots(kernel, keeps)).collect()
            }
            BoundStep::Communicate(_) => vec![],
        });
        let steps = steps.collect();
        Self { steps, bytes }
    }

    /// What the functions of a step keep.
    pub(crate) fn step(&self, step: usize) -> &[Slots] {
        &self.steps[step]
    }
}

impl Slots {
    /// What is kept of a window.
    pub(crate) fn find(&self, window: u64) -> Found<'_> {
        let slot = usize::try_from(window).ok().and_then(|window| self.slots.get(window));
        let Some(slot) = slot else { return Found::Busy };
        if let Some(block) = slot.block.get() {
            return Found::Filled(block);
        }
        if slot.is_claimed.swap(true, Ordering::Relaxed) {
            return Found::Busy;
        }
        match Block::new(self.bytes) {
            Some(block) => Found::Empty(slot, block),
            None => Found::Busy,
        }
    }
}

impl Slot {
    /// Lets other tasks have a block that a kernel has filled.
    pub(crate) fn put(&self, mut block: Block) {
        block.0[0].0[0] = 1;
        // Who found the slot empty is alone in putting something there.
        let _ = self.block.set(block);
    }
}
