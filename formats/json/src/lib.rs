//! JSON with byte ranges, key order and the spelling of numbers: the base of all readers of JSON
//! formats.
//!
//! A [`Format`] has the diagnostic codes of a format and its limits.
//! [`parse`] makes a tree of [`Node`]s that borrow the text and know where they are in it; a
//! [`Reader`] reads typed values from it and reports at the value concerned; [`At`] is the path of a
//! value, and [`place`] finds in the text what a path names. [`Json`] is an owned value,
//! kept where a model has no field for it, and what a writer prints.
//!
//! The parser is our own. `jsonc-parser` has ranges and the spelling of numbers too, but its nesting
//! is bounded by a constant, the number of its values not at all; it accepts Unicode white space
//! and raw control characters, stops at the first number that is not finite, and does not distinguish
//! truncated text from invalid text. `serde_json` keeps no ranges: a format may read with
//! it first, and use this parser when something is wrong.

mod finite;
mod format;
mod parse;
mod path;
mod read;
mod value;
mod write;

pub use format::Format;
pub use parse::{Member, Node, Value, parse, tree};
pub use path::{At, locate, place, place_in};
pub use read::{Object, Reader};
pub use value::{Json, Number};
pub use write::{Layout, write_string};
