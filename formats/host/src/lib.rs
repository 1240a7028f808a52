//! Functions that the host of a compiled program applies, and the reference evaluator: functions of the
//! characters of strings, and decoders of images.
//!
//! An element that is a string is a handle (see [`irc_tensor::Strings`]), so moving and comparing
//! strings are operations on integers. A [`Function`] is what needs the characters, or a library that
//! programs do not contain. [`Functions`] applies those of one program.
//!
//! Strings are bytes. Those that are not UTF-8 can be joined and split; they match no expression with a
//! character, and their case does not change.

mod automaton;
mod case;
#[cfg(feature = "compile-regex")]
mod compile;
mod error;
mod function;
mod functions;
mod image;
mod number;
mod pattern;
mod search;
mod split;
mod splitter;

pub use case::lower;
pub use error::FunctionError;
pub use function::{Extents, Function};
pub use functions::Functions;
pub use image::PixelFormat;
pub use pattern::Pattern;
pub use split::Separator;
pub use splitter::Splitter;
