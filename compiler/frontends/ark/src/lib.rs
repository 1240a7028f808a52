//! ARK models as graphs of the tensor level.
//!
//! Plain Rust, no MLIR. [`import`] turns memory into values: the graph's inputs are the buffers that
//! are read, or written in part, before they are entirely written; its outputs are the buffers
//! written that [`ImportOptions::results`] asks for. Each is whole and 1-D, in the type of the first
//! tensor on it, and has the name `buffer_<id>`; inputs stand by ascending id. Nodes run in list
//! order, so hazards that only memory shows come out right. Virtual ops name memory and leave no
//! node behind.
//!
//! [`Meaning`] has a row for each kind of op; [`evaluate`] applies it to values, of which the tasks of
//! plans are made too. With
//! [`Accumulate::Ark`], sums and products of 16-bit floats round as ARK's kernels do, in the order
//! that `docs/accumulation.md` gives.

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
    /// The name that the pass `ark-to-tl` takes.
    pub fn name(self) -> &'static str {
        match self {
            Accumulate::Wide => "wide",
            Accumulate::Ark => "ark",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Accumulate::Wide, Accumulate::Ark].into_iter().find(|mode| mode.name() == name)
    }
}
