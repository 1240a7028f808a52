//! Runs plans on the host.

mod common;
mod corpus;
mod machine;
mod races;
mod ranks;
mod robust;
mod shared_values;
mod trace;
