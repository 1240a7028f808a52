//! Runs programs of the NPU.
//!
//! * [`cycles`]: when each instruction runs, given how long workloads take.
//!
//! The published traces that the cycle model reproduces are a simulator's output, not measurements
//! of silicon: every start in them is the first cycle at which the engine is free and the tokens
//! are there, and every duration follows from a formula. Agreement with them says that the model
//! has the same rules, not that it predicts hardware.

pub mod cycles;
pub mod durations;
pub mod noc;
