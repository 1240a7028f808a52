//! Opens files that a document names, confined to a folder.
//!
//! Documents are untrusted: the paths in them must not reach files outside of the folder, neither by
//! `..` or absolute paths, nor through symbolic or hard links.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// Reasons why a file cannot be opened.
#[derive(Debug)]
pub enum Error {
    /// The path is not within the folder.
    Outside,
    /// A symbolic link leads out of the folder.
    Link,
    /// It is a folder, a pipe or a device.
    NoFile,
    /// It has several hard links.
    SecondName,
    /// An error of the operating system.
    Unreadable(std::io::Error),
}

impl Error {
    /// How to resolve the error.
    pub(crate) fn help(&self) -> Option<&'static str> {
        matches!(self, Self::SecondName).then_some("copy the file instead of linking it")
    }

    /// Whether the file does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Unreadable(error) if error.kind() == std::io::ErrorKind::NotFound)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside => f.write_str("is not a path within the model's folder"),
            Self::Link => f.write_str("leaves the model's folder by a link"),
            Self::NoFile => f.write_str("is not a regular file"),
            Self::SecondName => {
                f.write_str("has several hard links, which may be outside the model's folder")
            }
            Self::Unreadable(error) => write!(f, "cannot be read: {error}"),
        }
    }
}

/// Opens a file of a folder, which is given without links; returns its path without links.
pub(crate) fn open(root: &Path, relative: &Path) -> Result<(PathBuf, File), Error> {
    expect_within(relative)?;
    let path = root.join(relative).canonicalize().map_err(Error::Unreadable)?;
    if !path.starts_with(root) {
        return Err(Error::Link);
    }
    // Do not follow a link created in the meantime, and do not block on a pipe.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(&path);
    let file = file.map_err(Error::Unreadable)?;
    let about = file.metadata().map_err(Error::Unreadable)?;
    if !about.is_file() {
        return Err(Error::NoFile);
    }
    if about.nlink() > 1 {
        return Err(Error::SecondName);
    }
    Ok((path, file))
}

/// Demands that a path, as it is written, does not leave the folder that it is relative to.
pub(crate) fn expect_within(relative: &Path) -> Result<(), Error> {
    let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    let bytes = relative.as_os_str().as_encoded_bytes();
    let is_odd = bytes.iter().any(|byte| matches!(byte, 0 | b'\\'));
    match relative.components().all(is_inside) && !is_odd {
        true => Ok(()),
        false => Err(Error::Outside),
    }
}
