//! The irc compiler as a library.

pub mod passes;
pub mod pipeline;
