//! Runs networks on the simulator of the NPU, with tensors by name as inputs and outputs.
//!
//! A program uses addresses only. The addresses of the tensors of a network in DRAM follow from its
//! schedule and the frontend file, by the assembler's rule, which [`Layout`] implements. [`run`] places
//! named tensors there, runs the program, and returns the tensors that it has stored; [`fill`]
//! generates missing ones. Every movement from and to DRAM is first checked against the layout, so that
//! a program of another network is rejected.
//!
//! | key | tensor |
//! |---|---|
//! | name of an input, of a layer | `[N, C, H, W]`, with the shape and type of the frontend |
//! | `LAYER.weight` | `i8[K, C, R, S]`; without a frontend file `i8[K, C, R S]` |
//! | `LAYER.scale`, `LAYER.bias` | `f32[K]`: a result is `scale (sum + offset) + bias` before it is quantised |
//! | `LAYER.offset` | `i32[K]`: zero if it is not given |
//!
//! Schedules of dialects B and C have no quantisation constants. Their programs use those of a model
//! (`docs/npu-models.md`) or neutral ones: then their results are defined, but are not those of the network.
//!
//! This is a separate crate because `irc-npu-sim` does not depend on schedules, nor the format of
//! schedules on programs.

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
pub use timing::{layer_names, mesh, segment_map, workload_times};
pub use weights::Weights;
