//! Temporary files and folders, which are removed as well when a signal ends the program.
use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, Once, PoisonError},
    thread,
};

/// Signals that ask a program to end.
const SIGNALS: [i32; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];

/// What is to be removed.
static PATHS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn paths() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    PATHS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A path that is removed when a signal ends the program while this value exists.
#[derive(Debug)]
struct Listed(PathBuf);

impl Listed {
    fn new(path: &Path) -> Self {
        static START: Once = Once::new();
        START.call_once(watch);
        paths().insert(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        paths().remove(&self.0);
    }
}

/// A file that is removed when dropped, unless it is renamed.
#[derive(Debug)]
pub struct File {
    file: tempfile::NamedTempFile,
    _listed: Listed,
}

impl File {
    /// A file that was created.
    pub fn new(file: tempfile::NamedTempFile) -> Self {
        let _listed = Listed::new(file.path());
        Self { file, _listed }
    }

    /// The open file.
    pub fn file(&mut self) -> &mut tempfile::NamedTempFile {
        &mut self.file
    }

    /// Another handle of the file, from its start.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn reopen(&self) -> io::Result<fs::File> {
        self.file.reopen()
    }

    /// Whether nothing was written to it.
    pub fn is_empty(&self) -> bool {
        self.file.as_file().metadata().map_or(true, |found| found.len() == 0)
    }

    /// Renames the file to a path, where it stays.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn persist(self, path: &Path) -> io::Result<()> {
        self.file.persist(path).map(drop).map_err(|error| error.error)
    }
}

/// A folder that is removed when dropped.
#[derive(Debug)]
pub struct Folder {
    folder: tempfile::TempDir,
    _listed: Listed,
}

impl Folder {
    /// A new folder, where the system has its temporary files.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn new() -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let _listed = Listed::new(folder.path());
        Ok(Self { folder, _listed })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Starts the thread that waits for signals. Those that are ignored, as under `nohup`, stay so. If there can be no such
/// thread, signals end the program as they do by default.
fn watch() {
    let watched: Vec<i32> = SIGNALS.into_iter().filter(|signal| !is_ignored(*signal)).collect();
    let Ok(mut signals) = signal_hook::iterator::Signals::new(&watched) else { return };
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            // Not given back: nothing new is created.
            let paths = paths();
            for path in paths.iter() {
                // What cannot be removed stays.
                let _ =
                    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            }
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    };
    if thread::Builder::new().name("signals".to_owned()).spawn(wait).is_err() {
        for signal in watched {
            // SAFETY: the default action is valid for any signal.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: a null pointer leaves the action as it is; the old one is written to memory of its type.
    let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let found = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut old) };
    found == 0 && old.sa_sigaction == libc::SIG_IGN
}
