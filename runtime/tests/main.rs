//! Archives as they run.

mod archives;
mod guard;
mod mutated;
mod support;
