//! Reads inputs and detects their kind from the content.
use crate::{crash, output::plain, stop::Stop};
use bytes::Bytes;
use irc::{
    FileSystem, Files, ImportOptions,
    import::InputFile,
    model::{MAX_BYTES, unpacked},
};
use irc_cli::{CommandRow, InputKind};
use irc_diag::Source;
use std::{
    io::{self, Read},
    path::Path,
};

pub use irc::import::Content;

/// What can be read.
const KINDS: &str = "irc knows ARK models and plans, Common IR and ONNX (--format names the format \
    where the content does not show it), Gemini schedules and frontend files, NPU programs, MLIR and Model \
    Library Format archives; all but archives may be gzip files";

/// A file to work on.
pub struct Input {
    /// Its name, as given; `-` is standard input.
    pub name: String,
    /// Its bytes, unpacked when it is a gzip file.
    pub bytes: Bytes,
    /// What it holds.
    pub content: Content,
}

impl Input {
    /// Reads a file; `form` is the form of a Common IR or ONNX file, where it is given.
    pub fn open(name: &str, form: Option<&str>) -> Result<Self, Stop> {
        let bytes = read(name)?;
        let content = content_as(name, &bytes, form);
        Ok(Self { name: name.to_owned(), bytes, content })
    }

    /// Its name in diagnostics.
    pub fn shown(&self) -> &str {
        shown(&self.name)
    }

    /// Its text, for diagnostics and for the reproducer.
    pub fn source(&self) -> Source {
        source(&self.name, &self.bytes)
    }

    /// As a file to import.
    pub fn file(&self, options: &ImportOptions) -> InputFile {
        InputFile::new(self.shown(), self.bytes.clone(), options)
    }

    /// Whether a command takes such a file.
    pub fn is_for(&self, command: &str) -> bool {
        let row = CommandRow::named(command);
        self.kind().is_some_and(|kind| row.is_some_and(|row| row.inputs.contains(&kind)))
    }

    /// Its kind, by which the command lines state what they take.
    pub fn kind(&self) -> Option<InputKind> {
        kind(self.content)
    }
}

/// The kind of file, by which the command lines state what they take; `None` where it is unknown.
pub fn kind(content: Content) -> Option<InputKind> {
    Some(match content {
        Content::Model => InputKind::ArkModel,
        Content::Graph => InputKind::CommonIr,
        Content::Frontend => InputKind::Layers,
        Content::Mlir => InputKind::Mlir,
        Content::Plan => InputKind::Plan,
        Content::Schedule => InputKind::Schedule,
        Content::Listing | Content::Binary => InputKind::Program,
        Content::Library => InputKind::Library,
        Content::Archive => InputKind::Archive,
        Content::Empty | Content::Unknown => return None,
    })
}

/// Reads a file, unpacked when it is a gzip file; `-` is standard input. A file is mapped: what is not
/// looked at is not read.
pub fn read(name: &str) -> Result<Bytes, Stop> {
    let read = match name {
        "-" => read_some(io::stdin().lock()),
        _ => FileSystem.read(Path::new(name)),
    };
    let bytes =
        read.map_err(|error| Stop::problem(format!("cannot read {name}: {}", plain(&error))))?;
    if bytes.len() as u64 > MAX_BYTES && name == "-" {
        let problem =
            Stop::problem(format!("standard input has more than {} MiB", MAX_BYTES >> 20));
        return Err(problem.help("name the file instead"));
    }
    Ok(unpacked(shown(name), bytes)?)
}

/// A file's name as diagnostics have it.
fn shown(name: &str) -> &str {
    if name == "-" { "<stdin>" } else { name }
}

/// One byte more than may be, at most.
fn read_some(from: impl Read) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

/// What a file is: a flag says of which form of Common IR or ONNX, or else its content, or else its name.
pub fn content_as(name: &str, bytes: &[u8], form: Option<&str>) -> Content {
    if form.is_some() { Content::Graph } else { Content::of_file(Path::new(name), bytes) }
}

/// A source for diagnostics and for the reproducer.
pub fn source(name: &str, bytes: &[u8]) -> Source {
    let source = Source::from_bytes(shown(name), bytes);
    crash::remember(&source);
    source
}

/// What is no program to run, and what becomes of it.
pub fn runs_not(name: &str, content: Content) -> Stop {
    let help = match content {
        Content::Empty | Content::Unknown => KINDS,
        _ => "irc simulate states how long a schedule takes",
    };
    Stop::problem(format!("{name} is {}", content.words())).help(help)
}

/// Refuses what `content` is where a model is expected.
pub fn expect_model(name: &str, content: Content) -> Result<(), Stop> {
    if content == Content::Model {
        return Ok(());
    }
    Err(unexpected(name, Content::Model.words(), content))
}

/// A file of another kind than expected.
pub fn unexpected(name: &str, expected: &str, found: Content) -> Stop {
    let problem = Stop::problem(format!("{name}: expected {expected}, found {}", found.words()));
    if found == Content::Unknown { problem.help(KINDS) } else { problem }
}
