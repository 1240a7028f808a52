//! The timeline of a run.

use std::io::Write;
use std::sync::{Arc, Mutex};

use crate::common::ranks::*;
use crate::common::*;
use irc_ark_format::plan::Plan;
use irc_executor::{Options, Rank};
use serde_json::Value;

/// A file in memory.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn traced(plans: impl IntoIterator<Item = Plan>) -> Vec<Value> {
    let ranks: Vec<Rank> = plans.into_iter().map(|plan| rank(plan).expect("a plan")).collect();
    let file = Shared::default();
    let options = Options { trace: Some(Box::new(file.clone())), threads: 2, ..Options::default() };
    run_all(&ranks, options).expect("a run");
    let bytes = file.0.lock().expect("no panic").clone();
    let trace: Value = serde_json::from_slice(&bytes).expect("JSON");
    trace["traceEvents"].as_array().expect("events").clone()
}

fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["cat"] == kind).count()
}

#[test]
fn every_task_is_a_slice_of_its_processor() {
    let at = |buffer| vector(buffer, 4 * TILE);
    let tasks = vec![task(0, vec![add_op(&at(0), &at(1))]), task(1, vec![add_op(&at(1), &at(2))])];
    let groups = vec![group((0, 2), &[(0, (0, 4), 1)]), group((0, 2), &[(1, (0, 4), 1)])];
    let events = traced([plan(2, tasks, groups)]);
    let names: Vec<_> = events.iter().filter(|event| event["ph"] == "M").collect();
    assert_eq!(names[2]["args"]["name"], "processor 1");
    let mut found: Vec<_> = events.iter().filter(|event| event["cat"] == "task").collect();
    found.sort_by_key(|event| {
        (event["args"]["task info"].as_i64(), event["args"]["first task"].as_i64())
    });
    assert_eq!(found.len(), 8);
    let last = found[7];
    assert_eq!(
        (&last["name"], &last["tid"], &last["pid"]),
        (&"add_1_2".into(), &1.into(), &0.into())
    );
    assert!(last["dur"].as_f64().expect("a time") >= 0.0);
    // The last processor to reach the barrier does not wait.
    assert_eq!(count(&events, "wait"), 1);
}

#[test]
fn many_tasks_are_one_slice_a_processor() {
    let at = |buffer| vector(buffer, 30_000 * TILE);
    let groups = vec![group((0, 3), &[(0, (0, 30_000), 1)])];
    let events = traced([plan(3, vec![task(0, vec![add_op(&at(0), &at(1))])], groups)]);
    let found: Vec<_> = events.iter().filter(|event| event["cat"] == "task").collect();
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|event| event["args"]["tasks"] == 10_000));
}

#[test]
fn waits_for_messages_are_slices_of_their_rank() {
    let at = |buffer| vector(buffer, TILE);
    let sent = target(&at(0), 9, 1, 5);
    let received = tagged(&at(0), &[], &[[0, 5]]);
    let receive = recv(&source(&at(0), 9, 0, 5), &received, true);
    // The receiver comes first.
    let plans =
        [sequence(1, 2, 1, vec![(receive, 1)]), sequence(0, 2, 1, vec![(send(&at(1), &sent), 1)])];
    let ranks: Vec<Rank> = plans.into_iter().map(|plan| rank(plan).expect("a plan")).collect();
    let file = Shared::default();
    let options = Options { trace: Some(Box::new(file.clone())), ..Options::default() };
    run_all(&ranks, options).expect("a run");
    let text = String::from_utf8(file.0.lock().expect("no panic").clone()).expect("text");
    let expected = "\"name\":\"Recv 'recv' waits for 1 signal(s) of rank 0 under tag 5\"";
    assert!(text.contains(expected), "{text}");
}
