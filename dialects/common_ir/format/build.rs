//! Rust from the schemas, and the schemas themselves for the JSON and text forms.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let schemas = protox::compile(["lotus.proto", "onnx.proto"], ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("schemas.bin"), schemas.encode_to_vec())?;
    // Without copies: what is decoded from a mapped file stays in the file.
    prost_build::Config::new().bytes(["."]).compile_fds(schemas)?;
    Ok(())
}
