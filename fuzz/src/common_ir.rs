//! Properties of every reader of Common IR and ONNX.

use bytes::Bytes;
use irc_common_format::model::{Module, Schema};
use irc_common_format::write::{self, Target, write};
use irc_common_format::{Document, Encoding, Format, Options, Root, read};
use irc_diag::{Sink, render, to_json};

/// Reads the bytes as each kind of file, and reads the result again after writing it.
pub fn check(bytes: &[u8], encoding: Encoding) {
    let bytes = Bytes::copy_from_slice(bytes);
    let found_out = Format { root: None, encoding: Some(encoding) };
    check_format(&bytes, found_out);
    for root in Root::ALL {
        check_format(&bytes, Format { root: Some(root), encoding: Some(encoding) });
    }
}

fn check_format(bytes: &Bytes, format: Format) {
    let mut sink = Sink::new();
    let options = Options { format, ..Options::default() };
    let document = read("fuzz", bytes.clone(), &options, &mut sink);
    assert!(document.is_some() || sink.has_errors(), "rejected without a diagnostic");
    let is_sound = !sink.has_errors();
    if let Some(Document { mut module, input }) = document {
        let source = input.source();
        render(&source, sink.diagnostics(), false, 80);
        to_json(&source, sink.diagnostics());
        let mut paths = vec![];
        module.visit_tensors_mut(&mut |tensor, at| {
            let _ = (tensor.elements(), tensor.strings());
            paths.push(at.to_string());
        });
        for path in paths.iter().take(10) {
            let span = input.locate(path).expect("a file that was read");
            assert!(span.end <= bytes.len());
        }
        if is_sound {
            check_writing(&module);
        }
    }
}

/// Modules are written in every encoding and read again; in their own format, the bytes are the same.
fn check_writing(module: &Module) {
    let own = match module.schema {
        Schema::CommonIr => Target::CommonIr,
        Schema::Onnx => Target::Carrier,
    };
    for target in [Target::CommonIr, Target::Carrier, Target::Onnx] {
        let Some(bytes) = bytes(module, target, Encoding::Binary) else { continue };
        for encoding in Encoding::ALL {
            let other =
                self::bytes(module, target, encoding).expect("written in the binary encoding");
            let Some(found) = again(other, module, target, encoding) else { continue };
            let twice = self::bytes(&found, target, Encoding::Binary);
            let is_same = target != own || twice.as_ref() == Some(&bytes);
            assert!(is_same, "{target:?} {encoding:?}: {module:?} is read as {found:?}");
        }
    }
}

fn bytes(module: &Module, target: Target, encoding: Encoding) -> Option<Vec<u8>> {
    let options = write::Options { encoding, ..write::Options::binary(target) };
    write(module, &options, &mut Sink::new())
}

/// The module that these bytes contain; `None` if it is nested too deeply for the encoding.
fn again(bytes: Vec<u8>, module: &Module, target: Target, encoding: Encoding) -> Option<Module> {
    let root = match target {
        Target::CommonIr if module.is_library() => Root::Library,
        Target::CommonIr => Root::Graph,
        Target::Carrier | Target::Onnx => Root::Model,
    };
    let format = Format { root: Some(root), encoding: Some(encoding) };
    let mut sink = Sink::new();
    let options = Options { format, ..Options::default() };
    let document = read("again", bytes.into(), &options, &mut sink);
    let mut rejections = sink.diagnostics().iter().filter(|diagnostic| diagnostic.is_error());
    match document {
        Some(document) if rejections.next().is_none() => Some(document.module),
        _ => {
            // A shorter message may look like another one.
            let expected = ["cir-nesting", "cir-root"];
            let mut all = sink.diagnostics().iter().filter(|diagnostic| diagnostic.is_error());
            assert!(
                all.all(|diagnostic| expected.contains(&diagnostic.code)),
                "{:?}",
                sink.diagnostics()
            );
            None
        }
    }
}
