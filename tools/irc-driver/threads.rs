//! The threads that models run on.
use crate::{error::Error, output};
use irc_runtime::{Inline, Pool, ThreadPool};
use std::sync::Arc;

/// This number of threads to run a model on.
pub fn pool(threads: u32) -> Result<Arc<dyn Pool>, Error> {
    if threads <= 1 {
        return Ok(Arc::new(Inline));
    }
    let pool = ThreadPool::new(threads as usize);
    let pool = pool.map_err(|error| {
        Error::problem(format!("cannot start {threads} threads: {}", output::plain(&error)))
    })?;
    Ok(Arc::new(pool))
}
