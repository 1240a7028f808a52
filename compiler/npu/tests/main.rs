//! Programs of the NPU from schedules.

mod carried;
mod codes;
mod corpus;
mod mesh;
mod mutated;
mod support;
mod values;
