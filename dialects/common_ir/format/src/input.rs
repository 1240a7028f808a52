//! The bytes of a file.

use std::fs::File;
use std::io;
use std::path::Path;

use bytes::Bytes;
use irc_diag::Source;

use crate::{Encoding, Form};

/// The file a module was read from; cheap to clone.
#[derive(Clone, Debug)]
pub struct Input {
    name: String,
    bytes: Bytes,
    form: Form,
}

impl Input {
    pub(crate) fn new(name: &str, bytes: Bytes, form: Form) -> Self {
        Self { name: name.into(), bytes, form }
    }

    /// Name of the file, as a user would recognise it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Its form.
    pub fn form(&self) -> Form {
        self.form
    }

    /// What findings are shown against: the text, or nothing but the name for a binary file.
    pub fn source(&self) -> Source {
        source(&self.name, &self.bytes, self.form.encoding)
    }
}

pub(crate) fn source(name: &str, bytes: &Bytes, encoding: Encoding) -> Source {
    match encoding {
        Encoding::Binary => Source::new(name, ""),
        Encoding::Json | Encoding::Text => Source::from_bytes(name, bytes),
    }
}

/// Maps a file into memory: what is not looked at is not read.
///
/// # Errors
/// The file cannot be opened or mapped.
pub fn map(path: &Path) -> io::Result<Bytes> {
    map_file(&File::open(path)?)
}

/// As [`map`], of a file that is open.
///
/// # Errors
/// It cannot be mapped.
#[allow(unsafe_code)]
pub(crate) fn map_file(file: &File) -> io::Result<Bytes> {
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the map is read-only and lives as long as the bytes. Another process that shortens
    // the file while it is mapped ends this one with a bus error, and one that writes to it
    // changes what we read; both are the price of not copying models of gigabytes, and the reason
    // why nothing that was checked is read twice where it matters.
    let map = unsafe { memmap2::Mmap::map(file)? };
    Ok(Bytes::from_owner(map))
}
