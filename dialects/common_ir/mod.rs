//! The `common_ir` dialect: a graph or library of Common IR or ONNX as written.
//!
//! [`import`] converts a file to a module, [`export`] converts it back, without loss
//! except for the paths of resolved external data, which the reader resolves again.
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
