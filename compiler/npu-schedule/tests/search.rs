//! The search on networks of all sizes.

use std::cell::Cell;

use irc_npu_cost::{Chiplets, Layer, Mesh, Model, Objective, Shape, initial};
use irc_npu_schedule::{Options, Progress, schedule};

use crate::support::{chain, mesh, product, published};

fn few(budget: u64) -> Options<'static> {
    Options { budget, ..Options::default() }
}

#[test]
fn the_tree_costs_what_is_reported() {
    for (name, width, batch) in [("goog", 4, 1), ("resnet", 2, 4), ("bert", 4, 2), ("dense", 2, 1)]
    {
        let (network, machine) = (published(name), mesh(width, width));
        let found = schedule(&network, &machine, batch, &few(3000)).expect("a schedule");
        let mut model = Model::new(&network, &machine, found.mappings).expect("a machine");
        assert_eq!(model.evaluate(&found.tree).expect("a valid tree"), found.evaluation, "{name}");
        let layers: usize = found.segments.iter().map(|segment| segment.layers.len()).sum();
        assert_eq!(layers, network.nodes().len());
        let latency: u64 = found.segments.iter().map(|segment| segment.cost.latency).sum();
        assert_eq!(latency, found.evaluation.cost.latency, "{name}");
        let energy: f64 = found.segments.iter().map(|segment| segment.cost.energy).sum();
        assert!((energy / found.evaluation.cost.energy - 1.0).abs() < 1e-9, "{name}");
        assert!(found.segments.iter().all(|of| of.layers.len() == 1 || of.runner_up.is_some()));
    }
}

#[test]
fn the_schedule_does_not_depend_on_threads() {
    let (network, machine) = (published("goog"), mesh(2, 2));
    let on = |threads: usize| {
        let options = Options { threads, ..few(6000) };
        let found = schedule(&network, &machine, 2, &options).expect("a schedule");
        (found.tree.text(&network), found.evaluation, found.evaluations, found.segments)
    };
    let one = on(1);
    assert_eq!(one, on(2));
    assert_eq!(one, on(7));
}

#[test]
fn layers_with_fewer_outputs_than_cores_leave_cores_idle_in_the_model_of_gemini() {
    let mut network = chain(2, 16, 8);
    let image = Shape::new(16, 8, 8);
    network.add(Layer::fully_connected("last", image, 10), &[1]).expect("a layer");
    let machine = Chiplets::new(Mesh { width: 4, height: 4, stride: 1 }, [1, 1], 2 << 20, 16);
    let machine = machine.machine();
    let found = schedule(&network, &machine, 1, &few(2000)).expect("a schedule");
    let mut model = Model::new(&network, &machine, found.mappings).expect("a machine");
    assert_eq!(model.evaluate(&found.tree).expect("a valid tree"), found.evaluation);
    let last = found.evaluation.layers.last().expect("a layer");
    let cores = last.cores.end - last.cores.start;
    assert_eq!((cores <= 10, last.scheme.partition.parts()), (true, cores), "{last:?}");
}

#[test]
fn another_seed_is_another_search() {
    let (network, machine) = (published("goog"), mesh(2, 2));
    let with = |seed: u64| {
        let options = Options { seed, ..few(6000) };
        schedule(&network, &machine, 1, &options).expect("a schedule").tree
    };
    assert!(with(1) != with(2));
}

/// The best of two or three runs of SET's program with 60 rounds, strides of 1.
#[test]
fn schedules_are_better_than_those_of_set() {
    let rows = [
        ("resnet", 2, 1, 3.4239e16),
        ("dense", 2, 1, 9.6656e15),
        ("trans_cell", 4, 1, 3.7370e15),
        ("vgg", 4, 4, 1.05726e17),
    ];
    for (name, width, batch, theirs) in rows {
        let found = schedule(&published(name), &mesh(width, width), batch, &few(20_000));
        let ours = product(&found.expect("a schedule").evaluation.cost);
        assert!(ours < theirs, "{name}: {ours:e} of {theirs:e}");
    }
}

#[test]
fn objectives_are_minimised() {
    let (network, machine) = (published("resnet"), mesh(2, 2));
    let cost = |energy: u32, delay: u32| {
        let options = Options { objective: Objective { energy, delay }, ..few(20_000) };
        schedule(&network, &machine, 1, &options).expect("a schedule").evaluation.cost
    };
    let (both, delay, energy) = (cost(1, 1), cost(0, 1), cost(1, 0));
    let figures = format!("{both:?}\n{delay:?}\n{energy:?}");
    assert!(delay.latency < energy.latency && energy.energy < delay.energy, "{figures}");
    assert!(product(&both) < product(&delay).max(product(&energy)), "{figures}");
}

#[test]
fn every_budget_gives_a_schedule_that_is_no_worse_than_the_first() {
    let (network, machine) = (published("resnet"), mesh(4, 4));
    let mut model = Model::new(&network, &machine, Objective::EDP).expect("a machine");
    let (_, first) = initial(&mut model, &network, 4).expect("a first tree");
    let found = schedule(&network, &machine, 4, &few(1)).expect("a schedule");
    assert!(product(&found.evaluation.cost) < product(&first.cost));
}

#[test]
fn evaluations_grow_with_the_network_and_no_faster() {
    let machine = mesh(2, 2);
    let count = |layers: usize| {
        let network = chain(layers, 64, 14);
        schedule(&network, &machine, 1, &few(1)).expect("a schedule").evaluations
    };
    let (some, many) = (count(250), count(1000));
    assert!(many <= 4 * some + 400, "{some} and {many}");
}

#[test]
fn progress_is_reported() {
    let calls = Cell::new(0);
    let progress = |at: Progress| {
        calls.set(calls.get() + 1);
        assert_eq!(at.budget, 3000);
    };
    let options = Options { progress: Some(&progress), ..few(3000) };
    schedule(&published("vgg"), &mesh(4, 4), 1, &options).expect("a schedule");
    assert!(calls.get() > 0);
}
