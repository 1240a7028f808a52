//! The command lines as they are called.

mod exit_codes;
mod launcher;
#[cfg(feature = "mpi")]
mod mpi;
mod onnx_models;
mod oracle;
mod readme;
