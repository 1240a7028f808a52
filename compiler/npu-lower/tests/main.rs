//! Tests of the crate.

mod codes;
mod networks;
mod priced;
mod schedules;
mod support;
mod values;
