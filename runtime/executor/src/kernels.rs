//! The functions of a plan's tasks: from a shared library, or from the host program.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::Error;
use crate::code::Entry;

/// Functions by name.
#[derive(Clone)]
pub struct Kernels(Source);

#[derive(Clone)]
enum Source {
    Library(Arc<libloading::Library>),
    Table(BTreeMap<String, Entry>),
}

impl Kernels {
    /// The functions that a shared library exports.
    ///
    /// # Errors
    /// [`Error::Load`].
    pub fn load(path: &Path) -> Result<Self, Error> {
        let unreadable = |reason: String| Error::Load { path: path.to_owned(), reason };
        let bytes = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
        irc_runtime::check_image(&bytes).map_err(unreadable)?;
        // Safety: loading runs the library's initialisers; compiled plans have none.
        let library = unsafe { libloading::Library::new(path) }
            .map_err(|error| unreadable(error.to_string()))?;
        Ok(Self(Source::Library(Arc::new(library))))
    }

    /// Functions of the host program.
    ///
    /// # Safety
    /// Each accesses only the memory that its description in the [`PlanCode`](crate::code::PlanCode) states.
    pub unsafe fn from_entries(entries: BTreeMap<String, Entry>) -> Self {
        Self(Source::Table(entries))
    }

    /// The function with that name.
    pub(crate) fn entry(&self, symbol: &str) -> Option<Entry> {
        match &self.0 {
            // Safety: the compiler exports kernels with this type; the caller keeps `self` alive while
            // the function is in use.
            Source::Library(library) => unsafe {
                library.get::<Entry>(symbol.as_bytes()).ok().map(|entry| *entry)
            },
            Source::Table(entries) => entries.get(symbol).copied(),
        }
    }
}
