//! Runs ARK execution plans on the host, by simulating the machine they describe.
//!
//! Does not depend on LLVM or MLIR: the code of each task is in a shared library, described by
//! [`code::PlanCode`]. A [`Rank`] is a plan with its code; [`run`] runs the ranks of a world
//! together, each on its [`Memory`].

pub mod code;
pub mod comm;
pub mod distribution;
mod error;
mod kernels;
pub mod layout;
mod machine;
mod memory;
#[cfg(feature = "mpi")]
pub mod mpi;
mod race;
mod rank;
pub mod script;
mod task;
pub mod trace;

pub use error::Error;
pub use kernels::Kernels;
pub use machine::{Options, Report, run};
pub use memory::Memory;
pub use race::{Race, Side};
pub use rank::Rank;
