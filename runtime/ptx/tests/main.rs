//! Tests.

mod checks;
mod codes;
mod instructions;
mod kernels;
mod layouts;
mod llvm;
mod parser;
mod rings;
mod scale;
mod support;
mod warps;
