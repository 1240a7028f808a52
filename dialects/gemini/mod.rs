//! The `gemini` dialect: schedules as written, and the layers of their frontend files.
//!
//! [`import`] converts a file to ops, [`schedule`] and [`frontend`] convert them back,
//! without loss. Both use one table of the keys of a file that hold ops.
mod export;
mod import;
mod nested;
mod values;
mod verify;

pub use export::{Scheduled, Workloads, frontend, report, schedule};
pub use import::{build, import};
pub use verify::verify;
