//! Shared values are shared within a task group, and never outlive it.

use std::collections::BTreeMap;

use crate::common::*;
use irc_executor::code::{Keeps, PlanCode, Step};
use irc_executor::{Error, Options, Rank, run};

/// Number of tasks of the op with a shared value.
const TASKS: i64 = 24;

/// A rank whose task info 0 sets each tile of buffer 1 to the only tile of buffer 0, plus one, and
/// shares that tile; task info 1 adds one to buffer 0 itself.
fn sharing_rank(groups: &[i64], change: impl FnOnce(&mut Keeps)) -> Result<Rank, Error> {
    let (one, many) = (vector(0, TILE), vector(1, TASKS * TILE));
    let mut spread = add_op(&many, &many);
    spread.op.reads = vec![one.clone()];
    let tasks = vec![task(0, vec![spread]), task(1, vec![add_op(&one, &one)])];
    let group_of = |id: &i64| group((0, 2), &[(*id, (0, if *id == 0 { TASKS } else { 1 }), 1)]);
    let plan = plan(2, tasks, groups.iter().map(group_of).collect());
    let mut code: PlanCode = code(&plan);
    let Step::Kernel(kernel) = &mut code.tasks[0].steps[0] else { panic!("a kernel") };
    kernel.operands[0].steps = [0; 4];
    kernel.variants[0].symbol = "add_one_to_shared".into();
    let mut keeps = Keeps { bytes: 64 + TILE.cast_unsigned() * 4, operands: vec![0] };
    change(&mut keeps);
    kernel.variants[0].keeps = Some(keeps);
    Rank::new(plan, &code, kernels())
}

fn filled() -> u64 {
    FILLED.with(std::cell::Cell::take)
}

/// The contents of buffer 1 after a run with buffers of these floats.
fn run_from(rank: &Rank, first: f32, threads: usize) -> Vec<f32> {
    let given = BTreeMap::from([floats(0, &[first; TILE as usize])]);
    let mut memories = vec![rank.memory(given).expect("memory")];
    run(&[rank], &mut memories, Options { threads, ..Options::default() }).expect("a run");
    values(&rank.outputs(memories.remove(0)), 1)
}

#[test]
fn tasks_of_a_group_make_it_once() {
    let rank = sharing_rank(&[0], |_| {}).expect("a plan");
    filled();
    assert_eq!(run_from(&rank, 4.0, 1), [5.0; (TASKS * TILE) as usize]);
    assert_eq!(filled(), 1);
}

#[test]
fn a_later_group_makes_it_anew() {
    let rank = sharing_rank(&[0, 1, 0], |_| {}).expect("a plan");
    filled();
    assert_eq!(run_from(&rank, 4.0, 1), [6.0; (TASKS * TILE) as usize], "of what was written");
    assert_eq!(filled(), 2);
    assert_eq!(run_from(&rank, 4.0, 3), [6.0; (TASKS * TILE) as usize], "on several threads");
}

#[test]
fn a_later_run_makes_it_anew() {
    let rank = sharing_rank(&[1, 0], |_| {}).expect("a plan");
    let mut memories = vec![rank.memory(BTreeMap::new()).expect("memory")];
    filled();
    run(&[&rank], &mut memories, Options::default()).expect("a run");
    run(&[&rank], &mut memories, Options::default()).expect("a run");
    assert_eq!(filled(), 2);
    assert_eq!(values(&rank.outputs(memories.remove(0)), 1), [3.0; (TASKS * TILE) as usize]);
}

#[test]
fn what_depends_on_every_digit_is_not_shared() {
    let rank = sharing_rank(&[0], |keeps| keeps.operands = vec![0, 1]).expect("a plan");
    filled();
    assert_eq!(run_from(&rank, 4.0, 1), [5.0; (TASKS * TILE) as usize]);
    assert_eq!(filled(), TASKS.cast_unsigned());
}

#[test]
fn more_than_the_buffers_is_not_shared() {
    let buffers = (1 + TASKS.cast_unsigned()) * TILE.cast_unsigned() * 4;
    let rank = sharing_rank(&[0], |keeps| keeps.bytes = buffers + 64).expect("a plan");
    filled();
    assert_eq!(run_from(&rank, 4.0, 1), [5.0; (TASKS * TILE) as usize]);
    assert_eq!(filled(), TASKS.cast_unsigned());
}

#[test]
fn an_operand_that_is_none_is_rejected() {
    let found =
        sharing_rank(&[0], |keeps| keeps.operands = vec![2]).err().expect("rejected").to_string();
    assert!(
        found.ends_with("a shared value depends on operand 2, which does not exist"),
        "{found}"
    );
}
