//! Validates files, or measures validation on a generated graph of 100,000 nodes.
//!
//!     cargo run --release -p irc-common-format --example validate -- [--compat] [--std] model.pb …
//!     cargo run --release -p irc-common-format --example validate -- --measure

use std::path::{Path, PathBuf};
use std::time::Instant;

use irc_common_format::library::{Libraries, LoadOptions, load};
use irc_common_format::model::*;
use irc_common_format::validate::{Level, ValidateOptions, validate};
use irc_common_format::{Options, open};
use irc_diag::{Sink, render};

fn main() {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == Path::new(flag));
    if has("--measure") {
        for schema in [Schema::CommonIr, Schema::Onnx] {
            measure(schema, false);
            measure(schema, true);
        }
        return;
    }
    let level = if has("--compat") { Level::Compat } else { Level::Strict };
    let options =
        ValidateOptions { level, implicit_std: has("--std"), ..ValidateOptions::default() };
    let is_file = |path: &&PathBuf| !path.to_string_lossy().starts_with("--");
    arguments.iter().filter(is_file).for_each(|path| show(path, &options));
}

fn show(path: &Path, options: &ValidateOptions) {
    let mut sink = Sink::new();
    let Some(document) = open(path, &Options::default(), &mut sink) else {
        println!("{}: rejected: {:?}", path.display(), sink.diagnostics());
        return;
    };
    let libraries = load(&document.module, &LoadOptions::beside(path), &mut sink);
    let start = Instant::now();
    validate(&document.module, &libraries, options, &mut sink);
    let (time, errors) = (start.elapsed(), sink.error_count());
    let mut diagnostics = sink.into_diagnostics();
    document.input.place(&mut diagnostics);
    print!("{}", render(&document.input.source(), &diagnostics, false, 100));
    println!("{}: {} diagnostics, {errors} errors, {time:?}", path.display(), diagnostics.len());
}

fn measure(schema: Schema, backwards: bool) {
    let module = chain(schema, backwards);
    let mut sink = Sink::new();
    let options = ValidateOptions { implicit_std: true, ..ValidateOptions::default() };
    let start = Instant::now();
    validate(&module, &Libraries::none(), &options, &mut sink);
    let order = if backwards { "last first" } else { "in order" };
    let nodes = module.graph.map_or(0, |graph| graph.nodes.len());
    let errors = sink.error_count();
    println!("{schema:?}, {nodes} nodes {order}: {errors} errors, {:?}", start.elapsed());
}

/// A chain of a hundred thousand calls of the standard library.
fn chain(schema: Schema, backwards: bool) -> Module {
    let count = 100_000;
    let node = |index: usize| Node {
        attributes: vec![
            Attribute::new("kernel_shape", AttributeValue::Ints(vec![3, 3])),
            Attribute::new("pads", AttributeValue::Ints(vec![1, 1, 1, 1])),
        ],
        arg_counts: if schema == Schema::Onnx { vec![] } else { vec![1, 1, 0] },
        ..Node::new("Conv", [format!("v{index}"), "w".into()], [format!("v{}", index + 1)])
            .named(format!("node_{index}"))
    };
    let mut nodes: Vec<Node> = (0..count).map(node).collect();
    if backwards {
        nodes.reverse();
    }
    let value = |name: String| Value::tensor(name, ElementType::Float, ["N", "C", "H", "W"]);
    let metadata = Metadata {
        name: Some("chain".into()),
        domain: Some("com.example".into()),
        ir_version: Some(1),
        model_version: Some(1),
        doc: Some("A chain of convolutions.".into()),
        ..Metadata::default()
    };
    Module {
        schema,
        metadata,
        graph: Some(Graph {
            inputs: vec![value("v0".into()), value("w".into())],
            outputs: vec![value(format!("v{count}"))],
            nodes,
            ..Graph::default()
        }),
        ..Module::default()
    }
}
