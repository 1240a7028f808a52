//! One allocation for everything that a context owns.
use irc_tensor::ALIGNMENT;

/// Zeroed memory from the system, in blocks that each start at a multiple of [`ALIGNMENT`]. Pages that
/// are never accessed use no physical memory.
pub struct Arena {
    base: *mut u8,
    bytes: usize,
    /// Offset of each block.
    offsets: Vec<usize>,
}

// Safety: the arena owns its mapping, and exposes only pointers.
unsafe impl Send for Arena {}
// Safety: as above.
unsafe impl Sync for Arena {}

/// Whether accesses beyond a block fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guard {
    /// Blocks are adjacent.
    #[default]
    None,
    /// Each block ends, up to alignment, at an inaccessible page: code that accesses memory beyond its
    /// block faults.
    Pages,
}

impl Arena {
    /// Number of bytes of an arena with blocks of these sizes; `None` on overflow.
    pub fn size(blocks: &[usize], guard: Guard) -> Option<usize> {
        layout(blocks, guard).map(|(_, bytes)| bytes)
    }

    /// Memory for blocks of these sizes.
    ///
    /// # Errors
    /// The system's message.
    pub fn new(blocks: &[usize], guard: Guard) -> Result<Self, String> {
        let (offsets, bytes) = layout(blocks, guard).ok_or("the size overflows")?;
        // Safety: a new private mapping does not affect existing memory.
        let base = unsafe {
            let (access, kind) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0)
        };
        if base == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error().to_string());
        }
        let arena = Arena { base: base.cast(), bytes, offsets };
        if guard == Guard::Pages {
            arena.protect(blocks)?;
        }
        Ok(arena)
    }

    /// Makes the page after each block inaccessible.
    fn protect(&self, blocks: &[usize]) -> Result<(), String> {
        for (offset, bytes) in self.offsets.iter().zip(blocks) {
            let end = offset + aligned(*bytes).ok_or("the size overflows")?;
            // Safety: the page is in the mapping, because the layout reserves one after each block.
            let status =
                unsafe { libc::mprotect(self.base.add(end).cast(), page_size(), libc::PROT_NONE) };
            if status != 0 {
                return Err(std::io::Error::last_os_error().to_string());
            }
        }
        Ok(())
    }

    /// The address of a block.
    pub fn block(&self, index: usize) -> *mut u8 {
        // Safety: offsets are within the mapping.
        unsafe { self.base.add(self.offsets[index]) }
    }

    /// Number of bytes of all blocks, including padding.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // Safety: the mapping belongs to the arena, and pointers into it are not used after their owner
        // is dropped. Unmapping an existing mapping does not fail.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

fn aligned(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(ALIGNMENT)
}

/// Offsets of blocks, and the total number of bytes; at least one page.
fn layout(blocks: &[usize], guard: Guard) -> Option<(Vec<usize>, usize)> {
    let (mut offsets, mut end) = (vec![], 0usize);
    for bytes in blocks {
        let bytes = aligned(*bytes)?;
        let begin = match guard {
            Guard::None => end,
            // The block ends at the end of its last page.
            Guard::Pages => {
                end.checked_add(bytes.checked_next_multiple_of(page_size())? - bytes)?
            }
        };
        let after = match guard {
            Guard::None => 0,
            Guard::Pages => page_size(),
        };
        offsets.push(begin);
        end = begin.checked_add(bytes)?.checked_add(after)?;
    }
    let bytes = end.max(1).checked_next_multiple_of(page_size())?;
    (bytes <= isize::MAX as usize).then_some((offsets, bytes))
}

fn page_size() -> usize {
    // Safety: only reads a constant of the system.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

/// Number of bytes of memory of this machine.
pub fn machine_bytes() -> u64 {
    // Safety: only reads a constant of the system.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    u64::try_from(pages).map_or(u64::MAX, |pages| pages.saturating_mul(page_size() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_apart_and_zero() {
        for guard in [Guard::None, Guard::Pages] {
            let sizes = [1, 0, 64, 5000];
            let arena = Arena::new(&sizes, guard).expect("memory");
            assert_eq!(Some(arena.bytes()), Arena::size(&sizes, guard));
            for (index, bytes) in sizes.iter().enumerate() {
                let block = arena.block(index);
                assert_eq!(block as usize % ALIGNMENT, 0);
                // Safety: the block has this many bytes.
                let block = unsafe { std::slice::from_raw_parts_mut(block, *bytes) };
                assert!(block.iter().all(|byte| *byte == 0), "block {index} of {guard:?}");
                block.fill(1);
            }
        }
    }

    #[test]
    fn what_cannot_be_counted_is_rejected() {
        assert_eq!(Arena::size(&[usize::MAX], Guard::None), None);
        assert_eq!(Arena::size(&[usize::MAX / 2, usize::MAX / 2, 64], Guard::Pages), None);
    }
}
