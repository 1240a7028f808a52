//! Import, print, parse, export: the same program, through text and bytecode.
use irc_diag::{Sink, Source};
use irc_dialects::npu::{build, export};
use irc_mlir::{
    Capture, Context, Location, Module, OperationLike, parse_bytecode, parse_module,
    read::body_ops, to_bytecode, to_generic_text, to_text,
};
use irc_npu::{
    Op, Program,
    listing::{self, Limits},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

fn listed(text: &str) -> Program {
    let mut sink = Sink::new();
    let read = listing::parse(&Source::new("x", text), Limits::default(), &mut sink);
    read.unwrap_or_else(|| panic!("{:?}", sink.into_diagnostics())).program
}

fn made<'c>(context: &'c Context, program: &Program) -> Module<'c> {
    let module = Module::new(Location::unknown(context));
    let place = Location::unknown(context);
    build(context, module.body(), program, place, &|_, _| place);
    module
}

fn exported(module: &Module<'_>) -> Program {
    let op = body_ops(module.as_operation())[0];
    export(op).unwrap_or_else(|_| panic!("a program")).program
}

fn assert_round_trip(what: &str, program: &Program) {
    let context = irc_dialects::new_context();
    let capture = Capture::new(&context);
    let module = made(&context, program);
    assert!(module.as_operation().verify(), "{what}: {:?}", capture.take());
    assert!(exported(&module) == *program, "{what}: at once");
    for text in [to_text(&module.as_operation(), true), to_generic_text(&module.as_operation())] {
        let parsed = parse_module(&context, &text);
        let parsed = parsed.unwrap_or_else(|| panic!("{what}: {:?}", capture.take()));
        assert!(exported(&parsed) == *program, "{what}: as text");
    }
    let parsed = parse_bytecode(&context, &to_bytecode(&module)).expect("bytecode");
    assert!(exported(&parsed) == *program, "{what}: as bytecode");
}

#[test]
fn corpus_programs_survive() {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let corpus = std::env::var_os("IRC_CORPUS").map_or(default, PathBuf::from);
    let folder = corpus.join("gemini/single_core");
    let Ok(entries) = fs::read_dir(&folder) else {
        println!("skipped: no folder {}", folder.display());
        return;
    };
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    for path in paths.filter(|path| path.to_string_lossy().ends_with("_asm.txt")) {
        let text = fs::read_to_string(&path).expect("text");
        assert_round_trip(&path.to_string_lossy(), &listed(&text));
    }
}

/// The definition has every instruction with its fields, and no other.
#[test]
fn every_instruction_is_defined() {
    let definition = include_str!("../npu/npu.td");
    for name in Op::NAMES {
        let (_, rest) = definition
            .split_once(&format!("<\"{name}\", (ins"))
            .unwrap_or_else(|| panic!("npu.{name} is not defined"));
        let arguments = rest.split_once(")>").map_or("", |(arguments, _)| arguments);
        let keys: Vec<&str> = arguments
            .split(',')
            .filter_map(|argument| Some(argument.split_once('$')?.1.trim()))
            .collect();
        assert_eq!(Op::keys(name), Some(&keys[..]), "npu.{name}");
    }
}

const SMALL: &str = "\
# core 1
[ct_st, {'slyr': -1, 'clyr': [], 's_flyr': -1, 'c_flyr': [], 'wkl': -1, 'tile': -1}, {'Prev_Insts': [], 'Next_Insts': ['SO']}]
[so_cfg, {'slyr': 3, 'clyr': [3, 4], 's_flyr': 1, 'c_flyr': [1], 'wkl': 2, 'tile': 0}, {'DF': <DataFmt.INT8: 1>, 'STile': [8, 1, 1]}]
[so_mov, {'slyr': 3, 'clyr': [], 's_flyr': -1, 'c_flyr': [], 'wkl': 2, 'tile': -1}, {'Core': 2, 'Xfer': 5, 'SBSG': 0, 'STaddr': 64, 'Tile': [0, 0, 0, 0], 'Prev_Insts': ['CT'], 'Next_Insts': []}]
# core 2
";

#[test]
fn programs_of_several_cores_survive() {
    assert_round_trip("two cores", &listed(SMALL));
}

/// Each change makes an op invalid, with a message that states why.
#[test]
fn an_op_that_is_not_an_instruction_is_rejected() {
    let cases = [
        ("STaddr = 64 : i64", "", "STaddr"),
        ("STaddr = 64 : i64", "STaddr = \"x\"", "STaddr"),
        ("Xfer = 5 : i64", "Xfer = -5 : i64", "out of range"),
        ("DF = \"INT8\"", "DF = \"INT9\"", "expected `<DataFmt.INT8: 1>`"),
        ("STile = array<i64: 8, 1, 1>", "STile = array<i64: 8>", "expected 3 numbers"),
        ("prev = [\"CT\"]", "prev = [\"CX\"]", "expected one of CT, LD"),
        ("prev = [\"CT\"]", "prev = [\"CT\", \"CT\"]", "twice"),
        ("slyr = 3 : i64", "slur = 3 : i64", "no entry 'slur'"),
        ("id = 2 : i64", "id = -2 : i64", "not the number of a core"),
    ];
    for (old, new, expected) in cases {
        let context = irc_dialects::new_context();
        let capture = Capture::new(&context);
        let text = to_text(&made(&context, &listed(SMALL)).as_operation(), false);
        let without_comma = format!("{old}, ");
        let old =
            if new.is_empty() && text.contains(&without_comma) { &without_comma } else { old };
        assert!(text.contains(old), "{old} is in\n{text}");
        let parsed = parse_module(&context, &text.replacen(old, new, 1));
        assert!(parsed.is_none(), "{new} is accepted");
        let found = capture.take();
        assert!(found.iter().any(|one| one.message.contains(expected)), "{new}: {found:?}");
    }
}
