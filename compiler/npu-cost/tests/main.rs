//! The cost model of SET, against what its program published.

mod codes;
mod layers;
mod model;
mod networks;
mod published;
mod support;
mod trees;
