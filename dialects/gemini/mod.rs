//! The `gemini` dialect: schedules as written, and the layers of the frontend beside them.
//!
//! [`import`] makes the ops of a file, [`schedule`] and [`frontend`] give back what they say;
//! nothing is lost between. Both go by one table of which keys of a file hold ops.
mod export;
mod import;
mod nested;
mod values;
mod verify;

pub use export::{Scheduled, Workloads, frontend, report, schedule};
pub use import::{build, import};
pub use verify::verify;
