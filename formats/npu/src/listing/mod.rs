//! Listings: one instruction per line.
//!
//! ```text
//! [lw_mov, {'slyr': 0, ..., 'tile': -1}, {'SS': 1, ..., 'Prev_Insts': ['PE'], 'Next_Insts': []}]
//! ```
//!
//! A trace is a listing with one more part, `{'inst_idx': 6, 'time': [0, 21]}`, before the fields.
//! Keys may be in any order, with any number of spaces; printing uses the published layout, byte
//! for byte. A program of several cores has a line `# core N` before each core's instructions; this
//! line is an extension of this project, as is `# model …` before all of them, the [fingerprint](crate::Fingerprint)
//! of the model whose numbers the program has. A file has several programs if they compute parts of a model: each begins
//! with `# part 1 of 3`, numbered in the order in which they run.

mod lex;
mod read;
mod write;

pub use read::{Limits, Listing, Trace, parse, parse_all, parse_trace};
pub use write::{Heading, write, write_instruction, write_to, write_trace};
