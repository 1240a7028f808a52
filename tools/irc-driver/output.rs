//! Artefacts: written to standard output, or to a file that appears only when it is complete.
use crate::{error::Error, temporary};
use irc_cli::{Flags, NamedFile};
use irc_mlir::Module;
use std::{
    fs::{self, Permissions},
    io::{self, IsTerminal, Write},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// The kind of an artefact's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text,
    /// Bytes that must not be shown in a terminal.
    Binary,
    /// Bytes that the system's loader loads.
    Executable,
}

/// Checks that all outputs of a command line can be written, before the work that produces their contents: none
/// replaces an input or another output. `place` is where an output is written that the command line names.
pub fn probe_all(flags: &Flags, place: impl Fn(&Path) -> PathBuf) -> Result<(), Error> {
    let files = flags.written().iter();
    probe_each(flags, vec![], files.map(|file| (flag(file), place(&file.path))))
}

/// As [`probe_all`], of files whose names follow from that of an output.
pub fn probe_derived(flags: &Flags, files: &[PathBuf]) -> Result<(), Error> {
    let taken = flags.written().iter().filter(|file| !is_special(&file.path));
    let taken = taken.map(|file| (flag(file), Place::of(&file.path))).collect();
    probe_each(flags, taken, files.iter().map(|file| ("a file beside the output", file.clone())))
}

fn flag(file: &NamedFile) -> &str {
    file.flag.as_deref().unwrap_or_default()
}

/// Checks that files can be written, each with the flag that names it; none is an input or `taken`.
fn probe_each<'f>(
    flags: &'f Flags,
    mut taken: Vec<(&'f str, Place)>,
    files: impl Iterator<Item = (&'f str, PathBuf)>,
) -> Result<(), Error> {
    let read: Vec<_> = flags.read().iter().filter(|file| !is_stdout(&file.path)).collect();
    for (flag, path) in files {
        let path = &path;
        let own = Place::of(path);
        if let Some((other, _)) = taken.iter().find(|(_, other)| *other == own) {
            let name = match is_stdout(path) {
                true => "standard output".to_owned(),
                false => path.display().to_string(),
            };
            return Err(Error::Usage(format!("{other} and {flag} both write to {name}")));
        }
        if let Some(input) =
            read.iter().find(|input| own.is_file() && Place::of(&input.path) == own)
        {
            let why = match &input.flag {
                Some(flag) => format!("it is the input of {flag}"),
                None => "it is the input".to_owned(),
            };
            return Err(unwritable(path, &why).help("choose another file to write"));
        }
        probe(path)?;
        if is_stdout(path) || !is_special(path) {
            taken.push((flag, own));
        }
    }
    Ok(())
}

/// Where an output is written.
#[derive(PartialEq, Eq)]
enum Place {
    Stdout,
    /// A file or device that exists, under any name: its device and inode.
    Existing(u64, u64),
    /// A file that does not exist yet.
    New(PathBuf),
}

impl Place {
    fn of(path: &Path) -> Self {
        if is_stdout(path) {
            return Self::Stdout;
        }
        if let Ok(found) = fs::metadata(path) {
            return Self::Existing(found.dev(), found.ino());
        }
        let folder = folder(path).canonicalize();
        let named = folder.ok().zip(path.file_name()).map(|(folder, name)| folder.join(name));
        Self::New(named.unwrap_or_else(|| path.to_owned()))
    }

    fn is_file(&self) -> bool {
        matches!(self, Self::Existing(..))
    }
}

/// Checks that a file can be written.
fn probe(path: &Path) -> Result<(), Error> {
    if is_stdout(path) || is_special(path) {
        return Ok(());
    }
    if path.is_dir() {
        return Err(unwritable(path, "it is a folder"));
    }
    staged(path, Content::Text).map(drop)
}

/// The suffix that selects the kind of a file; `.gz` only selects compression.
pub fn suffix(path: &Path) -> Option<&str> {
    let plain = if is_packed(path) { Path::new(path.file_stem()?) } else { path };
    plain.extension()?.to_str()
}

fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix == "gz")
}

/// Writes an artefact, compressed with gzip if the name ends in `.gz`; `-` is standard output.
pub fn write(path: &Path, bytes: &[u8], content: Content) -> Result<(), Error> {
    stage(path, bytes, content)?.finish()
}

/// As [`write()`], for a file that appears only when it is finished.
pub fn stage(path: &Path, bytes: &[u8], content: Content) -> Result<Stream, Error> {
    match is_packed(path) {
        true => stage_plain(path, &irc_gemini_format::packed(bytes), content),
        false => stage_plain(path, bytes, content),
    }
}

/// As [`stage()`], for a text that is written piece by piece.
pub fn stage_pieces(
    path: &Path,
    produce: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<Stream, Error> {
    let stream = Stream::open(path)?;
    let mut writer = stream.writer()?;
    let written = match is_packed(path) {
        true => irc_gemini_format::pack(&mut writer, produce),
        false => produce(&mut writer),
    };
    match written.and_then(|()| writer.flush()) {
        // As in `write_stdout`.
        Err(error) if is_stdout(path) && error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => return Err(unwritable(path, &plain(&error))),
        Ok(()) => {}
    }
    drop(writer);
    Ok(stream)
}

fn stage_plain(path: &Path, bytes: &[u8], content: Content) -> Result<Stream, Error> {
    if is_stdout(path) {
        write_stdout(bytes, content)?;
        return Ok(Stream { staged: None, path: path.to_owned() });
    }
    let failed = |error: io::Error| unwritable(path, &plain(&error));
    if is_special(path) {
        fs::write(path, bytes).map_err(failed)?;
        return Ok(Stream { staged: None, path: path.to_owned() });
    }
    let mut file = staged(path, content)?;
    file.file().write_all(bytes).map_err(failed)?;
    Ok(Stream { staged: Some(file), path: path.to_owned() })
}

/// An artefact that is written incrementally.
pub struct Stream {
    staged: Option<temporary::File>,
    path: PathBuf,
}

impl Stream {
    /// Opens a text artefact, which appears at the path when it is complete; `-` is standard output.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let in_place = is_stdout(path) || is_special(path);
        let staged = if in_place { None } else { Some(staged(path, Content::Text)?) };
        Ok(Self { staged, path: path.to_owned() })
    }

    /// The writer of the artefact.
    pub fn writer(&self) -> Result<Box<dyn Write + Send>, Error> {
        let failed = |error: io::Error| unwritable(&self.path, &plain(&error));
        let file = match &self.staged {
            Some(file) => file.reopen().map_err(failed)?,
            None if is_stdout(&self.path) => return Ok(Box::new(io::stdout())),
            None => fs::File::create(&self.path).map_err(failed)?,
        };
        Ok(Box::new(io::BufWriter::new(file)))
    }

    /// Whether anything was written to a file that has not appeared yet.
    pub fn is_begun(&self) -> bool {
        self.staged.as_ref().is_some_and(|file| !file.is_empty())
    }

    /// Makes the artefact appear, after the writer is dropped.
    pub fn finish(self) -> Result<(), Error> {
        let Some(file) = self.staged else { return Ok(()) };
        let kept = file.persist(&target(&self.path));
        kept.map_err(|error| unwritable(&self.path, &plain(&error)))
    }
}

/// Writes text to standard output.
pub fn print(text: &str) -> Result<(), Error> {
    write_stdout(text.as_bytes(), Content::Text)
}

fn write_stdout(bytes: &[u8], content: Content) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    if content != Content::Text && stdout.is_terminal() {
        let problem = Error::problem("cannot print a binary file to a terminal");
        return Err(problem.help("write it to a file, or pipe it on"));
    }
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        // A closed pipe, as with `| head`, is not an error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(unwritable(Path::new("standard output"), &plain(&error))),
        Ok(()) => Ok(()),
    }
}

/// Whether an artefact goes to standard output.
pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether a path is a device or pipe, which is written in place.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// The target of a link; the path itself if it is not a link.
fn target(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The folder of a path.
fn folder(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// A temporary file in the folder of `path`, which is removed unless it is renamed to `path`.
fn staged(path: &Path, content: Content) -> Result<temporary::File, Error> {
    let target = target(path);
    let folder = folder(&target);
    let mode = if content == Content::Executable { 0o777 } else { 0o666 };
    tempfile::Builder::new()
        .prefix(".irc-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)
        .map(temporary::File::new)
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if !folder.is_dir() => {
                let missing = format!("folder {} does not exist", folder.display());
                unwritable(path, &missing).help("create it, or choose another")
            }
            io::ErrorKind::NotFound => {
                unwritable(path, &format!("folder {} takes no new files", folder.display()))
            }
            _ => unwritable(path, &format!("folder {}: {}", folder.display(), plain(&error))),
        })
}

/// A folder that is removed when dropped.
pub fn temporary_folder() -> Result<temporary::Folder, Error> {
    temporary::Folder::new().map_err(|error| {
        let (place, why) = (std::env::temp_dir(), plain(&error));
        let problem = format!("cannot create a temporary folder in {}: {why}", place.display());
        Error::problem(problem).help("set TMPDIR to another folder")
    })
}

fn unwritable(path: &Path, reason: &str) -> Error {
    Error::problem(format!("cannot write {}: {reason}", path.display()))
}

/// An error of the system without the number and the path that Rust adds.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let text = text.split(" at path").next().unwrap_or(text);
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// MLIR as text with locations, or as bytecode if the suffix selects it.
pub fn mlir(module: &Module<'_>, output: &Path) -> (Vec<u8>, Content) {
    if suffix(output) == Some("mlirbc") {
        return (irc_mlir::to_bytecode(module), Content::Binary);
    }
    (irc_mlir::to_text(&module.as_operation(), true).into_bytes(), Content::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_in_one_step_and_keeps_the_usual_mode() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.json");
        fs::write(&path, "old").expect("writable");
        probe(&path).expect("writable");
        assert_eq!(fs::read(&path).expect("still there"), b"old");
        write(&path, b"new", Content::Text).expect("writable");
        assert_eq!(fs::read(&path).expect("there"), b"new");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o111, 0);
        assert_ne!(mode & 0o400, 0);
    }

    #[test]
    fn a_name_may_ask_for_a_gzip_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.npu.gz");
        assert_eq!((suffix(&path), suffix(Path::new("x.y.npu"))), (Some("npu"), Some("npu")));
        write(&path, b"new", Content::Binary).expect("writable");
        let bytes = fs::read(&path).expect("there");
        assert_eq!(&*irc_gemini_format::unpacked(&bytes).expect("a gzip file"), b"new");
    }

    #[test]
    fn a_missing_folder_is_named() {
        let Err(Error::Problem { message, help }) = probe(Path::new("/nowhere/at/all.so")) else {
            panic!("no problem");
        };
        assert_eq!(message, "cannot write /nowhere/at/all.so: folder /nowhere/at does not exist");
        assert!(help.is_some());
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").expect("writable");
        std::os::unix::fs::symlink(&real, &link).expect("links");
        write(&link, b"new", Content::Text).expect("writable");
        assert!(link.is_symlink());
        assert_eq!(fs::read(&real).expect("there"), b"new");
    }
}
