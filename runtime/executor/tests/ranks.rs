//! Several ranks in one process.

use crate::common::ranks::*;
use crate::common::*;
use irc_ark_format::model::OpKind;
use irc_ark_format::plan::Plan;
use irc_executor::{Options, Rank};

fn ranks(plans: impl IntoIterator<Item = Plan>) -> Vec<Rank> {
    plans.into_iter().map(|plan| rank(plan).expect("a plan")).collect()
}

/// Rank 0 adds one and sends to rank 1, which adds one again; by tiles if `tiles`.
fn pipeline(tiles: bool) -> [Plan; 2] {
    let at = |buffer| vector(buffer, LEN);
    let sent = target(&at(0), 9, 1, 5);
    let send = match tiles {
        true => (send_tiles(&at(1), &sent, TILE, true), 4),
        false => (send(&at(1), &sent), 1),
    };
    let received = tagged(&at(0), &[], &[[0, 5]]);
    let done = op(OpKind::SendDone, &[&sent], &[], &[], &[]);
    [
        sequence(0, 2, 3, vec![(add_op(&at(0), &at(1)), 4), send, (done, 1)]),
        sequence(
            1,
            2,
            2,
            vec![
                (recv(&source(&at(0), 9, 0, 5), &received, true), 1),
                (add_op(&received, &at(1)), 4),
            ],
        ),
    ]
}

#[test]
fn what_is_sent_arrives_before_the_receiver_goes_on() {
    for (threads, tiles) in [(1, false), (3, false), (1, true), (3, true)] {
        for ranks in [ranks(pipeline(tiles)), ranks(pipeline(tiles).into_iter().rev())] {
            let options = Options { threads, ..Options::default() };
            let outputs = run_all(&ranks, options).expect("a run");
            let receiver = usize::from(ranks[1].plan().rank == 1);
            assert_eq!(values(&outputs[receiver], 1), [2.0; LEN as usize]);
        }
    }
}

#[test]
fn packets_carry_a_sum_to_all_ranks() {
    for (world, threads) in [(2, 1), (3, 1), (4, 1), (4, 3)] {
        let ranks = ranks((0..world).map(|rank| all_reduce(rank, world)));
        let value = |rank: i64, index: i64| (index * 10 + rank) as f32;
        let of = |rank: i64| {
            let values: Vec<f32> = (0..LEN * world).map(|index| value(rank, index)).collect();
            given(&[floats(0, &values)])
        };
        let sum = |index: i64| (0..world).map(|rank| value(rank, index)).sum::<f32>();
        let expected: Vec<f32> = (0..LEN * world).map(sum).collect();
        let options = Options { threads, ..Options::default() };
        let outputs = run_on(&ranks, (0..world).map(of).collect(), options).expect("a run");
        for outputs in &outputs {
            assert_eq!(values(outputs, 0), expected);
            assert_eq!(outputs.keys().collect::<Vec<_>>(), ["buffer_0"]);
        }
    }
}

#[test]
fn stores_between_synchronisations_carry_a_sum_to_all_ranks() {
    for (world, threads) in [(2, 1), (3, 2), (4, 1)] {
        let ranks = ranks((0..world).map(|rank| all_reduce_stores(rank, world)));
        let of = |rank: i64| given(&[floats(0, &vec![(1 << rank) as f32; (LEN * world) as usize])]);
        let options = Options { threads, ..Options::default() };
        let outputs = run_on(&ranks, (0..world).map(of).collect(), options).expect("a run");
        let expected = vec![((1 << world) - 1) as f32; (LEN * world) as usize];
        outputs.iter().for_each(|outputs| assert_eq!(values(outputs, 0), expected));
    }
}

/// The error of running a set of plans.
fn rejected(plans: impl IntoIterator<Item = Plan>) -> String {
    match run_all(&ranks(plans), Options::default()) {
        Ok(_) => "accepted".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_tag_without_its_partner_is_rejected_before_anything_starts() {
    assert_eq!(rejected(pipeline(false)), "accepted");
    let [sender, mut receiver] = pipeline(false);
    for op in receiver.task_infos.iter_mut().flat_map(|info| &mut info.ops) {
        let op = &mut op.op;
        for tensor in op.reads.iter_mut().chain(&mut op.writes).chain(&mut op.results) {
            tensor.buffer.recv_tags.iter_mut().for_each(|tag| tag[1] = 6);
            tensor.buffer.send_tags.iter_mut().for_each(|tag| tag[1] = 6);
        }
    }
    let expected = "rank 0: Send 'send' sends to rank 1 under tag 5, and there no buffer lists \
                    that tag of rank 0 in `RecvTags`\n\
                    rank 1: Recv 'recv' receives from rank 0 under tag 6, and rank 0 sends nothing \
                    under that tag to rank 1";
    assert_eq!(rejected([sender, receiver]), expected);
}

#[test]
fn ranks_that_are_missing_or_twice_there_are_rejected() {
    let [sender, receiver] = pipeline(false);
    let found = rejected([sender.clone()]);
    let expected = "rank 0 communicates in a world of 2, and rank 1 is not there; the ranks \
                    here are 0";
    assert_eq!(found, expected);
    assert_eq!(rejected([sender.clone(), receiver, sender]), "two plans are of rank 0");
}

#[test]
fn ranks_that_wait_for_each_other_are_a_deadlock() {
    let at = |buffer| vector(buffer, LEN);
    let plan = |rank: i64| {
        let peer = 1 - rank;
        let received = tagged(&at(0), &[], &[[peer, 3]]);
        let wait = recv(&source(&at(0), 9, peer, 3), &received, true);
        let sent = target(&at(0), 8, peer, 3);
        sequence(rank, 2, 1, vec![(wait, 1), (send(&at(1), &sent), 1)])
    };
    let expected = "deadlock: no task can make progress\n\
                    rank 0: Recv 'recv' (task 0[0] on processor 0) waits for 1 signal(s) of rank 1 \
                    under tag 3\n\
                    rank 1: Recv 'recv' (task 0[0] on processor 0) waits for 1 signal(s) of rank 0 \
                    under tag 3";
    assert_eq!(rejected([plan(0), plan(1)]), expected);
}

#[test]
fn a_synchronisation_that_a_rank_leaves_out_is_a_deadlock() {
    let at = |buffer| vector(buffer, LEN);
    let sync = |rank: i64| (device_sync(&at(0), rank, 2), 1);
    let alone = sequence(0, 2, 1, vec![sync(0), sync(0)]);
    let found = rejected([alone, sequence(1, 2, 1, vec![sync(1)])]);
    let expected = "deadlock: no task can make progress\nrank 0: DeviceSync 'devicesync' (task 1[0] on \
                    processor 0) waits for rank 1 to synchronise";
    assert_eq!(found, expected);
}

#[test]
fn ops_that_do_not_fit_are_rejected() {
    let at = |buffer| vector(buffer, LEN);
    let plan = |to_len: i64| {
        let [_, receiver] = pipeline(false);
        let sent = target(&vector(0, to_len), 9, 1, 5);
        [sequence(0, 2, 1, vec![(send(&at(1), &sent), 1)]), receiver]
    };
    assert_eq!(rejected(plan(LEN)), "accepted");
    let place = "rank 0, $.TaskInfos[0].Ops[0] (Send 'send'): ";
    assert_eq!(rejected(plan(TILE)), format!("{place}it moves 64 bytes into 16"));
    let expected = "it writes up to byte 128 of the buffer of rank 1 under tag 5, which has 64";
    assert_eq!(rejected(plan(2 * LEN)), format!("{place}{expected}"));
    let [mut sender, receiver] = pipeline(true);
    sender.processor_groups[1].resource_groups[0].task_groups[0].task_range.end = 5;
    let place = "rank 0, $.TaskInfos[1].Ops[0] (Send 'send'): ";
    let found = rejected([sender, receiver]);
    assert_eq!(found, format!("{place}tasks up to 5 run, and its tiles are 4"));
}
