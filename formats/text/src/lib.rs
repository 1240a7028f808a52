//! Functions of the characters of strings, for the reference evaluator and for the hosts of compiled
//! programs.
//!
//! An element that is a string is a handle (see [`irc_tensor::Strings`]), so moving and comparing
//! strings are operations on integers. A [`Function`] is what needs the characters: it maps the elements
//! of one or two tensors of equal size to those of another. [`Texts`] applies the functions of one
//! program.
//!
//! Strings are bytes. Those that are not UTF-8 can be joined and split; they match no expression with a
//! character, and their case does not change.

mod case;
mod error;
mod function;
mod number;
mod pattern;
mod split;
mod texts;

pub use case::lower;
pub use error::TextError;
pub use function::Function;
pub use split::Separator;
pub use texts::Texts;
