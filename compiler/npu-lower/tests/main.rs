//! Tests of the crate.

mod networks;
mod support;
