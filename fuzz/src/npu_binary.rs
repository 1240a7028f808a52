//! Any bytes: the reader of the binary form never panics, and gives back what it accepts.
//!
//! The checksum is made right first: no mutation would.

use irc_npu::binary::{decode, encode, seal};

/// What the module says, of these bytes.
pub fn check(bytes: &[u8]) {
    let _ = decode(bytes);
    if let Ok(program) = decode(&seal(bytes)) {
        assert_eq!(decode(&encode(&program)).as_ref(), Ok(&program));
    }
}
