//! The laws of the tensor level, and its values compared with numpy.

mod laws;
mod numpy;
