//! ARK model and plan files: read, validate, write.
//!
//! Plain Rust, no MLIR. A model file is a list of nodes, each one op on tensors that lie in
//! buffers ([`model`]); a plan file is the same ops cut into tasks and spread over processors
//! ([`plan`]). Both are read into typed structs with every diagnostic placed in the user's file, and
//! written in the exact layout ARK writes.
//!
//! The sources of the rules are ARK's own constructors, code generator and executor at commit
//! `d8bbaebd`; where its documents differ from what it writes, the files win.

mod kind;

pub mod json;
pub mod model;
pub mod plan;

pub use kind::FileKind;
