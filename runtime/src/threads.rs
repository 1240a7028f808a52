//! The threads on which compiled code runs the parts of kernels.
use crate::{Guard, Interface, Pool, arena::Arena};
use irc_tensor::ALIGNMENT;
use std::{ffi::c_void, sync::Arc};

/// One part of a kernel: the data of the launch, the number of the part, the number of parts, and memory of the part.
type Part = unsafe extern "C" fn(*mut c_void, i64, i64, *mut c_void);

/// What compiled code takes as `struct irc_threads`: a pool, and memory for each of its threads.
#[repr(C)]
pub struct Threads {
    count: i64,
    run: unsafe extern "C" fn(*const Threads, Part, *mut c_void, i64),
    memory: *mut u8,
    /// Bytes of memory of each thread.
    memory_bytes: usize,
    pool: Arc<dyn Pool>,
    arena: Arena,
}

impl Threads {
    /// The threads of a pool, with the memory that a model needs for each. `None` if there is only the calling thread.
    ///
    /// # Errors
    /// The reason why there is no memory.
    pub fn new(
        pool: &Arc<dyn Pool>,
        interface: &Interface,
        guard: Guard,
    ) -> Result<Option<Box<Self>>, String> {
        let Some((count, each)) = counted(pool, interface).ok_or("the size overflows")? else {
            return Ok(None);
        };
        let arena = Arena::new(&[count * each], guard)?;
        Ok(Some(Box::new(Threads {
            count: count as i64,
            run,
            memory: arena.block(0),
            memory_bytes: each,
            pool: pool.clone(),
            arena,
        })))
    }

    /// Bytes of memory of all threads.
    pub fn bytes(&self) -> usize {
        self.arena.bytes()
    }
}

/// Bytes of memory that a model needs for the threads of a pool; `None` on overflow.
pub fn thread_bytes(pool: &Arc<dyn Pool>, interface: &Interface) -> Option<usize> {
    Some(counted(pool, interface)?.map_or(0, |(count, each)| count * each))
}

/// The number of threads, and bytes of memory of each, so that they share no cache lines. `None` on overflow, and inside
/// if there is only the calling thread.
fn counted(pool: &Arc<dyn Pool>, interface: &Interface) -> Option<Option<(usize, usize)>> {
    let each =
        usize::try_from(interface.thread_bytes).ok()?.checked_next_multiple_of(2 * ALIGNMENT)?;
    let count = pool.threads();
    each.checked_mul(count)?;
    Some((count > 1).then_some((count, each)))
}

/// What code takes for threads that there may not be.
pub fn pointer(threads: Option<&Threads>) -> *const Threads {
    threads.map_or(std::ptr::null(), std::ptr::from_ref)
}

/// Data and memory that the parts of a kernel use on any thread.
struct Used(*mut c_void, *mut u8);

// Safety: parts of a kernel write different memory.
unsafe impl Sync for Used {}

impl Used {
    fn pointers(&self) -> (*mut c_void, *mut u8) {
        (self.0, self.1)
    }
}

unsafe extern "C" fn run(threads: *const Threads, part: Part, data: *mut c_void, parts: i64) {
    // Safety: code passes the threads that it was called with, which are alive during the run.
    let (pool, memory, bytes) =
        unsafe { (&(*threads).pool, (*threads).memory, (*threads).memory_bytes) };
    let used = Used(data, memory);
    pool.run(parts as usize, &|number| {
        let (data, memory) = used.pointers();
        let own = memory.wrapping_add(number * bytes).cast();
        // Safety: the code's own function, with its own data.
        unsafe { part(data, number as i64, parts, own) }
    });
}
