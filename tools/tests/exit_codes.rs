//! Exit codes, and the stream that each tool writes to.
use irc_tensor::{Tensor, read_npz_file, write_npz};
use std::{
    collections::BTreeMap,
    fs::File,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

fn tool(name: &str) -> Command {
    let driver = Path::new(env!("CARGO_BIN_EXE_irc-driver"));
    Command::new(driver.with_file_name(name))
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name)
}

fn run(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the tool starts");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (status.code().expect("no signal"), text(&stdout), text(&stderr))
}

/// The compiled library of an example.
fn compiled(folder: &Path) -> PathBuf {
    let library = folder.join("softmax.so");
    let mut command = tool("irc");
    let (code, _, err) =
        run(command.arg("compile").arg(example("softmax.model.json")).arg("-o").arg(&library));
    assert_eq!(code, 0, "{err}");
    library
}

#[test]
fn help_and_version_are_on_standard_output() {
    for name in ["irc", "irc-translate"] {
        for flag in ["--help", "--version"] {
            let (code, out, err) = run(tool(name).arg(flag));
            assert_eq!((code, err.as_str()), (0, ""), "{name} {flag}");
            assert!(out.contains("irc"), "{name} {flag}: {out}");
        }
    }
    let (_, help, _) = run(tool("irc").args(["run", "--help"]));
    assert!(help.contains("Examples:") && help.contains("Exit codes:"), "{help}");
}

#[test]
fn wrong_usage_is_two() {
    let cases: [&[&str]; 5] = [
        &[],
        &["frobnicate"],
        &["run"],
        &["run", "m.json", "--backend", "abacus"],
        &["compile", "m.json", "-o", "m.zip"],
    ];
    for arguments in cases {
        let (code, out, err) = run(tool("irc").args(arguments));
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(!err.is_empty(), "{arguments:?}");
    }
}

#[cfg(not(feature = "mpi"))]
#[test]
fn mpi_without_the_feature_is_a_usage_error() {
    let (code, out, err) = run(tool("irc").args(["run", "m.json", "--transport", "mpi"]));
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("cargo build --release -p irc-tools --features mpi"), "{err}");
}

#[test]
fn results_that_differ_are_three() {
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("y.npz");
    let softmax = |seed: &str| {
        let mut command = tool("irc");
        command.arg("run").arg(example("softmax.model.json")).args(["--seed", seed]);
        command
    };
    let (code, out, err) = run(softmax("1").arg("--outputs").arg(&archive));
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", ""));
    assert_eq!(run(softmax("1").arg("--expected").arg(&archive)).0, 0);
    assert_eq!(run(softmax("2").arg("--expected").arg(&archive)).0, 3);
}

#[test]
fn an_expected_file_that_does_not_fit_is_one_and_names_the_outputs() {
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("y.npz");
    let softmax = |flag: &str| {
        let mut command = tool("irc");
        command.arg("run").arg(example("softmax.model.json")).args(["--seed", "1", flag]);
        run(command.arg(&archive))
    };
    assert_eq!(softmax("--outputs").0, 0);
    let outputs = read_npz_file(&archive).expect("an archive");
    let (name, output) = outputs.first_key_value().expect("an output");
    let length = output.to_f64().len();
    let short = Tensor::from_values([1], &[1.0_f32]).expect("a tensor");
    let double = Tensor::from_values([length as i64], &vec![1.0_f64; length]).expect("a tensor");
    let cases = [
        BTreeMap::new(),
        BTreeMap::from([("buffer_999".to_owned(), output.clone())]),
        BTreeMap::from([(name.clone(), short)]),
        BTreeMap::from([(name.clone(), double)]),
    ];
    for case in cases {
        write_npz(File::create(&archive).expect("writable"), &case).expect("writable");
        let (code, out, err) = softmax("--expected");
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        assert!(err.contains(&format!("outputs: {name} {}", output.ty())), "{err}");
    }
}

#[test]
fn the_roofline_share_of_a_library_is_unknown() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = compiled(folder.path());
    let bench = |model: &Path, flags: &[&str]| {
        let mut command = tool("irc");
        command.arg("bench").arg(model).args(["--iterations", "2", "--peak-gflops", "100"]);
        run(command.args(flags))
    };
    let why = "roofline of the whole run unknown: the operations of a library, or of loops and choices, are not counted";
    let (code, text, _) = bench(&library, &[]);
    assert!(code == 0 && text.contains(why) && !text.contains('%'), "{text}");
    let (code, json, _) = bench(&library, &["--json"]);
    assert!(code == 0 && json.contains("\"roofline_share\": null") && json.contains(why), "{json}");
    let (_, json, _) = bench(&example("softmax.model.json"), &["--json"]);
    assert!(!json.contains("\"roofline_share\": null") && !json.contains(why), "{json}");
}

#[test]
fn an_output_that_is_the_input_is_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let (model, link) = (folder.path().join("m.json"), folder.path().join("link.json"));
    std::fs::copy(example("softmax.model.json"), &model).expect("copies");
    std::os::unix::fs::symlink(&model, &link).expect("links");
    let before = std::fs::read(&model).expect("there");
    for (name, flags) in [
        ("irc", ["compile", "--emit=json"].as_slice()),
        ("irc-translate", &["--import-ark", "--emit-ark"]),
    ] {
        for output in [&model, &link] {
            let (code, _, err) = run(tool(name).args(flags).arg(&model).arg("-o").arg(output));
            assert!(code == 1 && err.contains("it is the input") && err.contains("help:"), "{err}");
            assert_eq!(std::fs::read(&model).expect("still there"), before);
        }
    }
}

#[test]
fn inputs_without_end_are_rejected_in_bounded_memory() {
    // More than the maximum size of a stream, and the buffer while it grows.
    let limited = |name: &str, arguments: &str, stdin: &str| {
        let driver = tool(name).get_program().to_string_lossy().into_owned();
        let script = format!("ulimit -v 6000000; exec {driver} {arguments} < {stdin}");
        run(Command::new("bash").args(["-c", &script]))
    };
    let expect = |name: &str, arguments: &str, stdin: &str| {
        let (code, out, err) = limited(name, arguments, stdin);
        assert_eq!((code, out.as_str()), (1, ""), "{name} {arguments}: {err}");
        assert!(err.contains("more than 256 MiB"), "{name} {arguments}: {err}");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = folder.path().join("endless").display().to_string();
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo").success());
    for (name, arguments) in
        [("irc", "check"), ("irc", "run"), ("irc-opt", ""), ("irc-translate", "--import-ark")]
    {
        expect(name, &format!("{arguments} /dev/zero"), "/dev/null");
        let mut writer = Command::new("bash");
        let writer = writer.args(["-c", &format!("exec cat /dev/zero > {fifo}")]);
        let mut writer = writer.spawn().expect("cat");
        expect(name, &format!("{arguments} {fifo}"), "/dev/null");
        let _ = writer.wait();
    }
    expect("irc-opt", "", "/dev/zero");
}

#[test]
fn a_missing_folder_for_temporary_files_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (library, plan, archive) = (path("x.so"), path("x.plan.json"), path("x.tar"));
    let model = example("softmax.model.json").display().to_string();
    for output in [&library, &plan, &archive] {
        let (code, _, err) = run(tool("irc").args(["compile", &model, "-o", output]));
        assert_eq!(code, 0, "{err}");
    }
    let cases: [&[&str]; 4] = [
        &["compile", &model, "-o", &library],
        &["compile", &model, "-o", &archive],
        &["run", &model],
        &["run", &plan],
    ];
    for arguments in cases {
        let (code, out, err) = run(tool("irc").args(arguments).env("TMPDIR", "/nowhere/at/all"));
        assert_eq!((code, out.as_str()), (1, ""), "{arguments:?}: {err}");
        assert!(err.contains("/nowhere/at/all"), "{arguments:?}: {err}");
    }
}

#[test]
fn flags_without_effect_are_wrong_usage() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = compiled(folder.path());
    for flag in ["--results=all", "--explain-fusion", "--target-cpu=native"] {
        let (code, out, err) = run(tool("irc").arg("run").arg(flag).arg(&library));
        let said = err.contains(flag.split('=').next().unwrap_or(flag));
        assert!((code, out.as_str(), said) == (2, "", true), "{flag}: {err}");
    }
    let compile = |name: &str, flag: &str| {
        let output = folder.path().join(name);
        let mut command = tool("irc");
        command.arg("compile").arg(example("softmax.model.json")).arg(flag).arg("-o").arg(output);
        run(&mut command)
    };
    for (name, flag) in [
        ("x.so", "--stage=import"),
        ("x.json", "--stage=import"),
        ("x.so", "--arch=CUDA_80"),
        ("x.so", "--processors=4"),
        ("x.mlir", "--processors=4"),
    ] {
        let (code, _, err) = compile(name, flag);
        assert!(code == 2 && err.contains("has no effect"), "{name} {flag}: {err}");
    }
    assert_eq!(compile("x.mlir", "--stage=fuse").0, 0);
    assert_eq!(compile("x.json", "--arch=CUDA_80").0, 0);
    let (code, _, err) = compile("x.mlir", "--stage=nowhere");
    assert!(code == 2 && err.contains("stages: import, tensor"), "{err}");
}

#[test]
fn help_and_errors_name_flags_that_the_command_has() {
    for command in ["compile", "run"] {
        let (_, help, _) = run(tool("irc").args([command, "--help"]));
        assert!(help.contains("[default: outputs; irc run of ARK: all]"), "{help}");
    }
    let arguments = ["run", "m.json", "--outputs", "/nowhere/at/all.npz"];
    let (code, _, err) = run(tool("irc").args(arguments));
    assert!(code == 1 && err.contains("does not exist") && !err.contains("-o"), "{err}");
}

#[test]
fn a_machine_without_a_gpu_is_reported() {
    if std::path::Path::new("/dev/nvidiactl").exists() {
        return;
    }
    let model = example("softmax.model.json").display().to_string();
    let (code, out, err) = run(tool("irc").args(["run", &model, "--backend", "cuda"]));
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(err.contains("NVIDIA driver") && err.contains("--backend emulate"), "{err}");
}

#[test]
fn an_output_that_exists_stays_when_the_input_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let (model, output) = (folder.path().join("m.json"), folder.path().join("m.so"));
    std::fs::write(&model, "{").expect("writable");
    std::fs::write(&output, "old").expect("writable");
    let (code, _, err) = run(tool("irc").arg("compile").arg(&model).arg("-o").arg(&output));
    assert_eq!(code, 1, "{err}");
    assert_eq!(std::fs::read(&output).expect("still there"), b"old");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let irc = Path::new(env!("CARGO_BIN_EXE_irc-driver")).with_file_name("irc");
    let line = format!(
        "set -o pipefail; '{}' compile '{}' -o - --emit ll | head -c 1",
        irc.display(),
        example("ffn.model.json").display()
    );
    let (code, _, err) = run(Command::new("bash").args(["-c", &line]));
    assert_eq!((code, err.as_str()), (0, ""));
}

#[test]
fn messages_are_coloured_only_on_request() {
    let check = |flag: &str| run(tool("irc").args(["check", "/no/such/file", flag])).2;
    assert!(check("--color=always").contains('\x1b'));
    assert!(!check("--color=never").contains('\x1b'));
    assert!(!check("--color=auto").contains('\x1b'));
}

#[test]
fn a_machine_without_room_or_linker_is_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let compile = |command: &mut Command| {
        let model = example("softmax.model.json");
        run(command.arg("compile").arg(model).arg("-o").arg(folder.path().join("x.so")))
    };
    let (code, _, err) = compile(tool("irc").env("TMPDIR", "/nowhere/at/all"));
    assert!(code == 1 && err.contains("/nowhere/at/all") && err.contains("TMPDIR"), "{err}");
    let (code, _, err) = compile(tool("irc").env("PATH", "/nowhere/at/all"));
    assert!(code == 1 && err.contains("no linker found"), "{err}");
    // A file size limit of 512 bytes, which has the effect of a full disk.
    let mut limited = Command::new("bash");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""]);
    let (code, _, err) = compile(limited.arg(tool("irc").get_program()));
    assert!(code == 1 && err.contains("cannot write to") && err.contains("TMPDIR"), "{err}");
}

/// Libraries may contain constants of any size: they are memory-mapped.
#[test]
fn a_library_of_any_size_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = compiled(folder.path());
    let file = File::options().write(true).open(&library).expect("writable");
    file.set_len(257 << 20).expect("sparse");
    let (code, _, err) = run(tool("irc").arg("run").arg(&library));
    assert_eq!(code, 0, "{err}");
    let flags = ["--iterations", "2", "--peak-gflops", "100"];
    let (code, _, err) = run(tool("irc").arg("bench").arg(&library).args(flags));
    assert_eq!(code, 0, "{err}");
}

#[test]
fn buffers_are_rejected_by_name_and_type_before_their_data_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.npz");
    let model = example("softmax.model.json");
    let rejection = |name: &str, flag: &str| {
        let buffers = BTreeMap::from([(
            name.to_owned(),
            Tensor::from_values([3000], &[1.0_f64; 3000]).expect("a tensor"),
        )]);
        let mut bytes = std::io::Cursor::new(vec![]);
        write_npz(&mut bytes, &buffers).expect("room");
        // Unreadable data: their checksum is wrong.
        let (mut bytes, middle) = (bytes.get_ref().clone(), 12_000);
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).expect("writable");
        assert!(read_npz_file(&path).is_err());
        let (code, _, err) = run(tool("irc").arg("run").arg(&model).arg(flag).arg(&path));
        assert_eq!(code, 1, "{err}");
        err
    };
    let unknown = rejection("nothing", "--inputs");
    assert!(unknown.contains("no input is named 'nothing'"), "{unknown}");
    let (_, out, err) = run(tool("irc").arg("run").arg(&model).args(["--seed", "1"]));
    assert_eq!(err, "");
    let output = out.split(' ').next().expect("a name");
    let other = rejection(output, "--expected");
    assert!(other.contains("expected f64[3000], but the output is"), "{other}");
    let inputs = rejection(output, "--inputs");
    assert!(inputs.contains("found f64[3000]"), "{inputs}");
}

/// The code of archives without a library is linked in a folder that is removed before it is loaded.
#[test]
fn code_of_archives_that_dies_leaves_no_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    let (archive, scratch) = (file("x.tar"), file("scratch"));
    let mut compile = tool("irc");
    compile.args(["compile", "--codegen", "c"]).arg(example("softmax.model.json"));
    let (code, _, err) = run(compile.arg("-o").arg(&archive));
    assert_eq!(code, 0, "{err}");
    let path = std::env::var("PATH").expect("a PATH");
    let cc = file("cc");
    let script =
        format!("#!/bin/sh\nPATH='{path}' exec cc -include '{}' \"$@\"\n", file("die.h").display());
    std::fs::write(&cc, script).expect("writable");
    std::fs::set_permissions(&cc, PermissionsExt::from_mode(0o755)).expect("executable");
    std::fs::create_dir(&scratch).expect("a folder");
    // A C compiler whose code aborts when it is loaded, or when the process exits.
    for when in ["constructor", "destructor"] {
        let die = format!(
            "void abort(void); __attribute__(({when})) static void die(void) {{ abort(); }}\n"
        );
        std::fs::write(file("die.h"), die).expect("writable");
        let mut irc = tool("irc");
        irc.arg("run").arg(&archive).env("TMPDIR", &scratch);
        let (code, _, err) = run(irc.env("PATH", format!("{}:{path}", folder.path().display())));
        assert!(code == 70 && err.contains("signal 6"), "{when}: {code}: {err}");
    }
    let left =
        std::fs::read_dir(&scratch).expect("a folder").flatten().map(|entry| entry.file_name());
    let left: Vec<_> = left.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(left.iter().all(|name| name.starts_with("irc-reproducer-")), "{left:?}");
}

#[test]
fn outputs_replace_neither_inputs_nor_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let model = path("m.json");
    std::fs::copy(example("softmax.model.json"), &model).expect("copies");
    let names =
        ["x.npz", "cal.json", "tree.txt", "tuning.json", "layers.json", "q.onnx", "net.asm"];
    for name in names {
        std::fs::write(path(name), name).expect("writable");
    }
    std::fs::hard_link(path("x.npz"), path("other.npz")).expect("links");
    let rejected = |flags: &[(&str, &str)], expected: &str| {
        let mut command = tool("irc");
        command.args([flags[0].0, flags[0].1]);
        flags[1..].iter().for_each(|(flag, value)| {
            command.args([
                *flag,
                &if value.contains(':') { (*value).to_owned() } else { path(value) },
            ]);
        });
        let (_, _, err) = run(command.current_dir(folder.path()));
        assert!(err.contains(expected), "{flags:?}: {err}");
    };
    let npu = ("--target", "npu:mesh=2x2");
    for (flags, flag) in [
        ([("run", "m.json"), ("--inputs", "x.npz"), ("--outputs", "x.npz")].as_slice(), "--inputs"),
        (&[("run", "m.json"), ("--inputs", "x.npz"), ("--outputs", "other.npz")], "--inputs"),
        (&[("run", "m.json"), ("--expected", "x.npz"), ("--trace", "x.npz")], "--expected"),
        (&[("run", "net.asm"), ("--model", "q.onnx"), ("--outputs", "q.onnx")], "--model"),
        (
            &[
                ("compile", "m.json"),
                ("-o", "r.json"),
                ("--set-tree", "tree.txt"),
                npu,
                ("--report", "tree.txt"),
            ],
            "--set-tree",
        ),
        (
            &[("compile", "m.json"), ("-o", "cal.json"), npu, ("--calibrate", "cal.json")],
            "--calibrate",
        ),
        (
            &[("compile", "m.json"), ("-o", "tuning.json"), npu, ("--config-rules", "tuning.json")],
            "--config-rules",
        ),
        (
            &[("simulate", "m.json"), ("--frontend", "layers.json"), ("--html", "layers.json")],
            "--frontend",
        ),
    ] {
        rejected(flags, &format!("it is the input of {flag}"));
    }
    rejected(
        &[("compile", "m.json"), ("-o", "r.json"), npu, ("--report", "m.json")],
        "it is the input",
    );
    rejected(
        &[("compile", "m.json"), ("-o", "r.json"), npu, ("--report", "./r.json")],
        "--output and --report both write to",
    );
    rejected(
        &[("compile", "m.json"), ("-o", "r.json"), npu, ("--report", "nowhere/r.json")],
        "nowhere does not exist",
    );
    assert!(!folder.path().join("r.json").exists());
    for name in names {
        assert_eq!(std::fs::read_to_string(path(name)).expect("still there"), name);
    }
}
