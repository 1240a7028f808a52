//! Tests of the search.

mod search;
