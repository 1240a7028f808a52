//! Warps of a task wait for each other, and for no other warps of their processor group.

use irc_ark_format::plan::{ConfigValue, Plan, Range, ResourceGroup, TaskInfo};

use super::build::{group, plan, relu};
use super::errors;

/// Task groups with these numbers of warps per task, in one group on one processor with `of` warps.
fn beside(warps: &[i64], of: i64) -> Plan {
    let infos =
        warps.iter().zip(0..).map(|(&warps, index)| on(warps, relu(2 * index, 2 * index + 1)));
    let mut plan = plan(infos.collect(), vec![]);
    let only = Range::new(0, 1);
    let groups = (0..warps.len()).map(|task| {
        let resource = group(task as i64, only, 0, 1024).resource_groups.remove(0);
        ResourceGroup { warp_range: Range::new(0, of), ..resource }
    });
    plan.num_warps_per_processor = of;
    plan.processor_groups = vec![group(0, only, 0, 1024)];
    plan.processor_groups[0].resource_groups = groups.collect();
    plan
}

/// The same task with another number of warps.
fn on(warps: i64, mut info: TaskInfo) -> TaskInfo {
    info.num_warps = warps;
    for op in &mut info.ops {
        op.config.0.retain(|(key, _)| key != "NumWarps");
        op.config.0.push(("NumWarps".into(), ConfigValue::Int(warps)));
    }
    info
}

fn codes(plan: &Plan) -> Vec<&'static str> {
    errors(plan).into_iter().map(|(code, _)| code).collect()
}

#[test]
fn neighbours_have_as_many_warps() {
    assert_eq!(codes(&beside(&[4, 4], 8)), [""; 0]);
    // A single warp waits for no other.
    assert_eq!(codes(&beside(&[1, 8, 1, 8], 8)), [""; 0]);
    assert_eq!(codes(&beside(&[4, 8], 8)), ["plan-group-warps"]);
    assert_eq!(codes(&beside(&[8, 4], 16)), ["plan-group-warps"]);
    // All warps of the second come from the previous one.
    assert_eq!(codes(&beside(&[8, 4], 8)), [""; 0]);
    assert_eq!(codes(&beside(&[8, 4, 8], 8)), ["plan-group-warps"]);
}

#[test]
fn a_barrier_between_lets_warps_differ() {
    let mut apart = beside(&[4, 8], 8);
    let mut second = apart.processor_groups[0].clone();
    second.resource_groups.remove(0);
    apart.processor_groups[0].resource_groups.pop();
    apart.processor_groups.push(second);
    assert_eq!(codes(&apart), [""; 0]);
}

#[test]
fn neighbours_without_a_common_processor_may_differ() {
    let mut apart = beside(&[4, 8], 8);
    let group = &mut apart.processor_groups[0];
    group.processor_range = Range::new(0, 2);
    group.resource_groups[1].processor_range = Range::new(1, 2);
    assert_eq!(codes(&apart), [""; 0]);
    // A single task runs only on the first of its two processors.
    let group = &mut apart.processor_groups[0];
    group.resource_groups[0].processor_range = Range::new(0, 2);
    assert_eq!(codes(&apart), ["plan-group-warps"]);
    apart.num_processors = 2;
    let all = &mut apart.processor_groups[0].resource_groups[0].task_groups[0];
    all.granularity = 1024;
    assert_eq!(codes(&apart), [""; 0]);
}

#[test]
fn an_op_on_fewer_warps_than_its_task() {
    let with = |task: i64, op: i64, change: fn(&mut TaskInfo)| {
        let mut plan = beside(&[op], task);
        plan.task_infos[0].num_warps = task;
        change(&mut plan.task_infos[0]);
        codes(&plan)
    };
    // Each warp writes the same.
    assert_eq!(with(4, 1, |_| {}), [""; 0]);
    assert_eq!(with(4, 2, |_| {}), ["plan-warps"]);
    assert_eq!(with(4, 4, |_| {}), [""; 0]);
    let in_place = |info: &mut TaskInfo| {
        let op = &mut info.ops[0].op;
        op.reads[0].buffer.id = op.writes[0].buffer.id;
    };
    assert_eq!(with(4, 1, in_place), ["plan-warps"]);
    assert_eq!(with(4, 4, in_place), [""; 0]);
    // A slow warp would read what a later op of the task has overwritten.
    let back = |info: &mut TaskInfo| {
        let mut back = info.ops[0].clone();
        std::mem::swap(&mut back.op.reads, &mut back.op.writes);
        back.op.reads = info.ops[0].op.results.clone();
        (back.op.writes[0].id, back.op.results[0].id) = (70, 71);
        back.op.results[0].buffer = back.op.writes[0].buffer.clone();
        info.ops.push(back);
    };
    assert_eq!(with(4, 1, back), ["plan-warps"]);
    assert_eq!(with(4, 4, back), [""; 0]);
}

#[test]
fn no_barrier_lies_inside_another() {
    let with = |ranges: &[(i64, i64)]| {
        let mut plan = plan(vec![relu(0, 1)], vec![group(0, Range::new(0, 108), 0, 1024)]);
        for &(begin, end) in ranges {
            plan.processor_groups.push(group(0, Range::new(begin, end), 0, 0));
        }
        codes(&plan)
    };
    assert_eq!(with(&[(36, 72), (36, 72)]), ["plan-barrier-state"]);
    // The middle third starts at once, and all wait for it.
    assert_eq!(with(&[(0, 36), (36, 72), (72, 108), (0, 108)]), [""; 0]);
    assert_eq!(with(&[(0, 36), (0, 36), (36, 108), (36, 108), (0, 108)]), [""; 0]);
}
