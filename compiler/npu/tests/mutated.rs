//! With any value of a file invalid, emission returns a program or diagnostics, without a panic.

use irc_diag::{Sink, Source};
use irc_gemini_format::frontend::Frontend;
use irc_gemini_format::{Options, frontend, schedule};
use serde_json::{Value, json};

macro_rules! data {
    ($name:literal) => {
        include_str!(concat!("../../../formats/gemini/tests/data/", $name))
    };
}

/// Files are not validated: the checks have their own tests.
const OPTIONS: Options = Options { strict: false, validate: false };

/// JSON pointers of every value but the outermost.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(all) => {
            all.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
        }
        _ => vec![],
    };
    for (key, child) in children {
        let at = format!("{at}/{key}");
        found.push(at.clone());
        pointers(child, &at, found);
    }
}

/// What a value is replaced with.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Number(_) => [0, -1, 3, 1_000_001, 1i64 << 48].map(|other| json!(other)).to_vec(),
        Value::String(_) => vec![json!("nobody")],
        Value::Array(all) if !all.is_empty() => vec![json!([])],
        _ => vec![],
    }
}

/// The text of a file without the value at a pointer.
fn without(whole: &mut Value, pointer: &str) -> String {
    let (parent, key) = pointer.rsplit_once('/').expect("a value within another");
    match whole.pointer_mut(parent).expect("a value") {
        Value::Object(members) => {
            let removed = members.remove(key).expect("a member");
            let text = whole.to_string();
            let members = whole.pointer_mut(parent).and_then(Value::as_object_mut);
            members.expect("an object").insert(key.to_owned(), removed);
            text
        }
        Value::Array(all) => {
            let index = key.parse().expect("an index");
            let removed = all.remove(index);
            let text = whole.to_string();
            let all = whole.pointer_mut(parent).and_then(Value::as_array_mut);
            all.expect("an array").insert(index, removed);
            text
        }
        _ => unreachable!("only objects and arrays have values within"),
    }
}

/// The text of a file with another value at a pointer.
fn with(whole: &mut Value, pointer: &str, other: Value) -> String {
    let value = std::mem::replace(whole.pointer_mut(pointer).expect("a value"), other);
    let text = whole.to_string();
    *whole.pointer_mut(pointer).expect("a value") = value;
    text
}

/// Calls `emit` for every text with one value replaced or removed; returns how many there were.
fn changed(text: &str, emit: impl Fn(&Source)) -> usize {
    let mut whole: Value = serde_json::from_str(text).expect("JSON");
    let mut all = vec![];
    pointers(&whole, "", &mut all);
    let mut count = 0;
    for pointer in &all {
        let others = others(whole.pointer(pointer).expect("a value"));
        count += 1 + others.len();
        emit(&Source::new("changed.json", without(&mut whole, pointer)));
        for other in others {
            emit(&Source::new("changed.json", with(&mut whole, pointer, other)));
        }
    }
    count
}

fn layers() -> Frontend {
    let source = Source::new("frontend.json", data!("frontend.json"));
    frontend::parse(&source, &OPTIONS, &mut Sink::new()).expect("sound layers")
}

/// No change of a schedule makes emission panic; its diagnostics have a path.
fn try_schedule(text: &str) {
    let layers = layers();
    let count = changed(text, |source| {
        let Some(schedule) = schedule::parse(source, &OPTIONS, &mut Sink::new()) else { return };
        for diagnostic in irc_npu_emit::emit(&schedule, Some(&layers)).err().unwrap_or_default() {
            assert!(diagnostic.diagnostic.path.is_some(), "{diagnostic:?}");
        }
    });
    assert!(count > 500, "{count}");
}

#[test]
fn no_schedule_of_one_core_makes_it_panic() {
    try_schedule(data!("rings.json"));
}

#[test]
fn no_schedule_of_several_cores_makes_it_panic() {
    try_schedule(data!("two_cores.json"));
}

#[test]
fn no_schedule_with_addresses_makes_it_panic() {
    try_schedule(data!("allocated.json"));
}

#[test]
fn no_product_of_activations_makes_it_panic() {
    try_schedule(include_str!("data/attention.json"));
    try_schedule(include_str!("data/groups.json"));
    try_schedule(include_str!("data/outside.json"));
    try_schedule(include_str!("data/multicast.json"));
}

#[test]
fn no_frontend_file_makes_it_panic() {
    let source = Source::new("rings.json", data!("rings.json"));
    let schedule = schedule::parse(&source, &OPTIONS, &mut Sink::new()).expect("a schedule");
    let count = changed(data!("frontend.json"), |source| {
        if let Some(layers) = frontend::parse(source, &OPTIONS, &mut Sink::new()) {
            drop(irc_npu_emit::emit(&schedule, Some(&layers)));
        }
    });
    assert!(count > 100, "{count}");
}
