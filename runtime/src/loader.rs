//! Shared libraries loaded by the system's loader.
use crate::file;
use std::{
    ffi::{CStr, CString, c_int, c_void},
    path::Path,
};

/// A library, until it is dropped.
pub struct DynamicLibrary(*mut c_void);

// Safety: the loader's functions may be called from any thread.
unsafe impl Send for DynamicLibrary {}
// Safety: as above.
unsafe impl Sync for DynamicLibrary {}

impl DynamicLibrary {
    /// Loads a library by `dlopen`, with its flags.
    ///
    /// # Errors
    /// The loader's words.
    ///
    /// # Safety
    /// The library's initialisers run.
    pub unsafe fn open(path: &Path, flags: c_int) -> Result<Self, String> {
        let path = file::text(path).map_err(|error| error.to_string())?;
        // Safety: the path ends in a zero; of the initialisers the caller knows.
        let library = unsafe { libc::dlopen(path.as_ptr(), flags) };
        if library.is_null() { Err(said()) } else { Ok(DynamicLibrary(library)) }
    }

    /// Where a symbol is, as long as the library lives.
    ///
    /// # Errors
    /// The loader's words.
    pub fn symbol(&self, name: &str) -> Result<*mut c_void, String> {
        let name = CString::new(name).map_err(|error| error.to_string())?;
        // Safety: the library is loaded, and the name ends in a zero.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        if found.is_null() { Err(said()) } else { Ok(found) }
    }
}

impl Drop for DynamicLibrary {
    fn drop(&mut self) {
        // Safety: it was loaded, and is let go of once.
        unsafe { libc::dlclose(self.0) };
    }
}

/// What the loader says of the last call on this thread that failed.
fn said() -> String {
    // Safety: a text that ends in a zero, until the next call on this thread.
    let words = unsafe { libc::dlerror() };
    if words.is_null() {
        return "the loader gives no reason".into();
    }
    // Safety: as above.
    unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
}
