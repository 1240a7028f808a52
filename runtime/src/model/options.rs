//! Options of contexts.
use crate::{Guard, Inline, Pool};
use std::sync::Arc;

/// Options of a context.
#[derive(Clone)]
pub struct ContextOptions {
    /// The thread pool of parallel calls; [`Inline`] runs their tasks on the calling thread.
    pub pool: Arc<dyn Pool>,
    /// Number of bytes of workspace of each thread, if the archive specifies less than its code needs.
    pub workspace_bytes: usize,
    /// Maximum number of bytes of a context; `None` is the memory of the machine.
    pub memory_limit: Option<u64>,
    /// Whether code that accesses memory beyond a tensor faults: useful for finding such code, at the
    /// cost of two pages for each tensor.
    pub guard: Guard,
}

impl Default for ContextOptions {
    fn default() -> Self {
        let pool = Arc::new(Inline);
        ContextOptions { pool, workspace_bytes: 0, memory_limit: None, guard: Guard::None }
    }
}
