//! Every input kind against every output, as docs/matrix.md promises.
use clap::ValueEnum;
use irc_cli::{InputKind, Kind, Support};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn irc(arguments: &[&str]) -> (Option<i32>, String) {
    let driver = Path::new(env!("CARGO_BIN_EXE_irc-driver"));
    let output = Command::new(driver.with_file_name("irc")).args(arguments).output();
    let output = output.expect("irc starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// An input of each kind, with the flags that it needs.
fn input(kind: InputKind, folder: &Path) -> (PathBuf, Vec<String>) {
    let shape = || vec!["--shape".to_owned(), "x=4x4".to_owned()];
    let model = root().join("examples/softmax.model.json");
    let network = root().join("runtime/npu/network/tests/data");
    match kind {
        InputKind::ArkModel => (model, vec![]),
        InputKind::CommonIr => (root().join("examples/perceptron.onnx.pbtxt"), shape()),
        InputKind::Layers => (network.join("small.frontend.json"), vec![]),
        InputKind::Plan => (root().join("formats/ark/tests/data/layer.plan.json"), vec![]),
        InputKind::Schedule => {
            let layers = network.join("small.frontend.json").display().to_string();
            (network.join("small.schedule.json"), vec!["--frontend".to_owned(), layers])
        }
        InputKind::Program => (root().join("formats/npu/tests/data/small.txt"), vec![]),
        InputKind::Compiled => (root().join("formats/mlf/tests/data/small.v5.tar"), vec![]),
        InputKind::Mlir => {
            let path = folder.join("input.mlir");
            let model = model.display().to_string();
            let (code, errors) =
                irc(&["compile", &model, "-o", &path.display().to_string(), "--stage", "tensor"]);
            assert_eq!(code, Some(0), "{errors}");
            (path, vec![])
        }
    }
}

#[test]
fn every_cell_is_as_the_page_promises() {
    let folder = tempfile::tempdir().expect("a folder");
    for kind in InputKind::ALL {
        let (path, flags) = input(kind, folder.path());
        for output in Kind::value_variants() {
            let name = output.to_possible_value().expect("no kind is hidden").get_name().to_owned();
            let out = folder.path().join(format!("out.{name}")).display().to_string();
            let path = path.display().to_string();
            let mut arguments = vec!["compile", &*path, "-o", &*out];
            let has_flags = kind != InputKind::Schedule || *output == Kind::Asm;
            arguments.extend(flags.iter().filter(|_| has_flags).map(String::as_str));
            let (code, errors) = irc(&arguments);
            let cell = format!("{} -> .{name}: {code:?}: {errors}", kind.words());
            match kind.support(*output) {
                Support::Yes => assert_eq!(code, Some(0), "{cell}"),
                Support::If(_) => assert!(matches!(code, Some(0 | 1)), "{cell}"),
                Support::No(why) => {
                    assert_eq!(code, Some(1), "{cell}");
                    assert!(errors.contains(why), "{cell}");
                }
            }
            assert_eq!(Path::new(&*out).exists(), code == Some(0), "{cell}");
            let _ = fs::remove_file(&*out);
        }
    }
}

#[test]
fn the_page_is_that_of_the_table() {
    let page = root().join("docs/matrix.md");
    let written = irc_cli::matrix_page();
    if std::env::var_os("IRC_BLESS").is_some() {
        fs::write(&page, &written).expect("the page can be written");
    }
    let found = fs::read_to_string(&page).expect("the page");
    assert!(found == written, "docs/matrix.md differs: run cargo xtask docs");
}
