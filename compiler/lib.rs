//! The irc compiler as a library.

pub mod codegen;
pub mod eval;
pub mod fusion;
pub mod interface;
pub mod lowering;
pub mod passes;
pub mod pipeline;
