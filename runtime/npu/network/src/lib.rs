//! Networks on the simulator of the NPU: tensors by name in, tensors by name out.
//!
//! A program knows addresses only. Where the tensors of a network lie in DRAM follows from its
//! schedule and the frontend file, by the assembler's rule; [`Layout`] has it. [`run`] puts named
//! tensors there, runs the program, and takes out what it has stored; [`fill`] draws what is not given. Every movement from and to
//! DRAM is held against the layout first, so that a program of another network is rejected.
//!
//! | key | tensor |
//! |---|---|
//! | name of an input, of a layer | `[N, C, H, W]`, as the frontend has its shape and type |
//! | `LAYER.weight` | `i8[K, C, R, S]`; without a frontend file `i8[K, C, R S]` |
//! | `LAYER.scale`, `LAYER.bias` | `f32[K]`: a result is `scale sum + bias` before it is quantised |
//!
//! Schedules of dialects B and C have no constants of quantisation, and their programs neutral
//! ones: what they compute is defined, but is not the network (`docs/npu-multicore.md`).
//!
//! A crate of its own: `irc-npu-sim` knows nothing of schedules, the format of schedules nothing of
//! programs.

mod activations;
mod draw;
mod error;
mod given;
mod layout;
mod movements;
mod run;
mod several_cores;
mod timing;
mod weights;

pub use activations::{Activations, Role};
pub use draw::fill;
pub use error::Error;
pub use given::{Port, Tensors, expect, ports};
pub use layout::Layout;
pub use run::run;
pub use timing::{layer_names, mesh, workload_times};
pub use weights::Weights;
