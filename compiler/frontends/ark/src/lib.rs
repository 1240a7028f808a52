//! Imports ARK models as graphs of the tensor level.
//!
//! Plain Rust, no MLIR. [`import`] replaces memory by values: the graph's inputs are the buffers that
//! are read, or partly written, before they are entirely written; its outputs are the written
//! buffers selected by [`ImportOptions::results`]. Each is whole and 1-D, in the type of the first
//! tensor on it, and is named `buffer_<id>`; inputs are in ascending order of ids. Nodes run in list
//! order, which preserves hazards on memory. Virtual ops describe memory and are not
//! represented by nodes.
//!
//! [`Meaning`] has a row for each kind of op; [`evaluate`] applies it to values, also for the tasks of
//! plans. With [`Accumulate::Ark`], sums and products of 16-bit floats round as in ARK's kernels, in
//! the order of `docs/accumulation.md`.

mod access;
mod accumulate;
mod emit;
mod import;
mod meaning;
mod memory;
#[cfg(test)]
mod tests;

pub use access::element_type;
pub use import::{ImportOptions, buffer_name, import};
pub use meaning::{Application, Meaning, evaluate};

/// How sums and products accumulate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accumulate {
    /// In `f32`, rounding once at the end.
    #[default]
    Wide,
    /// In the precision and order of ARK's kernels on CUDA_80.
    Ark,
}

impl Accumulate {
    /// The name in options of the pass `ark-to-tl`.
    pub fn name(self) -> &'static str {
        match self {
            Accumulate::Wide => "wide",
            Accumulate::Ark => "ark",
        }
    }

    /// The variant with that name.
    pub fn named(name: &str) -> Option<Self> {
        [Accumulate::Wide, Accumulate::Ark].into_iter().find(|mode| mode.name() == name)
    }
}
