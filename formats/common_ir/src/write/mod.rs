//! Writes [`Module`]s to files.

mod lotus;
mod onnx;

use irc_diag::{Diagnostic, Sink};
use prost::Message;
use prost_reflect::text_format::FormatOptions;
use prost_reflect::{DynamicMessage, SerializeOptions};

use crate::model::{Module, Path, Schema};
use crate::{Encoding, Root, carry, schema};

/// The format to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Common IR's own messages (form A; B and C as JSON and text).
    CommonIr,
    /// An ONNX model with additional fields for Common IR (form D).
    Carrier,
    /// An ONNX model (form E); parts specific to Common IR are stored in properties, or omitted.
    Onnx,
}

/// Options of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// The format.
    pub target: Target,
    /// The encoding.
    pub encoding: Encoding,
    /// Whether external data are written into this file. Common IR, which has no external data,
    /// always does.
    pub inline: bool,
}

impl Options {
    /// The binary encoding of a target.
    pub fn binary(target: Target) -> Self {
        Self { target, encoding: Encoding::Binary, inline: false }
    }
}

/// Writes a module; every diagnostic goes to `sink`: a warning for an omitted part, an error for
/// one that cannot be omitted.
///
/// The same module is written as the same bytes. `None` after an error.
pub fn write(module: &Module, options: &Options, sink: &mut Sink) -> Option<Vec<u8>> {
    let before = sink.error_count();
    let mut writer = Writer { target: options.target, inline: options.inline, sink, errors: 0 };
    let bytes = writer.bytes(module, options.encoding).filter(|_| writer.errors == 0);
    bytes.filter(|_| sink.error_count() == before)
}

/// Converts the model to messages; unsupported parts are diagnostics.
struct Writer<'s> {
    target: Target,
    inline: bool,
    sink: &'s mut Sink,
    errors: usize,
}

/// Maximum number of bytes of a message: most readers use signed 32-bit lengths.
const MAX_BYTES: usize = i32::MAX as usize;

impl Writer<'_> {
    fn bytes(&mut self, module: &Module, encoding: Encoding) -> Option<Vec<u8>> {
        if self.target != Target::CommonIr {
            if module.is_library() {
                let message = "ONNX cannot represent a library".to_owned();
                self.reject(message, &Path::ROOT);
                return None;
            }
            let with_fields = self.target == Target::Carrier;
            let is_carried = with_fields && module.schema == Schema::CommonIr;
            let own = is_carried.then(|| module.qualified_name());
            let module = carry::to_onnx(module.clone(), with_fields, self.sink);
            let model = self.onnx_model(&module, own.as_deref());
            return self.encode(&model, Root::Model, encoding);
        }
        let module = carry::to_common_ir(module.clone(), self.sink);
        match &module.graph {
            Some(graph) => {
                let graph = self.lotus_graph_file(&module, graph);
                self.encode(&graph, Root::Graph, encoding)
            }
            None => {
                let library = self.lotus_library(&module);
                self.encode(&library, Root::Library, encoding)
            }
        }
    }

    fn encode(
        &mut self,
        message: &impl Message,
        root: Root,
        encoding: Encoding,
    ) -> Option<Vec<u8>> {
        let length = message.encoded_len();
        if length > MAX_BYTES {
            let message = format!("the message would have {length} bytes, more than {MAX_BYTES}");
            let diagnostic = Diagnostic::error("cir-too-large", message);
            self.push(diagnostic.help("store large tensors as external data"));
            return None;
        }
        if encoding == Encoding::Binary {
            return Some(message.encode_to_vec());
        }
        let mut dynamic = DynamicMessage::new(schema::message(root.message()));
        if let Err(error) = dynamic.transcode_from(message) {
            self.reject(error.to_string(), &Path::ROOT);
            return None;
        }
        match encoding {
            Encoding::Json => self.json(&dynamic),
            Encoding::Text | Encoding::Binary => {
                let options = FormatOptions::new().pretty(true);
                let mut text = dynamic.to_text_format_with_options(&options);
                text.push('\n');
                Some(text.into_bytes())
            }
        }
    }

    fn json(&mut self, message: &DynamicMessage) -> Option<Vec<u8>> {
        let mut serializer = serde_json::Serializer::pretty(vec![]);
        let options = SerializeOptions::new();
        if let Err(error) = message.serialize_with_options(&mut serializer, &options) {
            self.reject(error.to_string(), &Path::ROOT);
            return None;
        }
        let mut text = serializer.into_inner();
        text.push(b'\n');
        Some(text)
    }

    fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.is_error());
        self.sink.push(diagnostic);
    }

    /// Reports an error about a part that cannot be written.
    fn reject(&mut self, message: String, at: &Path<'_>) {
        self.push(Diagnostic::error("cir-unwritable", message).path(at.to_string()));
    }

    fn reject_if(&mut self, is_there: bool, what: &str, at: &Path<'_>) {
        if is_there {
            let form = match self.target {
                Target::CommonIr => "Common IR",
                Target::Carrier | Target::Onnx => "ONNX",
            };
            self.reject(format!("{form} cannot represent {what}"), at);
        }
    }
}
