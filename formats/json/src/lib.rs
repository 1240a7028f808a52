//! JSON with byte ranges, key order and the spelling of numbers: the base of all readers of JSON
//! formats.
//!
//! A [`Format`] has the diagnostic codes of a format and its limits.
//! [`parse`] returns a tree of [`Node`]s that borrow the text and carry their byte ranges; a
//! [`Reader`] reads typed values from it and reports at the value concerned; [`At`] is the path of a
//! value, and [`place`] locates diagnostics by their paths. [`Json`] is an owned value,
//! for values without a field in a model, and for printing.
//!
//! The parser is our own. `jsonc-parser` has ranges and the spelling of numbers too, but its nesting
//! is limited by a constant and the number of its values is unlimited; it accepts Unicode white space
//! and raw control characters, stops at the first number that is not finite, and does not distinguish
//! truncated text from invalid text. `serde_json` has no ranges: a format may parse with
//! it first, and use this parser if there is an error.

mod finite;
mod format;
mod node;
mod parse;
mod path;
mod read;
mod value;
mod write;

pub use format::Format;
pub use node::{Member, Node, Value};
pub use parse::{outline, parse, tree};
pub use path::{At, locate, place, place_in};
pub use read::{Object, Reader};
pub use value::{Json, Number};
pub use write::{Layout, write_string};
