//! Reads bytes that may end too early.

use std::fmt;

use irc_diag::Diagnostic;

/// The reason why bytes are not a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Offset in the file.
    pub offset: usize,
    /// The message.
    pub message: String,
    /// Whether the file is truncated.
    pub is_end: bool,
}

impl Error {
    /// An error other than truncation.
    pub fn new(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, message: message.into(), is_end: false }
    }

    /// Adds the part of the file that is truncated, if that is the error.
    pub fn within(self, place: impl FnOnce() -> String) -> Self {
        match self.is_end {
            true => Self { message: format!("{}, in {}", self.message, place()), ..self },
            false => self,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.message)
    }
}

impl std::error::Error for Error {}

impl From<Error> for Diagnostic {
    fn from(error: Error) -> Self {
        Self::error("npu-binary", error.to_string())
    }
}

/// Bytes that remain to be read.
pub struct Bytes<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Bytes<'b> {
    /// Starts at the first byte of a file.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// An error at the current offset.
    pub fn error(&self, message: &str) -> Error {
        Error::new(self.at, message)
    }

    /// The error of a truncated file.
    fn end(&self, message: &str) -> Error {
        Error { is_end: true, ..self.error(message) }
    }

    /// Number of remaining bytes.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next byte.
    pub fn byte(&mut self) -> Result<u8, Error> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    /// The next bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let rest = &self.bytes[self.at..];
        let array = rest.first_chunk().ok_or_else(|| self.end("the file ends too early"))?;
        self.at += N;
        Ok(*array)
    }

    /// An unsigned LEB128 number in its shortest form.
    pub fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(self.error("a number has more than 64 bits"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                let padded = byte == 0 && shift > 0;
                return if padded {
                    Err(self.error("a number is not in its shortest form"))
                } else {
                    Ok(value)
                };
            }
        }
        Err(self.error("a number has more than 64 bits"))
    }

    /// A count of items of at least `least` bytes each, which limits memory.
    pub fn count(&mut self, least: usize) -> Result<usize, Error> {
        let count = self.varint()?;
        let fits = usize::try_from(count).ok().filter(|count| *count <= self.left() / least);
        fits.ok_or_else(|| self.end("a count exceeds the file"))
    }
}
