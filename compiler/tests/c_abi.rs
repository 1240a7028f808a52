//! The C program of `docs/c-abi.md` builds and runs a compiled model.

use irc::{Session, Target};
use std::{fs, path::Path, process::Command};

#[test]
fn the_documented_program_runs_a_model() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/c-abi.md")).unwrap();
    let program = page.split("```c\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (source, binary) = (folder.path().join("run.c"), folder.path().join("run"));
    fs::write(&source, program).unwrap();
    let built =
        Command::new("cc").arg(&source).arg("-ldl").arg("-o").arg(&binary).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));

    let session = Session::new();
    let model = session.import(root.join("examples/ffn.model.json")).unwrap();
    let compiled = model.library(Target::host()).unwrap();
    let library = folder.path().join("ffn.so");
    fs::write(&library, &compiled.library).unwrap();
    let ports = compiled.interface.inputs.iter().chain(&compiled.interface.outputs);
    let sizes = ports.map(|port| port.tensor_type().unwrap().byte_size().unwrap().to_string());
    let run = Command::new(&binary)
        .arg(&library)
        .arg(compiled.interface.workspace_bytes.to_string())
        .args(sizes)
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    let metadata = String::from_utf8_lossy(&run.stdout).into_owned();
    assert_eq!(metadata.trim(), compiled.interface.to_json());
}
