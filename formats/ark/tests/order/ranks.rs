//! Two ranks that send to each other.

use irc_ark_format::model::{Buffer, DataType, OpKind, Tensor};
use irc_ark_format::plan::{self, Config, ConfigValue, Plan, Range, TaskInfo};
use irc_diag::Diagnostic;

use super::build::{config, group, op, plan, task};

fn data(id: u64, buffer: Buffer) -> Tensor {
    Tensor::dense(id, DataType::Fp16, &[64], buffer)
}

/// A local buffer that is sent to the peer under `sends`, and received under `receives`.
fn local(id: u64, peer: i64, sends: &[i64], receives: &[i64]) -> Buffer {
    let tags = |tags: &[i64]| tags.iter().map(|&tag| [peer, tag]).collect();
    Buffer { id, rank: -1, send_tags: tags(sends), recv_tags: tags(receives) }
}

fn channel(kind: &str) -> Config {
    config(1).with("ChannelType", ConfigValue::Text(kind.into()))
}

/// Sends buffer `from` to the peer under a tag; `far` is the id of the stand-in.
fn send(from: Buffer, far: u64, peer: i64, tag: i64) -> TaskInfo {
    let remote = Buffer { id: far, rank: peer, send_tags: vec![], recv_tags: vec![[-1, tag]] };
    let (from, to) = (data(from.id, from), data(far, remote));
    let config = channel("Proxy").with("Signal", ConfigValue::Bool(true));
    task(op(OpKind::Send, vec![from], vec![to]), config)
}

/// Waits until the data for the stand-in `far` has been sent.
fn done(far: u64, peer: i64, tag: i64) -> TaskInfo {
    let remote = Buffer { id: far, rank: peer, send_tags: vec![], recv_tags: vec![[-1, tag]] };
    let sent = data(far + 1000, remote.clone());
    let mut flush = op(OpKind::SendDone, vec![sent], vec![]);
    flush.results = vec![data(far + 2000, remote)];
    task(flush, channel("Proxy"))
}

/// Receives into buffer `to` under a tag; `far` is the id of the stand-in.
fn recv(to: Buffer, far: u64, peer: i64, tag: i64) -> TaskInfo {
    let remote = Buffer { id: far, rank: peer, send_tags: vec![[-1, tag]], recv_tags: vec![] };
    let (from, to) = (data(far, remote), data(to.id, to));
    let config = channel("Proxy").with("Wait", ConfigValue::Bool(true));
    task(op(OpKind::Recv, vec![from], vec![to]), config)
}

/// Writes buffer `to` from the result of an op in buffer `from`.
fn copy(from: Tensor, to: Buffer) -> TaskInfo {
    let config = config(1).with("Tile", ConfigValue::Ints(vec![1, 64]));
    let to = data(to.id, to);
    task(op(OpKind::Copy, vec![from], vec![to]), config)
}

/// A rank that runs its tasks in sequence on one processor.
fn rank(rank: i64, tasks: Vec<TaskInfo>) -> Plan {
    let groups = (0..tasks.len()).map(|id| group(id as i64, Range::new(0, 1), 0, 1)).collect();
    Plan { rank, world_size: 2, ..plan(tasks, groups) }
}

/// Ranks and codes of the errors; the plans themselves have none.
fn errors(plans: &[Plan]) -> Vec<(usize, &'static str, String)> {
    for plan in plans {
        let found: Vec<_> = plan::check(plan).into_iter().filter(Diagnostic::is_error).collect();
        assert_eq!(found, [], "a plan by itself");
    }
    let found =
        plan::check_ranks(plans).into_iter().filter(|(_, diagnostic)| diagnostic.is_error());
    found.map(|(rank, diagnostic)| (rank, diagnostic.code, diagnostic.message)).collect()
}

/// Rank 0 sends two buffers; rank 1 receives them in the given order.
fn two_sends(order: [i64; 2]) -> [Plan; 2] {
    let from = |id, tag| local(id, 1, &[tag], &[]);
    let to = |tag: i64| local(tag as u64, 0, &[], &[tag]);
    let sends = vec![send(from(0, 0), 10, 1, 0), send(from(1, 1), 11, 1, 1)];
    let sends = sends.into_iter().chain([done(10, 1, 0), done(11, 1, 1)]).collect();
    let receives = order.map(|tag| recv(to(tag), 10 + tag as u64, 0, tag)).to_vec();
    [rank(0, sends), rank(1, receives)]
}

#[test]
fn signals_come_in_the_order_of_the_sends() {
    assert_eq!(errors(&two_sends([0, 1])), []);
    let found = errors(&two_sends([1, 0]));
    assert_eq!(found.iter().map(|(_, code, _)| *code).collect::<Vec<_>>(), ["plan-signal"; 2]);
    let expected = "`Recv` (task 0 of rank 1) consumes the signal of `Send` (task 0 of rank 0), which \
                    is meant for another op";
    assert_eq!(found[0].2, expected);
}

/// Rank 0 sends twice into one buffer of rank 1, which reads it after each; optionally with an answer
/// of rank 1 in between.
fn two_rounds(answers: bool) -> [Plan; 2] {
    let source = || local(0, 1, &[5], &[]);
    let landing = || local(0, 0, &[], &[5]);
    let mut sender = vec![send(source(), 10, 1, 5), done(10, 1, 5)];
    let first = recv(landing(), 10, 0, 5);
    let received = first.ops[0].op.results[0].clone();
    let mut receiver = vec![first, copy(received, Buffer::local(20))];
    if answers {
        receiver.push(send(local(3, 0, &[6], &[]), 30, 0, 6));
        receiver.push(done(30, 0, 6));
        sender.push(recv(local(3, 1, &[], &[6]), 30, 1, 6));
    }
    let mut again = send(source(), 10, 1, 5);
    (again.ops[0].op.writes[0].id, again.ops[0].op.results[0].id) = (4000, 4001);
    sender.push(again);
    let mut second = recv(landing(), 10, 0, 5);
    (second.ops[0].op.writes[0].id, second.ops[0].op.results[0].id) = (4000, 4001);
    receiver.push(second);
    [rank(0, sender), rank(1, receiver)]
}

#[test]
fn a_buffer_is_sent_into_again_only_once_it_was_read() {
    assert_eq!(errors(&two_rounds(true)), []);
    let found = errors(&two_rounds(false));
    assert_eq!(found.len(), 1, "{found:?}");
    let expected = "race: index 0 of task 1 of rank 1 (`Copy`) reads bytes [0, 128) of buffer 0 of \
                    rank 1, which index 0 of task 2 of rank 0 (`Send`) writes, and no signal or \
                    barrier orders the two";
    assert_eq!(found[0], (1, "plan-race", expected.to_owned()));
}

/// Each rank sends to the other and receives, optionally in the opposite order.
fn exchange(rank_: i64, receives_first: bool) -> Plan {
    let peer = 1 - rank_;
    let mut tasks = vec![
        send(local(0, peer, &[rank_], &[]), 10, peer, rank_),
        done(10, peer, rank_),
        recv(local(1, peer, &[], &[peer]), 11, peer, peer),
    ];
    if receives_first {
        tasks.rotate_right(1);
    }
    rank(rank_, tasks)
}

#[test]
fn two_ranks_that_receive_first_wait_for_ever() {
    assert_eq!(errors(&[exchange(0, false), exchange(1, false)]), []);
    assert_eq!(errors(&[exchange(0, true), exchange(1, false)]), []);
    let found = errors(&[exchange(0, true), exchange(1, true)]);
    let expected = "deadlock: `Recv` (task 0 of rank 0) waits for `Send` (task 1 of rank 1), which \
                    comes after `Recv` (task 0 of rank 1), which waits for `Send` (task 1 of rank \
                    0), which comes after `Recv` (task 0 of rank 0)";
    assert_eq!(found, [(0, "plan-deadlock", expected.to_owned())]);
}

#[test]
fn a_receive_on_other_processors_holds_up_no_send() {
    // The receive comes first in the file, but the send does not wait for it.
    let apart = |plan: Plan| {
        let mut plan = plan;
        plan.processor_groups[0] = group(0, Range::new(1, 2), 0, 1);
        plan
    };
    assert_eq!(errors(&[apart(exchange(0, true)), apart(exchange(1, true))]), []);
}

#[test]
fn what_is_sent_rests_until_the_send_is_done() {
    let source = || local(0, 1, &[5], &[]);
    let plan = |late: bool| {
        let fill = copy(data(20, Buffer::local(20)), source());
        let mut tasks = vec![send(source(), 10, 1, 5), done(10, 1, 5), fill];
        if late {
            tasks.swap(1, 2);
        }
        rank(0, tasks)
    };
    assert_eq!(plan::check(&plan(false)), []);
    let found = plan::check(&plan(true));
    assert_eq!(found.iter().map(|diagnostic| diagnostic.code).collect::<Vec<_>>(), ["plan-race"]);
    assert!(found[0].notes.iter().any(|note| note.contains("missing: a `SendDone`")));
}
