//! Fusion: groups the ops of a function into kernels.
mod cost;
mod form;
mod graph;
mod rules;
mod segment;
mod term;
