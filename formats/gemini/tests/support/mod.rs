//! What several of the tests use.

pub mod corpus;
