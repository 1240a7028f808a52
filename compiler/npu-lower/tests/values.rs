//! Programs compute the same values whatever the tree, the mesh and the batch.

use irc_diag::{Sink, Source};
use irc_npu_cost::{
    Axis, Layer, Machine, Mesh, Model, Network, Objective, Op, Reads, Shape, Tree, Window, initial,
    parse,
};
use irc_npu_lower::{LayerFacts, Scheduled, known_layers, schedule};
use irc_npu_network::{Layout, fill, run};
use irc_tensor::Tensor;
use std::collections::BTreeMap;

/// Windows with strides and padding, concatenations of odd channels, sums, transpositions, windows over whole
/// inputs.
fn network() -> Network {
    let mut network = Network::new("all");
    let image = Reads { external: Some(Shape::new(3, 16, 16)), ..Reads::default() };
    let square = |channels, extent| Shape::new(channels, extent, extent);
    let conv = |name: &str, from, to, kernel, stride| {
        Layer::conv(name, from, to, Window::square(kernel, stride))
    };
    let first = network.add_reading(conv("first", 3, square(20, 8), 3, 2), image).expect("a layer");
    let mut add = |layer: Layer, inputs: &[usize]| network.add(layer, inputs).expect("a layer");
    let point = add(conv("point", 20, square(12, 8), 1, 1), &[first]);
    let wide = add(conv("wide", 20, square(20, 8), 5, 1), &[first]);
    let pool = add(Layer::new("pool", Op::Pool(Window::square(3, 1)), square(20, 8)), &[first]);
    let joined = add(conv("joined", 52, square(32, 8), 1, 1), &[point, wide, pool]);
    let narrow = add(conv("narrow", 32, square(32, 8), 3, 1), &[joined]);
    let sum = add(Layer::new("sum", Op::Eltwise { operands: 2 }, square(32, 8)), &[joined, narrow]);
    let column = Shape::new(32, 8, 1);
    let rows =
        add(Layer::conv("rows", 32, column, Window { kernel: [1, 8], stride: [1, 1] }), &[sum]);
    let order = [Axis::Rows, Axis::Channels, Axis::Columns];
    let turned = add(Layer::new("turned", Op::Transpose { order }, Shape::new(8, 32, 1)), &[rows]);
    let scores = add(Layer::conv("scores", 8, Shape::new(8, 32, 1), Window::POINT), &[turned]);
    let soft = add(Layer::new("soft", Op::Pointwise, Shape::new(8, 32, 1)), &[scores]);
    add(Layer::fully_connected("last", Shape::new(8, 32, 1), 10), &[soft]);
    network
}

/// The last result of a schedule of random values.
fn result(network: &Network, mesh: [u64; 3], batch: u64, tree: Option<&str>) -> Tensor {
    let [width, height, stride] = mesh;
    let machine = Machine::polar(Mesh { width, height, stride });
    let mut model = Model::new(network, &machine, Objective::EDP).expect("a machine");
    let (tree, evaluation): (Tree, _) = match tree {
        Some(text) => {
            let tree =
                parse(&Source::new("tree", text), network, &mut Sink::new()).expect("a tree");
            let evaluation = model.evaluate(&tree).unwrap_or_else(|found| panic!("{found:#?}"));
            (tree, evaluation)
        }
        None => initial(&mut model, network, batch).expect("a first tree"),
    };
    let facts: Vec<LayerFacts> = network
        .nodes()
        .iter()
        .map(|node| LayerFacts {
            padding: node.padding,
            given: if node.external > 0 {
                vec![("image".into(), 0..node.external)]
            } else {
                vec![]
            },
            is_output: false,
        })
        .collect();
    let of = Scheduled {
        network,
        facts: &facts,
        machine: &machine,
        target: None,
        tree: &tree,
        evaluation: &evaluation,
        objective: Objective::EDP,
    };
    let made = schedule(&of).expect("a schedule");
    let program = irc_npu_emit::emit_known(&made, None, &known_layers(network, &facts, &[]))
        .unwrap_or_else(|found| panic!("{mesh:?} {batch}: {found:#?}"));
    let layout = Layout::new(&made, None).expect("a layout");
    let mut given = BTreeMap::new();
    fill(&layout, &mut given, 1).expect("values");
    let mut found = run(&program, &layout, &given).expect("results");
    found.remove("last").expect("the last result")
}

#[test]
fn values_do_not_depend_on_trees_and_meshes() {
    let network = network();
    let expected = result(&network, [1, 1, 1], 1, None);
    let bytes = expected.bytes();
    assert!(bytes.iter().any(|byte| *byte != bytes[0]), "results that say something: {bytes:?}");
    for mesh in [[2, 2, 1], [2, 2, 2], [3, 2, 3], [4, 4, 1], [5, 1, 1]] {
        assert_eq!(result(&network, mesh, 1, None), expected, "{mesh:?}");
    }
    let tree = "T 1/1\n\tS 1/1\n\t\tfirst 1\n\t\tpoint 1\n\t\twide 1\n\t\tpool 1\n\tT 1/1\n\t\tjoined 1\n\t\tS 1/1\n\t\t\tnarrow 1\n\t\t\tsum 1\n\t\t\trows 1\n\tT 1/1\n\t\tturned 1\n\t\tscores 1\n\t\tsoft 1\n\t\tlast 1\n";
    for mesh in [[4, 3, 1], [4, 4, 4], [7, 2, 1]] {
        assert_eq!(result(&network, mesh, 1, Some(tree)), expected, "{mesh:?}");
    }
}

#[test]
fn values_do_not_depend_on_how_the_batch_is_divided() {
    let network = network();
    let expected = result(&network, [1, 1, 1], 4, None);
    for mesh in [[2, 2, 1], [4, 2, 2]] {
        assert_eq!(result(&network, mesh, 4, None), expected, "{mesh:?}");
    }
    let trees = [
        "T 4/4\n\tS 1/1\n\t\tfirst 1\n\t\tpoint 1\n\t\twide 1\n\t\tpool 1\n\tS 1/1\n\t\tjoined 1\n\t\tnarrow 1\n\t\tsum 1\n\t\trows 1\n\tT 1/1\n\t\tturned 1\n\t\tscores 1\n\t\tsoft 1\n\t\tlast 1\n",
        "T 4/1\n\tS 4/4\n\t\tfirst 1\n\t\tpoint 1\n\t\twide 1\n\t\tpool 1\n\tT 4/2\n\t\tS 2/2\n\t\t\tjoined 1\n\t\t\tnarrow 1\n\t\tS 2/1\n\t\t\tsum 2\n\t\t\trows 2\n\tT 4/1\n\t\tturned 4\n\t\tscores 4\n\t\tsoft 4\n\t\tlast 4\n",
    ];
    for tree in trees {
        assert_eq!(result(&network, [4, 4, 1], 4, Some(tree)), expected, "{tree}");
    }
    // Images that pass one another.
    let names = ["first", "point", "wide", "pool", "joined", "narrow", "sum", "rows", "turned"];
    let leaves =
        |names: &[&str]| -> String { names.iter().map(|name| format!("\t\t{name} 1\n")).collect() };
    let rest = leaves(&["scores", "soft", "last"]);
    let tree = format!("T 4/1\n\tT 4/4\n{}\tT 4/4\n{rest}", leaves(&names));
    assert_eq!(result(&network, [1, 1, 1], 4, Some(&tree)), expected, "{tree}");
    assert_eq!(result(&network, [2, 1, 1], 4, Some(&tree)), expected, "{tree}");
}
