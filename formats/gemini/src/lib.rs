//! Schedules of the Gemini and SET schedulers, and the frontend files beside them: read, check,
//! write.
//!
//! Plain Rust, no MLIR. A [`schedule`] says, for each core of a mesh, which workloads run in which
//! order, what lies in the core's buffers before each, and what moves between cores and DRAM. It
//! comes in three dialects, detected from the content and read into one model. A [`frontend`] file says
//! what each layer computes. Both are read with every diagnostic placed in the user's file, and
//! written back as they were.

mod input;
mod kind;
mod pair;
mod read;
mod record;

pub mod frontend;
pub mod schedule;

pub use input::{packed, source, unpacked};
pub use kind::FileKind;
pub use pair::{check_pair, operands};
pub use read::{Options, place, tree};
pub use record::{Extra, Nullable};
