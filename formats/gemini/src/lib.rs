//! Reads, checks and writes schedules of the Gemini and SET schedulers, and their frontend
//! files.
//!
//! Plain Rust, no MLIR. A [`schedule`] states, for each core of a mesh, which workloads run in which
//! order, the contents of the core's buffers before each, and the transfers between cores and DRAM. It
//! comes in three dialects, detected from the content and read into one model. A [`frontend`] file states
//! what each layer computes. Diagnostics are located in the user's file, and both are
//! written as they were read.

mod input;
mod kind;
mod pair;
mod read;
mod record;

pub mod frontend;
pub mod schedule;

pub use input::{pack, packed, source, unpacked};
pub use kind::FileKind;
pub use pair::{check_pair, operands};
pub use read::{Options, place, tree};
pub use record::{Extra, Nullable};
