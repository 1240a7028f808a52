//! Reads, validates and writes Common IR and ONNX files.
//!
//! Plain Rust, no MLIR. Common IR ("LotusIR", 2017) is the ancestor of ONNX; [`model`] is the union
//! of the two. Files come in five forms: Common IR's own messages in binary, JSON and
//! text, ONNX with additional fields for Common IR, and plain ONNX.
//!
//! Binary files are memory-mapped, and large data are not copied.

mod carry;
mod contain;
mod files;
mod flow;
mod form;
mod input;
mod locate;
mod order;
mod proto;
mod read;
mod rules;
mod schema;

pub mod library;
pub mod model;
pub mod shapes;
pub mod validate;
pub mod write;

pub use contain::Error as FileError;
pub use files::{FileSystem, Files, MAX_STREAM, MemoryFiles};
pub use form::{Encoding, Form, Format, Root};
pub use input::Input;
pub use order::{free_names, topological_order};
pub use read::{
    Document, ExternalData, Options, find_external, folder_of, open, read, read_data, read_tensor,
};
