//! The quick tier against LLVM: the same modules of the `llvm` dialect through both, run on edge
//! values, compared bit by bit.
#![allow(clippy::unwrap_used)]

mod conversions;
mod dialects;
mod half_floats;
mod harness;
mod intrinsics;
mod memory;
mod models;
mod operators;
mod refusals;
mod vectors;
