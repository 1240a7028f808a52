//! Products with constants that are converted to floats keep them as small as they are.

use irc_common_format::model::{
    Attribute, AttributeValue, Dim, Graph, Module, Node, Opset, Schema, Tensor as FileTensor, Value,
};
use irc_onnx_ops::{ImportOptions, element_of, import};
use irc_tensor::{Element, Tensor, f16};
use irc_tl::{Constant, DType, NodeKind, Op};
use std::collections::BTreeMap;

/// Rows, depth and columns of the products.
const SIZES: [i64; 3] = [3, 20, 5];

fn constant<T: Element>(name: &str, shape: &[i64], values: &[T]) -> FileTensor {
    let tensor = Tensor::from_values(shape, values).expect("as many values");
    FileTensor::raw(name, element_of(T::DTYPE), shape, Constant::of(&tensor).bytes)
}

/// A constant of `int4`, of which a byte holds two.
fn fours(name: &str, shape: &[i64], values: &[i64]) -> FileTensor {
    let pair =
        |pair: &[i64]| pair.iter().rev().fold(0, |byte, value| byte << 4 | (value & 15) as u8);
    let bytes: Vec<u8> = values.chunks(2).map(pair).collect();
    FileTensor::raw(name, element_of(DType::I4), shape, bytes)
}

/// A product of `x` with what an operator makes of constants.
fn product(op: &str, attributes: &[(&str, i64)], constants: Vec<FileTensor>) -> irc_tl::Graph {
    let names: Vec<String> = constants.iter().filter_map(|it| it.name.clone()).collect();
    let mut made = Node::new(op, names, ["w"]);
    for (name, value) in attributes {
        made.attributes.push(Attribute::new(*name, AttributeValue::Int(*value)));
    }
    let dims = [SIZES[0], SIZES[1]].map(Dim::Size);
    let graph = Graph {
        inputs: vec![Value::tensor("x", element_of(DType::F32), dims)],
        outputs: vec![Value::untyped("y")],
        initializers: constants,
        nodes: vec![made, Node::new("MatMul", ["x", "w"], ["y"])],
        ..Graph::default()
    };
    let opsets = vec![Opset { domain: None, version: 21 }];
    let module = Module { schema: Schema::Onnx, opsets, graph: Some(graph), ..Module::default() };
    import(&module, &ImportOptions::default()).expect("a valid module").graph
}

/// The weight in a row and column, for exact products.
fn weight(row: i64, column: i64) -> i64 {
    (row * 7 + column * 5) % 15 - 7
}

fn weights<T>(of: impl Fn(i64) -> T) -> Vec<T> {
    let [_, depth, columns] = SIZES;
    let places = (0..depth).flat_map(|row| (0..columns).map(move |column| (row, column)));
    places.map(|(row, column)| of(weight(row, column))).collect()
}

/// Compares a graph with products of the weights times scales, by row and column.
fn check(graph: &irc_tl::Graph, scale: impl Fn(i64, i64) -> f64) {
    let [rows, depth, columns] = SIZES;
    let x: Vec<f32> = (0..rows * depth).map(|index| (index % 11 - 5) as f32).collect();
    let input = Tensor::from_values([rows, depth], &x).expect("as many values");
    let inputs = BTreeMap::from([("x".to_owned(), input)]);
    let found = graph.eval(&inputs).expect("a valid program")[0].to_f64();
    for row in 0..rows {
        for column in 0..columns {
            let term = |k: i64| {
                f64::from(x[(row * depth + k) as usize])
                    * weight(k, column) as f64
                    * scale(k, column)
            };
            let expected: f64 = (0..depth).map(term).sum();
            assert_eq!(found[(row * columns + column) as usize], expected, "{row}, {column}");
        }
    }
}

fn ops(graph: &irc_tl::Graph) -> Vec<Op> {
    let op = |node: &'_ irc_tl::Node| match &node.kind {
        NodeKind::Op(op) => Some(op.clone()),
        _ => None,
    };
    graph.nodes.iter().filter_map(op).collect()
}

fn is_block_scaled(graph: &irc_tl::Graph, bits: usize, block: usize) -> bool {
    ops(graph).contains(&Op::BlockScaledMatmul { bits, block })
}

#[test]
fn of_blocks_along_the_depth() {
    let [_, depth, columns] = SIZES;
    let scales: Vec<f32> = (0..3 * columns).map(|index| (index + 1) as f32 / 4.0).collect();
    let w = weights(|weight| weight);
    let graph = product(
        "DequantizeLinear",
        &[("axis", 0), ("block_size", 8)],
        vec![fours("c", &[depth, columns], &w), constant("s", &[3, columns], &scales)],
    );
    assert!(is_block_scaled(&graph, 4, 8), "{:?}", ops(&graph));
    check(&graph, |k, column| f64::from(scales[(k / 8 * columns + column) as usize]));
}

#[test]
fn of_columns_with_zero_points() {
    let [_, depth, columns] = SIZES;
    let scales: Vec<f32> = (0..columns).map(|column| (column + 1) as f32 / 2.0).collect();
    let w = weights(|weight| (weight + 100) as u8);
    let graph = product(
        "DequantizeLinear",
        &[("axis", 1)],
        vec![
            constant("c", &[depth, columns], &w),
            constant("s", &[columns], &scales),
            constant("z", &[columns], &[100u8; 5]),
        ],
    );
    assert!(is_block_scaled(&graph, 8, 20), "{:?}", ops(&graph));
    check(&graph, |_, column| f64::from(scales[column as usize]));
}

#[test]
fn of_blocks_that_are_not_whole_words() {
    let [_, depth, columns] = SIZES;
    let w = weights(|weight| weight);
    let graph = product(
        "DequantizeLinear",
        &[("axis", 0), ("block_size", 10)],
        vec![fours("c", &[depth, columns], &w), constant("s", &[2, columns], &[0.5f32; 10])],
    );
    assert!(!is_block_scaled(&graph, 4, 10), "{:?}", ops(&graph));
    check(&graph, |_, _| 0.5);
}

#[test]
fn of_halves() {
    let [_, depth, columns] = SIZES;
    let w = weights(|weight| f16::from_f64(weight as f64));
    let constants = vec![constant("c", &[depth, columns], &w)];
    let graph = product("Cast", &[("to", 1)], constants);
    assert!(!ops(&graph).iter().any(|op| matches!(op, Op::Cast { .. })), "{:?}", ops(&graph));
    check(&graph, |_, _| 1.0);
}
