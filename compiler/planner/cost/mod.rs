//! What a plan costs: a roofline of the device, its processors followed through barriers.
mod machine;

pub use machine::{Machine, machine};
