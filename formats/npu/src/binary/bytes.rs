//! Reading bytes that may end too early.

use std::fmt;

use irc_diag::Diagnostic;

/// Why bytes are not a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Offset in the file.
    pub offset: usize,
    /// What is wrong there.
    pub message: String,
    /// Whether the file ends before what it states does.
    pub is_end: bool,
}

impl Error {
    /// A fault that is not the end of the file.
    pub fn new(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, message: message.into(), is_end: false }
    }

    /// Names what the file ends in, if that is the fault.
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
    fn from(fault: Error) -> Self {
        Self::error("npu-binary", fault.to_string())
    }
}

/// Bytes yet to be read.
pub struct Bytes<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Bytes<'b> {
    /// From the first byte of a file.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// A fault at the present place.
    pub fn fault(&self, message: &str) -> Error {
        Error::new(self.at, message)
    }

    /// The fault of a file that ends before what it states does.
    fn end(&self, message: &str) -> Error {
        Error { is_end: true, ..self.fault(message) }
    }

    /// Number of bytes left.
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

    /// An unsigned number, seven bits a byte, lowest first, without needless bytes.
    pub fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(self.fault("a number has more than 64 bits"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                let padded = byte == 0 && shift > 0;
                return if padded {
                    Err(self.fault("a number is not in its shortest form"))
                } else {
                    Ok(value)
                };
            }
        }
        Err(self.fault("a number has more than 64 bits"))
    }

    /// A count of things that take at least `least` bytes each, so that it bounds memory.
    pub fn count(&mut self, least: usize) -> Result<usize, Error> {
        let count = self.varint()?;
        let fits = usize::try_from(count).ok().filter(|count| *count <= self.left() / least);
        fits.ok_or_else(|| self.end("a count exceeds the file"))
    }
}
