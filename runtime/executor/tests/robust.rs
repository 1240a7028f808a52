//! No number in a plan or in its code makes the executor panic or hang.

use crate::common::ranks::*;
use crate::common::*;
use irc_ark_format::plan::{ConfigValue, Plan};
use irc_executor::code::{PlanCode, Step};
use irc_executor::{Options, Rank};
use proptest::prelude::*;

/// Numbers near the limits of validity.
fn number() -> impl Strategy<Value = i64> {
    let edges = vec![i64::MIN, -1, 0, 1, 2, 3, 7, 16, 1 << 20, 1 << 40, i64::MAX];
    prop::sample::select(edges)
}

/// Every number of a plan that affects execution.
fn numbers(plan: &mut Plan) -> Vec<&mut i64> {
    let mut found = vec![
        &mut plan.num_warps_per_processor,
        &mut plan.num_processors,
        &mut plan.world_size,
        &mut plan.rank,
    ];
    for info in &mut plan.task_infos {
        found.extend([&mut info.num_warps, &mut info.sram_bytes]);
        for op in &mut info.ops {
            for (_, value) in &mut op.config.0 {
                match value {
                    ConfigValue::Int(value) => found.push(value),
                    ConfigValue::Ints(values) => found.extend(values),
                    _ => {}
                }
            }
            let op = &mut op.op;
            for tensor in op.reads.iter_mut().chain(&mut op.writes) {
                found.extend(&mut tensor.shape);
                found.extend(&mut tensor.strides);
                found.extend(&mut tensor.offsets);
                found.extend(&mut tensor.padded_shape);
                found.push(&mut tensor.buffer.rank);
                found.extend(tensor.buffer.recv_tags.iter_mut().flatten());
                found.extend(tensor.buffer.send_tags.iter_mut().flatten());
            }
        }
    }
    for group in &mut plan.processor_groups {
        found.extend([&mut group.processor_range.begin, &mut group.processor_range.end]);
        for resource in &mut group.resource_groups {
            for range in
                [&mut resource.processor_range, &mut resource.warp_range, &mut resource.sram_range]
            {
                found.extend([&mut range.begin, &mut range.end]);
            }
            for tasks in &mut resource.task_groups {
                found.extend([&mut tasks.task_id, &mut tasks.granularity]);
                found.extend([&mut tasks.task_range.begin, &mut tasks.task_range.end]);
            }
        }
    }
    found
}

/// Two ranks that compute, send and sum.
fn plans() -> Vec<Plan> {
    let at = |buffer| vector(buffer, LEN);
    let pipeline = |rank: i64| {
        let sent = target(&at(0), 9, 1, 5);
        let received = tagged(&at(0), &[], &[[0, 5]]);
        if rank == 0 {
            let send = send_tiles(&at(1), &sent, TILE, true);
            return sequence(0, 2, 3, vec![(add_op(&at(0), &at(1)), 4), (send, 4)]);
        }
        let receive = recv(&source(&at(0), 9, 0, 5), &received, true);
        sequence(1, 2, 2, vec![(receive, 1), (add_op(&received, &at(1)), 4)])
    };
    let mut plans: Vec<Plan> = (0..2).map(pipeline).collect();
    plans.extend((0..2).map(|rank| all_reduce(rank, 2)));
    plans.extend((0..2).map(|rank| all_reduce_stores(rank, 2)));
    plans
}

/// Code that matches the unchanged plan, and accesses nothing.
fn harmless(plan: &Plan) -> PlanCode {
    let mut code = code(plan);
    for step in code.tasks.iter_mut().flat_map(|task| &mut task.steps) {
        let Step::Kernel(kernel) = step else { continue };
        kernel.variants[0].symbol = "nothing".into();
    }
    code
}

/// Whether a changed plan needs little memory and time.
fn is_small(plan: &Plan) -> bool {
    let ops = plan.task_infos.iter().flat_map(|info| &info.ops);
    let mut tensors = ops.flat_map(|op| op.op.tensors());
    let elements = |dims: &[i64]| dims.iter().try_fold(1i64, |all, &n| all.checked_mul(n));
    let fits = |dims: &[i64]| elements(dims).is_none_or(|all| all <= 1 << 21);
    let groups = plan.processor_groups.iter().flat_map(|group| &group.resource_groups);
    let mut tasks = groups.flat_map(|resource| &resource.task_groups);
    tensors.all(|tensor| fits(&tensor.strides))
        && tasks.all(|t| t.task_range.len() <= 1 << 21 || t.task_range.end == i64::MAX)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_plans_run_or_are_rejected(
        set in 0usize..3, rank in 0usize..2, races in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), number()), 1..3),
    ) {
        let mut plans = plans()[set * 2..set * 2 + 2].to_vec();
        let codes: Vec<PlanCode> = plans.iter().map(harmless).collect();
        for (place, value) in &changes {
            let mut numbers = numbers(&mut plans[rank]);
            let index = place.index(numbers.len());
            *numbers[index] = *value;
        }
        if !plans.iter().all(is_small) {
            return Ok(());
        }
        let made: Result<Vec<Rank>, _> = plans
            .into_iter()
            .zip(&codes)
            .map(|(plan, code)| Rank::new(plan, code, kernels()))
            .collect();
        // Both outcomes are acceptable; a panic is not.
        if let Ok(ranks) = made {
            let options = Options { race_check: races, threads: 2, ..Options::default() };
            let _ = run_all(&ranks, options);
        }
    }
}
