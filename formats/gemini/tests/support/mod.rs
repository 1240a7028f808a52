//! Support code shared by several tests.

pub mod corpus;
