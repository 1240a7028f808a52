//! Frontend files of Gemini compiled for the host have the bytes of the NPU's functional simulator.
use crate::support::graphs::{compile, read_back};
use irc::{Session, Target};
use irc_diag::{Sink, Source};
use irc_gemini_format::{
    Options,
    frontend::{self, Frontend},
    schedule, source,
};
use irc_gemini_frontend::{ImportOptions, import};
use irc_npu_network::{Layout, Tensors, fill, run};
use irc_tl::{Graph, Results};
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/npu/network/tests/data").join(name)
}

fn open(path: &Path) -> Source {
    source(&path.display().to_string(), &std::fs::read(path).unwrap()).unwrap()
}

fn frontend(path: &Path) -> Frontend {
    let mut sink = Sink::new();
    frontend::parse(&open(path), &Options::default(), &mut sink)
        .unwrap_or_else(|| panic!("{:?}", sink.into_diagnostics()))
}

/// Inputs and weights of a network, and what the simulator makes of them.
fn simulated(plan: &Path, frontend: &Frontend, seed: u64) -> (Tensors, Tensors) {
    let schedule = schedule::parse(&open(plan), &Options::default(), &mut Sink::new()).unwrap();
    let layout = Layout::new(&schedule, Some(frontend)).unwrap();
    let program = irc_npu_emit::emit(&schedule, Some(frontend)).unwrap();
    let mut given = Tensors::new();
    fill(&layout, &mut given, seed).unwrap();
    let stored = run(&program, &layout, &given).unwrap();
    (given, stored)
}

fn graph(frontend: &Frontend) -> Graph {
    let options = ImportOptions { results: Results::All };
    import(frontend, &options).unwrap_or_else(|found| panic!("{found:#?}"))
}

/// Every tensor that the simulator stored has the same bytes among those found.
fn same(expected: &Tensors, found: &Tensors) {
    for (name, expected) in expected {
        let found = &found[name];
        assert_eq!(found.ty(), expected.ty(), "{name}");
        let pairs = found.bytes().iter().zip(expected.bytes());
        let different = pairs.filter(|(found, expected)| found != expected).count();
        assert_eq!(different, 0, "{name}: bytes of {} that differ", found.bytes().len());
    }
}

fn compiled(graph: &Graph, given: &Tensors) -> Tensors {
    compile(graph).runner().unwrap().run(given.clone()).unwrap()
}

#[test]
fn a_small_network_has_the_bytes_of_the_simulator() {
    let frontend = frontend(&data("small.frontend.json"));
    let graph = graph(&frontend);
    let read = read_back(&graph);
    for seed in 1..=3 {
        let (given, stored) = simulated(&data("small.schedule.json"), &frontend, seed);
        assert_eq!(stored.len(), 3);
        for graph in [&graph, &read] {
            let results = graph.eval(&given).unwrap();
            let names = graph.outputs.iter().map(|(name, _)| name.clone());
            same(&stored, &names.zip(results).collect());
        }
        same(&stored, &compiled(&graph, &given));
    }
}

/// A frontend file is a model like any other.
#[test]
fn a_session_imports_frontend_files() {
    let path = data("small.frontend.json");
    let (given, stored) = simulated(&data("small.schedule.json"), &frontend(&path), 1);
    let session = Session::new();
    let options = irc::ImportOptions::default().results(Results::Named(vec!["Add_5".into()]));
    let model = session.import_with(&path, &options).unwrap();
    assert!(model.stage("import", Target::host()).unwrap().contains("gemini."));
    let found = model.compile(Target::host()).unwrap().run(given).unwrap();
    assert_eq!(found["Add_5"], stored["Add_5"]);
    let text = std::fs::read_to_string(&path).unwrap().replacen("max_pool2d", "lut", 1);
    let found = session.import_bytes("layers.json", text.into(), &irc::ImportOptions::default());
    let error = format!("{:?}", found.err().unwrap());
    assert!(error.contains("layers.json:"), "{error}");
}

#[test]
fn published_networks_have_the_bytes_of_the_simulator() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let root = std::env::var_os("IRC_CORPUS").map_or(root, PathBuf::from);
    let folder = root.join("gemini/single_core");
    if !folder.is_dir() {
        println!("skipped: no corpus at {}", folder.display());
        return;
    }
    for network in ["int8_resnet34", "int8_resnet50"] {
        let file = |end: &str| folder.join(format!("{network}.sim_quantized_b1{end}"));
        let frontend = frontend(&file(".json"));
        let (given, stored) = simulated(&file("_c1_bw16_stschedule.json"), &frontend, 1);
        assert_eq!(stored.len(), 4, "{network}");
        same(&stored, &compiled(&graph(&frontend), &given));
    }
}

#[test]
fn outputs_are_what_no_layer_reads() {
    let graph = import(&frontend(&data("small.frontend.json")), &ImportOptions::default()).unwrap();
    let names = |ports: &[(String, irc_tl::ValueId)]| -> Vec<String> {
        ports.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&graph.outputs), ["Gemm_9"]);
    let options = ImportOptions { results: Results::Named(vec!["Add_5".into(), "x".into()]) };
    let found = import(&frontend(&data("small.frontend.json")), &options).unwrap_err();
    assert_eq!(found[0].message, "there is no layer `x`");
    let expected = ["input1", "Conv_1.weight", "Conv_1.scale", "Conv_1.bias", "Conv_2.weight"];
    assert_eq!(names(&graph.inputs)[..5], expected);
}

#[test]
fn every_layer_that_cannot_be_imported_is_reported() {
    let text = std::fs::read_to_string(data("small.frontend.json")).unwrap();
    let text = text.replacen("\"quantize\"", "\"softmax\"", 1).replacen("max_pool2d", "lut", 1);
    let source = Source::new("layers.json", &text);
    let layers = frontend::parse(&source, &Options::default(), &mut Sink::new()).unwrap();
    let found = import(&layers, &ImportOptions::default()).unwrap_err();
    let messages: Vec<_> =
        found.iter().map(|one| (one.path.clone().unwrap(), one.message.clone())).collect();
    let expected = [("Quantize_0", "softmax"), ("MaxPool_7", "lut")].map(|(layer, operation)| {
        let message = format!("layer `{layer}`: unsupported operation `{operation}`");
        (format!("$[\"{layer}\"].operation"), message)
    });
    assert_eq!(messages, expected);
}
