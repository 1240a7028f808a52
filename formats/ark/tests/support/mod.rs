//! Helpers shared by several tests.

pub mod corpus;
