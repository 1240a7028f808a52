//! The irc compiler as a library.

pub mod interface;
pub mod lowering;
pub mod passes;
pub mod pipeline;
