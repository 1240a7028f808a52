//! Programs are issued in an order that lets engines work at the same time.

use irc_diag::Sink;
use irc_npu::{Engine, Program, verify};
use irc_npu_cost::{Layer, Network, Op, Reads, Shape, Tree, Window, networks, parse};
use irc_npu_lower::{Scheduled, Target, known_layers, program, schedule};
use irc_npu_network::{mesh, workload_times};
use irc_npu_sim::cycles::{Options, Timing, run};

fn square(channels: u64, extent: u64) -> Shape {
    Shape::new(channels, extent, extent)
}

/// ResNet-34, with blocks of two convolutions.
fn resnet34() -> Network {
    let mut network = Network::new("resnet34");
    let image = Reads { external: Some(square(3, 224)), ..Reads::default() };
    let conv = |name: &str, from, to, kernel, stride| {
        Layer::conv(name, from, to, Window::square(kernel, stride))
    };
    let first = network.add_reading(conv("conv1", 3, square(64, 112), 7, 2), image);
    let mut add = |layer: Layer, inputs: &[usize]| network.add(layer, inputs).expect("a layer");
    let pool = |name: &str, to, kernel, stride| {
        Layer::new(name, Op::Pool(Window::square(kernel, stride)), to)
    };
    let mut last = add(pool("pool1", square(64, 56), 3, 2), &[first.expect("a layer")]);
    let (mut from, mut extent) = (64, 56);
    for (group, blocks) in [3, 4, 6, 3].into_iter().enumerate() {
        let channels = 64 << group;
        extent = if group > 0 { extent / 2 } else { extent };
        for block in 0..blocks {
            let name = |part: &str| format!("conv_{}_{block}_{part}", group + 2);
            let (to, stride) = (square(channels, extent), if from == channels { 1 } else { 2 });
            let a = add(conv(&name("a"), from, to, 3, stride), &[last]);
            let b = add(conv(&name("b"), channels, to, 3, 1), &[a]);
            let beside = match stride {
                1 => last,
                _ => add(conv(&name("br"), from, to, 1, stride), &[last]),
            };
            last = add(Layer::new(name("res"), Op::Eltwise { operands: 2 }, to), &[beside, b]);
            from = channels;
        }
    }
    let last = add(pool("pool5", square(512, 1), 7, 7), &[last]);
    add(Layer::fully_connected("fc", square(512, 1), 1000), &[last]);
    network
}

/// The program of a network on a target, and when it runs.
fn timed(network: &Network, target: &str, batch: u64, tree: Option<&str>) -> (Program, Timing) {
    let target: Target = target.parse().expect("a target");
    let machine = target.machine().expect("a machine");
    let objective = irc_npu_cost::Objective { energy: 0, delay: 1 };
    let options = irc_npu_schedule::Options { objective, ..Default::default() };
    let (tree, evaluation, objective): (Tree, _, _) = match tree {
        Some(text) => {
            let text = irc_diag::Source::new("tree", text);
            let tree = parse(&text, network, &mut Sink::new()).expect("a tree");
            let mut model =
                irc_npu_cost::Model::new(network, &machine, objective).expect("a model");
            let evaluation = model.evaluate(&tree).expect("a valid tree");
            (tree, evaluation, objective)
        }
        None => {
            let found = irc_npu_schedule::schedule(network, &machine, batch, &options);
            let found = found.expect("a schedule");
            assert_eq!(found.network.nodes().len(), network.nodes().len(), "no pieces");
            (found.tree, found.evaluation, found.mappings)
        }
    };
    let of = Scheduled {
        network,
        facts: &[],
        machine: &machine,
        target: Some(&target),
        tree: &tree,
        evaluation: &evaluation,
        objective,
    };
    let made = schedule(&of).expect("a schedule");
    let made_program = program(&made, None, &known_layers(network, &[], &[])).expect("a program");
    let mut sink = Sink::new();
    verify::verify(&made_program, None, &verify::Machine::default(), &mut sink);
    let found = sink.into_diagnostics();
    assert!(!found.iter().any(irc_diag::Diagnostic::is_error), "{found:#?}");
    let rates = [machine.link_bandwidth, machine.dram_bandwidth].map(|rate| rate as f64);
    let options = Options {
        times: workload_times(&made),
        mesh: mesh(&made, rates[0], rates[1]),
        ..Options::default()
    };
    let timing = run(&made_program, &options).expect("cycles");
    (made_program, timing)
}

/// The cycles during which each of some engines of the only core works.
fn shared(program: &Program, timing: &Timing, engines: [Engine; 2]) -> u64 {
    let work = |engine: Engine| -> Vec<[u64; 2]> {
        let code = program.cores[0].code.iter().zip(&timing.times[0]);
        let own = code.filter(|(one, _)| one.op.engine() == engine && !one.op.is_config());
        own.map(|(_, time)| [time.start, time.end]).collect()
    };
    let [first, second] = engines.map(work);
    let overlap = |a: &[u64; 2], b: &[u64; 2]| a[1].min(b[1]).saturating_sub(a[0].max(b[0]));
    first.iter().map(|a| second.iter().map(|b| overlap(a, b)).sum::<u64>()).sum()
}

const CORE: &str = "npu:mesh=1x1,buffer=8MiB,macs=4096,dram=17,weights=reload";

#[test]
fn sums_run_beside_convolutions_of_other_images() {
    let mut network = Network::new("sums");
    let map = square(64, 56);
    let conv = |name: String| Layer::conv(name, 64, map, Window::square(3, 1));
    let image = Reads { external: Some(map), ..Reads::default() };
    let mut last = network.add_reading(conv("first".into()), image).expect("a layer");
    let mut leaves = "\t\tfirst 1\n".to_owned();
    for block in 0..4 {
        let made = network.add(conv(format!("conv{block}")), &[last]).expect("a layer");
        let sum = Layer::new(format!("sum{block}"), Op::Eltwise { operands: 2 }, map);
        last = network.add(sum, &[last, made]).expect("a layer");
        leaves += &format!("\t\tconv{block} 1\n\t\tsum{block} 1\n");
    }
    let tree = format!("T 4/1\n\tT 4/4\n{leaves}");
    let (program, timing) = timed(&network, CORE, 4, Some(&tree));
    let all = shared(&program, &timing, [Engine::Vp, Engine::Vp]);
    let beside = shared(&program, &timing, [Engine::Pe, Engine::Vp]);
    assert!(beside * 2 > all, "{beside} of {all} cycles of VP");
}

/// The published schedules are for a core with up to 4,072 multiply-accumulates per cycle, 8 MiB, and 17.18 bytes of DRAM
/// per cycle.
#[test]
fn published_networks_take_at_most_the_published_cycles() {
    let (resnet34, resnet50) = (resnet34(), networks::resnet50().expect("a network"));
    let rows = [
        (&resnet34, 1, 1_922_067),
        (&resnet34, 4, 4_280_215),
        (&resnet34, 16, 16_230_844),
        (&resnet50, 1, 2_545_655),
        (&resnet50, 4, 5_470_662),
    ];
    for (network, batch, published) in rows {
        let (_, timing) = timed(network, CORE, batch, None);
        let (name, cycles) = (network.name(), timing.cycles);
        println!("{name} batch {batch}: {cycles} of {published}");
        assert!(cycles <= published, "{name} batch {batch}: {cycles} of {published}");
    }
}
