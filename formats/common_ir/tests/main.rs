//! Common IR and ONNX files: reading, checks, writing, libraries.

mod codes;
mod corpus;
mod external;
mod hostile;
mod laws;
mod library;
mod roundtrip;
mod rules;
mod support;
mod validate;
