//! Reads files as [`Module`]s.

mod data;
mod external;
mod lotus;
mod onnx;
mod shared;
mod sniff;
mod text;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use irc_diag::{Diagnostic, Sink};
use prost::Message;

use crate::input::AT_BYTE;
use crate::model::Module;
use crate::schema::LimitError;
use crate::{Encoding, FileSystem, Files, Form, Format, Input, Root};
use crate::{carry, locate, schema};
use shared::Reader;

pub use data::{read_data, read_tensor};

/// Options of reading.
#[derive(Clone, Debug)]
pub struct Options {
    /// The known parts of the form; the others are detected from the first bytes.
    pub format: Format,
    /// How to treat external data.
    pub external: ExternalData,
    /// Where those files, and the file itself, are read from.
    pub files: Arc<dyn Files>,
}

impl Default for Options {
    fn default() -> Self {
        let (format, external) = Default::default();
        Self { format, external, files: Arc::new(FileSystem) }
    }
}

/// How to treat external data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ExternalData {
    /// [`open`] maps files in the model's own folder; [`read()`] ignores them.
    #[default]
    Beside,
    /// Maps files in that folder.
    In(PathBuf),
    /// Ignores them: [`crate::model::External::bytes`] stays `None`.
    Leave,
}

/// A module and the file it was read from.
#[derive(Clone, Debug)]
pub struct Document {
    /// The contents of the file.
    pub module: Module,
    /// The bytes of the file, to locate items of the module.
    pub input: Input,
}

/// Resolves external data of the tensors of a module in a folder, as
/// [`read()`] does with [`ExternalData::In`]. Diagnostics have paths in the module.
pub fn find_external(module: &mut Module, folder: &Path, files: &dyn Files, sink: &mut Sink) {
    external::resolve(module, folder, files, sink);
}

/// The folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Opens, maps and reads a file; every diagnostic goes to `sink`.
///
/// Returns `None` if there is no module. A module may be returned along with
/// errors: it can be validated further, but must be rejected.
pub fn open(path: &Path, options: &Options, sink: &mut Sink) -> Option<Document> {
    match options.files.read(path) {
        Ok(bytes) => {
            let mut options = options.clone();
            if options.external == ExternalData::Beside {
                options.external = ExternalData::In(folder_of(path).into());
            }
            read(&path.to_string_lossy(), bytes, &options, sink)
        }
        Err(error) => {
            let message = format!("cannot read `{}`: {error}", path.display());
            sink.push(Diagnostic::error("cir-file", message));
            None
        }
    }
}

/// Reads a file from memory, as [`open`] does; [`ExternalData::Beside`] ignores external data.
pub fn read(name: &str, bytes: Bytes, options: &Options, sink: &mut Sink) -> Option<Document> {
    let encoding = options.format.encoding.unwrap_or_else(|| sniff::encoding(&bytes));
    let bytes = match encoding {
        Encoding::Binary => bytes,
        Encoding::Json | Encoding::Text => text::blank_mark(bytes),
    };
    let form = sniff::form(&bytes, encoding, options.format.root, sink)?;
    let input = Input::new(name, bytes, form);
    let mut found = Sink::new();
    let mut module = module(&input, &mut found);
    if let (Some(module), ExternalData::In(folder)) = (&mut module, &options.external) {
        external::resolve(module, folder, &*options.files, &mut found);
    }
    let mut found = found.into_diagnostics();
    input.place(&mut found);
    sink.extend(found);
    Some(Document { module: module?, input })
}

fn module(input: &Input, sink: &mut Sink) -> Option<Module> {
    let form = input.form();
    let bytes = match form.encoding {
        Encoding::Binary => input.bytes().clone(),
        Encoding::Json | Encoding::Text => text::message(input.bytes(), form, sink)?,
    };
    let name = form.root.message();
    let module = match form.root {
        Root::Graph => {
            message(bytes, name, sink, |reader, graph| Some(reader.lotus_graph_file(graph)))
        }
        Root::Library => {
            message(bytes, name, sink, |reader, library| Some(reader.lotus_library(library)))
        }
        Root::Model => message(bytes, name, sink, |reader, model| {
            reader.onnx_model(model).map(carry::from_onnx)
        }),
    };
    if form.root != Root::Model && form.encoding == Encoding::Binary {
        report_unknown(input, sink);
    }
    module
}

/// Decodes and converts a message; reports where it is invalid.
fn message<M: Message + Default, T>(
    bytes: Bytes,
    name: &str,
    sink: &mut Sink,
    read: impl FnOnce(&mut Reader<'_>, M) -> Option<T>,
) -> Option<T> {
    let descriptor = schema::message(name);
    if let Some(excess) = locate::wire_excess(&bytes, &descriptor) {
        let (LimitError::Depth(at) | LimitError::Items(at)) = excess;
        sink.push(excess.diagnostic().with_note(format!("{AT_BYTE}{at} of the file")));
        return None;
    }
    let mut reader = Reader::new(sink);
    let decoded = reader.decode(bytes.clone());
    let found = decoded.and_then(|message| read(&mut reader, message));
    if !reader.is_broken() {
        return found;
    }
    let diagnostic = match locate::explain(&bytes, &descriptor) {
        Some(error) => Diagnostic::error("cir-wire", error.message)
            .path(error.path)
            .with_note(format!("{AT_BYTE}{}, read as {name}", error.offset)),
        None => Diagnostic::error("cir-wire", format!("not a {name}")),
    };
    sink.push(diagnostic);
    None
}

/// Common IR has had no new fields since 2017: unknown fields most likely indicate another format.
fn report_unknown(input: &Input, sink: &mut Sink) {
    const SHOWN: usize = 10;
    let message = schema::message(input.form().root.message());
    for error in locate::unknown_fields(input.bytes(), &message, SHOWN) {
        let note = format!("{AT_BYTE}{} of the file", error.offset);
        let diagnostic = Diagnostic::warning("cir-unknown-field", error.message);
        sink.push(diagnostic.path(error.path).with_note(note));
    }
}

/// Adds a help text with the names of forms.
fn help() -> String {
    format!("select the format with --format: {}", Format::names().join(", "))
}

pub(crate) fn ambiguous(message: String) -> Diagnostic {
    Diagnostic::error("cir-ambiguous", message).help(help())
}

impl Form {
    /// The form of files that are written by default: binary.
    pub fn binary(root: Root) -> Self {
        Self { root, encoding: Encoding::Binary }
    }
}
