//! Any bytes: archives and everything in them are read and checked without a panic, what is rejected
//! is explained, and members written are the members read.
//!
//! Checksums of headers are corrected first, as mutations do not find valid ones.

use bytes::Bytes;
use irc_diag::{Sink, render};
use irc_mlf::{Archive, Depth, read};

const BLOCK: usize = 512;

/// Checks the properties of the module for these bytes.
pub fn check(bytes: &[u8]) {
    let bytes = Bytes::from(sealed(bytes));
    let (package, report) = read("fuzz.tar", &bytes);
    assert_eq!(package.is_none(), report.has_errors(), "rejected if and only if explained");
    let checked = package.map(|package| irc_mlf::check(&package, Depth::Content));
    for report in checked.iter().chain([&report]) {
        for file in report.files() {
            render(&file.source, &file.found, false, 80);
        }
    }
    if let Some(archive) = Archive::read("fuzz.tar", &bytes, &mut Sink::new()) {
        let mut written = vec![];
        // Long paths are read, but not written.
        if archive.write(0, &mut written).is_ok() {
            let again = Archive::read("fuzz.tar", &written.into(), &mut Sink::new());
            assert_eq!(again, Some(archive), "written and read again");
        }
    }
}

/// The bytes with a valid checksum in every block that may be a header.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for block in bytes.chunks_exact_mut(BLOCK).filter(|block| block[257..].starts_with(b"ustar")) {
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    bytes
}
