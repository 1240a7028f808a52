//! Tests of the crate.

mod codes;
mod networks;
mod quantised;
mod schedules;
mod support;
mod values;
