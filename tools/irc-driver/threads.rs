//! The threads that models run on.
use crate::{error::Error, output};
use irc_runtime::{Pool, pool_of};
use std::sync::Arc;

/// This number of threads to run a model on.
pub fn pool(threads: u32) -> Result<Arc<dyn Pool>, Error> {
    pool_of(threads as usize).map_err(|error| {
        Error::problem(format!("cannot start {threads} threads: {}", output::plain(&error)))
    })
}
