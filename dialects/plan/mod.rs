//! The `plan` dialect: an ARK execution plan.
//!
//! [`import`] builds it of a plan, [`export`] gives the plan back; nothing is lost between.
mod config;
mod export;
mod import;
mod verify;

pub use export::export;
pub use import::{Sources, build, import};
pub use verify::verify;
