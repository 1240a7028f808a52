//! Tests of the search.

mod bounds;
mod codes;
mod exhaustive;
mod objectives;
mod search;
mod splits;
mod support;
