//! Ranks in separate processes: this test program, started again by `mpirun`.
#![cfg(feature = "mpi")]

mod common;

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use common::ranks::*;
use common::*;
use irc_ark_format::plan::Plan;
use irc_executor::code::Step;
use irc_executor::mpi::World;
use irc_executor::{Options, Rank};

/// Runs a case of [`child`] with this number of processes; `None` if there is no `mpirun`.
fn mpirun(case: &str, processes: i64) -> Option<Output> {
    let program = std::env::current_exe().expect("a path");
    let started = Command::new("mpirun")
        .args(["--allow-run-as-root", "--oversubscribe", "-n", &processes.to_string()])
        .arg(program)
        .args(["child", "--exact", "--ignored", "--nocapture"])
        .env("IRC_MPI_CASE", case)
        // Containers do not permit a process to read another's memory.
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
        .output();
    match started {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("skipped: mpirun cannot be started: {error}");
            None
        }
    }
}

fn text(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

fn succeeds(case: &str, processes: i64) {
    let Some(output) = mpirun(case, processes) else { return };
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    assert_eq!(text.matches("this rank is right").count(), processes as usize, "{text}");
}

fn fails(case: &str, processes: i64, expected: &str) {
    let start = Instant::now();
    let Some(output) = mpirun(case, processes) else { return };
    let text = text(&output);
    assert!(!output.status.success() && text.contains(expected), "{text}");
    assert!(start.elapsed() < Duration::from_secs(30), "took {:?}", start.elapsed());
}

#[test]
fn two_ranks_send_and_receive() {
    succeeds("pipeline", 2);
}

#[test]
fn four_ranks_add_up_by_packets() {
    succeeds("packets", 4);
}

#[test]
fn four_ranks_add_up_by_stores_on_several_threads() {
    succeeds("stores", 4);
}

#[test]
fn a_world_of_another_size_is_rejected() {
    let expected = "is for a world of 2, and mpirun started 3 processes";
    fails("pipeline", 3, expected);
}

#[test]
fn a_tag_without_its_partner_is_rejected_before_anything_starts() {
    let expected = "rank 0: Send 'send' sends to rank 1 under tag 5, and there no buffer lists";
    fails("tags", 2, expected);
}

#[test]
fn ranks_that_wait_for_each_other_are_a_deadlock() {
    let expected = "rank 1: Recv 'recv' (task 0[0] on processor 0) waits for 1 signal(s) of rank 0";
    fails("deadlock", 2, expected);
}

#[test]
fn a_rank_that_fails_ends_all() {
    fails("failure", 2, "rank 0: task 0[0] of add_0_1 failed with code 7");
}

#[test]
fn a_rank_that_dies_ends_all() {
    fails("death", 2, "exited on signal");
}

/// One process of a case.
#[test]
#[ignore = "started by mpirun, by the other tests"]
fn child() {
    let case = std::env::var("IRC_MPI_CASE").expect("started by mpirun");
    let world = World::start().expect("MPI");
    if let Err(error) = run_case(&case, &world) {
        eprintln!("error: {error}");
        drop(world);
        std::process::exit(1);
    }
    eprintln!("this rank is right");
}

fn run_case(case: &str, world: &World) -> Result<(), irc_executor::Error> {
    let (rank, size) = (world.rank(), world.size());
    let (plan, given, expected) = match case {
        "packets" => sums(all_reduce(rank, size), rank, size),
        "stores" => sums(all_reduce_stores(rank, size), rank, size),
        "deadlock" => (waiting(rank), given(&[]), None),
        _ => {
            let plan = pipeline(rank.min(1));
            let expected = (rank == 1).then(|| (1, vec![2.0; LEN as usize]));
            (plan, given(&[]), expected)
        }
    };
    let ready = ready(case, plan)?;
    let threads = if case == "stores" { 3 } else { 1 };
    // Twice, because the second run must not see the state of the first.
    for _ in 0..2 {
        let memory = ready.memory(given.clone())?;
        let options = Options { threads, ..Options::default() };
        let (memory, _) = world.run(&ready, memory, options)?;
        if let Some((buffer, expected)) = &expected {
            assert_eq!(values(&ready.outputs(memory), *buffer), *expected);
        }
    }
    Ok(())
}

/// The rank of a plan, with the error of the case.
fn ready(case: &str, mut plan: Plan) -> Result<Rank, irc_executor::Error> {
    if case == "tags" && plan.rank == 1 {
        for op in plan.task_infos.iter_mut().flat_map(|info| &mut info.ops) {
            let op = &mut op.op;
            for tensor in op.reads.iter_mut().chain(&mut op.writes).chain(&mut op.results) {
                tensor.buffer.recv_tags.iter_mut().for_each(|tag| tag[1] = 6);
                tensor.buffer.send_tags.iter_mut().for_each(|tag| tag[1] = 6);
            }
        }
    }
    let mut code = code(&plan);
    let symbol = match case {
        "failure" if plan.rank == 0 => "fail",
        "death" if plan.rank == 0 => "die",
        _ => "add_one",
    };
    for step in code.tasks.iter_mut().flat_map(|task| &mut task.steps) {
        let Step::Kernel(kernel) = step else { continue };
        kernel.variants[0].symbol = symbol.into();
    }
    Rank::new(plan, &code, kernels())
}

/// Rank 0 adds one and sends to rank 1, which adds one again.
fn pipeline(rank: i64) -> Plan {
    let at = |buffer| vector(buffer, LEN);
    let sent = target(&at(0), 9, 1, 5);
    let received = tagged(&at(0), &[], &[[0, 5]]);
    if rank == 0 {
        return sequence(0, 2, 3, vec![(add_op(&at(0), &at(1)), 4), (send(&at(1), &sent), 1)]);
    }
    let receive = recv(&source(&at(0), 9, 0, 5), &received, true);
    sequence(1, 2, 2, vec![(receive, 1), (add_op(&received, &at(1)), 4)])
}

/// Both ranks wait before they send.
fn waiting(rank: i64) -> Plan {
    let (at, peer) = (|buffer| vector(buffer, LEN), 1 - rank);
    let received = tagged(&at(0), &[], &[[peer, 3]]);
    let wait = recv(&source(&at(0), 9, peer, 3), &received, true);
    sequence(rank, 2, 1, vec![(wait, 1), (send(&at(1), &target(&at(0), 8, peer, 3)), 1)])
}

type Case = (Plan, Outputs, Option<(u64, Vec<f32>)>);

/// A plan of a sum, with its inputs and expected results.
fn sums(plan: Plan, rank: i64, world: i64) -> Case {
    let value = |rank: i64, index: i64| (index * 10 + rank) as f32;
    let own: Vec<f32> = (0..LEN * world).map(|index| value(rank, index)).collect();
    let sum = |index: i64| (0..world).map(|rank| value(rank, index)).sum::<f32>();
    let expected = (0..LEN * world).map(sum).collect();
    (plan, given(&[floats(0, &own)]), Some((0, expected)))
}
