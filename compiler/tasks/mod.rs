//! The tasks of an ARK plan as kernels for the host.
//!
//! A task info is a chain of ops that run back to back for one task index. [`steps`] divides the chain into
//! [`Segment`]s whose ops pass whole tiles to each other, each of which becomes one fused kernel, and
//! communication, which the executor, or code in the kernel for a GPU, performs. [`variants`] and [`kernel_text`] write a segment as
//! functions of the tensor level on tiles of static shape, whose arguments and results are strided windows
//! of the buffers.
//!
//! Each op of a chain reads the values that the previous ops wrote for the same task index, even through
//! other windows: if two windows overlap without being equal, the chain is cut there, and the later op
//! reads memory again.

mod emit;
pub mod persistent;
mod segment;
#[cfg(test)]
mod tests;
mod variant;
mod view;

pub use emit::kernel_text;
pub use segment::{Segment, Store, TaskStep, steps};
pub use variant::{operand, variants};
pub use view::View;
