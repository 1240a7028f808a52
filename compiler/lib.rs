//! The irc compiler as a library.

pub mod codegen;
pub mod interface;
pub mod lowering;
pub mod passes;
pub mod pipeline;
