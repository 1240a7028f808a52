//! Runs plans on the host.

mod common;
mod corpus;
mod kept;
mod machine;
mod races;
mod ranks;
mod robust;
mod trace;
