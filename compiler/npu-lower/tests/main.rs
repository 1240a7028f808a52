//! Tests of the crate.

mod codes;
mod networks;
mod schedules;
mod support;
mod values;
