//! Sizes that no tensor can have.

use crate::import::{floats, imported, ints, onnx, run};
use irc_common_format::model::{ElementType, Graph, Module, Node, Tensor as FileTensor, Value};
use irc_onnx_ops::{ImportOptions, import};
use irc_tensor::Tensor;

/// A model of one node with these integers as initializers.
fn sized(node: Node, inputs: Vec<Value>, initializers: &[(&str, &[i64])]) -> Module {
    let initializer = |(name, values): &(&str, &[i64])| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        FileTensor::raw(*name, ElementType::Int64, [values.len() as i64], bytes)
    };
    let graph = Graph {
        inputs,
        outputs: vec![Value::untyped("y")],
        nodes: vec![node],
        initializers: initializers.iter().map(initializer).collect(),
        ..Graph::default()
    };
    onnx(21, graph)
}

#[test]
fn what_no_memory_holds_is_said_at_its_node() {
    let (big, bigger) = (1 << 61, 1 << 62);
    let scale = vec![1e30];
    let resize = Graph {
        inputs: vec![floats("x", &["3"])],
        outputs: vec![Value::untyped("y")],
        nodes: vec![Node::new("Resize", ["x", "", "scales"], ["y"])],
        initializers: vec![FileTensor::floats("scales", [1], &scale)],
        ..Graph::default()
    };
    let values = || FileTensor::floats("values", [2], &[0.0, 1.0]);
    let mut one_hot = sized(
        Node::new("OneHot", ["x", "depth", "values"], ["y"]),
        vec![ints("x", &[3])],
        &[("depth", &[bigger])],
    );
    one_hot.graph.as_mut().expect("a graph").initializers.push(values());
    let x = || vec![floats("x", &["3"])];
    let of = |name, inputs: &[&str]| Node::new(name, inputs.to_vec(), ["y"]);
    let models = [
        (
            sized(of("ConstantOfShape", &["s"]), vec![], &[("s", &[bigger])]),
            "f32[4611686018427387904]",
        ),
        (
            sized(of("Expand", &["x", "s"]), vec![floats("x", &["1"])], &[("s", &[big, 4])]),
            "f32[2305843009213693952,4]",
        ),
        (sized(of("Tile", &["x", "s"]), x(), &[("s", &[big])]), "f32[2305843009213693952,3]"),
        (sized(of("Pad", &["x", "s"]), x(), &[("s", &[bigger, big])]), "f32[6917529027641081859]"),
        (
            sized(
                of("Range", &["a", "b", "c"]),
                vec![],
                &[("a", &[0]), ("b", &[bigger]), ("c", &[1])],
            ),
            "i64[4611686018427387904]",
        ),
        (one_hot, "f32[3,4611686018427387904]"),
        (onnx(21, resize), "f32[3,9223372036854775807]"),
    ];
    for (model, ty) in models {
        let found = import(&model, &ImportOptions::default()).expect_err(ty);
        assert_eq!(found[0].path, "graph.node[0]");
        let message =
            format!("computing 'y': {ty} does not fit in memory: its size in bytes overflows");
        assert_eq!(found[0].message, message);
    }
    let input = sized(of("Relu", &["x"]), vec![floats("x", &["4611686018427387904"])], &[]);
    let found = import(&input, &ImportOptions::default()).expect_err("an input of 2^64 bytes");
    assert_eq!(found[0].path, "graph.input[0]");
}

#[test]
fn the_steps_of_a_range_are_counted_without_overflow() {
    let scalar = |name: &str| Value::tensor(name, ElementType::Int64, Vec::<i64>::new());
    let node = || Node::new("Range", ["a", "b", "c"], ["y"]);
    let open = imported(&sized(node(), ["a", "b", "c"].map(scalar).to_vec(), &[]));
    let (low, high) = (i64::MIN, i64::MAX);
    for (ends, count) in [
        ([low, high, 1 << 62], 4),
        ([high, low, -(1 << 62)], 4),
        ([high, low, low], 2),
        ([low, high, high], 3),
        ([5, -5, -3], 4),
        ([-5, 5, 5], 2),
        ([5, -5, 3], 0),
    ] {
        let names = ["a", "b", "c"];
        let given: Vec<_> = names.iter().zip(ends).collect();
        let inputs: Vec<_> = given
            .iter()
            .map(|(name, value)| (**name, Tensor::from_values([], &[*value]).expect("a number")))
            .collect();
        let found = run(&open, &inputs).expect("few steps");
        assert_eq!(found[0].len(), count, "{ends:?}");
        let known: Vec<_> = ends.iter().map(std::slice::from_ref).collect();
        let known: Vec<_> = names.iter().copied().zip(known).collect();
        let found = run(&imported(&sized(node(), vec![], &known)), &[]).expect("few steps");
        assert_eq!(found[0].len(), count, "{ends:?}");
    }
    let of = |ends: [i64; 3]| {
        let value = |value: i64| Tensor::from_values([], &[value]).expect("a number");
        let [a, b, c] = ends.map(value);
        run(&open, &[("a", a), ("b", b), ("c", c)]).expect_err("no such range")
    };
    assert!(of([low, high, 1]).contains("as many elements of i64[s0] as fit in memory"));
    assert!(of([0, 9, 0]).contains("expected steps other than 0"));
}

#[test]
fn sizes_that_broadcast_repeatedly_stay_small() {
    // Layers as in a transformer whose two inputs name their sizes differently.
    let layers = |count: usize| {
        let name = |index: usize| format!("v{index}");
        let mut nodes = vec![Node::new("Add", ["x", "y"], ["v0"])];
        for layer in 0..count {
            let (last, next) = (name(layer), name(layer + 1));
            let (scores, masked) = (format!("s{layer}"), format!("m{layer}"));
            nodes.push(Node::new("Mul", [last.as_str(), "x"], [scores.as_str()]));
            nodes.push(Node::new("Add", [scores.as_str(), "y"], [masked.as_str()]));
            nodes.push(Node::new("Sub", [masked.as_str(), last.as_str()], [next.as_str()]));
        }
        let graph = Graph {
            inputs: vec![floats("x", &["N", "K"]), floats("y", &["M", "1"])],
            outputs: vec![Value::untyped(name(count))],
            nodes,
            ..Graph::default()
        };
        imported(&onnx(21, graph)).graph
    };
    for count in [10, 100, 1000] {
        let graph = layers(count);
        let sizes = |index: usize| graph.types[index].dims.iter().map(ToString::to_string);
        let last: Vec<String> = sizes(graph.types.len() - 1).collect();
        assert_eq!(last, ["broadcast(M, N)", "K"]);
        let longest = (0..graph.types.len()).flat_map(sizes).map(|size| size.len()).max();
        assert!(longest <= Some(40), "{longest:?} characters at {count} layers");
    }
}

#[test]
fn sizes_without_a_name_are_unrelated() {
    for name in ["?", "None", "-1"] {
        let graph = Graph {
            inputs: vec![floats("x", &[name, "2"]), floats("z", &[name, "2"])],
            outputs: vec![Value::untyped("y")],
            nodes: vec![Node {
                attributes: vec![irc_common_format::model::Attribute::new(
                    "axis",
                    irc_common_format::model::AttributeValue::Int(0),
                )],
                ..Node::new("Concat", ["x", "z"], ["y"])
            }],
            ..Graph::default()
        };
        let tensor = |rows: i64| Tensor::from_values([rows, 2], &vec![1.0_f32; 2 * rows as usize]);
        let given = [("x", tensor(1).expect("x")), ("z", tensor(3).expect("z"))];
        let found = run(&imported(&onnx(21, graph)), &given);
        assert_eq!(found, Ok(vec![vec![1.0; 8]]), "{name}");
    }
}
