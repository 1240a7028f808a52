//! Tests of the search.

mod bounds;
mod codes;
mod exhaustive;
mod search;
mod splits;
mod support;
