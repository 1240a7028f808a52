//! Sizes and speed of the library that programs embed, built for them: `libirc_runtime.so` stripped, and
//! what a program in C (`speed.c`) measures with it. The numbers are in `docs/runtime.md`.
//!
//!     cargo run -p irc-runtime-c --example speed

use bytes::Bytes;
use irc_mlf::{
    Code, Contents, DataType, Model, Shared, Type, Version,
    graph::{Call, Edge, Entry, Graph, Node},
    params::Param,
};
use std::{
    collections::BTreeMap,
    error::Error,
    path::{Path, PathBuf},
    process::Command,
};

type ExampleResult<T> = Result<T, Box<dyn Error>>;

/// The most bytes of the library that nobody needs to look into.
const MAX_BYTES: u64 = 1_000_000;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

fn main() -> ExampleResult<()> {
    let target = Path::new(HERE).join("../../target");
    let folder = target.join("speed");
    std::fs::create_dir_all(&folder)?;
    let library = built(&target)?;
    let bytes = std::fs::metadata(library)?.len();
    println!("{bytes} bytes: libirc_runtime.so, stripped");
    if bytes > MAX_BYTES {
        return Err(format!("the library is larger than {MAX_BYTES} bytes").into());
    }
    let code = folder.join("dense.so");
    let source = Path::new(HERE).join("examples/dense.c");
    succeed(
        Command::new("cc").args(["-shared", "-fPIC", "-O2", "-w", "-o"]).arg(&code).arg(&source),
    )?;
    let code =
        Compiled { library: std::fs::read(code)?.into(), source: std::fs::read(source)?.into() };
    // 13 MB each, twice in the archive.
    let large = [1024, 3200, 3200, 1024];
    let archives = [
        ("two_calls.tar", two_calls()),
        ("mlp.tar", layers(&[64, 128, 64, 10])),
        ("large.tar", layers(&large)),
    ];
    let mut speed = Command::new(program(&target, &folder)?);
    for (name, (graph, params)) in archives {
        let path = folder.join(name);
        write(&path, graph, params, &code)?;
        println!("{} bytes: {name}", std::fs::metadata(&path)?.len());
        speed.arg(path);
    }
    let load = std::fs::read_to_string("/proc/loadavg")?;
    println!("load of the machine: {}", load.trim());
    println!("{:36} {:>10} {:>10}", "microseconds", "least", "median");
    succeed(&mut speed)
}

/// Code of an archive, linked and not.
struct Compiled {
    library: Bytes,
    source: Bytes,
}

fn succeed(command: &mut Command) -> ExampleResult<()> {
    match command.status()?.success() {
        true => Ok(()),
        false => Err(format!("{command:?} failed").into()),
    }
}

/// The library as it is shipped.
fn built(target: &Path) -> ExampleResult<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--profile", "runtime", "--package", "irc-runtime-c"]);
    // The compiler's own flags name where LLVM is, which is nothing to this library.
    cargo.env("RUSTFLAGS", "").arg("--target-dir").arg(target).current_dir(HERE);
    succeed(&mut cargo)?;
    Ok(target.join("runtime/libirc_runtime.so"))
}

fn program(target: &Path, folder: &Path) -> ExampleResult<PathBuf> {
    let (output, library) = (folder.join("speed"), target.join("runtime"));
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O2", "-D_GNU_SOURCE", "-I"]).arg(Path::new(HERE).join("include"));
    cc.arg("-o").arg(&output).arg(Path::new(HERE).join("examples/speed.c"));
    cc.arg("-L").arg(&library).arg(format!("-Wl,-rpath,{}", library.canonicalize()?.display()));
    succeed(cc.arg("-lirc_runtime"))?;
    Ok(output)
}

fn float32(shape: &[i64]) -> Type {
    Type { dtype: DataType::scalar(Code::Float, 32), shape: shape.to_vec() }
}

fn call(name: &str, function: &str, inputs: &[usize]) -> Node {
    let inputs = inputs.iter().map(|node| Edge { node: *node, output: 0 }).collect();
    let function = format!("tvmgen_default_{function}");
    let call = Call { function, inputs, outputs: 1, flatten: false, attributes: BTreeMap::new() };
    Node { name: name.to_owned(), call: Some(call) }
}

/// A graph whose nodes each give a tensor of these extents, in a storage of its own.
fn graph(nodes: Vec<Node>, shapes: Vec<Vec<i64>>) -> Graph {
    let inputs = (0..nodes.len()).filter(|node| nodes[*node].call.is_none()).collect();
    let outputs = vec![Edge { node: nodes.len() - 1, output: 0 }];
    let entry = |(at, shape): (usize, Vec<i64>)| Entry {
        ty: float32(&shape),
        storage: at as i64,
        device: Some(1),
    };
    Graph { nodes, inputs, outputs, entries: shapes.into_iter().enumerate().map(entry).collect() }
}

fn two_calls() -> (Graph, Vec<Param>) {
    let x = Node { name: "x".to_owned(), call: None };
    let nodes = vec![x, call("one", "next", &[0]), call("two", "next", &[1])];
    (graph(nodes, vec![vec![1, 16]; 3]), vec![])
}

/// Layers of these widths.
fn layers(widths: &[i64]) -> (Graph, Vec<Param>) {
    let mut nodes = vec![Node { name: "x".to_owned(), call: None }];
    let mut shapes = vec![vec![1, widths[0]]];
    let (mut params, mut last) = (vec![], 0);
    for (layer, pair) in widths.windows(2).enumerate() {
        for (name, shape) in [("w", vec![pair[1], pair[0]]), ("b", vec![pair[1]])] {
            let (name, ty) = (format!("{name}{layer}"), float32(&shape));
            let bytes = ty.bytes().unwrap_or_default() as usize;
            let data = [0, 0, 0, 0x3c].repeat(bytes / 4).into();
            params.push(Param { name: name.clone(), ty, data });
            nodes.push(Node { name, call: None });
            shapes.push(shape);
        }
        nodes.push(call(
            &format!("layer{layer}"),
            "dense",
            &[last, nodes.len() - 2, nodes.len() - 1],
        ));
        shapes.push(vec![1, pair[1]]);
        last = nodes.len() - 1;
    }
    (graph(nodes, shapes), params)
}

fn write(path: &Path, graph: Graph, params: Vec<Param>, code: &Compiled) -> ExampleResult<()> {
    let workspaces = graph.functions().keys().map(|name| ((*name).to_owned(), 0)).collect();
    let model = Model {
        name: "default".to_owned(),
        target: "c -keys=cpu".to_owned(),
        device: 1,
        graph,
        params,
        workspaces,
        with_weights: true,
        outputs: vec!["y".to_owned()],
        vectors: vec![],
    };
    let contents = Contents {
        version: Version::V5,
        time: 0,
        models: vec![model],
        code: BTreeMap::from([("src/default_lib0.c".to_owned(), code.source.clone())]),
        shared: Some(Shared { bytes: code.library.clone(), requires: vec![] }),
        sources: BTreeMap::new(),
    };
    let package = irc_mlf::build("speed.tar", &contents).map_err(|report| format!("{report:?}"))?;
    Ok(package.archive.write(0, &mut std::fs::File::create(path)?)?)
}
