//! Programs of the NPU: listings, binary form, the verifier.

mod codes;
mod corpus;
mod diagnostics;
mod support;
mod verify;
