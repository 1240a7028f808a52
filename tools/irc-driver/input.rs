//! Reads inputs and detects their kind from the content.
use crate::{
    crash,
    error::Error,
    output::{self, plain},
};
use bytes::Bytes;
use irc::{
    FileSystem, Files, ImportOptions,
    import::InputFile,
    model::{MAX_BYTES, unpacked},
};
use irc_cli::{CommandRow, InputKind};
use irc_diag::Source;
use irc_runtime::Library;
use std::{
    io::{self, Read},
    path::Path,
};

pub use irc::import::Content;

/// An input file.
pub struct Input {
    /// Its name on the command line; `-` is standard input.
    pub name: String,
    /// Its bytes, decompressed if it is a gzip file.
    pub bytes: Bytes,
    /// The kind of its content.
    pub content: Content,
}

impl Input {
    /// Loads a shared library; the system loads only files, so standard input becomes one.
    pub fn load_library(&self) -> Result<Library, Error> {
        if self.name != "-" {
            return Ok(Library::load(Path::new(&self.name))?);
        }
        let folder = output::temporary_folder()?;
        let path = folder.path().join("stdin.so");
        output::write(&path, &self.bytes, output::Content::Executable)?;
        Ok(Library::load(&path)?)
    }

    /// Reads a file; `format` is that of a Common IR or ONNX file, if given.
    pub fn open(name: &str, format: Option<&str>) -> Result<Self, Error> {
        let bytes = read(name)?;
        let content = content_as(name, &bytes, format);
        Ok(Self { name: name.to_owned(), bytes, content })
    }

    /// Its name in diagnostics.
    pub fn shown(&self) -> &str {
        shown(&self.name)
    }

    /// Its text, for diagnostics; none of a binary graph, whose weights would be most of it.
    pub fn source(&self) -> Source {
        match self.content {
            Content::Graph => Source::of_text_or_binary(self.shown(), &self.bytes),
            _ => source(&self.name, &self.bytes),
        }
    }

    /// The file for import.
    pub fn file(&self, options: &ImportOptions) -> InputFile {
        InputFile::new(self.shown(), self.bytes.clone(), options)
    }

    /// Whether a command accepts such a file.
    pub fn is_for(&self, command: &str) -> bool {
        let row = CommandRow::named(command);
        self.kind().is_some_and(|kind| row.is_some_and(|row| row.inputs.contains(&kind)))
    }

    /// Its kind, as in the tables of command lines.
    pub fn kind(&self) -> Option<InputKind> {
        kind(self.content)
    }
}

/// The kind of a file, as in the tables of command lines; `None` if it is unknown.
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
        Content::Ptx => InputKind::Ptx,
        Content::Empty | Content::Object | Content::Unknown => return None,
    })
}

/// Reads a file, decompressed if it is a gzip file, and records it for the reproducer; `-` is standard
/// input. A regular file is memory-mapped.
pub fn read(name: &str) -> Result<Bytes, Error> {
    let read = match name {
        "-" => read_some(io::stdin().lock()),
        _ => FileSystem.read(Path::new(name)),
    };
    let bytes =
        read.map_err(|error| Error::problem(format!("cannot read {name}: {}", plain(&error))))?;
    if bytes.len() as u64 > MAX_BYTES && name == "-" {
        let problem =
            Error::problem(format!("standard input has more than {} MiB", MAX_BYTES >> 20));
        return Err(problem.help("name the file instead"));
    }
    let bytes = unpacked(shown(name), bytes)?;
    crash::remember(shown(name), &bytes);
    Ok(bytes)
}

/// The name of a file in diagnostics.
fn shown(name: &str) -> &str {
    if name == "-" { "<stdin>" } else { name }
}

/// Reads at most one byte more than the limit.
fn read_some(from: impl Read) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

/// The kind of a file: by the flag for the format of Common IR or ONNX, otherwise by its content,
/// otherwise by its name.
pub fn content_as(name: &str, bytes: &[u8], format: Option<&str>) -> Content {
    if format.is_some() { Content::Graph } else { Content::of_file(Path::new(name), bytes) }
}

/// A source for diagnostics.
pub fn source(name: &str, bytes: &Bytes) -> Source {
    Source::from_shared(shown(name), bytes.clone())
}

/// The error for a file that a command does not take, with what to do with it instead.
pub fn not_for(command: &str, name: &str, content: Content) -> Error {
    let help = match content {
        Content::Empty | Content::Unknown => kinds(command),
        Content::Object => {
            "link it to a shared library (cc -shared), or compile its model to one".to_owned()
        }
        Content::Library => "irc run runs a library, irc bench measures it".to_owned(),
        Content::Schedule | Content::Frontend | Content::Listing | Content::Binary => {
            "irc simulate prints the number of cycles of a schedule".to_owned()
        }
        _ => kinds(command),
    };
    Error::problem(format!("{name} is {}", content.words())).help(help)
}

/// The kinds of files that a command takes.
fn kinds(command: &str) -> String {
    let kinds = CommandRow::named(command).map_or(&[][..], |row| row.inputs);
    let words: Vec<&str> = kinds.iter().map(|kind| kind.plural()).collect();
    let format = if kinds.contains(&InputKind::CommonIr) {
        "; --format says that a file is Common IR or ONNX"
    } else {
        ""
    };
    format!("irc {command} takes {}{format}", words.join(", "))
}

/// Rejects content that is not a model.
pub fn expect_model(name: &str, content: Content) -> Result<(), Error> {
    if content == Content::Model {
        return Ok(());
    }
    Err(unexpected(name, Content::Model.words(), content))
}

/// The flag of irc-translate that reads a file.
pub fn import_flag(content: Content) -> Option<&'static str> {
    match content {
        Content::Model => Some("--import-ark"),
        Content::Graph => Some("--import-onnx or --import-common-ir"),
        Content::Schedule => Some("--import-gemini"),
        Content::Listing | Content::Binary => Some("--import-npu"),
        _ => None,
    }
}

/// The error for a file of another kind than expected.
pub fn unexpected(name: &str, expected: &str, found: Content) -> Error {
    Error::problem(format!("{name}: expected {expected}, found {}", found.words()))
}
