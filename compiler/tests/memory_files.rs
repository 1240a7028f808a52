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
    let library = r#"
        domain: "ex" name: "lib" model_version: 1
        function {
            name: "Twice" parameter { name: "x" } output { name: "y" }
            node { op_type: "Add" input { value: "x" } input { value: "x" } output: "y" }
        }"#;
    let with = |files: MemoryFiles| {
        let session = Session::with_files(files);
        let text = "domain: \"ex\" name: \"main\" import: \"lib.pbtxt\"\n";
        let options = ImportOptions {
            format: irc::Format::from_name("common-ir-text").unwrap(),
            ..ImportOptions::default()
        };
        let model = session.parse("at/main.pbtxt", text.into(), &options).unwrap();
        let codes = model.read_diagnostics().into_iter().map(|found| found.code);
        codes.filter(|code| *code == "cir-r61").count()
    };
    assert_eq!(with(MemoryFiles::new().with("at/lib.pbtxt", library)), 0);
    assert_eq!(with(MemoryFiles::new().with("lib.pbtxt", library)), 1);
}
