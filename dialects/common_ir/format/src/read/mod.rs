//! From files to [`Module`]s.

mod data;
mod lotus;
mod onnx;
mod shared;
mod sniff;

use std::path::Path;

use bytes::Bytes;
use irc_diag::{Diagnostic, Sink};
use prost::Message;

use crate::model::Module;
use crate::proto;
use crate::{Encoding, Form, Format, Input, Root};
use shared::Reader;

pub use data::{read_data, read_tensor};

/// How to read a file.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What is known of the form; the rest is found out from the first bytes.
    pub format: Format,
}

/// A module and the file it was read from.
#[derive(Clone, Debug)]
pub struct Document {
    /// What the file says.
    pub module: Module,
    /// Its bytes, which also know where an item of the module stands.
    pub input: Input,
}

/// Opens, maps and reads a file; every finding goes to `sink`.
///
/// Returns nothing when no module could be made. A module that could be made may still come with
/// errors: it is then to be checked further, and refused.
pub fn open(path: &Path, options: &Options, sink: &mut Sink) -> Option<Document> {
    match crate::input::map(path) {
        Ok(bytes) => read(&path.to_string_lossy(), bytes, options, sink),
        Err(error) => {
            let message = format!("cannot read `{}`: {error}", path.display());
            sink.push(Diagnostic::error("cir-file", message));
            None
        }
    }
}

/// Reads a file that is in memory, as [`open`] does; external data stay unresolved.
pub fn read(name: &str, bytes: Bytes, options: &Options, sink: &mut Sink) -> Option<Document> {
    let form = sniff::form(&bytes, options.format, sink)?;
    let input = Input::new(name, bytes, form);
    let module = match form.encoding {
        Encoding::Binary => binary(&input, sink)?,
        Encoding::Json | Encoding::Text => return None,
    };
    Some(Document { module, input })
}

fn binary(input: &Input, sink: &mut Sink) -> Option<Module> {
    let (bytes, root) = (input.bytes().clone(), input.form().root);
    match root {
        Root::Graph => {
            let graph = decode::<proto::lotus::GraphProto>(bytes, root.message(), sink)?;
            Some(Reader::new(sink).lotus_graph_file(graph))
        }
        Root::Library => {
            let library = decode::<proto::lotus::LibraryProto>(bytes, root.message(), sink)?;
            Some(Reader::new(sink).lotus_library(library))
        }
        Root::Model => {
            let model = decode::<proto::onnx::ModelProto>(bytes, root.message(), sink)?;
            Reader::new(sink).onnx_model(model)
        }
    }
}

fn decode<M: Message + Default>(bytes: Bytes, message: &str, sink: &mut Sink) -> Option<M> {
    match M::decode(bytes) {
        Ok(decoded) => Some(decoded),
        Err(error) => {
            sink.push(Diagnostic::error("cir-wire", format!("not a {message}: {error}")));
            None
        }
    }
}

/// Says which forms there are.
fn help() -> String {
    format!("name the form with --format: {}", Format::names().join(", "))
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
