//! What the documentation copies from the code is the same there; `cargo xtask docs` copies anew.
use irc::{
    Session, Target,
    pipeline::{PIPELINES, Pipeline},
};
use irc_ark_format::{
    model::{self, DataType, OpKind, Row},
    plan::{self, Architecture, ConfigKey, MatmulKernel},
};
use irc_diag::{Sink, Source};
use irc_executor::{Kernels, Rank};
use irc_tensor::{DType, Tensor, TensorType};
use std::{
    collections::BTreeMap,
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

fn page(name: &str) -> (PathBuf, String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (path, text)
}

fn table(pipeline: &Pipeline) -> String {
    let mut table = String::from("| stage | why it stands there | may remain |\n|---|---|---|\n");
    for stage in pipeline.stages {
        let leaves: Vec<_> = stage.leaves.iter().map(|name| format!("`{name}`")).collect();
        table += &format!("| `{}` | {} | {} |\n", stage.name, stage.why, leaves.join(", "));
    }
    table
}

/// The text with what stands between two marks replaced.
fn with_part(text: &str, open: &str, part: &str) -> Option<String> {
    let (before, rest) = text.split_once(open)?;
    let (_, after) = rest.split_once("<!-- end -->")?;
    Some(format!("{before}{open}{part}<!-- end -->{after}"))
}

/// Holds a page to its parts that are copied from the code, each behind its mark; or copies them.
fn hold(name: &str, parts: impl IntoIterator<Item = (String, String)>) {
    let (path, text) = page(name);
    let mut expected = text.clone();
    for (what, part) in parts {
        let open = format!("<!-- {what}, by cargo xtask docs -->\n");
        expected = with_part(&expected, &open, &part)
            .unwrap_or_else(|| panic!("docs/{name} lacks {open}"));
    }
    if env::var_os("IRC_BLESS").is_some() {
        fs::write(path, &expected).expect("the page can be written");
    } else {
        assert!(text == expected, "docs/{name} is out of date: run cargo xtask docs");
    }
}

#[test]
fn the_architecture_page_has_every_stage() {
    let part = |pipeline: &Pipeline| (format!("stages of {}", pipeline.name), table(pipeline));
    hold("ARCHITECTURE.md", PIPELINES.iter().map(part));
}

/// Words between backquotes, separated by commas; a dash when there are none.
fn quoted<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let words: Vec<_> = words.map(|word| format!("`{word}`")).collect();
    if words.is_empty() { "–".to_owned() } else { words.join(", ") }
}

/// The kinds that may be in a plan, those with an equal `row` together.
fn kinds_by(row: impl Fn(OpKind) -> String) -> String {
    let mut rows: Vec<(String, Vec<&str>)> = vec![];
    let kinds = OpKind::ALL.iter().copied();
    for kind in kinds.filter(|kind| !kind.is_virtual()) {
        let row = row(kind);
        match rows.iter_mut().find(|(other, _)| *other == row) {
            Some((_, names)) => names.push(kind.name()),
            None => rows.push((row, vec![kind.name()])),
        }
    }
    let line = |(row, names): &(String, Vec<&str>)| {
        format!("| {} | {row} |\n", quoted(names.iter().copied()))
    };
    rows.iter().map(line).collect()
}

/// Operands, results and arguments of each kind of op.
fn ops() -> String {
    let row = |kind: OpKind| {
        let Row { reads, writes, results, args, .. } = kind.row();
        let writes = match *writes.end() {
            usize::MAX => format!("{} or more", writes.start()),
            _ => writes.start().to_string(),
        };
        let args = args.iter().map(|arg| format!("{}: {}", arg.name, arg.kind.name()));
        let args: Vec<_> = args.collect();
        let args = quoted(args.iter().map(String::as_str));
        format!("{} | {writes} | {} | {args}", reads.start(), results.start())
    };
    format!("| op | read | written | results | `Args` |\n|---|---|---|---|---|\n{}", kinds_by(row))
}

/// What is demanded of the config of each kind of op, and what is read besides.
fn configs() -> String {
    let common = ["NumWarps", "SramBytes", "NumTasks", "Granularity"];
    let row = |kind: OpKind| {
        let keys = plan::config_keys(kind);
        let names = |keys: &[ConfigKey], is_required| {
            let keys = keys.iter().filter(|key| key.is_required == is_required);
            let names: Vec<_> = keys.map(|key| key.name).collect();
            quoted(names.into_iter().filter(|name| is_required || !common.contains(name)))
        };
        format!("{} | {}", names(&keys, true), names(&keys, false))
    };
    format!("| op | demanded | read besides |\n|---|---|---|\n{}", kinds_by(row))
}

/// Every matrix kernel, with the data types that have it.
fn matmul_kernels() -> String {
    let mut rows = String::from(
        "| architecture | data types | `TileShapeMNK` | `NumWarps` | `SramBytes` |\n|---|---|---|---|---|\n",
    );
    for architecture in Architecture::ALL {
        let mut kernels: Vec<(MatmulKernel, Vec<&str>)> = vec![];
        for dtype in DataType::ALL {
            for kernel in plan::matmul_kernels(architecture, dtype) {
                match kernels.iter_mut().find(|(other, _)| *other == kernel) {
                    Some((_, dtypes)) => dtypes.push(dtype.name()),
                    None => kernels.push((kernel, vec![dtype.name()])),
                }
            }
        }
        for (MatmulKernel { m, n, k, warps, sram }, dtypes) in kernels {
            let (name, dtypes) = (architecture.name(), quoted(dtypes.into_iter()));
            rows += &format!("| `{name}` | {dtypes} | `[{m},{n},{k}]` | {warps} | {sram} |\n");
        }
    }
    rows
}

#[test]
fn the_page_of_plan_files_has_every_op_config_and_kernel() {
    let parts = [("ops", ops()), ("configs", configs()), ("matmul kernels", matmul_kernels())];
    hold("plan-files.md", parts.map(|(what, part)| (what.to_owned(), part)));
}

#[test]
fn the_page_of_plan_files_has_every_name() {
    let (_, text) = page("plan-files.md");
    let mut values = BTreeMap::new();
    for key in OpKind::ALL.iter().flat_map(|&kind| plan::config_keys(kind)) {
        values.insert(key.name, key.value);
    }
    let rows = values.iter().map(|(key, value)| format!("\n| `{key}` | {value} |"));
    let names = Architecture::ALL.map(Architecture::name).into_iter();
    let names = names.chain(DataType::ALL.map(DataType::name)).map(|name| format!("`{name}`"));
    let missing: Vec<_> = rows.chain(names).filter(|part| !text.contains(part)).collect();
    assert!(missing.is_empty(), "docs/plan-files.md lacks {missing:?}");
}

/// The first block of a page that is in this language.
fn block<'t>(text: &'t str, language: &str) -> &'t str {
    let (_, rest) = text.split_once(&format!("```{language}\n")).expect("a block");
    rest.split_once("```").expect("the end of the block").0
}

#[test]
fn the_plan_by_hand_is_sound_and_runs() {
    let (_, text) = page("plan-files.md");
    let text = block(&text, "json");
    let source = Source::new("by-hand.plan.json", text);
    let mut sink = Sink::new();
    let options = model::Options { strict: true, ..Default::default() };
    let plan = plan::parse(&source, &options, &mut sink).expect("a plan");
    assert_eq!(sink.diagnostics(), []);
    let session = Session::new();
    let compiled = session.plan(source).compile(&Target::host()).expect("its kernels");
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("plan.so");
    fs::write(&library, &compiled.library).expect("the library can be written");
    let kernels = Kernels::load(&library).expect("the library");
    let rank = Rank::new(plan, &compiled.code, kernels).expect("the plan goes with its code");
    let x: Vec<f32> = (0..64 * 256).map(|index| (index % 7) as f32).collect();
    let ty = TensorType::new(DType::F32, [64 * 256]);
    let input = Tensor::from_f32(ty, &x).expect("the input");
    let inputs = BTreeMap::from([("buffer_0".to_owned(), input)]);
    let mut memories = [rank.memory(inputs).expect("memory")];
    let options = irc_executor::Options { threads: 2, ..Default::default() };
    irc_executor::run(&[&rank], &mut memories, options).expect("it runs");
    let [memory] = memories;
    let found = rank.outputs(memory)["buffer_3"].to_f32();
    for (row, found) in x.chunks(256).zip(found.chunks(256)) {
        let sum: f32 = row.iter().map(|x| x.exp()).sum();
        for (x, found) in row.iter().zip(found) {
            let expected = x.exp() / sum;
            assert!((found - expected).abs() <= 1e-5 * expected, "{found} is not {expected}");
        }
    }
}

#[test]
fn what_the_readme_shows_of_the_library_is_in_the_example() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = fs::read_to_string(root.join("README.md")).expect("the page");
    let example = fs::read_to_string(root.join("compiler/examples/plan_and_run.rs"));
    let example = example.expect("the example");
    let has = |line: &str| example.lines().any(|other| other.trim() == line.trim());
    let missing: Vec<_> = block(&readme, "rust").lines().filter(|line| !has(line)).collect();
    assert!(missing.is_empty(), "the example lacks {missing:?}");
}

/// The first string literal after each of some calls, in a source file or all those below a folder.
fn literals_after(calls: &[&str], path: &Path, found: &mut BTreeSet<String>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("a folder") {
            literals_after(calls, &entry.expect("an entry").path(), found);
        }
    } else if path.extension().is_some_and(|suffix| suffix == "rs") {
        let text = fs::read_to_string(path).expect("a source file");
        // Diagnostics of tests are not documented.
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for after in calls.iter().flat_map(|call| text.split(call).skip(1)) {
            found.extend(after.split('"').next().map(str::to_owned));
        }
    }
}

#[test]
fn the_diagnostics_page_has_every_code_of_the_compiler() {
    let (path, text) = page("diagnostics.md");
    let calls = ["error(", "warning(", "note("].map(|kind| format!("Diagnostic::{kind}\""));
    let calls: Vec<&str> =
        calls.iter().map(String::as_str).chain(["Error::at(\"", "Self::at(\""]).collect();
    let root = path.parent().and_then(Path::parent).expect("the repository").to_owned();
    let mut expected = BTreeSet::new();
    let places = ["diagnostics.rs", "gpu.rs", "import", "model", "session"]
        .map(|place| format!("compiler/{place}"));
    for place in places.iter().map(String::as_str).chain(["tools/irc-driver"]) {
        literals_after(&calls, &root.join(place), &mut expected);
    }
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert_eq!(rows.map(str::to_owned).collect::<BTreeSet<_>>(), expected);
}

/// Words between backquotes that start with a folder of the repository.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let folders = ["compiler/", "dialects/", "docs/", "fuzz/", "lit_tests/", "runtime/", "tools/"];
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(move |word| {
        folders.iter().any(|folder| word.starts_with(folder)) && !word.contains([' ', '*', '<'])
    })
}

/// Targets of links to files.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://"))
}

#[test]
fn what_the_pages_name_exists() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let names = [
        "README.md",
        "docs/ARCHITECTURE.md",
        "docs/diagnostics.md",
        "docs/how-to-add.md",
        "docs/kernels.md",
        "docs/npu-binary.md",
        "docs/npu.md",
        "docs/plan-files.md",
        "docs/running-plans.md",
        "docs/tolerances.md",
        "docs/dialects/ark-rationale.md",
        "docs/dialects/common_ir-rationale.md",
        "docs/dialects/plan-rationale.md",
        "docs/dialects/tl-rationale.md",
    ];
    let mut checked = 0;
    for name in names {
        let page = root.join(name);
        let text = fs::read_to_string(&page).expect("the page");
        let folder = page.parent().expect("a page is in a folder");
        let missing: Vec<&str> = paths(&text)
            .filter(|path| !root.join(path).exists())
            .chain(links(&text).filter(|target| !folder.join(target).exists()))
            .collect();
        assert!(missing.is_empty(), "{name} names what is not there: {missing:?}");
        checked += paths(&text).count() + links(&text).count();
    }
    assert!(checked > 20, "the pages name files");
}
