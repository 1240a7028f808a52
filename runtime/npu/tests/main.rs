//! Runs NPU programs.

mod corpus;
mod functional;
mod mutated;
mod timing;
