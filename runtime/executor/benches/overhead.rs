//! The executor's overhead per task, measured with empty kernels.

#[path = "../tests/common/mod.rs"]
mod common;

use std::collections::BTreeMap;

use common::*;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use irc_executor::code::Step;
use irc_executor::{Options, Rank, run};

/// Number of tasks of a run, over ten processor groups.
const TASKS: i64 = 6_000_000;

fn overhead(criterion: &mut Criterion) {
    let tiles = TASKS / 10;
    let at = |buffer| vector(buffer, tiles * TILE);
    let groups = (0..10).map(|_| group((0, 108), &[(0, (0, tiles), 1)])).collect();
    let plan = plan(108, vec![task(0, vec![add_op(&at(0), &at(1))])], groups);
    let mut code = code(&plan);
    for step in code.tasks.iter_mut().flat_map(|task| &mut task.steps) {
        let Step::Kernel(kernel) = step else { continue };
        kernel.variants[0].symbol = "nothing".into();
    }
    let rank = Rank::new(plan, &code, kernels()).expect("a plan");
    let mut memories = vec![rank.memory(BTreeMap::new()).expect("memory")];
    let mut group = criterion.benchmark_group("overhead");
    group.throughput(Throughput::Elements(TASKS as u64)).sample_size(10);
    for threads in [1, 2] {
        group.bench_function(format!("{threads} threads"), |bencher| {
            bencher.iter(|| {
                let options = Options { threads, ..Options::default() };
                run(&[&rank], &mut memories, options).expect("a run")
            });
        });
    }
    group.finish();
}

criterion_group!(benches, overhead);
criterion_main!(benches);
