//! The `plan` dialect: an ARK execution plan.
//!
//! [`import`] converts a plan to a module, [`export`] converts it back, without loss.
mod config;
mod export;
mod import;
mod verify;

pub use export::export;
pub use import::{Sources, build, import};
pub use verify::verify;
