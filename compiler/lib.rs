//! The irc compiler as a library: a [`Session`] over source files.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use irc::{CompileOptions, Session};
//! use irc_runtime::Library;
//! use std::collections::BTreeMap;
//!
//! # let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
//! # let text = std::fs::read_to_string(format!("{examples}/softmax.model.json"))?;
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("softmax.so");
//! let mut session = Session::new();
//! let file = session.open("softmax.model.json", text);
//! let compiled = session.compile(file, &CompileOptions::default()).map_err(|failure| {
//!     irc_diag::render(&session.source(file), &failure.diagnostics, false, 100)
//! })?;
//! std::fs::write(&path, &compiled.library)?;
//! // Inputs that are not given are zero.
//! let outputs = Library::load(&path)?.run(BTreeMap::new())?;
//! let name = &compiled.interface.outputs[0].name;
//! assert_eq!(outputs[name].to_f32(), vec![1.0 / 256.0; 64 * 256]);
//! # Ok(())
//! # }
//! ```
//!
//! `examples/plan_and_run.rs` plans a model and runs the plan too.

pub mod archive;
pub mod codegen;
pub mod eval;
pub mod fusion;
pub mod interface;
pub mod lowering;
pub mod passes;
pub mod pipeline;
pub mod session;
pub mod tasks;

pub use codegen::Backend;
pub use irc_planner as planner;
pub use session::{
    Accumulate, ArchiveOptions, CancelToken, CheckOptions, CompileOptions, Compiled, CompiledGraph,
    CompiledGraphs, CompiledPlan, Failure, FileId, GraphEntry, Results, Session, Target,
};
