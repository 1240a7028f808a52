//! Runs programs of the NPU.
//!
//! * [`cycles`]: when each instruction runs, given the durations of workloads.
//! * [`functional`]: what a program computes, on memories of bytes.
//! * [`perfetto`]: a timing as a trace that Perfetto opens.
//! * [`html`]: a timing as a page; [`residency`] has the contents of buffers as data, [`segments`] what limits
//!   segments.
//!
//! The published traces that the cycle model reproduces are output of a simulator, not measurements
//! of silicon: every start in them is the first cycle at which the engine is free and the tokens
//! are available, and every duration follows from a formula. Agreement with them shows that the model
//! has the same rules, not that it predicts hardware.

pub mod cycles;
pub mod durations;
pub mod functional;
pub mod html;
pub mod noc;
pub mod perfetto;
pub mod residency;
pub mod segments;
