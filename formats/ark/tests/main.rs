//! ARK models and plans: reading, checks, writing.

mod codes;
mod config_keys;
mod corpus;
mod diagnostics;
mod generations;
mod lanes;
mod mutations;
mod order;
mod plans;
mod roundtrip;
mod support;
