//! Runs compiled models: loads a library or archive, binds inputs by name, runs it, returns outputs.
//!
//! Does not depend on LLVM or MLIR.

mod constants;
mod host;
mod image;
mod interface;
mod library;
mod loader;
mod model;
pub mod processor;
mod runner;
mod threads;

pub use host::Host;
pub use image::check as check_image;
pub use interface::{HostCall, Interface, Port};
pub use library::{Library, RunError, bind};
pub use model::{
    Context, ContextOptions, Guard, Inline, InvalidArchive, MAX_THREADS, Model, ModelError,
    OpenOptions, Pool, ThreadPool, context_bytes,
};
pub use processor::missing_features;
pub use runner::Runner;
