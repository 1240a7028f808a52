//! Real models return their reference outputs in the reference evaluator.
//!
//! Models and their inputs and outputs are read from `IRC_CORPUS`. The evaluator is slow: larger
//! models are only imported here, and run in the tests of the compiler.

use irc_common_format::{Options, model::Module, open};
use irc_diag::Sink;
use irc_onnx_ops::{ImportOptions, Imported, NodeDiagnosticKind, import, unsupported};
use irc_tensor::{Tensor, read_npz_file};
use irc_tl::Constant;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The corpus, if it is present.
fn corpus() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/corpus");
    let root = std::env::var_os("IRC_CORPUS").map_or(beside, PathBuf::from).join("common_ir");
    if root.is_dir() {
        return Some(root);
    }
    println!("skipped: no corpus at {}", root.display());
    None
}

fn read(path: &Path) -> Module {
    let mut sink = Sink::new();
    let document = open(path, &Options::default(), &mut sink);
    document.unwrap_or_else(|| panic!("{} cannot be read", path.display())).module
}

/// Imports a module for inputs, whose values its structure may depend on.
fn import_for(module: &Module, inputs: &BTreeMap<String, Tensor>) -> Imported {
    let mut options = ImportOptions::default();
    loop {
        let diagnostics = match import(module, &options) {
            Ok(imported) => return imported,
            Err(diagnostics) => diagnostics,
        };
        let before = options.values.len() + options.shapes.len();
        for diagnostic in &diagnostics {
            for (name, value) in inputs {
                match &diagnostic.kind {
                    NodeDiagnosticKind::NeedsValue(names) if names.contains(name) => {
                        options.values.insert(name.clone(), Constant::of(value));
                    }
                    NodeDiagnosticKind::NeedsShape(names) if names.contains(name) => {
                        options.shapes.insert(name.clone(), value.shape().to_vec());
                    }
                    _ => {}
                }
            }
        }
        assert!(options.values.len() + options.shapes.len() > before, "{diagnostics:#?}");
    }
}

/// The largest difference from the reference, relative to the larger of it and 1.
fn difference(expected: &Tensor, found: &Tensor) -> f64 {
    assert_eq!(expected.ty(), found.ty());
    let pairs = expected.to_f64().into_iter().zip(found.to_f64());
    pairs.map(|(want, have)| (want - have).abs() / want.abs().max(1.0)).fold(0.0, f64::max)
}

/// Whether every operator of a model is supported; prints those that are not.
fn supported(path: &Path) -> bool {
    let missing: BTreeSet<String> =
        unsupported(&read(path)).into_iter().map(|diagnostic| diagnostic.message).collect();
    if !missing.is_empty() {
        println!("skipped: {}: {missing:?}", path.display());
    }
    missing.is_empty()
}

/// `in_NAME` are the inputs, `out_N` the outputs in their order.
fn reference(path: &Path) -> (BTreeMap<String, Tensor>, Vec<Tensor>) {
    let all = read_npz_file(path).expect("reference values");
    let inputs = all
        .iter()
        .filter_map(|(key, tensor)| Some((key.strip_prefix("in_")?.to_owned(), tensor.clone())));
    let outputs = (0..).map_while(|index| all.get(&format!("out_{index}")).cloned());
    (inputs.collect(), outputs.collect())
}

/// Models that are small enough to be evaluated, and their tolerances.
const EVALUATED: &[(&str, f64)] = &[
    ("Windows-Machine-Learning__Samples_MNIST_Tutorial_cs_Assets_mnist", 1e-3),
    ("burn-onnx__examples_onnx-inference_src_model_mnist", 1e-3),
    ("emx-onnx-cgen__tests_onnx_micro_kws_m_static_fp32", 1e-3),
    ("emx-onnx-cgen__tests_onnx_micro_kws_m_static_qdq", 2e-2),
    ("emx-onnx-cgen__tests_onnx_micro_kws_m_static_qoperator", 2e-2),
    ("silero-vad__src_silero_vad_data_silero_vad_16k_op15", 1e-3),
    ("silero-vad__src_silero_vad_data_silero_vad_op18_ifless", 1e-3),
    ("tract__onnx_test_cases_byte_sb_bidi_lstm_model", 1e-3),
];

#[test]
fn small_models_give_their_reference_outputs() {
    let Some(corpus) = corpus() else { return };
    for (name, most) in EVALUATED {
        let folder = corpus.join("models");
        if !supported(&folder.join(format!("{name}.onnx"))) {
            continue;
        }
        let (inputs, expected) = reference(&folder.join(format!("{name}.npz")));
        let imported = import_for(&read(&folder.join(format!("{name}.onnx"))), &inputs);
        let found = imported.graph.eval(&inputs).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found.len(), expected.len(), "{name}");
        for (index, (expected, found)) in expected.iter().zip(&found).enumerate() {
            let difference = difference(expected, found);
            println!("{name}: output {index} differs by {difference:e}");
            assert!(difference <= *most, "{name}: output {index} differs by {difference}");
        }
    }
}

#[test]
fn all_models_import() {
    let Some(corpus) = corpus() else { return };
    let mut paths: Vec<PathBuf> = std::fs::read_dir(corpus.join("models"))
        .expect("the models")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "onnx"))
        .collect();
    paths.sort();
    let mut failed = vec![];
    for path in paths {
        if !supported(&path) {
            continue;
        }
        let module = read(&path);
        let values = path.with_extension("npz");
        let inputs = if values.is_file() { reference(&values).0 } else { BTreeMap::new() };
        let result = std::panic::catch_unwind(|| import_for(&module, &inputs));
        match result {
            Ok(imported) => {
                let (nodes, symbols) = (imported.graph.nodes.len(), imported.graph.symbols.len());
                println!("{}: {nodes} nodes, {symbols} symbols", path.display());
            }
            Err(_) => failed.push(path),
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// A file from before ONNX in its three encodings, and the same model as current ONNX.
#[test]
fn files_of_the_era_import() {
    let Some(corpus) = corpus() else { return };
    let files = [
        "super_resolution_d2ed4e2e.pb",
        "super_resolution_2fd25cdf.pb",
        "super_resolution_25ca7055.pb",
        "super_resolution_as_opset13.onnx",
    ];
    for file in files {
        let module = read(&corpus.join("era").join(file));
        let mut options = ImportOptions::default();
        let graph = module.graph.as_ref().expect("a graph");
        let default = |name: &str| {
            graph.initializers.iter().any(|tensor| tensor.name.as_deref() == Some(name))
        };
        // The oldest files do not declare their inputs.
        for input in graph.inputs.iter().filter(|input| !default(input.name())) {
            options.shapes.insert(input.name().to_owned(), vec![1, 1, 224, 224]);
        }
        let imported = import(&module, &options);
        let graph = imported.unwrap_or_else(|diagnostics| panic!("{file}: {diagnostics:#?}")).graph;
        assert_eq!(graph.inputs.len(), 1, "{file}");
        assert_eq!(graph.ty(graph.inputs[0].1).to_string(), "f32[1,1,224,224]", "{file}");
        assert_eq!(graph.ty(graph.outputs[0].1).to_string(), "f32[1,1,672,672]", "{file}");
    }
}

/// A graph that calls a function of a library, by the library's name.
#[test]
fn a_graph_and_its_library() {
    let Some(corpus) = corpus() else { return };
    let samples = corpus.join("samples");
    let mut module = read(&samples.join("classifier_graph.pb"));
    let missing = import(&module, &ImportOptions::default()).expect_err("no library yet");
    assert_eq!(missing[0].message, "no operator Linear of com.example.nn.mlp");
    for mut function in read(&samples.join("mlp_library.pb")).functions {
        function.domain = Some("com.example.nn.mlp".into());
        module.functions.push(function);
    }
    let imported = import(&module, &ImportOptions::default());
    let graph = imported.unwrap_or_else(|diagnostics| panic!("{diagnostics:#?}")).graph;
    for rows in [1, 3] {
        let x = Tensor::from_values([rows, 4], &vec![1.0f32; 4 * rows as usize]);
        let inputs = BTreeMap::from([("x".to_owned(), x.expect("rows"))]);
        let found = graph.eval(&inputs).expect("any number of rows");
        assert_eq!(found[0].shape(), [rows, 5]);
        // Columns of the first weights sum to 1.8, 2.2 and 2.6; the second weights are thirds.
        let expected = [2.7, 1.7, 1.8, 2.2, 2.6].into_iter().cycle();
        for (have, want) in found[0].to_f64().into_iter().zip(expected) {
            assert!((have - want).abs() < 1e-6, "{have} and {want}");
        }
    }
}

#[test]
#[ignore = "takes minutes in the evaluator; the compiled program is tested elsewhere"]
fn the_file_of_the_era_gives_its_reference_output() {
    let Some(corpus) = corpus() else { return };
    let era = corpus.join("era");
    let values = read_npz_file(&era.join("super_resolution_ref_io.npz")).expect("values");
    let mut options = ImportOptions::default();
    options.shapes.insert("9".into(), vec![1, 1, 224, 224]);
    let imported = import(&read(&era.join("super_resolution_d2ed4e2e.pb")), &options);
    let graph = imported.unwrap_or_else(|diagnostics| panic!("{diagnostics:#?}")).graph;
    let inputs = BTreeMap::from([("9".to_owned(), values["x"].clone())]);
    let found = graph.eval(&inputs).expect("it fits");
    let difference = difference(&values["y"], &found[0]);
    println!("differs by {difference:e}");
    assert!(difference < 1e-4, "differs by {difference}");
}
