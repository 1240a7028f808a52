//! `irc-translate` of Common IR and ONNX files.
use crate::{
    console::Console,
    error::Error,
    models::{self, options},
    output::{self, Content},
};
use bytes::Bytes;
use irc::{
    FileSystem, ImportOptions,
    import::{InputFile, Libraries, Read, folder, load_options, read},
};
use irc_cli::{Graphs, TextOrBinary, Translate, Writing};
use irc_common_format::library::{bundle, load};
use irc_common_format::model::{Module, Schema};
use irc_common_format::write::{self, Target, write};
use irc_common_format::{Document, Encoding, Format, Root, find_external};
use irc_diag::{Diagnostic, Sink, Source};
use irc_dialects::common_ir::{self, Origins};
use irc_mlir::{Context, OperationLike};
use std::path::Path;

/// The format that a flag names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Common IR's own messages, or an ONNX model that contains them.
    CommonIr,
    /// An ONNX model.
    Onnx,
}

/// Reads a file in the format of a flag.
pub fn read_flagged(
    console: &Console,
    arguments: &Translate,
    bytes: Bytes,
    written: Written,
) -> Result<(Document, Source), Error> {
    let mut flags = arguments.graphs.clone();
    if written == Written::Onnx && flags.format.is_none() {
        flags.format = Some(Root::Model.name().to_owned());
    }
    let libraries = if arguments.writing.bundle { Libraries::Bundled } else { Libraries::Unread };
    let file = InputFile::new(&arguments.input, bytes, &options(&flags)?);
    let (document, source) = open(console, &file, libraries)?;
    if written == Written::CommonIr && document.module.schema == Schema::Onnx {
        let message = format!("{}: expected Common IR, found an ONNX model", source.name());
        return Err(Error::problem(message).help("read it with --import-onnx"));
    }
    Ok((document, source))
}

/// The dialect's module of a document; `None` after a diagnostic.
pub fn to_dialect<'c>(context: &'c Context, document: &Document) -> Option<irc_mlir::Module<'c>> {
    let module = common_ir::import(context, &document.module, &Origins::of(document));
    module.as_operation().verify().then_some(module)
}

/// Reads a file to be translated; its warnings are shown on the console.
fn open(
    console: &Console,
    file: &InputFile,
    libraries: Libraries,
) -> Result<(Document, Source), Error> {
    let Read { document, source, diagnostics } = read(file, libraries);
    match document {
        Some(document) if !diagnostics.iter().any(Diagnostic::is_error) => {
            console.diagnostics(&source, &models::briefly(diagnostics));
            Ok((document, source))
        }
        _ => Err(Error::Diagnostics(source, diagnostics)),
    }
}

/// Encodes a module of the format as a file, with the options of the flags. Parts that the format cannot
/// represent are reported as warnings or as an error.
pub fn emit(
    console: &Console,
    arguments: &Translate,
    mut module: Module,
    source: &Source,
    written: Written,
) -> Result<(Vec<u8>, Content), Error> {
    let Writing { bundle: is_bundled, encoding, common_ir_fields, inline } = arguments.writing;
    let mut sink = Sink::new();
    if is_bundled && !module.imports.is_empty() {
        module = bundled(&module, &arguments.input, &arguments.graphs, &mut sink)?;
    }
    let target = match written {
        Written::CommonIr => Target::CommonIr,
        Written::Onnx if common_ir_fields => Target::Carrier,
        Written::Onnx => Target::Onnx,
    };
    if let (true, Some(folder)) = (inline || target == Target::CommonIr, folder(&arguments.input)) {
        find_external(&mut module, &folder, &FileSystem, &mut sink);
    }
    let encoding = encoding.map_or_else(|| by_suffix(&arguments.output), to_encoding);
    let bytes = write(&module, &write::Options { target, encoding, inline }, &mut sink);
    let diagnostics = sink.into_diagnostics();
    match bytes {
        Some(bytes) if !diagnostics.iter().any(Diagnostic::is_error) => {
            console.diagnostics(source, &diagnostics);
            if target == Target::CommonIr && module.schema == Schema::Onnx {
                expect_valid(arguments, source, &bytes)?;
            }
            let is_binary = encoding == Encoding::Binary;
            Ok((bytes, if is_binary { Content::Binary } else { Content::Text }))
        }
        _ => Err(Error::Diagnostics(source.clone(), diagnostics)),
    }
}

/// Rejects Common IR that was made of ONNX and violates a rule of Common IR that ONNX does not have.
fn expect_valid(arguments: &Translate, source: &Source, bytes: &[u8]) -> Result<(), Error> {
    let options =
        ImportOptions { format: Format::default(), strict: true, ..options(&arguments.graphs)? };
    let name = arguments.output.to_string_lossy();
    let file = InputFile::new(name, Bytes::copy_from_slice(bytes), &options);
    let mut found = read(&file, Libraries::Bundled).diagnostics;
    found.retain(Diagnostic::is_error);
    // Their paths are those of the module that was read; their places are in the file that is not written.
    for diagnostic in &mut found {
        diagnostic.labels.clear();
        diagnostic.notes.clear();
    }
    match found.is_empty() {
        true => Ok(()),
        false => Err(Error::Diagnostics(source.clone(), found)),
    }
}

fn bundled(module: &Module, input: &str, flags: &Graphs, sink: &mut Sink) -> Result<Module, Error> {
    let file = InputFile::new(input, Bytes::new(), &options(flags)?);
    Ok(bundle(module, &load(module, &load_options(&file), sink)))
}

fn to_encoding(flag: TextOrBinary) -> Encoding {
    match flag {
        TextOrBinary::Binary => Encoding::Binary,
        TextOrBinary::Text => Encoding::Text,
        TextOrBinary::Json => Encoding::Json,
    }
}

fn by_suffix(output: &Path) -> Encoding {
    match output::suffix(output) {
        Some("json") => Encoding::Json,
        Some("pbtxt" | "textproto" | "txtpb") => Encoding::Text,
        _ => Encoding::Binary,
    }
}
