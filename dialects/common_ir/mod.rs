//! The `common_ir` dialect: a graph or library of Common IR or ONNX as written.
//!
//! [`import`] makes a module of what a file says, [`export`] the other way; nothing is lost between,
//! but where elements in other files were found: that the reader finds again.
mod attributes;
mod export;
mod import;
mod origins;
mod read;
mod tensors;
mod types;
mod values;
mod verify;

pub use export::{Exported, export, module_op};
pub use import::import;
pub use origins::Origins;
pub use verify::verify;
