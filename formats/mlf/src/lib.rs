//! Reads, checks and writes Model Library Format archives.
//!
//! An archive is a tar file with the code of a model, the graph that calls it, its parameters, and
//! metadata. TVM writes and loads them. Archives are untrusted: any bytes give
//! a [`Package`] or located diagnostics, never a panic, and memory is bounded by the size of the file.
//! Large members are not copied: they are slices of the file, which may be mapped into
//! memory.
//!
//! * [`Archive`]: members of the tar file.
//! * [`params`], [`graph`], [`metadata`], [`library`]: typed contents of members.
//! * [`Package`]: an archive with all of these. [`read`] is fast; [`check`] validates everything.
//! * [`build`]: builds the archive of a model, with exact sizes.
//!
//! The format and the subset that all clients accept are described in `docs/mlf.md`.

pub mod archive;
mod build;
mod check;
pub mod elf;
pub mod graph;
mod json;
pub mod library;
pub mod metadata;
mod offset;
mod package;
pub mod params;
mod report;
mod types;

pub use archive::Archive;
pub use build::{Contents, Model, Shared, TestVector, Version, build};
pub use check::{Depth, check};
pub use package::{Package, Part, read};
pub use report::{Diagnostics, Report};
pub use types::{Code, DataType, Type};
