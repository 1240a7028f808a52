//! Scratch memory for calls, released in reverse order.
use irc_tensor::ALIGNMENT;

/// Maximum number of blocks that a call may use at once.
pub const MAX_BLOCKS: usize = 256;

/// Number of bytes to reserve for calls that specify `stated` bytes.
///
/// Specified sizes count each block in multiples of 16 bytes, as in TVM; here each block starts at a
/// multiple of 64. `None` on overflow.
pub fn capacity(stated: usize) -> Option<usize> {
    let blocks = stated.div_ceil(16).min(MAX_BLOCKS);
    stated.checked_next_multiple_of(ALIGNMENT)?.checked_add(blocks * (ALIGNMENT - 16))
}

/// A stack of blocks in memory of the context.
pub struct Workspace {
    base: *mut u8,
    bytes: usize,
    /// The end of each block, which is the start of the next.
    ends: Box<[usize; MAX_BLOCKS]>,
    count: usize,
    peak: usize,
}

impl Workspace {
    /// A stack of `bytes` bytes, aligned to [`ALIGNMENT`].
    pub fn new(base: *mut u8, bytes: usize) -> Self {
        Workspace { base, bytes, ends: Box::new([0; MAX_BLOCKS]), count: 0, peak: 0 }
    }

    fn end(&self) -> usize {
        self.count.checked_sub(1).map_or(0, |last| self.ends[last])
    }

    /// Allocates a block; `None` if there is not enough space.
    pub fn take(&mut self, bytes: u64) -> Option<*mut u8> {
        let begin = self.end();
        let bytes = usize::try_from(bytes).ok()?.max(1).checked_next_multiple_of(ALIGNMENT)?;
        let end = begin.checked_add(bytes).filter(|end| *end <= self.bytes)?;
        *self.ends.get_mut(self.count)? = end;
        self.count += 1;
        self.peak = self.peak.max(end);
        // Safety: the block is in the memory of the stack.
        Some(unsafe { self.base.add(begin) })
    }

    /// Releases a block; false if it is not the last one.
    pub fn give(&mut self, block: *mut u8) -> bool {
        let begin = self.count.checked_sub(2).map_or(0, |before| self.ends[before]);
        // Safety: blocks begin in the memory of the stack, or at its end.
        let is_last = self.count > 0 && unsafe { self.base.add(begin) } == block;
        self.count -= usize::from(is_last);
        is_last
    }

    /// Releases all blocks, including those not released by a failed call.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Number of bytes of the stack.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Maximum number of bytes that were in use at once.
    pub fn peak(&self) -> usize {
        self.peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_and_go_as_on_a_stack() {
        let mut memory = vec![0u8; 256];
        let base = memory.as_mut_ptr();
        let mut stack = Workspace::new(base, 256);
        let first = stack.take(1).expect("room");
        let second = stack.take(65).expect("room");
        assert_eq!((first, second as usize - base as usize), (base, 64));
        assert!(stack.take(65).is_none());
        assert!(!stack.give(first), "only the last block can be given back");
        assert!(stack.give(second) && stack.give(first) && !stack.give(first));
        assert_eq!((stack.take(256), stack.peak()), (Some(base), 256));
        stack.clear();
        assert_eq!([stack.take(u64::MAX), stack.take(0)], [None, Some(base)]);
    }

    #[test]
    fn what_is_stated_fits_however_it_is_cut() {
        for (stated, block) in [(0, 1), (16, 16), (240, 16), (1600, 80), (4096, 4096)] {
            let mut memory = vec![0u8; capacity(stated).expect("a size")];
            let mut stack = Workspace::new(memory.as_mut_ptr(), memory.len());
            let blocks = stated / block;
            assert!((0..blocks).all(|_| stack.take(block as u64).is_some()), "{stated}");
        }
    }
}
