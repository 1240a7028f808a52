//! Tests of the crate.

mod codes;
mod networks;
mod orders;
mod priced;
mod quantised;
mod schedules;
mod support;
mod values;
