//! Networks on the simulator.

mod given;
mod oracle;
mod page;
mod support;
mod traffic;
