//! Libraries: search, confinement, fetching, bundling.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use irc_common_format::library::{Fetch, LoadOptions, Symbol, bundle, load};
use irc_common_format::model::*;
use irc_common_format::validate::{ValidateOptions, validate};
use irc_common_format::write::{self, Target, write};
use irc_diag::{Diagnostic, Sink};
use proptest::prelude::*;

/// A graph that imports.
fn graph(imports: &[&str]) -> Module {
    let value = |name| Value::tensor(name, ElementType::Float, ["N"]);
    let metadata = Metadata {
        name: Some("g".into()),
        domain: Some("com.example".into()),
        ir_version: Some(1),
        model_version: Some(1),
        doc: Some("A test.".into()),
        ..Metadata::default()
    };
    Module {
        metadata,
        imports: imports.iter().map(|&import| import.into()).collect(),
        graph: Some(Graph {
            inputs: vec![value("x")],
            outputs: vec![value("y")],
            ..Graph::default()
        }),
        ..Module::default()
    }
}

/// A library with a function that calls those named.
fn library(name: &str, imports: &[&str], calls: &[&str]) -> Module {
    let value = |name| Value::tensor(name, ElementType::Float, ["m*"]);
    let node = |(index, call): (usize, &&str)| {
        let (domain, op) =
            call.rsplit_once('.').map_or((None, *call), |(d, op)| (Some(d.into()), op));
        let node = Node::new(op, [format!("v{index}")], [format!("v{}", index + 1)]);
        Node { domain, arg_counts: vec![1], ..node }
    };
    let mut nodes: Vec<Node> = calls.iter().enumerate().map(node).collect();
    nodes.push(Node {
        arg_counts: vec![1],
        ..Node::new("Relu", [format!("v{}", calls.len())], ["out"])
    });
    let function = Function {
        name: Some("f".into()),
        inputs: vec![value("v0")],
        outputs: vec![value("out")],
        nodes,
        ..Function::default()
    };
    let signature =
        Signature { inputs: vec![value("X")], outputs: vec![value("Y")], ..Signature::default() };
    let relu =
        Operator { name: Some("Relu".into()), signatures: vec![signature], ..Operator::default() };
    let mut module = graph(imports);
    module.metadata.name = Some(name.into());
    Module { graph: None, functions: vec![function], operators: vec![relu], ..module }
}

fn bytes(module: &Module) -> Vec<u8> {
    let options = write::Options::binary(Target::CommonIr);
    write(module, &options, &mut Sink::new()).expect("a file")
}

fn put(folder: &Path, name: &str, module: &Module) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, bytes(module)).expect("a file");
}

fn options(folder: &Path) -> LoadOptions {
    LoadOptions { folder: Some(folder.into()), ..LoadOptions::default() }
}

/// Number of libraries, and codes of the diagnostics.
fn loaded(module: &Module, options: &LoadOptions) -> (usize, Vec<&'static str>) {
    let mut sink = Sink::new();
    let libraries = load(module, options, &mut sink);
    let codes = sink.diagnostics().iter().map(|found: &Diagnostic| found.code).collect();
    (libraries.iter().count(), codes)
}

#[test]
fn imports_are_followed_from_where_they_stand() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    put(at, "libs/a.pb", &library("a", &["deep/b.pb", "../c.pb"], &[]));
    put(at, "libs/deep/b.pb", &library("b", &["../a.pb"], &[]));
    put(at, "c.pb", &library("c", &[], &[]));
    let (count, codes) = loaded(&graph(&["libs/a.pb", "libs/deep/b.pb"]), &options(at));
    assert_eq!((count, &codes[..]), (3, &["cir-r63"][..]));
    let mut sink = Sink::new();
    let libraries = load(&graph(&["libs/a.pb"]), &options(at), &mut sink);
    assert!(matches!(libraries.resolve("com.example.b", "f"), Some(Symbol::Function(_))));
    assert!(libraries.get("com.example", "c").is_some());
    assert_eq!(libraries.iter().last().map(|library| library.chain.len()), Some(2));
}

#[test]
fn imports_stay_in_their_folders() {
    let outside = tempfile::tempdir().expect("a folder");
    put(outside.path(), "a.pb", &library("a", &[], &[]));
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::os::unix::fs::symlink(outside.path().join("a.pb"), at.join("link.pb")).expect("a link");
    std::fs::create_dir(at.join("folder.pb")).expect("a folder");
    put(at, "one.pb", &library("one", &[], &[]));
    std::fs::hard_link(at.join("one.pb"), at.join("two.pb")).expect("a link");
    let absolute = outside.path().join("a.pb").display().to_string();
    let uri = format!("file://{absolute}");
    for (import, code) in [
        ("link.pb", "cir-r67"),
        ("../a.pb", "cir-r67"),
        ("folder.pb", "cir-r67"),
        ("two.pb", "cir-r67"),
        (&absolute, "cir-r67"),
        (&uri, "cir-r67"),
        ("https://localhost/a.pb", "cir-r67"),
        ("ftp://localhost/a.pb", "cir-r67"),
        ("missing.pb", "cir-r61"),
    ] {
        assert_eq!(loaded(&graph(&[import]), &options(at)), (0, vec![code]), "{import}");
    }
    let with_path = LoadOptions { library_paths: vec![outside.path().into()], ..options(at) };
    for import in ["a.pb", &absolute, &uri] {
        assert_eq!(loaded(&graph(&[import]), &with_path), (1, vec![]), "{import}");
    }
    let absent = LoadOptions { library_paths: vec![at.join("absent")], ..options(at) };
    assert_eq!(loaded(&graph(&["one.pb"]), &absent).1, ["cir-file", "cir-r67"]);
    let small = LoadOptions { max_bytes: 8, ..with_path.clone() };
    assert_eq!(loaded(&graph(&["a.pb"]), &small), (0, vec!["cir-r67"]));
    let nowhere = LoadOptions { folder: None, ..options(at) };
    assert_eq!(loaded(&graph(&["a.pb"]), &nowhere), (0, vec!["cir-r61"]));
}

#[test]
fn a_chain_has_an_end() {
    let folder = tempfile::tempdir().expect("a folder");
    for index in 0..6 {
        let next = format!("{}.pb", index + 1);
        put(folder.path(), &format!("{index}.pb"), &library(&format!("l{index}"), &[&next], &[]));
    }
    let shallow = LoadOptions { max_depth: 3, ..options(folder.path()) };
    assert_eq!(loaded(&graph(&["0.pb"]), &shallow), (3, vec!["cir-r67"]));
    let few = LoadOptions { max_documents: 2, ..options(folder.path()) };
    assert_eq!(loaded(&graph(&["0.pb"]), &few), (2, vec!["cir-r67"]));
}

#[test]
fn only_libraries_are_imported() {
    let folder = tempfile::tempdir().expect("a folder");
    put(folder.path(), "graph.pb", &graph(&[]));
    let model = Module { schema: Schema::Onnx, ..graph(&[]) };
    let model = write(&model, &write::Options::binary(Target::Onnx), &mut Sink::new());
    std::fs::write(folder.path().join("model.onnx"), model.expect("a file")).expect("a file");
    std::fs::write(folder.path().join("noise.pb"), [0xff; 40]).expect("a file");
    for import in ["graph.pb", "model.onnx", "noise.pb"] {
        let found = loaded(&graph(&[import]), &options(folder.path()));
        assert_eq!(found, (0, vec!["cir-r62"]), "{import}");
    }
    let mut sink = Sink::new();
    load(&graph(&["model.onnx"]), &options(folder.path()), &mut sink);
    assert!(sink.diagnostics()[0].message.contains("an ONNX model"), "{sink:?}");
}

/// Serves as many requests as there are answers, and returns the requested paths.
fn serve(answers: Vec<(&'static str, Vec<u8>)>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || {
        let mut requested = vec![];
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().expect("a request");
            let mut request = vec![];
            let mut part = [0; 512];
            while !request.ends_with(b"\r\n\r\n") {
                let count = stream.read(&mut part).expect("a request");
                request.extend_from_slice(&part[..count]);
            }
            let request = String::from_utf8_lossy(&request).into_owned();
            requested.push(request.split(' ').nth(1).unwrap_or_default().to_owned());
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).expect("an answer");
            // A client that has read enough closes the connection.
            let _ = stream.write_all(&body);
        }
        requested
    });
    (format!("http://{address}"), server)
}

#[test]
fn documents_are_fetched_once_when_that_is_allowed() {
    let first = bytes(&library("a", &["more/b.pb", "file:///etc/hostname"], &[]));
    let (server, requested) =
        serve(vec![("200 OK", first), ("200 OK", bytes(&library("b", &[], &[])))]);
    let cache = tempfile::tempdir().expect("a folder");
    let fetch = Some(Fetch::into_folder(cache.path().join("cache")));
    let online = LoadOptions { fetch, ..LoadOptions::default() };
    let module = graph(&[&format!("{server}/x/a.pb")]);
    // A server's document cannot import a file.
    assert_eq!(loaded(&module, &online), (2, vec!["cir-r67"]));
    assert_eq!(requested.join().expect("a server"), ["/x/a.pb", "/x/more/b.pb"]);
    // The server is gone.
    assert_eq!(loaded(&module, &online).0, 2);
    assert_eq!(loaded(&module, &LoadOptions::default()), (0, vec!["cir-r67"]));
}

#[test]
fn what_a_server_rejects_is_said() {
    let (server, requested) = serve(vec![("404 Not Found", vec![]), ("200 OK", vec![0; 10_000])]);
    let cache = tempfile::tempdir().expect("a folder");
    let fetch = Some(Fetch::into_folder(cache.path()));
    let online = LoadOptions { fetch, max_bytes: 1000, ..LoadOptions::default() };
    let module = graph(&[&format!("{server}/none"), &format!("{server}/large")]);
    assert_eq!(loaded(&module, &online), (0, vec!["cir-r61"; 2]));
    assert_eq!(requested.join().expect("a server"), ["/none", "/large"]);
    assert_eq!(std::fs::read_dir(cache.path()).expect("a folder").count(), 0);
}

#[test]
fn a_server_that_speaks_no_tls_is_rejected() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a request");
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("an answer");
    });
    let cache = tempfile::tempdir().expect("a folder");
    let fetch = Some(Fetch::into_folder(cache.path()));
    let online = LoadOptions { fetch, ..LoadOptions::default() };
    let found = loaded(&graph(&[&format!("https://{address}/a.pb")]), &online);
    assert_eq!(found, (0, vec!["cir-r61"]));
    server.join().expect("a server");
}

/// The resolution of every name of a module: symbols by qualified name, with bodies in which each
/// call is qualified.
fn meaning(module: &Module, options: &LoadOptions) -> Vec<String> {
    let libraries = load(module, options, &mut Sink::new());
    let own = module.qualified_name();
    let documents = std::iter::once(module).chain(libraries.iter().map(|library| &library.module));
    let mut all = vec![];
    for document in documents {
        let name = document.qualified_name();
        let local: Vec<(&Option<String>, &Option<String>)> = document
            .functions
            .iter()
            .map(|function| (&function.domain, &function.name))
            .chain(document.operators.iter().map(|operator| (&operator.domain, &operator.name)))
            .collect();
        let whole = |node: &Node, of: &Option<String>| match &node.domain {
            None if local.contains(&(of, &Some(node.op.clone()))) => {
                format!("{}.{}", of.as_ref().unwrap_or(&name), node.op)
            }
            _ => node.symbol(),
        };
        for operator in &document.operators {
            let domain = operator.domain.as_ref().unwrap_or(&name);
            all.push(format!("{domain}.{:?} {:?}", operator.name, operator.signatures));
        }
        for function in &document.functions {
            let domain = function.domain.as_ref().unwrap_or(&name);
            let nodes = function.nodes.iter();
            let calls: Vec<_> = nodes
                .map(|node| (whole(node, &function.domain), &node.inputs, &node.outputs))
                .collect();
            all.push(format!("{domain}.{:?} {:?} {calls:?}", function.name, function.inputs));
        }
    }
    let calls = module.graph.iter().flat_map(|graph| &graph.nodes).map(Node::symbol);
    all.push(format!("{own} {:?}", calls.collect::<Vec<_>>()));
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// R66: bundles libraries with random imports of each other.
    #[test]
    fn a_bundle_means_the_same(edges in proptest::collection::vec((0_usize..5, 0_usize..5), 0..12)) {
        let folder = tempfile::tempdir().expect("a folder");
        for index in 0..5 {
            // No function is recursive: calls go to higher numbers, imports anywhere.
            let to = |of: &&(usize, usize)| of.0 == index;
            let imports: Vec<String> = edges.iter().filter(to).map(|edge| format!("l{}.pb", edge.1)).collect();
            let calls: Vec<String> = edges
                .iter()
                .filter(|edge| edge.0 == index && edge.1 > index)
                .map(|edge| format!("com.example.l{}.f", edge.1))
                .collect();
            let imports: Vec<&str> = imports.iter().map(String::as_str).collect();
            let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
            put(folder.path(), &format!("l{index}.pb"), &library(&format!("l{index}"), &imports, &calls));
        }
        let mut module = graph(&["l0.pb", "l1.pb"]);
        let graph = module.graph.as_mut().expect("a graph");
        graph.nodes = vec![
            Node { domain: Some("com.example.l0".into()), ..Node::new("f", ["x"], ["t"]) },
            Node { domain: Some("com.example.l1".into()), ..Node::new("f", ["t"], ["y"]) },
        ];
        let options = options(folder.path());
        let libraries = load(&module, &options, &mut Sink::new());
        let bundled = bundle(&module, &libraries);
        prop_assert!(bundled.imports.is_empty());
        prop_assert_eq!(meaning(&bundled, &LoadOptions::default()), meaning(&module, &options));
        // Valid before and after; and again equal when the imports are still present.
        for (module, libraries) in [(&module, &libraries), (&bundled, &Default::default())] {
            let mut sink = Sink::new();
            validate(module, libraries, &ValidateOptions::default(), &mut sink);
            prop_assert!(!sink.has_errors(), "{:#?}", sink.diagnostics());
        }
        let both = Module { imports: module.imports.clone(), ..bundled.clone() };
        prop_assert_eq!(bundle(&both, &libraries), bundled);
        let mut sink = Sink::new();
        validate(&both, &libraries, &ValidateOptions::default(), &mut sink);
        prop_assert!(!sink.has_errors(), "{:#?}", sink.diagnostics());
    }
}
