//! Where files are read from: the file system, or memory.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;

use crate::contain::{self, Error};

/// Where files are read from. Everything that a model names, its external data and its libraries, is read
/// through it.
pub trait Files: Debug + Send + Sync {
    /// The bytes of a file.
    ///
    /// # Errors
    /// The file cannot be read.
    fn read(&self, path: &Path) -> io::Result<Bytes>;

    /// The path of a folder without links, by which files are found to be within it.
    ///
    /// # Errors
    /// There is no such folder.
    fn folder(&self, path: &Path) -> io::Result<PathBuf>;

    /// A file by its path within a folder, which it must not leave, and its path without links. The folder
    /// is one that [`Files::folder`] gave.
    ///
    /// # Errors
    /// A path that leads out of the folder, or a file that cannot be read.
    fn read_within(&self, folder: &Path, relative: &Path) -> Result<(PathBuf, Bytes), Error>;

    /// Keeps a file that was fetched, for later reads; nobody sees a part of it.
    ///
    /// # Errors
    /// The file cannot be written, as by default.
    fn keep(&self, _path: &Path, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The file system. Files are memory-mapped: what is not looked at is not read.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileSystem;

/// Most bytes that are read of what is not a file: a device or a pipe may have no end.
pub const MAX_STREAM: u64 = 256 << 20;

impl Files for FileSystem {
    /// What is not a file, such as a pipe, is read to its end.
    fn read(&self, path: &Path) -> io::Result<Bytes> {
        let file = File::open(path)?;
        if file.metadata()?.is_file() {
            return map_file(&file);
        }
        let mut bytes = vec![];
        file.take(MAX_STREAM + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_STREAM {
            let message =
                format!("it is not a regular file and has more than {} MiB", MAX_STREAM >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        Ok(bytes.into())
    }

    fn folder(&self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    fn read_within(&self, folder: &Path, relative: &Path) -> Result<(PathBuf, Bytes), Error> {
        let (path, file) = contain::open(folder, relative)?;
        let bytes = map_file(&file).map_err(Error::Unreadable)?;
        Ok((path, bytes))
    }

    fn keep(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let part = path.with_extension(format!("{}.part", std::process::id()));
        let written = fs::write(&part, bytes).and_then(|()| fs::rename(&part, path));
        written.inspect_err(|_| drop(fs::remove_file(&part)))
    }
}

/// Maps a file that is open.
#[allow(unsafe_code)]
fn map_file(file: &File) -> io::Result<Bytes> {
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

/// Files in memory, by path. A path means what is written: there are no links, and `.` and an empty path are
/// the same folder.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles(BTreeMap<PathBuf, Bytes>);

impl MemoryFiles {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, or replaces it.
    #[must_use]
    pub fn with(mut self, path: impl AsRef<Path>, bytes: impl Into<Bytes>) -> Self {
        self.0.insert(plain(path.as_ref()), bytes.into());
        self
    }
}

impl Files for MemoryFiles {
    fn read(&self, path: &Path) -> io::Result<Bytes> {
        let bytes = self.0.get(&plain(path)).cloned();
        bytes.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file in memory"))
    }

    fn folder(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(plain(path))
    }

    fn read_within(&self, folder: &Path, relative: &Path) -> Result<(PathBuf, Bytes), Error> {
        contain::expect_within(relative)?;
        let path = plain(&folder.join(relative));
        let bytes = self.read(&path).map_err(Error::Unreadable)?;
        Ok((path, bytes))
    }
}

/// A path without `.`.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_memory_are_held_to_their_folder() {
        let files = MemoryFiles::new().with("models/a/data.bin", "abc").with("models/b.bin", "b");
        let folder = files.folder(Path::new("./models/a")).expect("a folder");
        let read = |path| files.read_within(&folder, Path::new(path));
        let (path, bytes) = read("./data.bin").expect("a file");
        assert_eq!((path.as_path(), &*bytes), (Path::new("models/a/data.bin"), &b"abc"[..]));
        assert!(matches!(read("../b.bin"), Err(Error::Outside)));
        assert!(matches!(read("/models/b.bin"), Err(Error::Outside)));
        assert!(read("other.bin").is_err_and(|error| error.is_missing()));
    }

    #[test]
    fn a_kept_file_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cache/a.lib");
        FileSystem.keep(&path, b"abc").expect("written");
        assert_eq!(FileSystem.read(&path).expect("kept"), "abc");
        let names = fs::read_dir(folder.path().join("cache")).expect("a folder");
        assert_eq!(names.count(), 1);
    }

    #[test]
    fn a_device_without_end_is_rejected() {
        let error = FileSystem.read(Path::new("/dev/zero")).expect_err("no end");
        assert_eq!(error.to_string(), "it is not a regular file and has more than 256 MiB");
    }
}
