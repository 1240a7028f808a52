//! Files as they lie on disk, compressed or not.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use irc_diag::{Diagnostic, Source};

/// Most bytes that a compressed file may hold.
const MAX_UNPACKED: u64 = 256 << 20;

/// First bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The text of a file, unpacked when it is a gzip file.
///
/// # Errors
/// A finding when the file is damaged or holds more than 256 MiB.
pub fn source(name: &str, bytes: &[u8]) -> Result<Source, Box<Diagnostic>> {
    if !bytes.starts_with(&GZIP) {
        return Ok(Source::from_bytes(name, bytes));
    }
    let mut unpacked = vec![];
    let read = MultiGzDecoder::new(bytes).take(MAX_UNPACKED + 1).read_to_end(&mut unpacked);
    let refuse = |message: String| Err(Box::new(Diagnostic::error("gem-compressed", message)));
    match read {
        Err(error) => refuse(format!("the gzip file cannot be unpacked: {error}")),
        Ok(_) if unpacked.len() as u64 > MAX_UNPACKED => {
            refuse(format!("the gzip file holds more than {MAX_UNPACKED} bytes"))
        }
        Ok(_) => Ok(Source::from_bytes(name, &unpacked)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    #[test]
    fn compressed_files_are_unpacked() {
        let source = source("x", &packed(b"{}")).expect("a sound file");
        assert_eq!(source.text(), "{}");
    }

    #[test]
    fn damaged_files_are_refused() {
        let mut bytes = packed(b"some text that is long enough");
        bytes.truncate(20);
        assert_eq!(source("x", &bytes).expect_err("cut off").code, "gem-compressed");
    }
}
