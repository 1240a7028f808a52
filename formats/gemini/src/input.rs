//! Files, which may be compressed.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use flate2::{Compression, read::MultiGzDecoder, write::GzEncoder};
use irc_diag::{Diagnostic, Source};

/// Maximum decompressed size in bytes.
const MAX_UNPACKED: u64 = 256 << 20;

/// First bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The text of a file, decompressed if it is a gzip file.
///
/// # Errors
/// A diagnostic if the file is damaged or its contents exceed 256 MiB.
pub fn source(name: &str, bytes: &[u8]) -> Result<Source, Box<Diagnostic>> {
    Ok(Source::from_bytes(name, &unpacked(bytes)?))
}

/// The bytes of a file, decompressed if it is a gzip file.
///
/// # Errors
/// As [`source`].
pub fn unpacked(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Box<Diagnostic>> {
    if !bytes.starts_with(&GZIP) {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut unpacked = vec![];
    let read = MultiGzDecoder::new(bytes).take(MAX_UNPACKED + 1).read_to_end(&mut unpacked);
    let reject = |message: String| Err(Box::new(Diagnostic::error("gem-compressed", message)));
    match read {
        Err(error) => reject(format!("the gzip file cannot be decompressed: {error}")),
        Ok(_) if unpacked.len() as u64 > MAX_UNPACKED => {
            reject(format!("the gzip file has more than {MAX_UNPACKED} bytes"))
        }
        Ok(_) => Ok(Cow::Owned(unpacked)),
    }
}

/// A gzip file with these bytes; without a time, so that equal bytes give equal files.
pub fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![];
    pack(&mut file, |out| out.write_all(bytes)).expect("writing to memory succeeds");
    file
}

/// As [`packed`], of bytes that are written piece by piece, to `to`.
///
/// # Errors
/// Those of `to` and of `produce`.
pub fn pack(
    to: &mut dyn Write,
    produce: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut encoder = GzEncoder::new(to, Compression::default());
    produce(&mut encoder)?;
    encoder.finish().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_files_are_unpacked() {
        let source = source("x", &packed(b"{}")).expect("a valid file");
        assert_eq!(source.text(), "{}");
    }

    #[test]
    fn damaged_files_are_rejected() {
        let mut bytes = packed(b"some text that is long enough");
        bytes.truncate(20);
        assert_eq!(source("x", &bytes).expect_err("cut off").code, "gem-compressed");
    }
}
