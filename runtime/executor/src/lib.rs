//! Runs ARK execution plans on the host, as the machine they describe.
//!
//! Knows nothing of LLVM or MLIR: the code of each task comes as a shared library, described by
//! [`code::PlanCode`].

pub mod code;
