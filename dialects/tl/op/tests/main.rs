//! The laws of the tensor level, and its values against numpy.

mod laws;
mod numpy;
