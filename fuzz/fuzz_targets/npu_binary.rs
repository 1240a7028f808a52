//! Any bytes: the reader of the binary form never panics, and gives back what it accepts.
//!
//! The checksum is made right first: no mutation would.
//!
//! On stable Rust, for one minute, from the folder of the repository:
//!
//!     mkdir -p fuzz/corpus/npu_binary
//!     cargo fuzz run --sanitizer none npu_binary fuzz/corpus/npu_binary -- -max_total_time=60
#![no_main]

use irc_npu::binary::{decode, encode, seal};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = decode(bytes);
    if let Ok(program) = decode(&seal(bytes)) {
        assert_eq!(decode(&encode(&program)).as_ref(), Ok(&program));
    }
});
