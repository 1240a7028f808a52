//! JSON with byte ranges, key order and the spelling of numbers: what the reader and writer of
//! both formats stand on.
//!
//! The parser makes a tree of nodes that borrow the text and know where they stand in it; [`Json`] is
//! a value that stands alone, kept where the model has no field for it, and what a writer prints. Depth and size are bounded.

mod parse;
mod path;
mod value;
mod write;

pub(crate) use parse::{Member, Node, Value, parse};
pub use path::place;
pub(crate) use path::{At, place_in};
pub use value::{Json, Number};
pub use write::Layout;
