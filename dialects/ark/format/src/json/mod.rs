//! JSON with byte ranges: what both readers and both writers stand on.
//!
//! The fast path reads with `serde_json` and keeps no ranges. When it refuses, or when a finding
//! needs a place, the text is scanned, mended where a harmless mend lets the rest be examined, and
//! parsed again with `jsonc-parser` held to strict JSON.

mod number;
mod path;
mod reader;
mod scan;
mod text;

pub(crate) use number::{write_float, write_string};
pub(crate) use path::place_in;
pub use path::{At, OpPlace, locate, place};
pub(crate) use reader::{Object, Reader, clip};
pub use text::strict_json;
pub(crate) use text::{prepare, tree};
