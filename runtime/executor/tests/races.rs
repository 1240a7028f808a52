//! The race check: what it accepts, and what it finds.

use crate::common::ranks::*;
use crate::common::*;
use irc_ark_format::model::OpKind;
use irc_ark_format::plan::{ConfigValue, Plan};
use irc_executor::{Error, Options, Rank};

fn checked(plans: impl IntoIterator<Item = Plan>) -> String {
    let ranks: Vec<Rank> = plans.into_iter().map(|plan| rank(plan).expect("a plan")).collect();
    match run_all(&ranks, Options { race_check: true, threads: 2, trace: None }) {
        Ok(_) => "no race".into(),
        Err(error @ Error::Race(_)) => error.to_string(),
        Err(error) => panic!("{error}"),
    }
}

/// Two ops, the second on the result of the first.
fn two(first: (i64, i64), second: (i64, i64)) -> Plan {
    let at = |buffer| vector(buffer, LEN);
    let tasks = vec![task(0, vec![add_op(&at(0), &at(1))]), task(1, vec![add_op(&at(1), &at(2))])];
    plan(4, tasks, vec![group(first, &[(0, (0, 4), 1)]), group(second, &[(1, (0, 4), 1)])])
}

#[test]
fn groups_that_share_a_processor_are_ordered() {
    for (first, second) in [((0, 4), (0, 4)), ((0, 2), (0, 4)), ((0, 4), (1, 2)), ((0, 3), (2, 4))]
    {
        assert_eq!(checked([two(first, second)]), "no race", "{first:?} {second:?}");
    }
}

#[test]
fn groups_without_a_barrier_race() {
    let expected = "race on bytes [0, 16) of buffer 1 of rank 0\n  \
                    task 0[0], ScalarAdd 'add_0_1', writes them on processor 0 of rank 0\n  \
                    task 1[0], ScalarAdd 'add_1_2', reads them on processor 2 of rank 0\n  \
                    no barrier comes between processor group 0 on [0, 2) and processor group 1 on \
                    [2, 4): one over [0, 4) is missing before group 1";
    assert_eq!(checked([two((0, 2), (2, 4))]), expected);
}

#[test]
fn a_barrier_elsewhere_does_not_help() {
    let at = |buffer| vector(buffer, LEN);
    let ops = [(0, 1), (2, 3), (1, 4)].map(|(from, to)| add_op(&at(from), &at(to)));
    let tasks = ops.into_iter().enumerate().map(|(id, op)| task(id as i64, vec![op])).collect();
    let of = |range, id| group(range, &[(id, (0, 4), 1)]);
    // The second group has no processor in common with the others.
    let groups = |middle| vec![of((0, 2), 0), of(middle, 1), of((2, 4), 2)];
    let found = checked([plan(4, tasks, groups((2, 4)))]);
    assert!(
        found.contains("processor group 0 on [0, 2) and processor group 2 on [2, 4)"),
        "{found}"
    );
}

#[test]
fn what_a_group_passes_on_is_known_further_on() {
    let at = |buffer| vector(buffer, LEN);
    let ops = [(0, 1), (2, 3), (1, 4)].map(|(from, to)| add_op(&at(from), &at(to)));
    let tasks = ops.into_iter().enumerate().map(|(id, op)| task(id as i64, vec![op])).collect();
    let of = |range, id| group(range, &[(id, (0, 4), 1)]);
    let groups = vec![of((0, 2), 0), of((0, 4), 1), of((2, 4), 2)];
    assert_eq!(checked([plan(4, tasks, groups)]), "no race");
}

#[test]
fn tasks_of_one_group_race_even_on_one_processor() {
    let at = |buffer| vector(buffer, LEN);
    let tasks = vec![task(0, vec![add_op(&at(0), &at(1))]), task(1, vec![add_op(&at(1), &at(2))])];
    let groups = vec![group((0, 1), &[(0, (0, 4), 1), (1, (0, 4), 1)])];
    let found = checked([plan(4, tasks, groups)]);
    assert!(
        found.ends_with("nothing orders tasks of processor group 0: put them in separate groups")
    );
    assert!(
        found.starts_with("race on bytes [0, 16) of buffer 1 of rank 0\n  task 0[0]"),
        "{found}"
    );
}

#[test]
fn ops_of_one_task_do_not_race() {
    let at = |buffer| vector(buffer, LEN);
    let chained = vec![add_op(&at(0), &at(1)), add_op(&at(1), &at(0))];
    let groups = vec![group((0, 4), &[(0, (0, 4), 1)])];
    assert_eq!(checked([plan(4, vec![task(0, chained)], groups)]), "no race");
}

#[test]
fn a_task_that_runs_twice_races_with_itself() {
    let at = |buffer| vector(buffer, LEN);
    for first in [4, 1] {
        let groups = vec![group((0, 2), &[(0, (0, first), 1), (0, (0, 4), 1)])];
        let found = checked([plan(2, vec![task(0, vec![add_op(&at(0), &at(1))])], groups)]);
        let twice = "  task 0[0], ScalarAdd 'add_0_1', writes them on processor";
        assert_eq!(found.matches(twice).count(), 2, "{found}");
    }
}

#[test]
fn a_read_before_an_overwrite_races() {
    let at = |buffer| vector(buffer, LEN);
    let tasks = vec![task(0, vec![add_op(&at(0), &at(1))]), task(1, vec![add_op(&at(2), &at(0))])];
    let groups = vec![group((0, 2), &[(0, (0, 4), 1)]), group((2, 4), &[(1, (0, 4), 1)])];
    let found = checked([plan(4, tasks, groups)]);
    assert!(found.contains("reads them on processor 0 of rank 0\n  task 1[0]"), "{found}");
}

/// Rank 0 sends to rank 1, which adds one, optionally without waiting.
fn pipeline(wait: bool) -> [Plan; 2] {
    let at = |buffer| vector(buffer, LEN);
    let sent = target(&at(0), 9, 1, 5);
    let received = tagged(&at(0), &[], &[[0, 5]]);
    let recv = recv(&source(&at(0), 9, 0, 5), &received, wait);
    [
        sequence(0, 2, 3, vec![(add_op(&at(0), &at(1)), 4), (send(&at(1), &sent), 1)]),
        sequence(1, 2, 2, vec![(recv, 1), (add_op(&received, &at(1)), 4)]),
    ]
}

#[test]
fn a_signal_orders_what_was_sent() {
    assert_eq!(checked(pipeline(true)), "no race");
    let found = checked(pipeline(false));
    assert!(found.contains("of buffer 0 of rank 1\n"), "{found}");
    assert!(found.ends_with(
        "no signal, packet or synchronisation from rank 1 to rank 0 comes between them"
    ));
}

#[test]
fn an_answer_orders_the_reuse_of_what_was_sent() {
    let at = |buffer| vector(buffer, LEN);
    let plans = |answers: bool| {
        let there = target(&at(0), 9, 1, 5);
        let back = target(&at(7), 9, 0, 6);
        let (received, answer) = (tagged(&at(0), &[], &[[0, 5]]), tagged(&at(7), &[], &[[1, 6]]));
        let mut first = vec![(send(&at(1), &there), 1)];
        let mut second = vec![(recv(&source(&at(0), 9, 0, 5), &received, true), 1)];
        first.push((recv(&source(&at(7), 8, 1, 6), &answer, answers), 1));
        // Overwrites what was sent, and sends it again to the same buffer.
        first.push((add_op(&at(2), &at(1)), 4));
        first.push((send_tiles(&at(1), &there, LEN, false), 1));
        second.push((add_op(&received, &at(3)), 4));
        second.push((send(&at(3), &back), 1));
        [sequence(0, 2, 2, first), sequence(1, 2, 2, second)]
    };
    assert_eq!(checked(plans(true)), "no race");
    let found = checked(plans(false));
    assert!(found.starts_with("race on bytes"), "{found}");
}

/// A sum by stores between synchronisations, of which the first may be omitted.
fn stores(rank: i64, first: bool) -> Plan {
    let peer = 1 - rank;
    let whole = tagged(&vector(0, LEN * 2), &[], &[[peer, 2]]);
    let share = |rank: i64| part(&whole, rank * LEN, LEN);
    let scratch = tagged(&vector(1, LEN), &[], &[[peer, 1]]);
    let to = target(&vector(0, LEN), 100, peer, 1);
    let mut ops = vec![(send_tiles(&share(peer), &to, TILE, false), LEN / TILE)];
    if first {
        ops.push((device_sync(&whole, rank, 2), 1));
    }
    let (mine, result) = (share(rank), target(&share(rank), 200, peer, 2));
    let kind = OpKind::RecvReduceSend;
    let reduce = reduce(kind, rank, (&mine, &scratch), &[&mine, &result], TILE);
    ops.push((reduce, LEN / TILE));
    ops.push((device_sync(&whole, rank, 2), 1));
    ops.push((add_op(&whole, &vector(5, LEN * 2)), LEN * 2 / TILE));
    sequence(rank, 2, 2, ops)
}

#[test]
fn synchronisations_order_stores() {
    assert_eq!(checked([stores(0, true), stores(1, true)]), "no race");
    let found = checked([stores(0, false), stores(1, false)]);
    assert!(found.starts_with("race on bytes"), "{found}");
    assert!(found.contains("comes between them"), "{found}");
}

#[test]
fn flags_order_packets() {
    let plans = |wrong: bool| {
        let (at, sent) = (|buffer| vector(buffer, LEN), target(&packets(0, LEN, 1), 9, 1, 5));
        let scratch = tagged(&packets(4, LEN, 1), &[], &[[0, 5]]);
        let from = source(&at(0), 9, 0, 5);
        // Also reads the packets as floats.
        let mut peek = vector(4, LEN);
        peek.buffer = scratch.buffer.clone();
        let taken = if wrong { peek } else { at(0) };
        let first = vec![(send_packet(&at(1), &sent, 64), LEN / 8)];
        let second =
            vec![(recv_packet(&from, &scratch, &at(0), 8), LEN / 8), (add_op(&taken, &at(1)), 4)];
        let before = vec![(add_op(&taken, &at(2)), 4)];
        let second = if wrong { [before, second].concat() } else { second };
        [sequence(0, 2, 2, first), sequence(1, 2, 2, second)]
    };
    assert_eq!(checked(plans(false)), "no race");
    assert!(checked(plans(true)).starts_with("race on bytes"));
}

#[test]
fn tiles_of_more_dimensions_cannot_be_checked() {
    let mut plan = two((0, 4), (0, 4));
    let code = code(&plan);
    let config = &mut plan.task_infos[1].ops[0].config;
    config.0.retain(|(key, _)| key != "Tile");
    let config = config.clone().with("Tile", ConfigValue::Ints(vec![1, 1, TILE]));
    plan.task_infos[1].ops[0].config = config;
    let rank = Rank::new(plan, &code, kernels()).expect("a plan");
    let error =
        run_all(&[rank], Options { race_check: true, ..Options::default() }).expect_err("unknown");
    let expected = "rank 0, $.TaskInfos[1].Ops[0]: what the tasks of ScalarAdd 'add_1_2' touch is \
                    not known, so races cannot be checked";
    assert_eq!(error.to_string(), expected);
}
