//! The binary encoding: the contents of a listing in about a tenth of the bytes.
//!
//! Layout, version 1 (`docs/npu-binary.md` describes it): eight bytes of magic with the version,
//! then cores, then a CRC-32 of all preceding bytes. Unsigned numbers have variable length, signed ones are
//! zigzag encoded.

mod crc;
mod read;
mod write;

pub use crate::bytes::Error;
pub use read::decode;
pub use write::{encode, seal};

/// First bytes of a file.
pub const MAGIC: [u8; 6] = *b"\x7fINPU\n";

/// Version of the layout.
pub const VERSION: u16 = 1;

/// Flag of an instruction with the origin of the previous one.
const SAME_ORIGIN: u8 = 1;

/// Flag of an instruction with tokens.
const HAS_TOKENS: u8 = 2;
