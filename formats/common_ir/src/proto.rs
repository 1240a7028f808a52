//! The schemas' messages, made by the build script from `proto/`.
//!
//! Only reading and writing see these; everything else speaks [`crate::model`].

#![allow(missing_docs, dead_code, clippy::all, clippy::pedantic, clippy::unwrap_used)]

/// Messages of Common IR's own files.
pub mod lotus {
    include!(concat!(env!("OUT_DIR"), "/lotus_ir.rs"));
}

/// Messages of ONNX files.
pub mod onnx {
    include!(concat!(env!("OUT_DIR"), "/onnx.rs"));
}

/// Both schemas as a set of descriptors, encoded.
pub const SCHEMAS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schemas.bin"));
