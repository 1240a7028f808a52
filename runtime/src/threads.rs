//! The threads on which compiled code runs the parts of kernels.
use crate::{Interface, Pool};
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
}

impl Threads {
    /// The threads of a pool; `memory` has `memory_bytes` for each. `None` if there is only the calling thread.
    pub fn new(pool: &Arc<dyn Pool>, memory: *mut u8, memory_bytes: usize) -> Option<Box<Self>> {
        let count = pool.threads() as i64;
        let threads = Threads { count, run, memory, memory_bytes, pool: pool.clone() };
        (count > 1).then(|| Box::new(threads))
    }
}

/// Bytes of memory of each thread that a model asks for, so that threads share no cache lines; `None` on overflow.
pub fn thread_bytes(interface: &Interface) -> Option<usize> {
    usize::try_from(interface.thread_bytes).ok()?.checked_next_multiple_of(2 * ALIGNMENT)
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
    let (pool, memory, bytes) = unsafe { (&(*threads).pool, (*threads).memory, (*threads).memory_bytes) };
    let used = Used(data, memory);
    pool.run(parts as usize, &|number| {
        let (data, memory) = used.pointers();
        let own = memory.wrapping_add(number * bytes).cast();
        // Safety: the code's own function, with its own data.
        unsafe { part(data, number as i64, parts, own) }
    });
}
