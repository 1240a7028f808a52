//! ARK model and plan files: read, validate, write.
//!
//! Plain Rust, no MLIR. A model file is a list of nodes, each one op on tensors in buffers ([`model`]);
//! a plan file has the same ops divided into tasks that are distributed over processors ([`plan`]).
//! Both are read into typed structs with every diagnostic located in the user's file, and written in
//! ARK's exact layout.
//!
//! The sources of the rules are ARK's own constructors, code generator and executor at commit
//! `d8bbaebd`; where its documents differ from its files, the files take precedence.

mod kind;

pub mod json;
pub mod model;
pub mod plan;

pub use kind::FileKind;
