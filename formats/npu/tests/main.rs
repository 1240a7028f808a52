//! Programs of the NPU: listings, binary encoding, verifier.

mod codes;
mod corpus;
mod diagnostics;
mod support;
mod verify;
