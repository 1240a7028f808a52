//! The comment at the top of the file: its contents, and how to call it.
use irc_runtime::{Interface, Port};
use std::fmt::Write;

/// The comment about functions and interfaces that other files see.
pub fn comment(functions: &[String], interfaces: &[(String, String)]) -> String {
    let mut text = String::from(
        "/* A module of irc as C: C11 with what gcc 12 and clang have besides, for little-endian\n   \
         machines of 64 bits. Build it with any optimisation but -ffast-math, and link it with -lm.\n",
    );
    if !functions.is_empty() {
        text += "\n   Functions for others:\n\n";
    }
    for function in functions {
        let _ = writeln!(text, "     {function};");
    }
    for (symbol, json) in interfaces {
        text += &interface(symbol, json).unwrap_or_default();
    }
    text + "*/\n"
}

/// The contents of the buffers, by the metadata of an entry point.
fn interface(symbol: &str, json: &str) -> Option<String> {
    let interface = Interface::from_json(json).ok()?;
    let entry = symbol.replacen("irc_metadata", "irc_run", 1);
    let sized =
        interface.inputs.iter().chain(&interface.outputs).any(|port| !port.sizes.is_empty());
    if sized {
        return Some(format!("\n   {symbol} says what {entry}_sized takes and gives.\n"));
    }
    let mut text = format!(
        "\n   {entry}(buffers, workspace) takes an array of pointers to these, dense and row-major, and\n   \
         {} bytes of its own:\n\n",
        interface.workspace_bytes
    );
    let inputs = interface.inputs.iter().map(|port| ("in", port));
    let outputs = interface.outputs.iter().map(|port| ("out", port));
    for (index, (way, port)) in inputs.chain(outputs).enumerate() {
        let _ = writeln!(text, "     {index:3} {way:3} {}", described(port));
    }
    Some(text)
}

fn described(port: &Port) -> String {
    let extents: Vec<String> = port.shape.iter().map(ToString::to_string).collect();
    // A name must not end the comment.
    let name = port.name.replace("*/", "* /").replace("/*", "/ *");
    let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{} [{}] {name}", port.dtype, extents.join(", "))
}
