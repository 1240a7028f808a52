//! The order of accesses: within a plan down to the tile, and between ranks.

mod build;
mod ranks;
mod warps;

use build::{group, plan, relu, split};
use irc_ark_format::plan::{self, Plan, Range};
use irc_diag::Diagnostic;

/// Codes and messages of the errors of a plan.
fn errors(plan: &Plan) -> Vec<(&'static str, String)> {
    let found = plan::check(plan).into_iter().filter(Diagnostic::is_error);
    found.map(|diagnostic| (diagnostic.code, diagnostic.message)).collect()
}

const LEFT: Range = Range { begin: 0, end: 54, step: None };
const RIGHT: Range = Range { begin: 54, end: 108, step: None };

#[test]
fn halves_on_processors_apart_do_not_meet() {
    let tasks = vec![relu(0, 1), relu(1, 2)];
    let groups = [(0, LEFT, 0, 512), (0, RIGHT, 512, 1024), (1, LEFT, 0, 512)];
    let groups = groups.into_iter().chain([(1, RIGHT, 512, 1024)]);
    let halves = plan(tasks, groups.map(|(task, on, a, b)| group(task, on, a, b)).collect());
    assert_eq!(errors(&halves), []);
}

#[test]
fn halves_that_cross_race() {
    let tasks = vec![relu(0, 1), relu(1, 2)];
    let crossed = [(0, LEFT, 0, 512), (0, RIGHT, 512, 1024), (1, LEFT, 512, 1024)];
    let crossed = crossed.into_iter().chain([(1, RIGHT, 0, 512)]);
    let found = errors(&plan(tasks, crossed.map(|(t, on, a, b)| group(t, on, a, b)).collect()));
    assert_eq!(found.len(), 1, "one diagnostic for a pair of ops: {found:?}");
    let expected = "race: index 512 of task 1 (`Relu`) reads bytes [65536, 65664) of buffer 1, \
                    which index 512 of task 0 (`Relu`) writes, and no barrier is between them";
    assert_eq!(found[0], ("plan-race", expected.to_owned()));
}

#[test]
fn one_tile_too_many_is_seen() {
    let tasks = vec![relu(0, 1), relu(1, 2)];
    let groups = vec![
        group(0, LEFT, 0, 512),
        group(0, RIGHT, 512, 1024),
        group(1, LEFT, 0, 513),
        group(1, RIGHT, 513, 1024),
    ];
    let found = errors(&plan(tasks, groups));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].1.starts_with("race: index 512 of task 1"), "{}", found[0].1);
}

#[test]
fn resource_groups_of_a_group_are_not_ordered() {
    let tasks = vec![relu(0, 1), relu(1, 2)];
    let whole = Range::new(0, 108);
    // Each half needs only results of the same processors, but nothing waits within a group.
    let mut first = group(0, whole, 0, 1024);
    first.resource_groups.push(group(1, whole, 0, 1024).resource_groups.remove(0));
    let found = errors(&plan(tasks, vec![first]));
    assert_eq!(found.iter().map(|(code, _)| *code).collect::<Vec<_>>(), ["plan-group-race"]);
}

#[test]
fn a_part_must_not_come_before_what_it_reads() {
    let tasks = vec![relu(0, 1), relu(1, 2)];
    let whole = Range::new(0, 108);
    let order =
        |parts: [(i64, i64, i64); 4]| parts.map(|(task, a, b)| group(task, whole, a, b)).to_vec();
    let good = order([(0, 0, 512), (1, 0, 512), (0, 512, 1024), (1, 512, 1024)]);
    assert_eq!(errors(&plan(tasks.clone(), good)), []);
    let bad = order([(0, 0, 512), (1, 512, 1024), (0, 512, 1024), (1, 0, 512)]);
    let found = errors(&plan(tasks, bad));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "plan-use-before-result");
}

#[test]
fn a_chain_of_barriers_orders_and_a_gap_in_it_does_not() {
    let tasks = || vec![relu(0, 1), relu(3, 4), relu(1, 2)];
    let chain = |middle: Range| {
        vec![group(0, LEFT, 0, 1024), group(1, middle, 0, 1024), group(2, RIGHT, 0, 1024)]
    };
    assert_eq!(errors(&plan(tasks(), chain(Range::new(0, 108)))), []);
    assert_eq!(errors(&plan(tasks(), chain(Range::new(40, 60)))), []);
    let found = errors(&plan(tasks(), chain(Range::new(54, 60))));
    assert_eq!(found.iter().map(|(code, _)| *code).collect::<Vec<_>>(), ["plan-race"]);
}

#[test]
fn ten_thousand_groups_are_checked_at_once() {
    // Each of fifty ops in two hundred parts, on processors that overlap in many ways: a check
    // that compared all pairs of tasks would not terminate in practice.
    let tasks = (0..50).map(|i| relu(i, i + 1)).collect();
    let mut groups = vec![];
    for task in 0..50 {
        for (part, (begin, end)) in split(1024, 200).enumerate() {
            let part = part as i64;
            groups.push(group(task, Range::new(part * 7 % 50, 58 + part * 13 % 50), begin, end));
        }
        // A barrier for all.
        groups.push(group(task, Range::new(0, 108), 0, 0));
    }
    // ARK's table cannot hold so many barriers, which is another rule.
    let mut found = errors(&plan(tasks, groups));
    found.retain(|(code, _)| *code != "plan-barrier-state");
    assert_eq!(found, []);
}

#[test]
fn seventeen_million_tasks_are_checked_at_once() {
    let tasks = vec![build::wide_relu(0, 1, 17_500_000), build::wide_relu(1, 2, 17_500_000)];
    let (a, b) = (Range::new(0, 108), Range::new(0, 107));
    let groups = vec![
        group(0, a, 0, 12_345_678),
        group(0, a, 12_345_678, 17_500_000),
        group(1, b, 0, 7_000_001),
        group(1, a, 7_000_001, 17_500_000),
    ];
    assert_eq!(errors(&plan(tasks.clone(), groups.clone())), []);
    let mut lost = groups;
    lost[3] = group(1, a, 7_000_002, 17_500_000);
    let found = errors(&plan(tasks, lost));
    let expected = "indices [7000001, 7000002) of task 1 never run".to_owned();
    assert_eq!(found, [("plan-lost-tasks", expected)]);
}
