//! Strings in `.npy` files: `<U5` holds 5 code points of 4 bytes each, `|S5` holds 5 bytes; shorter
//! strings end in zeros, which are not part of them.

use crate::{DType, Strings, Tensor, TensorType};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;

/// Maximum length of a string in a header.
const MAX_LENGTH: usize = 1 << 32;

/// Maximum number of bytes that are written for an array: every string takes as many as the longest.
const MAX_BYTES: u64 = 1 << 32;

/// How a file stores strings.
pub enum Text {
    /// Code points.
    Unicode(usize),
    /// Bytes.
    Bytes(usize),
}

impl Text {
    /// The representation that a `descr` names.
    pub fn of(descr: &str) -> Option<Self> {
        let length = |digits: &str| digits.parse().ok().filter(|length| *length <= MAX_LENGTH);
        let bytes = descr.strip_prefix("|S").and_then(length).map(Self::Bytes);
        bytes.or_else(|| descr.strip_prefix("<U").and_then(length).map(Self::Unicode))
    }

    /// Bytes per string.
    pub const fn width(&self) -> usize {
        match self {
            Self::Unicode(length) => 4 * *length,
            Self::Bytes(length) => *length,
        }
    }

    /// The strings in the bytes of a file, in its order.
    pub fn read(&self, ty: &TensorType, bytes: &[u8]) -> Result<Tensor, String> {
        let failed = |error: crate::TensorError| error.to_string();
        let mut tensor = Tensor::zeros(ty.clone()).map_err(failed)?;
        let mut strings = Strings::default();
        for (index, handle) in tensor.handles_mut().iter_mut().enumerate() {
            let stored = &bytes[index * self.width()..][..self.width()];
            let text = match self {
                Self::Bytes(_) => stored.to_vec(),
                Self::Unicode(_) => utf8(stored)?.into_bytes(),
            };
            let length = text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            *handle = strings.intern(&text[..length]);
        }
        Ok(tensor.with_strings(&Arc::new(strings)))
    }
}

fn utf8(points: &[u8]) -> Result<String, String> {
    let point = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let character = |bytes: &[u8]| {
        let point = point(bytes);
        char::from_u32(point).ok_or_else(|| format!("U+{point:X} is not a character"))
    };
    points.chunks_exact(4).map(character).collect()
}

/// A tensor of strings to be written.
pub struct Written {
    texts: Vec<Arc<[u8]>>,
    /// Whether all strings are UTF-8: they are then stored as code points, and otherwise as bytes.
    is_unicode: bool,
    /// The length of the longest.
    length: usize,
}

impl Written {
    /// The strings of a tensor; `None` for other types.
    pub fn of(tensor: &Tensor) -> io::Result<Option<Self>> {
        let Some(texts) = tensor.to_strings() else { return Ok(None) };
        // Strings that occur often are decoded once.
        let distinct: BTreeSet<&Arc<[u8]>> = texts.iter().collect();
        let is_unicode = distinct.iter().all(|text| std::str::from_utf8(text).is_ok());
        let length = |text: &&Arc<[u8]>| match std::str::from_utf8(text) {
            Ok(text) if is_unicode => text.chars().count(),
            _ => text.len(),
        };
        // NumPy has no strings of length 0 either.
        let length = distinct.iter().map(length).max().unwrap_or(0).max(1);
        let written = Self { is_unicode, length, texts };
        let bytes = (written.texts.len() as u64).saturating_mul(written.text().width() as u64);
        if bytes > MAX_BYTES {
            return Err(io::Error::other(format!(
                "{} with a longest string of {length} characters takes {bytes} bytes in .npz: expected \
                 at most {MAX_BYTES}",
                TensorType::new(DType::String, tensor.shape())
            )));
        }
        Ok(Some(written))
    }

    const fn text(&self) -> Text {
        if self.is_unicode { Text::Unicode(self.length) } else { Text::Bytes(self.length) }
    }

    /// The `descr` of the array.
    pub fn descr(&self) -> String {
        match self.text() {
            Text::Unicode(length) => format!("<U{length}"),
            Text::Bytes(length) => format!("|S{length}"),
        }
    }

    /// Writes the data.
    pub fn write(&self, sink: &mut impl Write) -> io::Result<()> {
        let width = self.text().width() as u64;
        for text in &self.texts {
            let mut bytes = text.to_vec();
            if let (true, Ok(text)) = (self.is_unicode, std::str::from_utf8(text)) {
                bytes = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
            }
            let missing = width.saturating_sub(bytes.len() as u64);
            sink.write_all(&bytes)?;
            io::copy(&mut io::Read::take(io::repeat(0), missing), sink)?;
        }
        Ok(())
    }
}
