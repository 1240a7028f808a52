//! Schedules of small networks for one objective are not worse by it than those for the others.

use irc_npu_cost::{Layer, Model, Network, Objective, Op, Reads, Shape, Window};
use irc_npu_schedule::{Options, Schedule, schedule};

use crate::support::{chain, diamond, mesh};

/// Energy times delay, delay, energy.
const OBJECTIVES: [Objective; 3] =
    [Objective::EDP, Objective { energy: 0, delay: 1 }, Objective { energy: 1, delay: 0 }];

/// Blocks of two convolutions whose result is added to what they read.
fn residual(blocks: usize, channels: u64, extent: u64) -> Network {
    let mut network = chain(1, channels, extent);
    let map = Shape::new(channels, extent, extent);
    let mut last = 0;
    for block in 0..blocks {
        let mut inner = last;
        for name in ["a", "b"] {
            let name = format!("{name}{block}");
            let conv = Layer::conv(name, channels, map, Window::square(3, 1));
            inner = network.add(conv, &[inner]).expect("a layer");
        }
        let sum = Layer::new(format!("sum{block}"), Op::Eltwise { operands: 2 }, map);
        last = network.add(sum, &[inner, last]).expect("a layer");
    }
    network
}

/// Blocks of convolutions of an image whose results are concatenated.
fn branches(blocks: usize, extent: u64) -> Network {
    let mut network = Network::new("branches");
    let map = |channels| Shape::new(channels, extent, extent);
    let first = Layer::conv("first", 16, map(64), Window::square(3, 1));
    let reads = Reads { external: Some(map(16)), ..Reads::default() };
    let mut last = vec![network.add_reading(first, reads).expect("a layer")];
    let mut channels = 64;
    for block in 0..blocks {
        let mut add = |name: &str, to, from: &[usize], channels, kernel| {
            let name = format!("{name}{block}");
            let conv = Layer::conv(name, channels, map(to), Window::square(kernel, 1));
            network.add(conv, from).expect("a layer")
        };
        let point = add("point", 32, &last, channels, 1);
        let narrow = add("narrow", 16, &last, channels, 1);
        let wide = add("wide", 24, &[narrow], 16, 5);
        (last, channels) = (vec![point, wide], 56);
    }
    network
}

fn small() -> Vec<(Network, u64)> {
    let alone = [chain(3, 32, 14), chain(5, 64, 14), chain(8, 32, 28), diamond(64, 14)];
    let more = [residual(1, 32, 28), residual(3, 32, 14), branches(1, 28), branches(4, 14)];
    let mut all: Vec<(Network, u64)> = alone.into_iter().chain(more).map(|of| (of, 1)).collect();
    all.extend([(chain(4, 32, 14), 4), (residual(2, 64, 14), 2)]);
    all
}

fn found(network: &Network, width: u64, kib: u64, batch: u64, options: &Options<'_>) -> Schedule {
    let mut machine = mesh(width, width);
    machine.buffer.size = kib << 10;
    let found = schedule(network, &machine, batch, options).expect("a schedule");
    let mut model = Model::new(&found.network, &machine, found.mappings).expect("a machine");
    assert_eq!(model.evaluate(&found.tree).expect("a valid tree"), found.evaluation);
    found
}

#[test]
fn a_schedule_for_an_objective_is_not_worse_by_it_than_one_for_another() {
    for (network, batch) in small() {
        for (width, kib) in [(1, 256), (2, 64), (2, 256), (4, 64), (4, 1024)] {
            let costs = OBJECTIVES.map(|objective| {
                let options = Options { objective, budget: 3000, ..Options::default() };
                found(&network, width, kib, batch, &options).evaluation.cost
            });
            for (objective, own) in OBJECTIVES.into_iter().zip(costs) {
                for other in costs {
                    let [own, other] = [own, other].map(|of| objective.of(of.energy, of.latency));
                    let layers = network.nodes().len();
                    let of = format!("{} of {layers}, {width}, {kib} KiB", network.name());
                    assert!(own <= other, "{of}, {objective:?}: {own:e} and {other:e}");
                }
            }
        }
    }
}

#[test]
fn threads_do_not_change_schedules_of_small_networks() {
    for objective in OBJECTIVES {
        let on = |threads: usize| {
            let options = Options { objective, threads, budget: 3000, ..Options::default() };
            let found = found(&residual(2, 64, 14), 2, 128, 2, &options);
            (found.tree, found.mappings, found.evaluation, found.evaluations)
        };
        let one = on(1);
        assert_eq!(one, on(2));
        assert_eq!(one, on(5));
    }
}

#[test]
fn schedules_of_larger_networks_have_the_mappings_of_their_objective() {
    let network = chain(17, 32, 14);
    for objective in OBJECTIVES {
        let options = Options { objective, budget: 1, ..Options::default() };
        assert_eq!(found(&network, 2, 256, 1, &options).mappings, objective);
    }
}
