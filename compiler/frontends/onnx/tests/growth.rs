//! How programs grow with their models: sizes that follow from each other stay short, and loops stay loops.
//!
//! What is counted is deterministic: characters of types and checks, and nodes.

use crate::import::{floats, imported, ints, onnx, run};
use irc_common_format::model::{
    Attribute, AttributeValue, Graph, Module, Node, Tensor as FileTensor, Value,
};
use irc_tensor::Tensor;
use irc_tl::{Dim, NodeKind, Op};
use std::time::Instant;

/// Largest growth of a model ten times as large.
const LINEAR: usize = 12;

fn with(mut node: Node, attributes: &[(&str, AttributeValue)]) -> Node {
    let new = attributes.iter().map(|(name, value)| Attribute::new(*name, value.clone()));
    node.attributes.extend(new);
    node
}

fn whole(name: &str, values: &[i64]) -> FileTensor {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let shape = [values.len() as i64];
    FileTensor::raw(name, irc_common_format::model::ElementType::Int64, shape, bytes)
}

/// A model of one input whose nodes are made in steps, each from the name of the last result.
fn chain(
    input: Value,
    initializers: Vec<FileTensor>,
    steps: usize,
    step: impl Fn(usize, &str) -> Vec<Node>,
) -> Module {
    let mut nodes: Vec<Node> = vec![];
    let mut last = input.name.clone().expect("inputs have names");
    for number in 0..steps {
        nodes.extend(step(number, &last));
        last = nodes.last().expect("a step has a node").outputs[0].clone();
    }
    let outputs = vec![Value::untyped(last)];
    onnx(17, Graph { inputs: vec![input], outputs, nodes, initializers, ..Graph::default() })
}

/// The characters of all types and checks.
fn characters(module: &Module) -> usize {
    let graph = imported(module).graph;
    let types = graph.types.iter().map(|ty| ty.to_string().len()).sum::<usize>();
    let checks = graph.checks.iter().map(|check| format!("{} {}", check.left, check.right).len());
    types + checks.sum::<usize>()
}

fn expect_linear(name: &str, model: impl Fn(usize) -> Module) {
    let [small, large] = [20, 200].map(|steps| characters(&model(steps)));
    assert!(large <= LINEAR * small, "{name}: {small} and {large} characters");
}

/// Rows without the first and the last.
fn sliced(steps: usize) -> Module {
    let bounds = vec![whole("begin", &[1]), whole("end", &[-1]), whole("axes", &[0])];
    chain(floats("x", &["N", "1"]), bounds, steps, |number, x| {
        vec![Node::new("Slice", [x, "begin", "end", "axes"], [format!("y{number}")])]
    })
}

/// Windows whose padding depends on the size, every fourth with a stride.
fn pooled(steps: usize) -> Module {
    chain(floats("x", &["1", "1", "H", "3"]), vec![], steps, |number, x| {
        let stride = if number % 4 == 0 { 2 } else { 1 };
        let node = Node::new("MaxPool", [x], [format!("y{number}")]);
        vec![with(
            node,
            &[
                ("kernel_shape", AttributeValue::Ints(vec![3, 1])),
                ("strides", AttributeValue::Ints(vec![stride, 1])),
                ("auto_pad", AttributeValue::String("SAME_UPPER".into())),
            ],
        )]
    })
}

/// Rows padded to a multiple of a number that is different in each step.
fn padded(steps: usize) -> Module {
    let mut constants = vec![whole("zero", &[0]), whole("one", &[1])];
    constants.extend((0..steps).map(|step| whole(&format!("by{step}"), &[2 + step as i64 % 7])));
    chain(floats("x", &["N", "1"]), constants, steps, |number, x| {
        let name = |part: &str| format!("{part}{number}");
        let by = name("by");
        vec![
            Node::new("Shape", [x], [name("shape")]),
            Node::new("Slice", [name("shape"), "zero".into(), "one".into()], [name("rows")]),
            Node::new("Mod", [name("rows"), by.clone()], [name("over")]),
            Node::new("Sub", [by.clone(), name("over")], [name("rest")]),
            Node::new("Mod", [name("rest"), by], [name("pad")]),
            with(
                Node::new(
                    "Concat",
                    ["zero".into(), "zero".into(), name("pad"), "zero".into()],
                    [name("pads")],
                ),
                &[("axis", AttributeValue::Int(0))],
            ),
            Node::new("Pad", [x.to_owned(), name("pads")], [name("y")]),
        ]
    })
}

/// A number of rows that is doubled or increased, whichever a comparison selects.
fn selected(steps: usize) -> Module {
    let constants = vec![whole("seven", &[7]), whole("two", &[2]), whole("one", &[1])];
    let mut module = chain(floats("x", &["N"]), constants, steps, |number, last| {
        let name = |part: &str| format!("{part}{number}");
        let shape = (number == 0).then(|| Node::new("Shape", [last], ["shape"]));
        let rows = if number == 0 { "shape" } else { last };
        let choice = [
            Node::new("Equal", [rows, "seven"], [name("is")]),
            Node::new("Mul", [rows, "two"], [name("double")]),
            Node::new("Add", [rows, "one"], [name("more")]),
            Node::new("Where", [name("is"), name("double"), name("more")], [name("rows")]),
        ];
        shape.into_iter().chain(choice).collect()
    });
    let graph = module.graph.as_mut().expect("a graph");
    let rows = graph.outputs[0].name.clone().expect("outputs have names");
    graph.nodes.push(Node::new("ConstantOfShape", [rows], ["y"]));
    graph.outputs = vec![Value::untyped("y")];
    module
}

#[test]
fn sizes_that_follow_from_each_other_grow_linearly() {
    expect_linear("slices", sliced);
    expect_linear("windows", pooled);
    expect_linear("pads", padded);
    expect_linear("choices", selected);
}

#[test]
fn long_sizes_have_their_values() {
    let rows = |module: &Module, rows: i64, shape: &[i64]| {
        let mut shape = shape.to_vec();
        let axis = shape.iter().position(|extent| *extent < 0).expect("the extent");
        shape[axis] = rows;
        let values: Vec<f32> = vec![0.0; shape.iter().product::<i64>() as usize];
        let x = Tensor::from_values(shape, &values).expect("a tensor");
        let imported = imported(module);
        run(&imported, &[("x", x)]).expect("a result")[0].len() as i64
    };
    assert_eq!(rows(&sliced(40), 100, &[-1, 1]), 20);
    assert_eq!(rows(&sliced(40), 7, &[-1, 1]), 0);
    assert_eq!(rows(&pooled(12), 100, &[1, 1, -1, 3]), 3 * 13);
    let multiple =
        (0..20).fold(5, |rows: i64, step| (rows as u64).next_multiple_of(2 + step % 7) as i64);
    assert_eq!(rows(&padded(20), 5, &[-1, 1]), multiple);
    let chosen = (0..20).fold(3, |rows, _| if rows == 7 { 2 * rows } else { rows + 1 });
    assert_eq!(rows(&selected(20), 3, &[-1]), chosen);
}

/// A layer of a transformer on sequences of an open number and length, as exporters write it.
fn layer(number: usize, x: &str) -> Vec<Node> {
    let name = |part: &str| format!("{part}{number}");
    let product = |x: &str, weight: &str, y: &str| Node::new("MatMul", [x, weight], [name(y)]);
    let axis = |node, axis: i64| with(node, &[("axis", AttributeValue::Int(axis))]);
    let perm = |node, perm: [i64; 4]| with(node, &[("perm", AttributeValue::Ints(perm.into()))]);
    let extent = |index: &str, y: &str| {
        axis(Node::new("Gather", [name("shape"), index.to_owned()], [name(y)]), 0)
    };
    let split =
        |from: &str, y: &str| Node::new("Reshape", [name(from), name("heads_shape")], [name(y)]);
    let four = |parts: [String; 4], y: &str| axis(Node::new("Concat", parts, [name(y)]), 0);
    let named = |text: &str| text.to_owned();
    vec![
        Node::new("Shape", [x], [name("shape")]),
        extent("i0", "batch"),
        extent("i1", "length"),
        four([name("batch"), name("length"), named("two"), named("two")], "heads_shape"),
        product(x, "w", "query"),
        product(x, "w", "key"),
        product(x, "w", "value"),
        split("query", "query_heads"),
        split("key", "key_heads"),
        split("value", "value_heads"),
        perm(Node::new("Transpose", [name("query_heads")], [name("q")]), [0, 2, 1, 3]),
        perm(Node::new("Transpose", [name("key_heads")], [name("k")]), [0, 2, 3, 1]),
        perm(Node::new("Transpose", [name("value_heads")], [name("v")]), [0, 2, 1, 3]),
        Node::new("MatMul", [name("q"), name("k")], [name("scores")]),
        axis(Node::new("Softmax", [name("scores")], [name("weights")]), -1),
        Node::new("MatMul", [name("weights"), name("v")], [name("mixed")]),
        perm(Node::new("Transpose", [name("mixed")], [name("back")]), [0, 2, 1, 3]),
        axis(
            Node::new("Concat", [name("batch"), name("length"), named("four")], [name("flat")]),
            0,
        ),
        Node::new("Reshape", [name("back"), name("flat")], [name("joined")]),
        Node::new("Add", [name("joined"), named(x)], [name("y")]),
    ]
}

fn transformer(layers: usize) -> Module {
    let mut constants =
        vec![whole("i0", &[0]), whole("i1", &[1]), whole("two", &[2]), whole("four", &[4])];
    constants.push(FileTensor::floats("w", [4, 4], &[0.5; 16]));
    chain(floats("x", &["B", "S", "4"]), constants, layers, layer)
}

#[test]
fn transformers_grow_linearly() {
    let counts = [10, 100, 1000].map(|layers| {
        let module = transformer(layers);
        (characters(&module), imported(&module).graph.nodes.len())
    });
    for pair in counts.windows(2) {
        assert!(pair[1].0 <= LINEAR * pair[0].0, "{counts:?} characters");
        assert!(pair[1].1 <= LINEAR * pair[0].1, "{counts:?} nodes");
    }
    // A step of quadratic time would take a hundred times as long for ten times as many layers.
    let [middle, large] = [100, 1000].map(|layers| {
        let module = transformer(layers);
        let start = Instant::now();
        (imported(&module).graph, start.elapsed())
    });
    assert!(large.1 < 40 * middle.1, "{:?} and {:?}", middle.1, large.1);
    // Sizes are those of the input, however deep.
    let graph = large.0;
    let (_, last) = &graph.outputs[0];
    assert_eq!(graph.ty(*last).dims, [Dim::symbol("B"), Dim::symbol("S"), 4.into()]);
}

#[test]
fn recurrent_layers_are_loops_however_long_the_sequence() {
    for (operator, gates) in [("RNN", 1), ("GRU", 3), ("LSTM", 4)] {
        let nodes = |length: i64| {
            let weights = |name: &str, columns: usize| {
                let shape = [1, gates as i64 * 4, columns as i64];
                FileTensor::floats(name, shape, &vec![0.1; gates * 4 * columns])
            };
            let node = Node::new(operator, ["x", "w", "r"], ["y"]);
            let graph = Graph {
                inputs: vec![floats("x", &[&length.to_string(), "1", "3"])],
                outputs: vec![Value::untyped("y")],
                nodes: vec![with(node, &[("hidden_size", AttributeValue::Int(4))])],
                initializers: vec![weights("w", 3), weights("r", 4)],
                ..Graph::default()
            };
            let graph = imported(&onnx(14, graph)).graph;
            assert!(graph.nodes.iter().any(|node| matches!(node.kind, NodeKind::Loop { .. })));
            graph.nodes.len()
        };
        assert_eq!(nodes(10), nodes(1000), "{operator}");
    }
}

#[test]
fn a_value_is_split_into_a_thousand() {
    let names: Vec<String> = (0..1000).map(|index| format!("y{index}")).collect();
    let node = Node::new("Split", ["x", "sizes"], names.clone());
    let graph = Graph {
        inputs: vec![ints("x", &[2000])],
        outputs: names.iter().map(Value::untyped).collect(),
        nodes: vec![with(node, &[("axis", AttributeValue::Int(0))])],
        initializers: vec![whole("sizes", &[2; 1000])],
        ..Graph::default()
    };
    let graph = imported(&onnx(17, graph)).graph;
    let slices =
        graph.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Op(Op::Slice { .. })));
    assert_eq!(slices.count(), 1000);
}
