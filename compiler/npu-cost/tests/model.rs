//! Properties of every cost.

use irc_npu_cost::{
    Cut, Evaluation, Layer, Machine, Mesh, Model, Network, Objective, Op, Reads, Result, Shape,
    Tree, Window, evaluate, layer_by_layer, networks,
};

const MESH: Mesh = Mesh { width: 4, height: 4, stride: 4 };

fn weigh(network: &Network, machine: &Machine, tree: &Tree) -> Result<Evaluation> {
    Model::new(network, machine, Objective::EDP)?.evaluate(tree)
}

/// All networks but ZFNet, of which a layer's weights do not fit the buffers of the mesh.
fn each_network(mut check: impl FnMut(&Network)) {
    for (_, build) in networks::ALL.into_iter().filter(|(name, _)| *name != "zfnet") {
        check(&build().expect("a network"));
    }
}

#[test]
fn a_layer_that_fits_no_buffers_is_named() {
    let network = networks::zfnet().expect("a network");
    let found = weigh(&network, &Machine::polar(MESH), &layer_by_layer(&network, 1, 1));
    let diagnostic = found.expect_err("too many weights");
    assert_eq!(
        (diagnostic.code, &diagnostic.notes[..]),
        ("cost-no-scheme", &["layer fc1".to_owned()][..])
    );
}

#[test]
fn costs_are_finite_and_parts_sum_to_the_total() {
    each_network(|network| {
        for machine in [Machine::polar(MESH), Machine::eyeriss(MESH)] {
            let found = weigh(network, &machine, &layer_by_layer(network, 1, 1)).expect("a cost");
            let layers = found.layers.iter().map(|layer| layer.cost);
            for cost in layers.chain([found.cost]) {
                let parts = cost.parts;
                let each = [parts.buffer, parts.local, parts.bus, parts.compute, parts.links];
                assert!(
                    each.iter().chain([&parts.dram]).all(|part| part.is_finite() && *part >= 0.0)
                );
                assert!((parts.total() / cost.energy - 1.0).abs() < 1e-12);
                assert!(cost.latency >= cost.traffic && cost.traffic > 0);
            }
        }
    });
}

#[test]
fn layers_in_turn_cost_their_sum() {
    each_network(|network| {
        let machine = Machine::polar(MESH);
        let found = weigh(network, &machine, &layer_by_layer(network, 1, 1)).expect("a cost");
        assert_eq!(found.layers.len(), network.nodes().len());
        let latency: u64 = found.layers.iter().map(|layer| layer.cost.latency).sum();
        assert_eq!(found.cost.latency, latency);
    });
}

#[test]
fn twice_the_batch_in_groups_costs_twice_the_activations() {
    each_network(|network| {
        let machine = Machine::polar(MESH);
        let cost = |batch| {
            evaluate(network, &machine, &layer_by_layer(network, batch, 1)).expect("a cost")
        };
        let (one, two, four) = (cost(1), cost(2), cost(4));
        assert!(one.latency < two.latency && two.latency < four.latency);
        assert!(one.energy < two.energy && two.energy < four.energy);
        // Weights are loaded once, whatever the batch.
        assert!(two.energy <= 2.0 * one.energy && two.latency <= 2 * one.latency);
    });
}

#[test]
fn slower_dram_and_dearer_links_cost_more() {
    let network = networks::googlenet().expect("a network");
    let tree = layer_by_layer(&network, 1, 1);
    let machine = Machine::polar(MESH);
    let cost = evaluate(&network, &machine, &tree).expect("a cost");
    let slower = Machine { dram_bandwidth: machine.dram_bandwidth / 2, ..machine };
    assert!(evaluate(&network, &slower, &tree).expect("a cost").latency > cost.latency);
    let dearer = Machine { hop: machine.hop * 2.0, ..machine };
    assert!(evaluate(&network, &dearer, &tree).expect("a cost").energy > cost.energy);
}

#[test]
fn results_that_stay_on_chip_save_dram() {
    let network = networks::vgg19().expect("a network");
    let machine = Machine::polar(MESH);
    let last = network.nodes().len() - 1;
    let mut leaves: Vec<Tree> = (0..last - 1).map(|layer| Tree::leaf(layer, 1)).collect();
    leaves.push(Tree::cut(Cut::Time, 1, vec![Tree::leaf(last - 1, 1), Tree::leaf(last, 1)]));
    let kept = evaluate(&network, &machine, &Tree::cut(Cut::Time, 1, leaves)).expect("a cost");
    let through = evaluate(&network, &machine, &layer_by_layer(&network, 1, 1)).expect("a cost");
    // Written once and read once, all by its producer: a byte is 60 pJ each way.
    let bytes = network.nodes()[last - 1].layer.output.volume() as f64;
    assert!(through.parts.dram - kept.parts.dram >= 2.0 * 60.0 * bytes);
}

#[test]
fn buffers_that_overflow_are_found_at_the_node() {
    let network = networks::vgg19().expect("a network");
    let machine = Machine::polar(Mesh { width: 2, height: 1, stride: 2 });
    let diagnostic = evaluate(&network, &machine, &layer_by_layer(&network, 1, 1));
    let diagnostic = diagnostic.expect_err("a map of 3 MB in buffers of 1 MiB");
    assert_eq!(
        (diagnostic.code, &diagnostic.notes[..]),
        ("cost-no-scheme", &["layer conv2".to_owned()][..])
    );

    let machine = Machine::polar(MESH);
    let all = (0..network.nodes().len()).map(|layer| Tree::leaf(layer, 1)).collect();
    let tree = Tree::cut(Cut::Time, 2, vec![Tree::cut(Cut::Time, 2, all)]);
    let diagnostic = evaluate(&network, &machine, &tree).expect_err("all weights at once");
    assert_eq!(diagnostic.code, "cost-no-room");
}

#[test]
fn more_children_than_cores_are_rejected() {
    let network = networks::vgg19().expect("a network");
    let machine = Machine::polar(MESH);
    let all = (0..network.nodes().len()).map(|layer| Tree::leaf(layer, 1)).collect();
    let diagnostic = evaluate(&network, &machine, &Tree::cut(Cut::Space, 1, all));
    assert_eq!(diagnostic.expect_err("21 layers on 16 cores").code, "cost-no-cores");
}

#[test]
fn a_machine_without_something_is_rejected() {
    let sound = Machine::polar(MESH);
    let mesh = |width, height, stride| Machine::polar(Mesh { width, height, stride });
    let bad = [
        mesh(0, 4, 1),
        mesh(4, 4, 0),
        mesh(4, 4, 3),
        mesh(1 << 40, 1 << 40, 1),
        mesh(17, 16, 17),
        Machine { link_bandwidth: 0, ..sound },
        Machine { dram_bandwidth: 0, ..sound },
        Machine { hop: f64::NAN, ..sound },
        Machine { dram: -1.0, ..sound },
    ];
    for machine in bad {
        let network = networks::vgg19().expect("a network");
        let diagnostic =
            Model::new(&network, &machine, Objective::EDP).err().expect("a diagnostic");
        assert_eq!(diagnostic.code, "cost-machine");
    }
}

#[test]
fn layers_that_do_not_go_together_are_rejected() {
    let map = Shape::new(8, 16, 16);
    let conv = |name: &str, output| Layer::conv(name, 8, output, Window::square(3, 1));
    let grouped = |channels, groups| Op::GroupedConv { channels, window: Window::POINT, groups };
    let rows = [
        (conv("x", Shape::new(0, 16, 16)), "cost-layer"),
        (conv("x", Shape::new(8, 1 << 30, 16)), "cost-layer"),
        (Layer::conv("x", 1 << 20, Shape::new(1 << 20, 16, 16), Window::POINT), "cost-layer"),
        (Layer::conv("x", 8, map, Window::square(3, 0)), "cost-layer"),
        (Layer::new("x", grouped(8, 3), map), "cost-layer"),
        (Layer::new("x", Op::Pool(Window::square(2, 3)), map), "cost-network"),
        (conv("x", Shape::new(8, 20, 20)), "cost-network"),
        (Layer::conv("x", 9, map, Window::square(3, 1)), "cost-network"),
        (conv("first", map), "cost-network"),
        (Layer::new("x", Op::Eltwise { operands: 2 }, map), "cost-network"),
        (Layer::new("x", Op::Pointwise, Shape::new(8, 16, 15)), "cost-network"),
    ];
    for (layer, code) in rows {
        let mut network = Network::new("two");
        let reads = Reads { external: Some(map), ..Reads::default() };
        let first = network.add_reading(conv("first", map), reads).expect("a layer");
        let text = format!("{layer:?}");
        assert_eq!(network.add(layer, &[first]).expect_err(&text).code, code, "{text}");
        assert_eq!(network.nodes().len(), 1);
    }
    // Windows may leave out elements between them.
    let mut network = Network::new("sparse");
    let reads = Reads { external: Some(map), ..Reads::default() };
    let sparse = Layer::new("x", Op::Pool(Window::square(2, 3)), Shape::new(8, 5, 5));
    network.add_reading(sparse, reads).expect("a layer");
}

#[test]
fn a_window_larger_than_the_array_has_no_mapping() {
    let map = Shape::new(8, 64, 64);
    let mut network = Network::new("wide");
    let layer = Layer::conv("wide", 8, Shape::new(8, 16, 16), Window::square(49, 1));
    let reads = Reads { external: Some(map), ..Reads::default() };
    network.add_reading(layer, reads).expect("a layer");
    let tree = layer_by_layer(&network, 1, 1);
    for machine in [Machine::polar(MESH), Machine::eyeriss(MESH)] {
        let diagnostic = evaluate(&network, &machine, &tree).expect_err("no mapping");
        assert_eq!(diagnostic.code, "cost-no-scheme");
    }
}
