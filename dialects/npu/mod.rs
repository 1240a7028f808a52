//! The `npu` dialect: programs of the NPU.
//!
//! [`build`] makes the ops of a program, [`export`] gives the program back; nothing is lost between.
mod export;
mod fields;
mod import;
mod verify;

pub use export::{Exported, export};
pub use import::{Sources, build};
pub use verify::verify;
