//! Programs compute the same bytes as numpy's evaluation of the frontend graph.
//!
//! `tests/oracle/npu_frontend.py` generates inputs and weights, and evaluates layer by layer, without
//! schedules, addresses and instructions.

use std::path::Path;

use crate::support::{Network, corpus, data, python, root};
use irc_npu_network::{Tensors, run};
use irc_tensor::read_npz_file;
use tempfile::TempDir;

/// Generates and evaluates with numpy, into a folder.
fn evaluate(script: &str, layers: &Path, packages: &str, flags: &[&str]) -> Option<TempDir> {
    let folder = tempfile::tempdir().expect("a folder");
    let output = python(packages)?
        .arg(root().join("tests/oracle").join(script))
        .arg(layers)
        .arg("--folder")
        .arg(folder.path())
        .args(flags)
        .output();
    let output = output.expect("python runs");
    let [text, errors] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    print!("{}:\n{text}", layers.display());
    assert!(output.status.success(), "{text}{errors}");
    Some(folder)
}

/// Runs the program on the same values as numpy, and compares every tensor that it stores; returns
/// their number.
fn check(plan: &Path, layers: Option<&Path>, seed: u32) -> Option<usize> {
    let network = Network::open(plan, layers);
    let windows = tempfile::NamedTempFile::new().expect("a file");
    let seed = seed.to_string();
    let folder = match layers {
        Some(layers) => evaluate("npu_frontend.py", layers, "numpy", &["--seed", &seed])?,
        None => {
            std::fs::write(windows.path(), network.windows()).expect("a file that is written");
            let windows = windows.path().to_string_lossy();
            let flags = ["--seed", &seed, "--windows", &windows];
            evaluate("npu_schedule.py", plan, "numpy", &flags)?
        }
    };
    let read =
        |name: &str| -> Tensors { read_npz_file(&folder.path().join(name)).expect("an archive") };
    let (mut given, expected) = (read("inputs.npz"), read("expected.npz"));
    given.extend(read("weights.npz"));
    let found = run(&network.program, &network.layout, &given).expect("a run");
    for (name, found) in &found {
        let expected = &expected[name];
        assert_eq!(found.ty(), expected.ty(), "{name}");
        let pairs = found.bytes().iter().zip(expected.bytes());
        let different = pairs.filter(|(found, expected)| found != expected).count();
        assert_eq!(different, 0, "{name}: bytes of {} that differ", found.bytes().len());
        let mut values = found.to_f64();
        values.sort_by(f64::total_cmp);
        values.dedup();
        println!("{name} is equal, {} kinds of values", values.len());
        assert!(values.len() > 8, "{name}: nearly all values are the same");
    }
    Some(found.len())
}

#[test]
fn small_networks_have_the_bytes_of_numpy() {
    for seed in 1..=3 {
        let (plan, layers) = (data("small.schedule.json"), data("small.frontend.json"));
        let Some(count) = check(&plan, Some(&layers), seed) else { return };
        assert_eq!(count, 3);
    }
}

/// Network, batch, and number of tensors that it stores; larger networks are slow in a debug build.
const PUBLISHED: [(&str, &str, usize); 2] =
    [("int8_resnet34.sim", "b1", 4), ("int8_resnet50.sim", "b1", 4)];

const LARGE: [(&str, &str, usize); 3] = [
    ("int8_resnet34.sim", "b4", 1),
    ("int8_resnet34.sim", "b16", 4),
    ("int8_resnet50.sim", "b4", 1),
];

#[test]
fn published_networks_have_the_bytes_of_numpy() {
    let Some(folder) = corpus() else { return };
    let large = std::env::var_os("IRC_LARGE").map_or(&[][..], |_| &LARGE[..]);
    for (network, batch, count) in PUBLISHED.iter().chain(large) {
        let file = |end: &str| folder.join(format!("single_core/{network}_quantized_{batch}{end}"));
        let found = check(&file("_c1_bw16_stschedule.json"), Some(&file(".json")), 1);
        let Some(found) = found else { return };
        assert_eq!(found, *count, "{network} {batch}");
    }
}

/// Numpy's evaluation matches the definition of the layers: equivalent ONNX models differ by at most
/// one step of quantisation, and only for values halfway between steps.
#[test]
fn layers_mean_what_their_onnx_twins_do() {
    let mut all = vec![data("small.frontend.json")];
    let published = |folder: std::path::PathBuf| {
        let file = |(network, batch, _): &(&str, &str, usize)| {
            folder.join(format!("single_core/{network}_quantized_{batch}.json"))
        };
        PUBLISHED.iter().map(file).collect()
    };
    all.extend(corpus().map_or(vec![], published));
    for layers in all {
        if evaluate("npu_frontend.py", &layers, "numpy, onnx, onnxruntime", &["--twin"]).is_none() {
            return;
        }
    }
}

/// The small schedules of the format's crate, whose weights have no square kernel: changed to 1 by 1.
#[test]
fn small_programs_of_several_cores_have_the_bytes_of_numpy() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, count) in [("two_cores.json", 4), ("allocated.json", 4)] {
        let carried = root().join("formats/gemini/tests/data").join(name);
        let text = std::fs::read_to_string(carried).expect("a readable file");
        let plan = folder.path().join(name);
        std::fs::write(&plan, text.replace("\"size\": 4096", "\"size\": 512")).expect("a file");
        let Some(found) = check(&plan, None, 1) else { return };
        assert_eq!(found, count, "{name}");
    }
}

/// Schedules of several cores, and the number of tensors that they store.
const SEVERAL_CORES: [(&str, usize); 3] = [
    ("multi_core/gir_goog_b1_4x4.json.gz", 66),
    ("multi_core/set_darknet_b1_4x4_r10_SET_IR.json.gz", 2),
    ("address_allocated/ires_block_b1_2x2_LP-SA_allocated.json.gz", 6),
];

const LARGE_OF_SEVERAL_CORES: [(&str, usize); 1] = [("multi_core/gir_resnet_b1_2x2.json", 72)];

#[test]
fn programs_of_several_cores_have_the_bytes_of_numpy() {
    let Some(folder) = corpus() else { return };
    let large = std::env::var_os("IRC_LARGE").map_or(&[][..], |_| &LARGE_OF_SEVERAL_CORES[..]);
    for (path, count) in SEVERAL_CORES.iter().chain(large) {
        let Some(found) = check(&folder.join(path), None, 1) else { return };
        assert_eq!(found, *count, "{path}");
    }
}
