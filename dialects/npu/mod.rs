//! The `npu` dialect: programs of the NPU.
//!
//! [`build`] converts a program to ops, [`export`] converts it back, without loss.
mod export;
mod fields;
mod import;
mod verify;

pub use export::{Exported, export};
pub use import::{Sources, build};
pub use verify::verify;
