//! Tests of the crate.
