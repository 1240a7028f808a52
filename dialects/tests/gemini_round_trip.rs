//! Import, print, parse, export: the same schedule and the same layers, through text and bytecode.
use irc_diag::{Sink, Source};
use irc_dialects::gemini::{frontend, import, schedule};
use irc_gemini_format::{
    FileKind, Options, frontend as frontend_format, schedule as schedule_format,
};
use irc_mlir::{
    Capture, Context, Frame, Location, Module, OperationLike, frames, parse_bytecode, parse_module,
    read::body_ops, to_bytecode, to_text, walk_collect,
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Whether something is wrong with a file is for others to say.
const OPTIONS: Options = Options { strict: false, validate: false };

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        println!("skipped: no folder {}", folder.display());
        return vec![];
    };
    let mut found: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    found.sort();
    found
}

fn source(path: &Path) -> Source {
    let bytes = fs::read(path).expect("a readable file");
    irc_gemini_format::source(&path.to_string_lossy(), &bytes).expect("text")
}

/// What a module's only op says, written as a file.
fn written(module: &Module<'_>, kind: FileKind) -> String {
    let op = body_ops(module.as_operation())[0];
    match kind {
        FileKind::Schedule => {
            let found = schedule(op, &OPTIONS).unwrap_or_else(|_| panic!("a schedule"));
            schedule_format::write(&found.schedule)
        }
        FileKind::Frontend => {
            frontend_format::write(&frontend(op, &OPTIONS).unwrap_or_else(|_| panic!("layers")))
        }
    }
}

/// What the format itself reads and writes.
fn expected(source: &Source, kind: FileKind) -> Option<String> {
    let mut sink = Sink::new();
    match kind {
        FileKind::Schedule => {
            let read = schedule_format::parse(source, &OPTIONS, &mut sink)?;
            Some(schedule_format::write(&read))
        }
        FileKind::Frontend => {
            let read = frontend_format::parse(source, &OPTIONS, &mut sink)?;
            Some(frontend_format::write(&read))
        }
    }
}

fn imported<'c>(context: &'c Context, source: &Source, kind: FileKind) -> Module<'c> {
    let module = Module::new(Location::unknown(context));
    import(context, module.body(), source, kind, &mut Sink::new()).expect("JSON");
    module
}

fn assert_round_trip(what: &str, source: &Source) {
    let context = irc_dialects::new_context();
    let capture = Capture::new(&context);
    let kind = FileKind::of(source.text()).expect("a schedule or a frontend file");
    let Some(expected) = expected(source, kind) else { panic!("{what} is not read") };
    let module = imported(&context, source, kind);
    assert!(module.as_operation().verify(), "{what}: {:?}", capture.take());
    assert!(written(&module, kind) == expected, "{what}: at once");
    let parsed = parse_module(&context, &to_text(&module.as_operation(), true));
    let parsed = parsed.unwrap_or_else(|| panic!("{what}: {:?}", capture.take()));
    assert!(written(&parsed, kind) == expected, "{what}: as text");
    let parsed = parse_bytecode(&context, &to_bytecode(&module));
    let parsed = parsed.unwrap_or_else(|| panic!("{what}: {:?}", capture.take()));
    assert!(written(&parsed, kind) == expected, "{what}: as bytecode");
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/gemini/tests/data")
}

#[test]
fn carried_files_survive() {
    let files = files(&data());
    assert!(files.len() >= 4, "the repository carries files");
    files.iter().for_each(|path| assert_round_trip(&path.to_string_lossy(), &source(path)));
}

#[test]
fn corpus_files_survive() {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let corpus = std::env::var_os("IRC_CORPUS").map_or(default, PathBuf::from).join("gemini");
    let folders = ["single_core", "multi_core", "address_allocated"];
    let all = folders.iter().flat_map(|folder| files(&corpus.join(folder)));
    for path in all.filter(|path| !path.to_string_lossy().ends_with(".txt")) {
        // A debug build takes long over large files, whose parts are as those of others.
        let source = source(&path);
        if source.text().len() < 2 << 20 {
            assert_round_trip(&path.to_string_lossy(), &source);
        }
    }
}

/// Keys that no attribute can have, keys out of order, numbers spelt in other ways, lists that are
/// empty or null: all come back.
#[test]
fn what_is_unusual_survives() {
    let text = source(&data().join("rings.json"));
    let beside = r#""zeta": {"b": 1, "a": [1.50, -0, null, true, {}, [], [[1], ["x"]]]}, "#;
    let beside =
        format!("{beside}\"a key\": [1, 2], \"\": {{\"\": 0}}, \"id\": 7, \"alpha\": [], ");
    let changed = text.text().replacen("\"xlen\"", &format!("{beside}\"xlen\""), 1);
    assert_round_trip("unknown keys", &Source::new("x", &changed));
    let changed =
        text.text().replacen("\"layer_name\"", "\"id\": 3, \"a.b\": 1, \"layer_name\"", 1);
    assert_round_trip("unknown keys within", &Source::new("x", &changed));
}

#[test]
fn ops_know_their_place() {
    let path = data().join("rings.json");
    let source = source(&path);
    let context = irc_dialects::new_context();
    let module = imported(&context, &source, FileKind::Schedule);
    let tiles =
        walk_collect(module.as_operation(), |op| irc_mlir::read::op_name(&op) == "gemini.tile");
    let found = frames(tiles[0].location());
    let [Frame::Name(name), Frame::File { line, .. }] = &found[..] else { panic!("{found:?}") };
    assert!(name.ends_with(".tile_info.tile_num_0"), "{name}");
    let before: Vec<&str> = source.text().lines().take(*line).collect();
    assert!(before.last().is_some_and(|line| line.contains("tile_num_0")), "line {line}");
}

/// Errors of the format are reported at the op.
#[test]
fn diagnostics_are_at_their_ops() {
    let context = irc_dialects::new_context();
    let capture = Capture::new(&context);
    let source = source(&data().join("rings.json"));
    let module = imported(&context, &source, FileKind::Schedule);
    let text = to_text(&module.as_operation(), true);
    let changed = text.replacen("xlen = 1 : i64", "xlen = 0 : i64", 1);
    assert!(changed != text, "the mesh has one column");
    let parsed = parse_module(&context, &changed).expect("MLIR");
    let op = body_ops(parsed.as_operation())[0];
    assert!(schedule(op, &Options::default()).is_err());
    let found = capture.take();
    assert!(found.iter().any(|one| one.message.contains("xlen")), "{found:?}");
}
