//! The `ark` dialect: an ARK model file as written.
//!
//! [`import`] makes a module of a model, [`export`] the model of a module; nothing is lost between.
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
