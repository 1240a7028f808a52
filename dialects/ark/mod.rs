//! The `ark` dialect: an ARK model file as written.
//!
//! [`import`] converts a model to a module, [`export`] a module to a model; nothing is lost in between.
mod args;
mod export;
mod import;
mod names;
#[cfg(test)]
mod ods;
mod types;
mod verify;

pub use export::{export, model_of, model_op, node, nodes};
pub use import::{Builder, Origins, import};
pub use names::{attr_name, kind_of, mnemonic};
pub use types::{element_type, tensor_type};
pub use verify::verify;
