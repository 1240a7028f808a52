//! The irc compiler as a library: a [`Session`] over source files.

pub mod codegen;
pub mod eval;
pub mod fusion;
pub mod interface;
pub mod lowering;
pub mod passes;
pub mod pipeline;
pub mod session;
pub mod tasks;

pub use irc_planner as planner;
pub use session::{
    Accumulate, CancelToken, CheckOptions, CompileOptions, Compiled, CompiledPlan, Failure, FileId,
    Results, Session, Target,
};
