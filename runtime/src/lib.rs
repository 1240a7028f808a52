//! What runs a compiled model: loads its library, binds inputs by name, runs, reads outputs.
//!
//! Knows nothing of LLVM or MLIR.

mod interface;
mod library;

pub use interface::{Interface, Port};
pub use library::{Library, RunError};
