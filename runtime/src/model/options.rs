//! Options of contexts.
use super::{Guard, Inline, Pool};
use std::sync::Arc;

/// How a context is created.
#[derive(Clone)]
pub struct ContextOptions {
    /// What runs the tasks of parallel calls; [`Inline`] runs them where they are called.
    pub pool: Arc<dyn Pool>,
    /// Bytes of workspace of each thread, where the archive states less than its code takes.
    pub workspace_bytes: usize,
    /// Maximum number of bytes of a context; `None` allows the memory of the machine.
    pub memory_limit: Option<u64>,
    /// Whether code that accesses memory beyond a tensor faults: for finding such code, at the cost of two
    /// pages for each tensor.
    pub guard: Guard,
}

impl Default for ContextOptions {
    fn default() -> Self {
        let pool = Arc::new(Inline);
        ContextOptions { pool, workspace_bytes: 0, memory_limit: None, guard: Guard::None }
    }
}
