//! Files, by direct system calls, which take less code than the standard library.
use std::{
    ffi::{CStr, CString, OsStr, c_int},
    io,
    ops::Deref,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    ptr::{NonNull, null_mut},
};

/// A file mapped into memory, to be read.
pub struct MappedFile {
    base: NonNull<u8>,
    bytes: usize,
}

// Safety: the memory is only read.
unsafe impl Send for MappedFile {}
// Safety: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Maps a file.
    ///
    /// # Errors
    /// The system's.
    ///
    /// # Safety
    /// Nobody changes the file while it is mapped.
    pub unsafe fn open(path: &Path) -> io::Result<Self> {
        let path = text(path)?;
        // Safety: the path ends in a zero.
        let file = owned(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) })?;
        // Safety: asks only.
        let bytes = unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_END) };
        let bytes = usize::try_from(bytes).map_err(|_| io::Error::last_os_error())?;
        if bytes == 0 {
            return Ok(MappedFile { base: NonNull::dangling(), bytes });
        }
        let (access, kind) = (libc::PROT_READ, libc::MAP_SHARED);
        // Safety: a new mapping touches no memory that is there.
        let base = unsafe { libc::mmap(null_mut(), bytes, access, kind, file.as_raw_fd(), 0) };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr() != libc::MAP_FAILED.cast() => {
                Ok(MappedFile { base, bytes })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // Safety: the mapping has these bytes, or there are none.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.bytes) }
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // Safety: the mapping is this one's own; unmapping what was mapped does not fail.
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
        }
    }
}

/// A file that is nowhere but in memory, with these bytes.
///
/// # Errors
/// The system's.
pub fn in_memory(mut bytes: &[u8]) -> io::Result<OwnedFd> {
    // Safety: the name ends in a zero.
    let file = owned(unsafe { libc::memfd_create(c"irc-model".as_ptr(), libc::MFD_CLOEXEC) })?;
    while !bytes.is_empty() {
        // Safety: the bytes are there.
        let written = unsafe { libc::write(file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.raw_os_error() != Some(libc::EINTR) {
                    return Err(error);
                }
            }
        }
    }
    Ok(file)
}

/// The path from the root to a file that is there, without links.
///
/// # Errors
/// The system's.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    let path = text(path)?;
    // Safety: the path ends in a zero.
    let real = unsafe { libc::realpath(path.as_ptr(), null_mut()) };
    if real.is_null() {
        return Err(io::Error::last_os_error());
    }
    // Safety: a new text that ends in a zero, which is freed once.
    unsafe {
        let path = OsStr::from_bytes(CStr::from_ptr(real).to_bytes()).into();
        libc::free(real.cast());
        Ok(path)
    }
}

/// A path as the system takes it.
pub fn text(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// What the system says is the number of a new file.
fn owned(number: c_int) -> io::Result<OwnedFd> {
    match number {
        // Safety: nobody else has the number.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_mapped() {
        for bytes in [&b""[..], b"some bytes"] {
            let file = in_memory(bytes).expect("memory");
            let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
            // Safety: nobody has the file but this.
            let mapped = unsafe { MappedFile::open(&path) }.expect("a file");
            assert_eq!(&*mapped, bytes);
        }
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let path = Path::new("/nowhere/at all");
        // Safety: there is no file.
        let error = unsafe { MappedFile::open(path) }.err().expect("no file");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(real_path(path).is_err() && real_path(Path::new("a\0b")).is_err());
        // Safety: a folder is none either.
        assert!(unsafe { MappedFile::open(Path::new("/")) }.is_err());
        assert_eq!(real_path(Path::new("/usr/..")).expect("the root"), Path::new("/"));
    }
}
