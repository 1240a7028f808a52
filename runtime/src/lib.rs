//! Runs compiled models: loads a library or archive, binds inputs by name, runs it, returns outputs.
//!
//! Does not depend on LLVM or MLIR.

mod arena;
mod constants;
pub mod gpu;
mod host;
mod image;
mod interface;
mod library;
mod loader;
mod model;
mod pool;
pub mod processor;
mod runner;
mod threads;

pub use arena::Guard;
pub use gpu::{Contents, Execution, GpuKernel, GpuProgram, Parameter};
pub use host::Host;
pub use image::check as check_image;
pub use interface::{HostCall, Interface, Port};
pub use library::{Library, RunError, bind};
pub use model::{
    Context, ContextOptions, InvalidArchive, Model, ModelError, OpenOptions, context_bytes,
};
pub use pool::{Inline, MAX_THREADS, Pool, ThreadPool, pool_of};
pub use processor::missing_features;
pub use runner::Runner;
