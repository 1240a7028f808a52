//! Loading of shared libraries by the system's loader.
use libloading::os::unix::Library;
use std::{error::Error, ffi::c_int, path::Path};

/// Loads a library by `dlopen`, with the given flags.
///
/// # Errors
/// The loader's message.
///
/// # Safety
/// The library's initialisers run.
pub unsafe fn open(path: &Path, flags: c_int) -> Result<Library, String> {
    // The loader searches its own directories for a name without a slash.
    let path = Path::new(".").join(path);
    // Safety: guaranteed by the caller.
    unsafe { Library::open(Some(path), flags) }.map_err(message)
}

/// The message of an error of the loader.
pub fn message(error: libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}
