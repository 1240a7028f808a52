//! The binary form: what a listing says, in about a tenth of the bytes.
//!
//! Layout, version 1 (`docs/npu-binary.md` has it in full): eight bytes of magic with the version,
//! then cores, then a CRC-32 of all that precedes. Whole numbers are variable-length, signed ones
//! zigzag.

mod bytes;
mod crc;
mod read;
mod write;

pub use bytes::{Bytes, Error};
pub use read::decode;
pub use write::{encode, seal};

/// First bytes of a file.
pub const MAGIC: [u8; 6] = *b"\x7fINPU\n";

/// Version of the layout.
pub const VERSION: u16 = 1;

/// Flag of an instruction whose origin is that of the one before it.
const SAME_ORIGIN: u8 = 1;

/// Flag of an instruction that takes or gives tokens.
const HAS_TOKENS: u8 = 2;
