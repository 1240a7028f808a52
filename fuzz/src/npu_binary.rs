//! Any bytes: the reader of the binary encoding never panics, and what it accepts is the same after a round
//! trip.
//!
//! The checksum is corrected first, as mutations do not find a valid one.

use irc_npu::binary::{decode, encode, seal};

/// Checks the properties of the module for these bytes.
pub fn check(bytes: &[u8]) {
    let _ = decode(bytes);
    if let Ok(program) = decode(&seal(bytes)) {
        assert_eq!(decode(&encode(&program)).as_ref(), Ok(&program));
    }
}
