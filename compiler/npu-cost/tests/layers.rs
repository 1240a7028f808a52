//! Single layers of all sizes on cores of all sizes cost what the authors' program computes.

use irc_npu_cost::{
    Array, Cost, Energy, Layer, Machine, Mesh, Network, Op, Reads, Shape, Window, evaluate,
    layer_by_layer,
};

/// A line of the table, as numbers.
struct Case {
    core: String,
    op: String,
    numbers: Vec<u64>,
    expected: Option<Cost>,
}

impl Case {
    fn read(line: &str) -> Self {
        let (case, expected) = line.split_once('\t').expect("a case and its figures");
        let words: Vec<&str> = case.split(' ').collect();
        let numbers = words.iter().enumerate().filter(|(at, _)| *at != 0 && *at != 4);
        let numbers = numbers.map(|(_, word)| word.parse().expect("a number")).collect();
        let (core, op) = (words[0].to_owned(), words[4].to_owned());
        Self { core, op, numbers, expected: (expected != "-").then(|| cost(expected)) }
    }

    fn machine(&self) -> Machine {
        let of = |at: usize| self.numbers[at];
        let mesh = Mesh { width: of(0), height: of(1), stride: of(2) };
        if self.core == "eyeriss" {
            return Machine::eyeriss(mesh);
        }
        let mut machine = Machine::polar(mesh);
        let Array::Polar(core) = &mut machine.array else { panic!("a polar core") };
        core.bus = of(15);
        core.inputs.size = of(16);
        core.weights.size = of(17);
        core.sums.size = of(18);
        core.grid = [of(19), of(20)];
        machine.dram_bandwidth = (machine.array.macs() * mesh.cores() / 1024).max(1);
        machine.buffer.read *= of(21) as f64;
        machine
    }

    fn network(&self) -> Network {
        let of = |at: usize| self.numbers[at];
        let (channels, output) = (of(3), Shape::new(of(4), of(5), of(6)));
        let window = Window { kernel: [of(7), of(8)], stride: [of(9), of(10)] };
        let layer = match self.op.as_str() {
            "conv" => Layer::conv("layer", channels, output, window),
            "group" => {
                Layer::new("layer", Op::GroupedConv { channels, window, groups: of(11) }, output)
            }
            _ => Layer::new("layer", Op::Pool(window), Shape { channels, ..output }),
        };
        let needs = layer.needs();
        let input = Shape::new(channels, needs.rows - of(12), needs.columns - of(12));
        let mut network = Network::new("one");
        let reads = Reads { external: Some(input), ..Reads::default() };
        network.add_reading(layer, reads).expect("a layer");
        network
    }
}

fn cost(text: &str) -> Cost {
    let numbers: Vec<f64> = text.split(' ').map(|word| word.parse().expect("a number")).collect();
    let &[energy, latency, buffer, local, bus, compute, links, dram, traffic] = &numbers[..] else {
        panic!("nine figures");
    };
    let parts = Energy { buffer, local, bus, compute, links, dram };
    Cost { energy, latency: latency as u64, parts, traffic: traffic as u64 }
}

#[test]
fn every_figure_of_every_layer_is_equal() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/layers.tsv");
    let text = std::fs::read_to_string(file).expect("a table");
    let (mut bus, mut rejected) = (0, 0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let case = Case::read(line);
        let tree = layer_by_layer(&case.network(), case.numbers[13], case.numbers[14]);
        let found = evaluate(&case.network(), &case.machine(), &tree);
        let found = found.map_err(|diagnostic| assert_eq!(diagnostic.code, "cost-no-scheme")).ok();
        assert_eq!(found, case.expected, "{line}");
        bus += usize::from(found.is_some_and(|cost| case.core == "polar" && cost.parts.bus > 0.0));
        rejected += usize::from(found.is_none());
    }
    assert!(bus >= 12 && rejected >= 6, "cases that share memories, and that fit none");
}
