//! The machine: tasks, barriers, slots, and rejected plans.

use std::collections::BTreeMap;

use crate::common::*;
use irc_ark_format::plan::Plan;
use irc_executor::{Error, Options, Rank, run};

/// A chain of `length` ops over `tiles` tiles, one processor group each.
fn chain(length: u64, tiles: i64, ranges: &[(i64, i64)], processors: i64) -> Plan {
    let at = |buffer| vector(buffer, tiles * TILE);
    let tasks = (0..length).map(|i| task(i as i64, vec![add_op(&at(i), &at(i + 1))]));
    let group = |i: u64| group(ranges[i as usize % ranges.len()], &[(i as i64, (0, tiles), 1)]);
    plan(processors, tasks.collect(), (0..length).map(group).collect())
}

#[test]
fn a_chain_over_barriers_gives_the_same_on_any_number_of_threads() {
    let ranges = [(0, 8), (0, 5), (2, 8), (0, 8)];
    let rank = rank(chain(12, 37, &ranges, 8)).expect("a plan");
    for threads in [1, 2, 5] {
        let options = Options { threads, ..Options::default() };
        let outputs = run_all(std::slice::from_ref(&rank), options).expect("a run");
        assert_eq!(values(&outputs[0], 12), vec![12.0; 37 * TILE as usize], "{threads} threads");
        assert_eq!(outputs[0].len(), 12);
    }
}

#[test]
fn inputs_and_outputs_are_named_by_buffer() {
    let rank = rank(chain(1, 1, &[(0, 1)], 1)).expect("a plan");
    let names = |ports: &[irc_runtime::Port]| ports.iter().map(|p| p.name.clone()).collect();
    let inputs: Vec<String> = names(&rank.interface().inputs);
    let outputs: Vec<String> = names(&rank.interface().outputs);
    assert_eq!((inputs, outputs), (vec!["buffer_0".into()], vec!["buffer_1".into()]));
    let given = BTreeMap::from([floats(0, &[1.0, 2.0, 3.0, 4.0])]);
    let mut memories = vec![rank.memory(given).expect("fits")];
    let report = run(&[&rank], &mut memories, Options::default()).expect("a run");
    assert_eq!(report.tasks, 1);
    let outputs = rank.outputs(memories.remove(0));
    assert_eq!(values(&outputs, 1), [2.0, 3.0, 4.0, 5.0]);
}

#[test]
fn a_second_task_group_in_part_of_the_grid_loses_tasks() {
    let at = |buffer| vector(buffer, 4 * TILE);
    let tasks = vec![task(0, vec![add_op(&at(0), &at(1))]), task(1, vec![add_op(&at(0), &at(2))])];
    let groups = || vec![group((0, 2), &[(0, (0, 1), 1), (1, (0, 4), 1)])];
    let tiles = |grid| {
        let rank = rank(plan(grid, tasks.clone(), groups())).expect("a plan");
        let outputs = run_all(&[rank], Options::default()).expect("a run");
        let values = values(&outputs[0], 2);
        (0..4).filter(|tile| values[tile * TILE as usize] == 1.0).collect::<Vec<_>>()
    };
    assert_eq!(tiles(2), [0, 1, 2, 3]);
    assert_eq!(tiles(4), [0, 2, 3]);
}

#[test]
fn a_slot_without_warps_loses_its_tasks() {
    let at = |buffer| vector(buffer, 4 * TILE);
    let tasks = vec![task(0, vec![add_op(&at(0), &at(1))])];
    let rank = rank(plan(1, tasks, vec![wide_group((0, 1), 2, &[(0, (0, 4), 1)])]));
    let outputs = run_all(&[rank.expect("a plan")], Options::default()).expect("a run");
    let found = values(&outputs[0], 1);
    assert_eq!([found[0], found[4], found[8], found[12]], [1.0, 0.0, 1.0, 0.0]);
}

#[test]
fn a_barrier_past_the_last_processor_is_a_deadlock() {
    let rank = rank(chain(2, 4, &[(0, 3)], 2)).expect("a plan");
    for threads in [1, 3] {
        let options = Options { threads, ..Options::default() };
        let error = run_all(std::slice::from_ref(&rank), options).expect_err("a deadlock");
        let expected = "deadlock: no task can make progress\nrank 0: the barrier over processors [0, 3) \
                        before processor group 1 waits for 1 more";
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_kernel_that_fails_ends_the_run_with_its_place() {
    let plan = chain(2, 4, &[(0, 2)], 2);
    let mut code = code(&plan);
    let irc_executor::code::Step::Kernel(kernel) = &mut code.tasks[1].steps[0] else { panic!() };
    kernel.variants[0].symbol = "fail".into();
    let rank = Rank::new(plan, &code, kernels()).expect("a plan");
    let error = run_all(&[rank], Options::default()).expect_err("a failure");
    assert_eq!(error.to_string(), "rank 0: task 1[1] of add_1_2 failed with code 7");
}

/// The error for a wrong description of a valid plan.
fn rejected(change: impl FnOnce(&mut irc_executor::code::PlanCode)) -> String {
    let plan = chain(2, 4, &[(0, 2)], 2);
    let mut code = code(&plan);
    change(&mut code);
    let Err(error) = Rank::new(plan, &code, kernels()) else { return "accepted".into() };
    let prefix = "the compiled code does not fit the plan of rank 0: ";
    error.to_string().strip_prefix(prefix).expect("of the code").to_owned()
}

#[test]
fn code_of_another_plan_is_rejected() {
    use irc_executor::code::{Kernel, PlanCode, Step};
    fn kernel(code: &mut PlanCode) -> &mut Kernel {
        let Step::Kernel(kernel) = &mut code.tasks[1].steps[0] else { panic!("a kernel") };
        kernel
    }
    assert_eq!(rejected(|_| {}), "accepted");
    let found = rejected(|code| code.tasks.truncate(1));
    assert_eq!(found, "expected code of 2 task infos, found 1");
    let found = rejected(|code| code.tasks[1].steps.clear());
    assert_eq!(found, "task info 1: ScalarAdd 'add_1_2' is in 0 steps");
    let found = rejected(|code| code.tasks[1].steps = vec![Step::Communicate(0)]);
    assert_eq!(found, "task info 1: op 0 is a ScalarAdd, not what its step runs");
    let found = rejected(|code| kernel(code).ops = vec![3]);
    assert_eq!(found, "task info 1: there is no op 3");
    let found = rejected(|code| kernel(code).operands[0].buffer = 9);
    assert_eq!(found, "task info 1: step 0: buffer 9 is none of this rank's");
    let found = rejected(|code| kernel(code).operands[0].steps[3] = 24);
    assert_eq!(found, "task info 1: step 0: an operand starts beyond the 64 bytes of buffer 1");
    let found = rejected(|code| kernel(code).counts[3] = 3);
    assert_eq!(found, "tasks [0, 4) of task info 1 run, and there are 3");
    let found = rejected(|code| kernel(code).counts[0] = 0);
    assert_eq!(found, "task info 1: step 0: [0, 1, 1, 4] are not numbers of tiles");
    let found = rejected(|code| kernel(code).variants[0].symbol = "gone".into());
    assert_eq!(found, "task info 1: step 0: the library has no function 'gone'");
    let found = rejected(|code| kernel(code).variants[0].last[3] = true);
    assert_eq!(found, "task info 1: step 0: no function computes the task of digits [0, 0, 0, 0]");
}

#[test]
fn inputs_that_do_not_fit_are_rejected() {
    let rank = rank(chain(1, 1, &[(0, 1)], 1)).expect("a plan");
    let rejected = |given| match rank.memory(BTreeMap::from([given])) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    };
    let found = rejected(floats(5, &[1.0]));
    assert_eq!(found, "no input is named 'buffer_5'; the inputs are buffer_0");
    assert_eq!(rejected(floats(0, &[1.0])), "input 'buffer_0': expected f32[4], found f32[1]");
}

#[test]
fn plans_that_the_code_generator_rejects_are_rejected() {
    let rejected = |change: &dyn Fn(&mut Plan)| {
        let mut plan = chain(1, 4, &[(0, 2)], 2);
        change(&mut plan);
        match rank(plan) {
            Ok(_) => "accepted".to_owned(),
            Err(error @ Error::Plan { .. }) => error.to_string(),
            Err(error) => panic!("{error}"),
        }
    };
    let place = "rank 0, $.ProcessorGroups[0].ResourceGroups[0]: ";
    let resource = |plan: &mut Plan| plan.processor_groups[0].resource_groups[0].clone();
    let found = rejected(&|plan| {
        let mut changed = resource(plan);
        changed.processor_range.end = 3;
        plan.processor_groups[0].resource_groups[0] = changed;
    });
    assert_eq!(found, format!("{place}its processors are not all in the processor group"));
    let found = rejected(&|plan| {
        plan.processor_groups[0].resource_groups[0].task_groups[0].granularity = 0;
    });
    assert_eq!(found, format!("{place}`Granularity` is 0: expected at least 1"));
    let found = rejected(&|plan| plan.task_infos[0].num_warps = 2);
    assert!(found.starts_with(&format!("{place}a task needs 2 warps")), "{found}");
    let found = rejected(&|plan| plan.num_processors = 0);
    assert_eq!(found, "rank 0, $.NumProcessors: expected 1 to 1048576, found 0");
}
