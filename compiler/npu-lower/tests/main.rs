//! Tests of the crate.

mod networks;
mod schedules;
mod support;
mod values;
