//! Reads files and prints a summary of their contents, and the time and memory that reading took.
//!
//!     cargo run --release -p irc-common-format --example read -- model.onnx …
//!     cargo run --release -p irc-common-format --example read -- --make FOLDER
//!
//! The second form writes a model of 500 MB, one with external data, and one of 100,000 nodes.

use std::path::{Path, PathBuf};
use std::time::Instant;

use irc_common_format::model::*;
use irc_common_format::write::{self, Target, write};
use irc_common_format::{Options, open};
use irc_diag::{Sink, render};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    match &arguments[..] {
        [flag, folder] if flag == Path::new("--make") => make(folder),
        paths => {
            paths.iter().for_each(|path| show(path));
            Ok(())
        }
    }
}

fn show(path: &Path) {
    let (before, start) = (anonymous(), Instant::now());
    let mut sink = Sink::new();
    let document = open(path, &Options::default(), &mut sink);
    let (time, held) = (start.elapsed(), anonymous().saturating_sub(before));
    let shown = path.display();
    let Some(document) = document else {
        println!("{shown}: rejected in {time:?}: {:?}", sink.diagnostics());
        return;
    };
    print!("{}", render(&document.input.source(), sink.diagnostics(), false, 100));
    let (mut tensors, mut errors) = (0_usize, vec![]);
    let mut module = document.module;
    module.visit_tensors_mut(&mut |tensor, at| {
        tensors += 1;
        if let (Err(_), Err(error)) = (tensor.strings(), tensor.elements()) {
            errors.push(format!("{at}: {error}"));
        }
    });
    let nodes = module.graph.as_ref().map_or(0, |graph| graph.nodes.len());
    let form = document.input.form();
    println!("{shown}: {form}, {nodes} nodes, {tensors} tensors, {time:?}, {held} kB anonymous");
    errors.iter().for_each(|error| println!("  {error}"));
}

/// Anonymous memory of this process in kilobytes.
fn anonymous() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}

fn make(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::create_dir_all(folder)?;
    save(&folder.join("raw.onnx"), raw())?;
    let (graph, data) = external();
    std::fs::write(folder.join("data.bin"), data)?;
    save(&folder.join("external.onnx"), graph)?;
    save(&folder.join("nodes.onnx"), chain())?;
    Ok(())
}

fn save(path: &Path, graph: Graph) -> Result<(), Box<dyn std::error::Error>> {
    let module = Module { schema: Schema::Onnx, graph: Some(graph), ..Module::default() };
    let mut sink = Sink::new();
    let bytes = write(&module, &write::Options::binary(Target::Onnx), &mut sink);
    std::fs::write(path, bytes.ok_or(format!("{:?}", sink.diagnostics()))?)?;
    Ok(())
}

/// A hundred tensors of 5 MB.
fn raw() -> Graph {
    let tensor = |index: i32| {
        Tensor::raw(format!("w{index}"), ElementType::Float, [1250, 1000], vec![1; 5_000_000])
    };
    Graph { initializers: (0..100).map(tensor).collect(), ..Graph::default() }
}

/// The same with external data.
fn external() -> (Graph, Vec<u8>) {
    let tensor = |index: u64| {
        let external = External {
            location: "data.bin".into(),
            offset: index * 5_000_000,
            length: Some(5_000_000),
            ..External::default()
        };
        let data = TensorData::External(external);
        Tensor {
            data,
            ..Tensor::raw(format!("w{index}"), ElementType::Float, [1250, 1000], vec![])
        }
    };
    let graph = Graph { initializers: (0..100).map(tensor).collect(), ..Graph::default() };
    (graph, vec![1; 500_000_000])
}

/// A chain of a hundred thousand nodes.
fn chain() -> Graph {
    let node = |index: usize| Node {
        attributes: vec![
            Attribute::new("kernel_shape", AttributeValue::Ints(vec![3, 3])),
            Attribute::new("alpha", AttributeValue::Float(0.5)),
        ],
        ..Node::new("Conv", [format!("v{index}"), "w".into()], [format!("v{}", index + 1)])
            .named(format!("node_{index}"))
    };
    Graph { nodes: (0..100_000).map(node).collect(), ..Graph::default() }
}
