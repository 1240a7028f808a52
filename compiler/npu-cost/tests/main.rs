//! The cost models of SET and Gemini, compared with the results of their programs.

mod codes;
mod gemini;
mod layers;
mod model;
mod networks;
mod published;
mod support;
mod trees;
