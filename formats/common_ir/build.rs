//! Rust from the schemas, and the schemas themselves for the JSON and text forms.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;
use prost_types::FileDescriptorSet;
use prost_types::field_descriptor_proto::Type;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let schemas = protox::compile(["lotus.proto", "onnx.proto"], ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("schemas.bin"), schemas.encode_to_vec())?;
    // Without copies: what is decoded from a mapped file stays in the file.
    prost_build::Config::new().bytes(["."]).compile_fds(with_encoded_nodes(schemas))?;
    Ok(())
}

/// The same schemas with nodes as bytes, which is what a message within another is.
///
/// Decoded nodes take kilobytes each, for all the fields they might have. So they are decoded one
/// after the other, and a large graph is never held in that form.
fn with_encoded_nodes(mut schemas: FileDescriptorSet) -> FileDescriptorSet {
    let messages = schemas.file.iter_mut().flat_map(|file| &mut file.message_type);
    for field in messages.flat_map(|message| &mut message.field) {
        if field.type_name().ends_with(".NodeProto") {
            field.type_name = None;
            field.set_type(Type::Bytes);
        }
    }
    schemas
}
