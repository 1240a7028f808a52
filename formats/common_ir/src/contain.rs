//! Files that a document names, held to a folder.
//!
//! A document comes from anywhere, and the paths in it are not to reach what its folder does not
//! hold: neither by `..` or from the root, nor through links of either kind.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// Why a file of a folder is not read.
#[derive(Debug)]
pub enum Error {
    /// The path is none within the folder.
    Outside,
    /// A link leads out of the folder.
    Link,
    /// It is a folder, a pipe or a device.
    NoFile,
    /// It has a second name.
    SecondName,
    /// The system rejects it.
    Unreadable(std::io::Error),
}

impl Error {
    /// How to mend it.
    pub(crate) fn help(&self) -> Option<&'static str> {
        matches!(self, Self::SecondName).then_some("copy the file instead of linking it")
    }

    /// Whether there is no such file.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Unreadable(error) if error.kind() == std::io::ErrorKind::NotFound)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside => f.write_str("is not a path within the model's folder"),
            Self::Link => f.write_str("leaves the model's folder by a link"),
            Self::NoFile => f.write_str("is not a file"),
            Self::SecondName => {
                f.write_str("has a second name, which may be outside the model's folder")
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
    // Not a link put in its place meanwhile, and without waiting for the other end of a pipe.
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
