//! Valid files with one change each: the error is reported, and there was none before.
//!
//! A mutation is a row of a table: its name, the expected code, the file, and the edits
//! by JSON pointer. Other tests change every value of every file.

mod rows;

use std::collections::BTreeSet;

use irc_diag::{Diagnostic, Sink, Source};
use irc_gemini_format::{FileKind, Options, check_pair, frontend, schedule};
use rows::{Edit, Row};
use serde_json::{Value, json};

/// The files of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// Dialect A: two ring regions, tensors that wrap, a composite tensor, stores and reloads.
    Rings,
    /// Dialect B: two cores that send each other results.
    TwoCores,
    /// Dialect C: the same, with addresses.
    Allocated,
    /// The layers of [`File::Rings`].
    Frontend,
}

impl File {
    const ALL: [File; 4] = [File::Rings, File::TwoCores, File::Allocated, File::Frontend];

    fn text(self) -> &'static str {
        match self {
            File::Rings => include_str!("../data/rings.json"),
            File::TwoCores => include_str!("../data/two_cores.json"),
            File::Allocated => include_str!("../data/allocated.json"),
            File::Frontend => include_str!("../data/frontend.json"),
        }
    }

    fn value(self) -> Value {
        serde_json::from_str(self.text()).expect("JSON")
    }
}

/// All diagnostics of a file, and of the pair of schedule and frontend file.
fn diagnostics(text: &str) -> Vec<Diagnostic> {
    let source = Source::new("test", text);
    let mut sink = Sink::new();
    let options = Options::default();
    match FileKind::of(text) {
        Some(FileKind::Frontend) => drop(frontend::parse(&source, &options, &mut sink)),
        _ => drop(schedule::parse(&source, &options, &mut sink)),
    }
    sink.into_diagnostics()
}

fn pair(schedule_text: &str, frontend_text: &str) -> Vec<Diagnostic> {
    let options = Options::default();
    let source = Source::new("test", schedule_text);
    let schedule = schedule::parse(&source, &options, &mut Sink::new());
    let layers = Source::new("test", frontend_text);
    let layers = frontend::parse(&layers, &options, &mut Sink::new());
    let (Some(schedule), Some(layers)) = (schedule, layers) else { return vec![] };
    let mut found = check_pair(&schedule, &layers);
    irc_gemini_format::place(&source, &mut found);
    found
}

/// Warnings about valid files: habits of the scheduler.
const HABITS: [&str; 1] = ["gem-b24-unnamed"];

#[test]
fn the_files_are_sound() {
    for file in File::ALL {
        let found = diagnostics(file.text());
        let unexpected: Vec<_> = found.iter().filter(|each| !HABITS.contains(&each.code)).collect();
        assert!(unexpected.is_empty(), "{file:?}: {unexpected:#?}");
    }
    assert_eq!(pair(File::Rings.text(), File::Frontend.text()), []);
}

#[test]
fn each_mutation_is_named() {
    let mut errors = vec![];
    for Row { name, code, file, edits } in rows::all() {
        let mut value = file.value();
        for edit in &edits {
            if !edit.apply(&mut value) {
                errors.push(format!("{name}: no place for {edit:?}"));
            }
        }
        let text = value.to_string();
        let mut found = diagnostics(&text);
        found.extend(match file {
            File::Frontend => vec![],
            _ => pair(&text, File::Frontend.text()),
        });
        if file == File::Frontend {
            found.extend(pair(File::Rings.text(), &text));
        }
        let Some(named) = found.iter().find(|diagnostic| diagnostic.code == code) else {
            let found: Vec<_> =
                found.iter().map(|each| format!("    {}: {}", each.code, each.message)).collect();
            errors.push(format!("{name}: {code} not in\n{}", found.join("\n")));
            continue;
        };
        if named.primary_span().is_none() {
            errors.push(format!("{name}: {code} has no place"));
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

#[test]
fn every_rule_has_a_mutation() {
    let tried: BTreeSet<&str> = rows::all().iter().map(|row| row.code).collect();
    let readme = include_str!("../../README.md");
    // Errors of the text itself are tested with the parser, and one needs a file of its own.
    let elsewhere = [
        "gem-truncated",
        "gem-syntax",
        "gem-number",
        "gem-nesting",
        "gem-too-large",
        "gem-encoding",
        "gem-byte-order-mark",
        "gem-compressed",
        "gem-duplicate-key",
    ];
    let is_code = |part: &&str| {
        part.strip_prefix("gem-").is_some_and(|rest| {
            !rest.is_empty() && rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        })
    };
    let missing: Vec<&str> = readme
        .split('`')
        .filter(is_code)
        .filter(|code| !tried.contains(code) && !elsewhere.contains(code))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// JSON pointers of every value.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(key, value)| pointers(value, &format!("{at}/{key}"), found));
        }
        Value::Array(elements) => elements
            .iter()
            .enumerate()
            .for_each(|(index, value)| pointers(value, &format!("{at}/{index}"), found)),
        _ => {}
    }
}

/// Invalid replacements of a value: another type, negative, too large, an unknown id or
/// name, removal.
fn wrongs<'p>(value: &Value, pointer: &'p str) -> Vec<Edit<'p>> {
    let others = match value {
        Value::Number(_) => vec![json!("seven"), json!(-1), json!(1u64 << 60), json!(999_983)],
        Value::String(_) => vec![json!(7), json!("nobody")],
        Value::Bool(_) | Value::Null => vec![json!("seven")],
        Value::Array(_) => vec![json!("seven"), json!([]), json!([-1])],
        Value::Object(_) => vec![json!("seven"), json!({}), json!([])],
    };
    let set = others.into_iter().map(|other| Edit::Set(pointer, other));
    set.chain([Edit::Drop(pointer)]).collect()
}

/// Replaces every value of a file by invalid ones: each error is reported at its place, unless nothing
/// else in the file depends on the value.
fn try_all(file: File) {
    let (value, mut all) = (file.value(), vec![]);
    pointers(&value, "", &mut all);
    let (mut tried, mut errors, mut missed) = (0, 0, vec![]);
    for pointer in &all[1..] {
        let before = value.pointer(pointer).expect("a value");
        for edit in wrongs(before, pointer) {
            tried += 1;
            let mut broken = value.clone();
            assert!(edit.apply(&mut broken), "{pointer}");
            let text = broken.to_string();
            let mut found = diagnostics(&text);
            let unplaced = found.iter().find(|diagnostic| diagnostic.primary_span().is_none());
            assert_eq!(unplaced, None, "{file:?} {edit:?}");
            if !found.iter().any(Diagnostic::is_error) {
                found.extend(match file {
                    File::Frontend => pair(File::Rings.text(), &text),
                    File::Rings => pair(&text, File::Frontend.text()),
                    File::TwoCores | File::Allocated => vec![],
                });
            }
            let is_same = matches!(&edit, Edit::Set(_, new) if new == before);
            let is_reported = found.iter().any(|diagnostic| !HABITS.contains(&diagnostic.code));
            errors += found.iter().filter(|diagnostic| diagnostic.is_error()).count();
            if !is_reported && !is_same && !is_unreported(pointer, &edit) {
                missed.push(format!("{edit:?}"));
            }
        }
    }
    println!("{file:?}: {tried} wrong values, {errors} errors");
    assert!(missed.is_empty(), "{} of {tried} not reported:\n{}", missed.len(), missed.join("\n"));
    assert!(errors > tried / 2, "{errors} errors in {tried} files");
}

#[test]
fn wrong_values_of_dialect_a_are_found() {
    try_all(File::Rings);
}

#[test]
fn wrong_values_of_dialect_b_are_found() {
    try_all(File::TwoCores);
}

#[test]
fn wrong_values_of_dialect_c_are_found() {
    try_all(File::Allocated);
}

#[test]
fn wrong_values_of_layers_are_found() {
    try_all(File::Frontend);
}

/// Whether nothing else in the file determines the value, so that another value of its type and range, or
/// none, is as valid.
fn is_unreported(pointer: &str, edit: &Edit<'_>) -> bool {
    let is_number = |part: &&str| part.parse::<usize>().is_ok();
    let keys: Vec<&str> = pointer.split('/').filter(|part| !is_number(part)).collect();
    let keys = keys.join("/");
    let is_one = |ends: &[&str]| ends.iter().any(|end| keys.ends_with(end));
    match edit {
        _ if is_free(pointer) => true,
        Edit::Drop(_) if pointer.rsplit('/').next().is_some_and(|last| is_number(&last)) => {
            is_one(&LISTS)
        }
        Edit::Drop(_) => is_one(&OPTIONAL),
        Edit::Set(_, Value::String(_)) => is_one(&NAMES),
        Edit::Set(_, Value::Number(new)) if new.as_i64() == Some(-1) => is_one(&SIGNED),
        Edit::Set(_, Value::Number(new)) if new.as_i64() == Some(999_983) => {
            is_one(&SCALES) || ALONE.iter().any(|key| keys.split('/').any(|part| part == *key))
        }
        Edit::Set(_, Value::Number(_)) => is_one(&SCALES),
        Edit::Set(..) => is_one(&EMPTY),
        Edit::Repeat(_) | Edit::Swap(..) => false,
    }
}

/// Lists whose elements may be removed: later loads, users of weights except the first, lists that no
/// tool reads.
const LISTS: [&str; 10] = [
    "/buffer",
    "/ring_buffer_info",
    "/output_shape",
    "/next_layer",
    "/wl0_buffer",
    "/out/destination",
    "/input_batchdim",
    "/output_batchdim",
    "_cal/input_shape",
    "_cal/output_shape",
];

/// Members that may be removed: they are redundant, or nothing depends on them.
const OPTIONAL: [&str; 41] = [
    "/l6_reshape",
    "/ifmap",
    "/ifmap/max_workload_id",
    "/buffer/priority",
    "/buffer/size",
    "/buffer/start_loading",
    "/buffer/end_loading",
    "/buffer/start_sending",
    "/buffer/end_sending",
    "/buffer/source/channel",
    "/source/layer_name",
    "/destination/layer_name",
    "/out/layer_name",
    "/related_ifmap",
    "/related_ofmap",
    "/single_tile_time_pred",
    "/tile_num_0/layer_name",
    "/tile_num_1/layer_name",
    "/wl0_buffer/tensor_order",
    "/metadata/DRAM",
    "/activation_attr",
    "/activation_type",
    "/ceil_mode",
    "/input_batchdim",
    "/output_batchdim",
    "/kernel_size",
    "/quant_info/input_zero_point1",
    "/quant_info/output_scale",
    "/quant_info/output_zero_point",
    "/quant_info/round_type",
    "/module_list",
    "_cal",
    "_cal/input_shape",
    "_cal/output_shape",
    "/mul_k",
    "/sum_b",
    "/requan_scale_a",
    "/requan_zp_a",
    "/sumsub_mode",
    "_lut",
    "/tensor_mode",
];

/// Numbers of either sign.
const SIGNED: [&str; 5] = ["_batchdim", "_zero_point", "_zero_point1", "/requan_zp_a", "/sum_b"];

/// Numbers of any size.
const SCALES: [&str; 7] = [
    "/single_tile_time_pred",
    "/input_scale1",
    "/output_scale",
    "/mul_k",
    "/sum_b",
    "/requan_scale_a",
    "/requan_zp_a",
];

/// Names that are not in the file: inputs of the network, constants, operations, and destinations of
/// the network's results.
const NAMES: [&str; 5] = [
    "/source/layer_name",
    "/destination/layer_name",
    "/previous_layer",
    "/next_layer",
    "/operation",
];

/// Lists that may be empty.
const EMPTY: [&str; 7] = [
    "/wl0_buffer",
    "_batchdim",
    "_cal",
    "_cal/input_shape",
    "_cal/output_shape",
    "/module_list",
    "/next_layer",
];

/// Values of any type: the tools do not read them either.
fn is_free(pointer: &str) -> bool {
    const FREE: [&str; 5] =
        ["file_list", "ceil_mode", "nhwc_consistant", "activation_attr", "metadata/DRAM"];
    FREE.iter().any(|key| pointer.contains(key))
}

/// Keys whose numbers nothing else in the file determines.
const ALONE: [&str; 32] = [
    "tensor_id",
    "padding",
    "time",
    "top_batch_cut",
    "single_tile_time_pred",
    "act_mini_tile",
    "out_mini_tile",
    "mtc0_mtk0",
    "ci_cut_num",
    "tile_padding_tblr",
    "ifmap_lower",
    "ifmap_upper",
    "ifmap_lower2",
    "ifmap_upper2",
    "max_workload_id",
    "priority",
    "buffersize",
    "ylen",
    "xlen",
    "metadata",
    "ring_buffer_info",
    "input_scale1",
    "input_zero_point1",
    "output_scale",
    "output_zero_point",
    "module_list",
    "tensor0_lut",
    "tensor1_lut",
    "tensor_mode",
    "input_batchdim",
    "output_batchdim",
    "file_list",
];

#[test]
fn a_number_off_by_one_is_found() {
    let mut missed = vec![];
    for file in File::ALL {
        let (value, mut all) = (file.value(), vec![]);
        pointers(&value, "", &mut all);
        for pointer in all {
            let Some(number) = value.pointer(&pointer).and_then(Value::as_i64) else { continue };
            if ALONE.iter().any(|key| pointer.split('/').any(|part| part == *key))
                || is_free(&pointer)
                // A block without neighbours may be moved by one.
                || file == File::Allocated && pointer.ends_with("/address")
            {
                continue;
            }
            let mut broken = value.clone();
            assert!(Edit::Set(&pointer, json!(number + 1)).apply(&mut broken), "{pointer}");
            if !diagnostics(&broken.to_string()).iter().any(Diagnostic::is_error) {
                missed.push(format!("{file:?} {pointer}"));
            }
        }
    }
    assert!(missed.is_empty(), "{} missed:\n{}", missed.len(), missed.join("\n"));
}
