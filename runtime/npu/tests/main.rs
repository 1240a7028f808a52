//! NPU programs as they run.

mod corpus;
mod functional;
mod mutated;
mod timing;
