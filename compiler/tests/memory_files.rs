//! Models, their external data and their libraries from memory: no file is read.
use irc::{ImportOptions, MemoryFiles, Session, Target, Tensor};

const MODEL: &str = include_str!("../../lit_tests/common_ir/dialect/inputs/external.pbtxt");

/// A session whose files exist in memory only.
fn session(weights: f32) -> Session {
    let data = [1.0, weights].map(f32::to_le_bytes).concat();
    Session::with_files(
        MemoryFiles::new().with("nowhere/model.pbtxt", MODEL).with("nowhere/w.bin", data),
    )
}

#[test]
fn a_model_with_external_data_runs_from_memory() {
    let session = session(3.0);
    let model = session.import("nowhere/model.pbtxt").unwrap();
    let program = model.compile(Target::host()).unwrap();
    let x = Tensor::from_values([1], &[2.0_f32]).unwrap();
    assert_eq!(program.run([("x", x)]).unwrap()["y"].to_f32(), [6.0]);
}

#[test]
fn a_file_that_memory_lacks_is_not_looked_for_on_disk() {
    let error = session(3.0).import("Cargo.toml").err().unwrap();
    assert_eq!(error.diagnostics()[0].code, "file-read");
    let alone = Session::with_files(MemoryFiles::new().with("model.pbtxt", MODEL));
    let error = alone.import("model.pbtxt").err().unwrap();
    assert_eq!(error.diagnostics()[0].code, "cir-external");
}

#[test]
fn libraries_are_found_in_memory() {
    const GRAPH: &str = include_str!("../../lit_tests/common_ir/rules/R61_ok.pbtxt");
    const LIBRARY: &str = include_str!("../../lit_tests/common_ir/rules/inputs/chain.pbtxt");
    const RELU: &str = include_str!("../../lit_tests/common_ir/rules/inputs/relu.pbtxt");
    let format = irc::Format::from_name("common-ir-text").unwrap();
    let options = ImportOptions { format, ..ImportOptions::default() };
    let errors = |folder: &str| {
        let files = MemoryFiles::new()
            .with("at/graph.pbtxt", GRAPH)
            .with(format!("{folder}/chain.pbtxt"), LIBRARY)
            .with(format!("{folder}/relu.pbtxt"), RELU);
        let session = Session::with_files(files);
        let model = session.parse("at/graph.pbtxt", GRAPH.into(), &options).unwrap();
        let found = model.read_diagnostics();
        found.into_iter().filter(|one| one.is_error()).map(|one| one.code).collect::<Vec<_>>()
    };
    assert_eq!(errors("at/inputs"), [""; 0]);
    assert_eq!(errors("elsewhere"), ["cir-r61"]);
}
