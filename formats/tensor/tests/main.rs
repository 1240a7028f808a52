//! Tensors and their files.

mod documented;
mod numpy;
