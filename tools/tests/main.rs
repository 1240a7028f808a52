//! Tests of the command lines.

mod exit_codes;
mod gpu_driver;
mod launcher;
mod matrix;
#[cfg(feature = "mpi")]
mod mpi;
mod onnx_models;
mod oracle;
mod readme;
