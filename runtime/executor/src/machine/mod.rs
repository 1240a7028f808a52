//! Simulates the machine that a plan describes on the threads of the host.
//!
//! A processor is a state machine over its rank's script: it runs its tasks until a barrier stops it,
//! and continues when the last processor arrives. Threads run processors that can continue. Tasks of
//! one processor run sequentially, in the order in which its slots would start them.

mod bound;
mod call;
mod deadlock;
mod pool;
mod processor;
mod shared_values;
mod world;

#[cfg(feature = "mpi")]
pub(crate) use world::run_over;
pub use world::{Options, Report, run};
