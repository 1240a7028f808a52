//! The machine code of an archive, as a loaded library.
use super::{error::ModelError, packed::Function, slots};
use crate::{image, loader};
use libloading::os::unix::Library;
use std::{
    ffi::c_void,
    fs::File,
    io::{self, Write},
    os::fd::{AsRawFd, FromRawFd},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// A loaded library with initialised slots.
pub struct Code {
    library: Arc<Library>,
    /// Its name in messages.
    name: String,
}

impl Code {
    /// Loads a library from a file.
    ///
    /// # Errors
    /// [`ModelError::File`] and [`ModelError::Load`].
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let unreadable = |error: io::Error| ModelError::File {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let name = path.display().to_string();
        let checked = image::check_file(path).map_err(unreadable)?;
        checked.map_err(|reason| ModelError::Load { name: name.clone(), reason })?;
        load(path, name)
    }

    /// Loads a library from memory.
    ///
    /// # Errors
    /// [`ModelError::Load`].
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self, ModelError> {
        let failed = |reason: String| ModelError::Load { name: name.to_owned(), reason };
        image::check(bytes).map_err(failed)?;
        let file = in_memory(bytes).map_err(|error| failed(error.to_string()))?;
        load(&unique_path(&file), name.to_owned())
    }

    /// The program of the library, if it has one with open sizes, which is then run instead of a graph.
    ///
    /// # Errors
    /// [`ModelError::Library`].
    pub fn program(&self) -> Result<Option<crate::Library>, ModelError> {
        // Safety: only whether the symbol exists matters.
        if unsafe { self.library.get::<*const c_void>("irc_metadata") }.is_err() {
            return Ok(None);
        }
        let program = crate::Library::entry(Path::new(&self.name), &self.library, "")?;
        Ok(Some(program))
    }

    /// A function by name.
    ///
    /// # Errors
    /// [`ModelError::Load`] if the library has no function with that name.
    pub fn function(&self, name: &str) -> Result<Function, ModelError> {
        // Safety: all packed functions have the same type.
        match unsafe { self.library.get::<Function>(name) } {
            Ok(function) => Ok(*function),
            Err(_) => Err(ModelError::Load {
                name: self.name.clone(),
                reason: format!("it has no function `{name}`"),
            }),
        }
    }
}

fn load(path: &Path, name: String) -> Result<Code, ModelError> {
    // Safety: loading runs the initialisers of the code, which the caller trusts.
    let library = unsafe { loader::open(path, libc::RTLD_NOW | libc::RTLD_LOCAL) };
    let library = match library {
        Ok(library) => library,
        Err(reason) => return Err(ModelError::Load { name, reason }),
    };
    for (slot, function) in slots::all() {
        // Safety: a slot is a variable of pointer size.
        unsafe {
            if let Ok(variable) = library.get::<*mut *const c_void>(slot) {
                variable.write(function);
            }
        }
    }
    Ok(Code { library: Arc::new(library), name })
}

/// A file that exists only in memory, with these bytes.
fn in_memory(bytes: &[u8]) -> io::Result<File> {
    // Safety: the name is zero-terminated.
    let descriptor = unsafe { libc::memfd_create(c"irc-model".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // Safety: the descriptor is not used elsewhere.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(bytes)?;
    Ok(file)
}

/// A path to an open file that no other library has had: the loader identifies a library by its path,
/// and file descriptors are reused.
fn unique_path(file: &impl AsRawFd) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut path = String::from("/proc/self/fd");
    // `/.` and `//` do not change what the path names; they encode the count.
    while count > 0 {
        path.push_str(if count & 1 == 1 { "/." } else { "/" });
        count >>= 1;
    }
    path.push_str(&format!("/{}", file.as_raw_fd()));
    path.into()
}
