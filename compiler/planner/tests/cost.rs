//! Properties of the cost model that hold for any plan.

use crate::support::{
    corpus, files,
    llama::{Llama, SEVEN, llama},
    read_model, read_plan, root,
};
use irc_ark_format::plan::{Architecture, Plan, ProcessorGroup, Range};
use irc_planner::{
    Options, Planner, Target,
    cost::{Bound, estimate, machine, table},
};

/// Plans of ARK's planner, for the models of the repository and of the corpus.
fn plans() -> Vec<Plan> {
    let target = Target::new(Architecture::Cuda80, None).expect("a target");
    let options = Options { planner: Planner::Ark, ..Options::new(target) };
    let models = files(&root().join("examples"), ".model.json");
    let made = models.iter().filter_map(|path| irc_planner::plan(&read_model(path), &options).ok());
    let mut plans: Vec<Plan> = made.map(|planned| planned.plan).collect();
    plans.extend(corpus(".plan.json").iter().map(|path| read_plan(path)));
    plans
}

#[test]
fn a_barrier_never_makes_a_plan_cheaper() {
    for plan in plans() {
        let before = estimate(&plan);
        for at in 0..=plan.processor_groups.len() {
            let mut more = plan.clone();
            let whole = Range::new(0, plan.num_processors);
            let group = ProcessorGroup { processor_range: whole, resource_groups: vec![] };
            more.processor_groups.insert(at, group);
            let after = estimate(&more);
            assert!(after.time >= before.time && after.barriers >= before.barriers);
        }
    }
}

#[test]
fn more_of_the_same_costs_more() {
    let target = Target::new(Architecture::Cuda80, None).expect("a target");
    let of = |size: Llama| {
        let planned = irc_planner::plan(&llama(size), &Options::new(target)).expect("a plan");
        estimate(&planned.plan)
    };
    let one = of(SEVEN);
    for more in [
        of(Llama { layers: 2, ..SEVEN }),
        of(Llama { sequence: 1024, ..SEVEN }),
        of(Llama { hidden: 8192, heads: 64, ..SEVEN }),
        of(Llama { inner: 22_016, ..SEVEN }),
    ] {
        assert!(more.time > one.time && more.traffic > one.traffic && more.flops > one.flops);
    }
}

#[test]
fn no_group_is_quicker_than_its_resources() {
    for plan in plans() {
        let machine = machine(plan.architecture);
        let estimate = estimate(&plan);
        for group in estimate.groups.iter().filter(|group| group.tasks > 0) {
            let fastest = machine.memory_bytes;
            assert!(group.bytes >= group.traffic * (1.0 - 1e-9));
            assert!(group.time >= group.traffic / fastest * (1.0 - 1e-9), "{group:?}");
            let rate = machine.matrix_half.max(machine.vector) * 2.0 * machine.clock;
            let peak = rate * group.processors.len() as f64;
            assert!(group.time >= group.flops / peak * (1.0 - 1e-9), "{group:?}");
        }
        let longest = estimate.groups.iter().map(|group| group.time).fold(0.0, f64::max);
        assert!(estimate.time >= longest * (1.0 - 1e-9));
    }
}

#[test]
fn idle_warps_cost() {
    let model = read_model(&root().join("examples/softmax_4096x2048_f32.model.json"));
    let target = Target::new(Architecture::Cuda80, None).expect("a target");
    let planned = irc_planner::plan(&model, &Options::new(target)).expect("a plan").plan;
    let mut idle = planned.clone();
    for resources in idle.processor_groups.iter_mut().flat_map(|group| &mut group.resource_groups) {
        let (warps, sram) = (idle.task_infos[0].num_warps, idle.task_infos[0].sram_bytes);
        resources.warp_range = Range::new(0, warps);
        resources.sram_range = Range::new(0, sram);
    }
    let (busy, idle) = (estimate(&planned), estimate(&idle));
    assert!(idle.time > busy.time, "{} {}", idle.time, busy.time);
    assert_eq!(idle.groups[0].bound, Bound::Latency);
}

#[test]
fn the_table_has_a_row_for_each_group() {
    for plan in plans() {
        let estimate = estimate(&plan);
        let table = table(&estimate);
        assert_eq!(table.lines().count(), estimate.groups.len() + 4, "{table}");
    }
}
