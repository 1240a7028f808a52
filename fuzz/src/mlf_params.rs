//! Any bytes: the reader of parameters never panics, explains what it rejects, and writes back what
//! it accepts, byte for byte.

use bytes::Bytes;
use irc_diag::Sink;
use irc_mlf::params;

/// The magic number of every file, which mutations do not find.
const MAGIC: [u8; 8] = [0xb7, 0x9c, 0x04, 0x05, 0x4f, 0x8d, 0xe5, 0xf7];

/// Checks the properties of the module for these bytes.
pub fn check(bytes: &[u8]) {
    let bytes = bytes.strip_prefix(&MAGIC).unwrap_or(bytes);
    let bytes = Bytes::from([&MAGIC, bytes].concat());
    let mut sink = Sink::new();
    let read = params::read(&bytes, &mut sink);
    assert_eq!(read.is_none(), sink.has_errors(), "rejected if and only if explained");
    if let Some(read) = read {
        assert_eq!(params::write(&read), bytes, "written as it was");
    }
}
