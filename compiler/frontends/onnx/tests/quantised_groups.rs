//! Ops between dequantisations and a quantisation are computed on integers.

use crate::case::{Case, integers};
use irc_common_format::model::{
    Attribute, AttributeValue, Dim, Graph, Module, Node, Opset, Schema, Tensor as FileTensor, Value,
};
use irc_onnx_ops::{ImportOptions, element_of, import};
use irc_tensor::{Element, Tensor};
use irc_tl::{Binary, Constant, DType, NodeKind, Op};
use std::collections::BTreeMap;

fn constant<T: Element>(name: &str, shape: &[i64], values: &[T]) -> FileTensor {
    let tensor = Tensor::from_values(shape, values).expect("as many values");
    FileTensor::raw(name, element_of(T::DTYPE), shape, Constant::of(&tensor).bytes)
}

/// The scales of the operands, the bias and the result.
const SCALES: [f32; 4] = [0.0371, 0.00513, 0.0371 * 0.00513, 0.0917];

/// A convolution of dequantised operands with a bias, whose scale is given, and its quantised result.
fn group(scale: f32) -> Module {
    let dequantise =
        |inputs: [&str; 3], output: &str| Node::new("DequantizeLinear", inputs, [output]);
    let nodes = vec![
        dequantise(["x", "x_scale", "x_zero"], "x_float"),
        dequantise(["w", "w_scale", "w_zero"], "w_float"),
        dequantise(["b", "b_scale", "b_zero"], "b_float"),
        Node::new("Conv", ["x_float", "w_float", "b_float"], ["sum"]),
        Node::new("QuantizeLinear", ["sum", "y_scale", "y_zero"], ["y"]),
    ];
    let initializers = vec![
        constant("x_scale", &[], &SCALES[..1]),
        constant("x_zero", &[], &[117u8]),
        constant("w", &[4, 3, 3, 3], &weights()),
        constant("w_scale", &[], &SCALES[1..2]),
        constant("w_zero", &[], &[0i8]),
        constant("b", &[4], &[100i32, -200, 300, 7]),
        constant("b_scale", &[], &[scale]),
        constant("b_zero", &[], &[0i32]),
        constant("y_scale", &[], &SCALES[3..]),
        constant("y_zero", &[], &[123u8]),
    ];
    module(&[1, 3, 6, 6], nodes, initializers)
}

/// A model of bytes `x` of a shape, whose output is `y`.
fn module(x: &[i64], nodes: Vec<Node>, initializers: Vec<FileTensor>) -> Module {
    let dims = x.iter().map(|extent| Dim::Size(*extent));
    let graph = Graph {
        inputs: vec![Value::tensor("x", element_of(DType::U8), dims)],
        outputs: vec![Value::untyped("y")],
        initializers,
        nodes,
        ..Graph::default()
    };
    let opsets = vec![Opset { domain: None, version: 17 }];
    Module { schema: Schema::Onnx, opsets, graph: Some(graph), ..Module::default() }
}

fn weights() -> Vec<i8> {
    integers::<i64>(108, 3, 251).into_iter().map(|weight| (weight - 125) as i8).collect()
}

fn graph(module: &Module) -> irc_tl::Graph {
    import(module, &ImportOptions::default()).expect("a valid module").graph
}

/// Whether a convolution of the graph has operands that are multiplied by scales first.
fn scales_first(graph: &irc_tl::Graph) -> bool {
    let first = |is: fn(&Op) -> bool| {
        let found = |kind: &NodeKind| matches!(kind, NodeKind::Op(op) if is(op));
        graph.nodes.iter().position(|node| found(&node.kind)).expect("such an op")
    };
    let conv = first(|op| matches!(op, Op::Conv(_)));
    first(|op| matches!(op, Op::Binary(Binary::Mul))) < conv
}

#[test]
fn a_group_equals_the_operator_on_integers() {
    let x = integers::<u8>(108, 0, 250);
    let input = Tensor::from_values([1, 3, 6, 6], &x).expect("as many values");
    let inputs = BTreeMap::from([("x".to_owned(), input)]);
    let found = graph(&group(SCALES[2])).eval(&inputs).expect("a valid program");
    let case = Case::new("QLinearConv", 10).input(&[1, 3, 6, 6], &x);
    let case = case.constant(&[], &SCALES[..1]).constant(&[], &[117u8]);
    let case = case.constant(&[4, 3, 3, 3], &weights()).constant(&[], &SCALES[1..2]);
    let case = case.constant(&[], &[0i8]).constant(&[], &SCALES[3..]).constant(&[], &[123u8]);
    let case = case.constant(&[4], &[100i32, -200, 300, 7]);
    assert_eq!(found[0].to_f64(), case.values());
}

/// Whatever the zero point of the filters is, bytes are multiplied.
#[test]
fn convolutions_are_those_of_bytes() {
    for zero in [0_u8, 97, 128, 255] {
        let mut module = group(SCALES[2]);
        if let Some(graph) = &mut module.graph {
            let bytes: Vec<u8> = weights().into_iter().map(|byte| byte.cast_unsigned()).collect();
            graph.initializers[2] = constant("w", &[4, 3, 3, 3], &bytes);
            graph.initializers[4] = constant("w_zero", &[], &[zero]);
        }
        let graph = graph(&module);
        let is_convolution = |kind: &NodeKind| matches!(kind, NodeKind::Op(Op::Conv(_)));
        let found = graph.nodes.iter().find(|node| is_convolution(&node.kind)).expect("one");
        let types = [0, 1].map(|side| graph.ty(found.operands[side]).dtype);
        assert_eq!(types, [DType::U8, DType::I8], "{zero}");
    }
}

#[test]
fn a_relu_limits_the_integers_to_the_zero_point() {
    let mut module = group(SCALES[2]);
    if let Some(graph) = &mut module.graph {
        graph.nodes[4].inputs[0] = "positive".into();
        graph.nodes.insert(4, Node::new("Relu", ["sum"], ["positive"]));
    }
    let (plain, limited) = (graph(&group(SCALES[2])), graph(&module));
    assert!(!scales_first(&limited));
    let x = integers::<u8>(108, 0, 250);
    let input = Tensor::from_values([1, 3, 6, 6], &x).expect("as many values");
    let inputs = BTreeMap::from([("x".to_owned(), input)]);
    let of = |graph: irc_tl::Graph| graph.eval(&inputs).expect("a valid program")[0].to_f64();
    let (plain, limited) = (of(plain), of(limited));
    assert!(plain.iter().any(|value| *value < 123.0));
    let expected: Vec<f64> = plain.into_iter().map(|value| value.max(123.0)).collect();
    assert_eq!(limited, expected);
}

#[test]
fn a_bias_of_another_scale_is_added_to_floats() {
    assert!(!scales_first(&graph(&group(SCALES[2]))));
    assert!(scales_first(&graph(&group(0.5))));
}

#[test]
fn nodes_of_other_types_are_computed_on_floats() {
    let mut module = group(SCALES[2]);
    if let Some(graph) = &mut module.graph {
        graph.initializers[9] = constant("y_zero", &[], &[-5i8]);
    }
    assert!(scales_first(&graph(&module)));
}

/// A product of dequantised operands, of which the first is `[2, 12]`, after nodes that choose elements of it.
fn product(choices: Vec<Node>, x: &[i64], last: &str) -> Module {
    let dequantise =
        |inputs: [&str; 3], output: &str| Node::new("DequantizeLinear", inputs, [output]);
    let mut nodes = vec![dequantise(["x", "x_scale", "x_zero"], "x_float")];
    nodes.extend(choices);
    nodes.extend([
        dequantise(["w", "w_scale", "w_zero"], "w_float"),
        Node::new("MatMul", [last, "w_float"], ["product"]),
        Node::new("QuantizeLinear", ["product", "y_scale", "y_zero"], ["y"]),
    ]);
    let initializers = vec![
        constant("x_scale", &[], &SCALES[..1]),
        constant("x_zero", &[], &[117u8]),
        constant("w", &[12, 9], &weights()),
        constant("w_scale", &[], &SCALES[1..2]),
        constant("w_zero", &[], &[0i8]),
        constant("y_scale", &[], &SCALES[3..]),
        constant("y_zero", &[], &[123u8]),
    ];
    module(x, nodes, initializers)
}

#[test]
fn elements_are_chosen_between_a_dequantisation_and_a_product_on_integers() {
    let x = integers::<u8>(24, 0, 250);
    let eval = |module: &Module, dims: &[i64]| {
        let found = graph(module);
        let multiplies = |kind: &NodeKind| matches!(kind, NodeKind::Op(Op::Matmul { .. }));
        let at = found.nodes.iter().position(|node| multiplies(&node.kind)).expect("a product");
        let operands = &found.nodes[at].operands;
        assert!(operands.iter().all(|operand| found.ty(*operand).dtype.is_integer()));
        let input = Tensor::from_values(dims, &x).expect("as many values");
        found.eval(&BTreeMap::from([("x".to_owned(), input)])).expect("a valid program")
    };
    let expected = eval(&product(vec![], &[2, 12], "x_float"), &[2, 12]);
    let flatten = |from: &str, to: &str| Node::new("Flatten", [from], [to]);
    let flat = product(vec![flatten("x_float", "flat")], &[2, 3, 2, 2], "flat");
    assert_eq!(eval(&flat, &[2, 3, 2, 2]), expected);
    let chain = vec![flatten("x_float", "a"), flatten("a", "b"), flatten("b", "c")];
    assert_eq!(eval(&product(chain, &[2, 3, 2, 2], "c"), &[2, 3, 2, 2]), expected);
}

/// Bytes of 4 images with 6 channels of 6 by 5.
const IMAGES: [i64; 4] = [4, 6, 6, 5];

/// A reduction of dequantised bytes `[4, 6, 6, 5]`, and its result before and after it is quantised. Axes are an attribute, or
/// an input as of version 18.
fn reduction(
    op: &str,
    axes: &[i64],
    keeps: bool,
    by: ([f32; 2], [u8; 2]),
    is_input: bool,
) -> Module {
    let ([from, to], [from_zero, to_zero]) = by;
    let mut reduce = Node::new(op, vec!["x_float"], ["float"]);
    let mut initializers = vec![
        constant("x_scale", &[], &[from]),
        constant("x_zero", &[], &[from_zero]),
        constant("y_scale", &[], &[to]),
        constant("y_zero", &[], &[to_zero]),
    ];
    if op != "GlobalMaxPool" {
        reduce.attributes.push(Attribute::new("keepdims", AttributeValue::Int(keeps.into())));
        if is_input {
            reduce.inputs.push("axes".into());
            initializers.push(constant("axes", &[axes.len() as i64], axes));
        } else {
            reduce.attributes.push(Attribute::new("axes", AttributeValue::Ints(axes.to_vec())));
        }
    }
    let nodes = vec![
        Node::new("DequantizeLinear", ["x", "x_scale", "x_zero"], ["x_float"]),
        reduce,
        Node::new("QuantizeLinear", ["float", "y_scale", "y_zero"], ["y"]),
    ];
    let mut module = module(&IMAGES, nodes, initializers);
    module.opsets[0].version = if is_input { 18 } else { 17 };
    module
}

/// The types of what is reduced, the quantised results, and what they are quantised from in `f32`.
fn reduced(module: &Module, output: &str) -> (Vec<DType>, Vec<f64>) {
    let mut module = module.clone();
    if let Some(graph) = &mut module.graph {
        graph.outputs = vec![Value::untyped(output)];
    }
    let found = graph(&module);
    let reduces = |kind: &NodeKind| matches!(kind, NodeKind::Op(Op::Reduce { .. }));
    let nodes = found.nodes.iter().filter(|node| reduces(&node.kind));
    let dtypes = nodes.map(|node| found.ty(node.operands[0]).dtype).collect();
    let x = Tensor::from_values(IMAGES, &integers::<u8>(720, 1, 251)).expect("as many values");
    let values = found.eval(&BTreeMap::from([("x".to_owned(), x)])).expect("a valid program");
    (dtypes, values[0].to_f64())
}

const AXES: [(&[i64], bool); 6] = [
    (&[2, 3], true),
    (&[-1, -2], false),
    (&[3], true),
    (&[-2], false),
    (&[1], true),
    (&[0, 2], false),
];

/// Sums of integers are exact. Those of floats are not: where a mean lies halfway between two integers, the order of the sum
/// decides to which it is rounded, unless scales are powers of two.
#[test]
fn means_on_integers_are_those_of_floats() {
    let mut halves = 0;
    for (axes, keeps) in AXES {
        for is_input in [false, true] {
            for (scales, is_exact) in [
                ([0.5, 0.5], true),
                ([0.25, 0.125], true),
                ([0.02, 0.02], false),
                ([0.037, 0.011], false),
            ] {
                let zeros = [117, 123];
                let module = reduction("ReduceMean", axes, keeps, (scales, zeros), is_input);
                let (dtypes, found) = reduced(&module, "y");
                assert_eq!(dtypes, [DType::I32], "{axes:?}");
                let (dtypes, floats) = reduced(&module, "float");
                assert_eq!(dtypes, [DType::F32], "{axes:?}");
                assert_eq!(found.len(), floats.len());
                for (found, float) in found.iter().zip(floats) {
                    let ratio = f64::from(float as f32 / scales[1]);
                    let expected = (ratio.round_ties_even() + 123.0).clamp(0.0, 255.0);
                    let is_half = ((ratio - ratio.floor()) - 0.5).abs() < 1e-4;
                    halves += usize::from(is_half && is_exact);
                    let limit = if is_half && !is_exact { 1.0 } else { 0.0 };
                    let place = format!("{axes:?} {scales:?}: {ratio}");
                    assert!((found - expected).abs() <= limit, "{place}: {found}");
                }
            }
        }
    }
    assert!(halves > 10, "means halfway between two integers: {halves}");
}

#[test]
fn maxima_on_integers_are_those_of_floats() {
    let same = ([0.037, 0.037], [117, 117]);
    let mut cases = vec![("GlobalMaxPool", AXES[0].0, true, false)];
    for (axes, keeps) in AXES {
        cases.extend([false, true].map(|is_input| ("ReduceMax", axes, keeps, is_input)));
    }
    for (op, axes, keeps, is_input) in cases {
        let module = reduction(op, axes, keeps, same, is_input);
        let (dtypes, found) = reduced(&module, "y");
        assert_eq!(dtypes, [DType::U8], "{op} {axes:?}");
        let (dtypes, floats) = reduced(&module, "float");
        assert_eq!(dtypes, [DType::F32], "{op} {axes:?}");
        let quantised = |float: &f64| f64::from((*float as f32 / 0.037_f32).round() + 117.0);
        assert_eq!(found, floats.iter().map(quantised).collect::<Vec<_>>(), "{op} {axes:?}");
        // A result of another scale.
        let module = reduction(op, axes, keeps, ([0.037, 0.04], [117, 117]), is_input);
        assert_eq!(reduced(&module, "y").0, [DType::F32], "{op} {axes:?}");
    }
}
