//! The cost model of SET, compared with the published results of its program.

mod codes;
mod layers;
mod model;
mod networks;
mod published;
mod support;
mod trees;
