//! Every input kind with every output, as documented in docs/matrix.md.
use clap::ValueEnum;
use irc_cli::{COMMANDS, CommandRow, FLAGS, InputKind, Kind, Support, TRANSLATIONS, rejection};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn irc(arguments: &[&str]) -> (Option<i32>, String) {
    tool("irc", arguments)
}

fn tool(name: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let driver = Path::new(env!("CARGO_BIN_EXE_irc-driver"));
    let output = Command::new(driver.with_file_name(name)).args(arguments).output();
    let output = output.expect("the tool starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn program() -> PathBuf {
    root().join("formats/npu/tests/data/small.txt")
}

/// An input of each kind, with the required flags.
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
        InputKind::Program => (program(), vec![]),
        InputKind::Archive => (root().join("formats/mlf/tests/data/small.v5.tar"), vec![]),
        InputKind::Library => {
            let path = folder.join("input.so");
            let (model, out) = (model.display().to_string(), path.display().to_string());
            let (code, errors) = irc(&["compile", &model, "-o", &out]);
            assert_eq!(code, Some(0), "{errors}");
            (path, vec![])
        }
        InputKind::Ptx => {
            let path = folder.join("input.ptx");
            let (model, out) = (model.display().to_string(), path.display().to_string());
            let (code, errors) = irc(&["compile", &model, "-o", &out]);
            assert_eq!(code, Some(0), "{errors}");
            (path, vec![])
        }
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

/// A flag with a value other than its default.
fn with_value(command: &CommandRow, flag: &str) -> String {
    let (mut irc, translate) = (irc_cli::irc_command(), irc_cli::translate_command());
    irc.build();
    let definition = irc.find_subcommand(command.name).unwrap_or(&translate);
    let name = flag.trim_start_matches("--");
    let argument = definition.get_arguments().find(|one| one.get_long() == Some(name));
    let argument = argument.expect("a flag of the table");
    let values = argument.get_possible_values();
    match values.get(1).map(|value| value.get_name().to_owned()) {
        _ if !argument.get_action().takes_values() => flag.to_owned(),
        Some(value) => format!("{flag}={value}"),
        None if name == "against" => format!("{flag}={}", program().display()),
        // Other text and paths are not validated.
        None => format!("{flag}=1"),
    }
}

/// The flag of `irc-translate` that reads a kind of file.
fn import(kind: InputKind) -> &'static str {
    match kind {
        InputKind::ArkModel => "--import-ark",
        InputKind::CommonIr => "--import-onnx",
        InputKind::Schedule => "--import-gemini",
        InputKind::Program => "--import-npu",
        _ => "--emit-ark",
    }
}

/// An output of a command for an input kind, if it has several.
fn output(command: &CommandRow, kind: InputKind) -> Option<&'static str> {
    match (command.name, kind) {
        ("irc-translate", InputKind::Mlir) => Some("--emit-ark"),
        ("irc-translate", _) => Some("MLIR"),
        ("compile", InputKind::Schedule) => Some(".asm"),
        ("compile", InputKind::Plan) => Some(".mlir"),
        ("compile", _) => Some(".so"),
        ("tune", _) => Some(".json"),
        _ => None,
    }
}

#[test]
fn flags_are_rejected_where_the_table_says_that_they_have_no_effect() {
    let folder = tempfile::tempdir().expect("a folder");
    let inputs = InputKind::ALL.map(|kind| input(kind, folder.path()).0.display().to_string());
    let path = |kind| {
        let index = InputKind::ALL.iter().position(|other| *other == kind);
        &*inputs[index.expect("a kind")]
    };
    let mut tried = 0;
    let mut expect = |command: &str, arguments: &[&str], why: &str| {
        let (code, errors) = match command {
            "irc-translate" => tool(command, arguments),
            _ => irc(&[&[command], arguments].concat()),
        };
        assert!(code == Some(2) && errors.contains(why), "{command} {arguments:?}: {errors}");
        tried += 1;
    };
    for command in &COMMANDS {
        let rows = FLAGS.iter().filter(|row| row.commands.contains(&command.name));
        // The flags of a row are rejected in the same way.
        for flag in rows.map(|row| row.flags[0]) {
            let given = with_value(command, flag);
            for kind in command.inputs {
                let output = output(command, *kind);
                let of_output = output.and_then(|to| rejection(command.name, flag, &[], Some(to)));
                let why = of_output.or_else(|| rejection(command.name, flag, &[*kind], output));
                let Some(why) = why else { continue };
                match (command.name, output) {
                    ("irc-translate", _) => expect(command.name, &[import(*kind), &given], &why),
                    (name, Some(output)) => {
                        let output = format!("x{output}");
                        expect(name, &[path(*kind), "-o", &output, &given], &why);
                    }
                    (name, None) => expect(name, &[path(*kind), &given], &why),
                }
            }
            for kind in Kind::value_variants().iter().filter(|_| command.name == "compile") {
                let suffix = kind.suffix();
                let why = rejection("compile", flag, &[], Some(&suffix));
                let Some(why) = why else { continue };
                let output = format!("x{suffix}");
                expect("compile", &[path(InputKind::ArkModel), "-o", &output, &given], &why);
            }
            for (output, ..) in TRANSLATIONS.iter().filter(|_| command.name == "irc-translate") {
                let why = rejection(command.name, flag, &[InputKind::Mlir], Some(output));
                let Some(why) = why else { continue };
                expect(command.name, &[output, &given], &why);
            }
        }
    }
    assert!(tried > 50, "{tried}");
}

#[test]
fn formats_that_do_not_go_together_are_rejected() {
    let row = CommandRow::named("irc-translate").expect("a command");
    for (output, inputs, why) in &TRANSLATIONS {
        for kind in row.inputs.iter().filter(|kind| **kind != InputKind::Mlir) {
            let (code, errors) = tool("irc-translate", &[import(*kind), output, "/nowhere/at/all"]);
            let is_rejected = code == Some(2) && errors.contains(why);
            assert_eq!(is_rejected, !inputs.contains(kind), "{kind:?} {output}: {errors}");
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
