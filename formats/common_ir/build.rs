//! Compiles the schemas to Rust, and to descriptors for the JSON and text encodings.

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
    // Zero-copy: decoded bytes refer to the mapped file.
    prost_build::Config::new().bytes(["."]).compile_fds(with_encoded_nodes(schemas))?;
    Ok(())
}

/// The same schemas with nodes as bytes, which have the encoding of a nested message.
///
/// A decoded node takes kilobytes, as it has space for all its fields. So nodes are decoded one
/// after another, and a large graph is never held in decoded form.
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
