//! Any bytes: the reader of parameters never panics, explains what it refuses, and writes back what
//! it accepts, byte for byte.
//!
//! On stable Rust, for one minute, from the folder of the repository:
//!
//!     mkdir -p fuzz/corpus/mlf_params
//!     cargo fuzz run --sanitizer none mlf_params fuzz/corpus/mlf_params formats/mlf/tests/data -- \
//!         -max_total_time=60
#![no_main]

use bytes::Bytes;
use irc_diag::Sink;
use irc_mlf::params;
use libfuzzer_sys::fuzz_target;

/// What every file begins with; no mutation would find it.
const MAGIC: [u8; 8] = [0xb7, 0x9c, 0x04, 0x05, 0x4f, 0x8d, 0xe5, 0xf7];

fuzz_target!(|bytes: &[u8]| {
    let bytes = bytes.strip_prefix(&MAGIC).unwrap_or(bytes);
    let bytes = Bytes::from([&MAGIC, bytes].concat());
    let mut sink = Sink::new();
    let read = params::read(&bytes, &mut sink);
    assert_eq!(read.is_none(), sink.has_errors(), "refused if and only if explained");
    if let Some(read) = read {
        assert_eq!(params::write(&read), bytes, "written as it was");
    }
});
