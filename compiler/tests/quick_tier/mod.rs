//! The quick tier and C source against LLVM: the same modules of the `llvm` dialect through all of
//! them, run on edge values, compared bit by bit.

mod c_source;
mod c_symbols;
mod cc;
mod conversions;
mod dialects;
mod half_floats;
mod harness;
mod intrinsics;
mod memory;
mod models;
mod operators;
mod rejections;
mod vectors;
