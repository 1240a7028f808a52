//! The import of modules beyond single operators.

use irc_common_format::model::{
    Attribute, AttributeValue, ElementType, Function, Graph, Module, Node, Opset, Schema,
    SparseTensor, Tensor as FileTensor, Type as FileType, Value,
};
use irc_onnx_ops::{
    Calls, ImportOptions, Imported, NodeDiagnosticKind, Structure, import, unsupported,
};
use irc_tensor::Tensor;
use irc_tl::{Constant, DType, Dim, Type};
use std::collections::BTreeMap;

pub(crate) fn onnx(version: i64, graph: Graph) -> Module {
    let opsets = vec![Opset { domain: None, version }];
    Module { schema: Schema::Onnx, opsets, graph: Some(graph), ..Module::default() }
}

pub(crate) fn floats(name: &str, dims: &[&str]) -> Value {
    let dim = |dim: &&str| match dim.parse::<i64>() {
        Ok(size) => irc_common_format::model::Dim::Size(size),
        Err(_) => irc_common_format::model::Dim::from(*dim),
    };
    Value::tensor(name, ElementType::Float, dims.iter().map(dim).collect::<Vec<_>>())
}

pub(crate) fn ints(name: &str, dims: &[i64]) -> Value {
    Value::tensor(name, ElementType::Int64, dims.iter().copied())
}

fn with(mut node: Node, name: &str, value: AttributeValue) -> Node {
    node.attributes.push(Attribute::new(name, value));
    node
}

fn row(values: &[f32]) -> Tensor {
    Tensor::from_values([values.len() as i64], values).expect("a row")
}

fn whole(values: &[i64]) -> Tensor {
    Tensor::from_values([values.len() as i64], values).expect("a row")
}

pub(crate) fn run(imported: &Imported, inputs: &[(&str, Tensor)]) -> Result<Vec<Vec<f64>>, String> {
    let inputs: BTreeMap<String, Tensor> =
        inputs.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())).collect();
    let results = imported.graph.eval(&inputs).map_err(|error| error.to_string())?;
    Ok(results.iter().map(Tensor::to_f64).collect())
}

pub(crate) fn imported(module: &Module) -> Imported {
    import(module, &ImportOptions::default()).unwrap_or_else(|found| panic!("{found:#?}"))
}

/// ONNX Runtime ignores sizes that a model states for values between its nodes.
#[test]
fn wrong_stated_sizes_are_used_only_where_the_program_needs_them() {
    let nodes = |last: Node| {
        vec![Node::new("NonZero", ["x"], ["places"]), Node::new("Neg", ["places"], ["at"]), last]
    };
    let module = |last| {
        let graph = Graph {
            inputs: vec![floats("x", &["4"])],
            values: vec![ints("places", &[1, 3])],
            outputs: vec![Value::untyped("y")],
            nodes: nodes(last),
            ..Graph::default()
        };
        onnx(12, graph)
    };
    let free = module(Node::new("Neg", ["at"], ["y"]));
    let values = |imported: &Imported, x: &[f32]| run(imported, &[("x", row(x))]);
    let free_graph = imported(&free);
    assert_eq!(values(&free_graph, &[1.0, 0.0, 2.0, 0.0]), Ok(vec![vec![0.0, 2.0]]));
    let options = ImportOptions { assume_stated_shapes: true, ..ImportOptions::default() };
    let assumed = import(&free, &options).expect("a graph");
    assert_eq!(values(&assumed, &[1.0, 0.0, 2.0, 3.0]), Ok(vec![vec![0.0, 2.0, 3.0]]));
    let wrong = values(&assumed, &[1.0, 0.0, 2.0, 0.0]).expect_err("another size");
    let message = "the model states that dimension 1 of 'places' is 3";
    assert!(wrong.contains(message), "{wrong}");
    // Which axes of an open size are dropped is known only of a number.
    let dependent = imported(&module(Node::new("Squeeze", ["at"], ["y"])));
    assert_eq!(dependent.graph.ty(dependent.graph.outputs[0].1).rank(), 1);
    let wrong = values(&dependent, &[1.0, 0.0, 2.0, 0.0]).expect_err("another size");
    assert!(wrong.contains(message), "{wrong}");
}

/// No kernel has thousands of operands.
#[test]
fn what_joins_many_values_joins_few_at_a_time() {
    let names: Vec<String> = (0..1100).map(|index| format!("x{index}")).collect();
    let module = onnx(
        13,
        Graph {
            inputs: names.iter().map(|name| ints(name, &[1])).collect(),
            outputs: vec![ints("y", &[1100])],
            nodes: vec![with(
                Node::new("Concat", names.clone(), ["y"]),
                "axis",
                AttributeValue::Int(0),
            )],
            ..Graph::default()
        },
    );
    let imported = imported(&module);
    let most = imported.graph.nodes.iter().map(|node| node.operands.len()).max();
    assert!(most.is_some_and(|most| most <= 32), "{most:?} operands");
    let inputs: Vec<_> = names.iter().zip(0..).map(|(name, at)| (&**name, whole(&[at]))).collect();
    let found = run(&imported, &inputs).expect("numbers");
    assert_eq!(found[0], (0..1100).map(f64::from).collect::<Vec<_>>());
}

#[test]
fn one_program_serves_all_bounds_of_a_slice() {
    let module = onnx(
        13,
        Graph {
            inputs: vec![floats("x", &["N"]), ints("from", &[1]), ints("to", &[1])],
            outputs: vec![floats("y", &["M"])],
            nodes: vec![Node::new("Slice", ["x", "from", "to"], ["y"])],
            ..Graph::default()
        },
    );
    let imported = imported(&module);
    let slice = |values: &[f32], from: i64, to: i64| {
        let inputs = [("x", row(values)), ("from", whole(&[from])), ("to", whole(&[to]))];
        run(&imported, &inputs).expect("any bounds")[0].clone()
    };
    let x = [1.0, 2.0, 3.0, 4.0];
    assert_eq!(slice(&x, 1, 3), [2.0, 3.0]);
    assert_eq!(slice(&x, -3, -1), [2.0, 3.0]);
    assert_eq!(slice(&x, -100, 100), x.map(f64::from));
    assert_eq!(slice(&x[..2], 1, i64::MAX), [2.0]);
    assert!(slice(&x, 3, 1).is_empty());
}

#[test]
fn backward_slices_end_before_the_first() {
    let step = |to: i64| {
        let list = |name: &str, value: i64| {
            FileTensor::raw(name, ElementType::Int64, [1], value.to_le_bytes().to_vec())
        };
        let module = onnx(
            13,
            Graph {
                inputs: vec![floats("x", &["N"])],
                outputs: vec![floats("y", &["M"])],
                initializers: vec![
                    list("from", -1),
                    list("to", to),
                    list("axes", 0),
                    list("by", -2),
                ],
                nodes: vec![Node::new("Slice", ["x", "from", "to", "axes", "by"], ["y"])],
                ..Graph::default()
            },
        );
        let imported = imported(&module);
        run(&imported, &[("x", row(&[1.0, 2.0, 3.0, 4.0, 5.0]))]).expect("inside")[0].clone()
    };
    assert_eq!(step(i64::MIN), [5.0, 3.0, 1.0]);
    assert_eq!(step(0), [5.0, 3.0]);
    assert_eq!(step(-3), [5.0]);
}

#[test]
fn results_may_depend_on_data_in_their_size() {
    let module = onnx(
        13,
        Graph {
            inputs: vec![floats("x", &["N"])],
            outputs: vec![ints("at", &[]).clone()],
            nodes: vec![
                Node::new("NonZero", ["x"], ["places"]),
                with(
                    Node::new("Squeeze", ["places", "zero"], ["at"]),
                    "unused",
                    AttributeValue::Nothing,
                ),
            ],
            initializers: vec![FileTensor::raw("zero", ElementType::Int64, [1], vec![0; 8])],
            ..Graph::default()
        },
    );
    let mut module = module;
    module.graph.as_mut().expect("a graph").outputs = vec![Value::untyped("at")];
    let imported = imported(&module);
    let places = |values: &[f32]| run(&imported, &[("x", row(values))]).expect("any")[0].clone();
    assert_eq!(places(&[0.0, 3.0, 0.0, 4.0]), [1.0, 3.0]);
    assert!(places(&[0.0]).is_empty());
}

/// `If` whose branches have results of two sizes.
fn branches() -> Module {
    let graph = |name: &str, node: Node| {
        let outputs = vec![Value::untyped(name)];
        AttributeValue::Graph(Box::new(Graph { outputs, nodes: vec![node], ..Graph::default() }))
    };
    let node = Node::new("If", ["c"], ["y"]);
    let joined = with(Node::new("Concat", ["x", "x"], ["a"]), "axis", AttributeValue::Int(0));
    let node = with(node, "then_branch", graph("a", joined));
    let node = with(node, "else_branch", graph("b", Node::new("Neg", ["x"], ["b"])));
    onnx(
        13,
        Graph {
            inputs: vec![Value::tensor("c", ElementType::Bool, [0i64; 0]), floats("x", &["N"])],
            outputs: vec![Value::untyped("z")],
            nodes: vec![node, Node::new("Add", ["y", "y"], ["z"])],
            ..Graph::default()
        },
    )
}

#[test]
fn branches_may_differ_in_size() {
    let imported = imported(&branches());
    let run = |condition: u8| {
        let condition = Tensor::from_bytes(irc_tl::TensorType::new(DType::Bool, []), &[condition]);
        let condition = condition.expect("a truth");
        run(&imported, &[("c", condition), ("x", row(&[1.0, 2.0]))]).expect("a branch")[0].clone()
    };
    assert_eq!(run(1), [2.0, 4.0, 2.0, 4.0]);
    assert_eq!(run(0), [-2.0, -4.0]);
}

/// A loop whose body chooses between two ranks, by a condition that changes in each iteration.
#[test]
fn branches_of_two_ranks_in_a_loop_name_both_types() {
    let branch = |name: &str, nodes: Vec<Node>| {
        let outputs = vec![Value::untyped(name)];
        AttributeValue::Graph(Box::new(Graph { outputs, nodes, ..Graph::default() }))
    };
    let choice = Node::new("If", ["odd"], ["r"]);
    let choice = with(choice, "then_branch", branch("a", vec![Node::new("Neg", ["x"], ["a"])]));
    let sum = with(Node::new("ReduceSum", ["x"], ["b"]), "keepdims", AttributeValue::Int(0));
    let choice = with(choice, "else_branch", branch("b", vec![sum]));
    let body = Graph {
        inputs: ["i", "go"].map(Value::untyped).to_vec(),
        outputs: ["on", "s"].map(Value::untyped).to_vec(),
        nodes: vec![
            with(Node::new("Cast", ["i"], ["odd"]), "to", AttributeValue::Int(9)),
            choice,
            Node::new("Identity", ["go"], ["on"]),
            with(Node::new("ReduceSum", ["r"], ["s"]), "keepdims", AttributeValue::Int(0)),
        ],
        ..Graph::default()
    };
    let node = Node::new("Loop", ["n", "c"], ["sums"]);
    let module = onnx(
        13,
        Graph {
            inputs: vec![
                ints("n", &[]),
                Value::tensor("c", ElementType::Bool, [0i64; 0]),
                floats("x", &["N"]),
            ],
            outputs: vec![Value::untyped("sums")],
            nodes: vec![with(node, "body", AttributeValue::Graph(Box::new(body)))],
            ..Graph::default()
        },
    );
    let found = import(&module, &ImportOptions::default()).expect_err("two ranks");
    assert_eq!(found.len(), 1, "{found:?}");
    let message = "its condition must be known when the model is compiled: output 0 is f32[N] in one \
                   branch, f32[] in the other";
    assert_eq!(found[0].message, message);
    // The condition is another one in each iteration: no input of the model helps.
    assert_eq!(found[0].kind, NodeDiagnosticKind::NeedsValue(vec![]));
}

#[test]
fn inputs_that_are_given_are_checked_when_the_program_runs() {
    let truth = |value: u8| {
        Tensor::from_bytes(irc_tl::TensorType::new(DType::Bool, []), &[value]).expect("a truth")
    };
    let mut options = ImportOptions::default();
    options.values.insert("c".into(), Constant::of(&truth(0)));
    let imported = import(&branches(), &options).expect("a known condition");
    assert_eq!(imported.graph.nodes.iter().filter(|node| is_branch(&node.kind)).count(), 0);
    let x = || ("x", row(&[1.0]));
    assert_eq!(run(&imported, &[("c", truth(0)), x()]), Ok(vec![vec![-2.0]]));
    let error = run(&imported, &[("c", truth(1)), x()]).expect_err("another condition");
    assert!(error.contains("input 'c' is not what the model was compiled for"), "{error}");
}

fn is_branch(kind: &irc_tl::NodeKind) -> bool {
    matches!(kind, irc_tl::NodeKind::If { .. })
}

#[test]
fn a_loop_may_grow_what_it_carries() {
    let body = Graph {
        inputs: ["i", "go", "r"].map(Value::untyped).to_vec(),
        outputs: ["on", "longer", "last"].map(Value::untyped).to_vec(),
        nodes: vec![
            Node::new("Identity", ["go"], ["on"]),
            with(Node::new("Concat", ["r", "x"], ["longer"]), "axis", AttributeValue::Int(0)),
            with(Node::new("ReduceSum", ["longer"], ["last"]), "keepdims", AttributeValue::Int(0)),
        ],
        ..Graph::default()
    };
    let node = Node::new("Loop", ["n", "", "x"], ["y", "sums"]);
    let module = onnx(
        13,
        Graph {
            inputs: vec![ints("n", &[]), floats("x", &["N"])],
            outputs: vec![Value::untyped("y"), Value::untyped("sums")],
            nodes: vec![with(node, "body", AttributeValue::Graph(Box::new(body)))],
            ..Graph::default()
        },
    );
    let imported = imported(&module);
    let trips = |count: i64| {
        let count = Tensor::from_values([], &[count]).expect("a number");
        run(&imported, &[("n", count), ("x", row(&[1.0, 2.0]))]).expect("it ends")
    };
    assert_eq!(trips(2), [vec![1.0, 2.0, 1.0, 2.0, 1.0, 2.0], vec![6.0, 9.0]]);
    assert_eq!(trips(0), [vec![1.0, 2.0], vec![]]);
}

#[test]
fn a_loop_may_declare_its_iteration_as_a_vector() {
    let body = Graph {
        inputs: vec![ints("i", &[1]), Value::untyped("go"), Value::untyped("total")],
        outputs: ["on", "next", "squeezed"].map(Value::untyped).to_vec(),
        nodes: vec![
            with(Node::new("Squeeze", ["i"], ["squeezed"]), "axes", AttributeValue::Ints(vec![0])),
            Node::new("Identity", ["go"], ["on"]),
            Node::new("Add", ["total", "squeezed"], ["next"]),
        ],
        ..Graph::default()
    };
    let node = Node::new("Loop", ["n", "", "x"], ["y", "all"]);
    let module = onnx(
        11,
        Graph {
            inputs: vec![ints("n", &[]), ints("x", &[])],
            outputs: vec![Value::untyped("y"), Value::untyped("all")],
            nodes: vec![with(node, "body", AttributeValue::Graph(Box::new(body)))],
            ..Graph::default()
        },
    );
    let number = |value: i64| Tensor::from_values([], &[value]).expect("a number");
    let found = run(&imported(&module), &[("n", number(3)), ("x", number(10))]).expect("it ends");
    assert_eq!(found, [vec![13.0], vec![0.0, 1.0, 2.0]]);
}

#[test]
fn a_loop_without_iterations_collects_nothing_of_any_size() {
    let body = Graph {
        inputs: ["i", "go", "r"].map(Value::untyped).to_vec(),
        outputs: ["on", "r", "sum"].map(Value::untyped).to_vec(),
        nodes: vec![Node::new("Identity", ["go"], ["on"]), Node::new("Add", ["r", "x"], ["sum"])],
        ..Graph::default()
    };
    let node = Node::new("Loop", ["n", "", "start"], ["y", "sums"]);
    let module = onnx(
        13,
        Graph {
            inputs: vec![ints("n", &[]), floats("start", &["A"]), floats("x", &["B"])],
            outputs: vec![Value::untyped("y"), Value::untyped("sums")],
            nodes: vec![with(node, "body", AttributeValue::Graph(Box::new(body)))],
            ..Graph::default()
        },
    );
    let imported = imported(&module);
    let trips = |count: i64| {
        let count = Tensor::from_values([], &[count]).expect("a number");
        let inputs = [("n", count), ("start", row(&[1.0])), ("x", row(&[2.0, 3.0]))];
        run(&imported, &inputs).expect("it ends")
    };
    assert_eq!(trips(1), [vec![1.0], vec![3.0, 4.0]]);
    assert_eq!(trips(0), [vec![1.0], vec![]]);
}

/// Filters of 3 by 3 in `f32` may be transformed, which rounds.
#[test]
fn sums_of_integers_are_exact_whatever_computes_the_convolution() {
    let filters = FileTensor::raw("w", ElementType::Int8, [8, 8, 3, 3], vec![1u8; 576]);
    let image = Value::tensor("x", ElementType::Uint8, [1, 8, 12, 12]);
    let module = onnx(
        13,
        Graph {
            inputs: vec![image],
            outputs: vec![Value::untyped("y")],
            initializers: vec![filters],
            nodes: vec![Node::new("ConvInteger", ["x", "w"], ["y"])],
            ..Graph::default()
        },
    );
    let graph = imported(&module).graph;
    let is_conv =
        |node: &&irc_tl::Node| matches!(&node.kind, irc_tl::NodeKind::Op(irc_tl::Op::Conv(_)));
    let convolutions: Vec<_> = graph.nodes.iter().filter(is_conv).collect();
    assert_eq!(convolutions.len(), 1);
    assert_ne!(graph.ty(convolutions[0].operands[0]).dtype, DType::F32);
}

#[test]
fn sparse_tensors_are_dense_ones() {
    let elements = [2.0f32, 5.0].map(f32::to_le_bytes).concat();
    let places = [1i64, 2].map(i64::to_le_bytes).concat();
    let sparse = SparseTensor {
        values: Some(FileTensor::raw("v", ElementType::Float, [2], elements)),
        indices: Some(FileTensor::raw("i", ElementType::Int64, [2], places)),
        dims: vec![3],
    };
    let constant = Node::new("Constant", Vec::<String>::new(), ["c"]);
    let Some(FileType::Tensor(ty)) = floats("s", &["3"]).ty else { unreachable!("a tensor") };
    let sparse_type = FileType::Sparse(ty);
    let module = onnx(
        12,
        Graph {
            inputs: vec![Value::new("s", sparse_type.clone())],
            outputs: vec![Value::new("c", sparse_type), Value::untyped("y")],
            nodes: vec![
                with(constant, "value", AttributeValue::SparseTensor(Box::new(sparse))),
                Node::new("Add", ["s", "c"], ["y"]),
            ],
            ..Graph::default()
        },
    );
    let found = run(&imported(&module), &[("s", row(&[1.0, 0.0, 0.0]))]).expect("it fits");
    assert_eq!(found, [vec![0.0, 2.0, 5.0], vec![1.0, 2.0, 5.0]]);
}

#[test]
fn sequences_are_their_tensors() {
    let module = onnx(
        13,
        Graph {
            inputs: vec![Value::new(
                "s",
                irc_common_format::model::Type::Sequence(Some(Box::new(
                    irc_common_format::model::Type::unranked(ElementType::Float),
                ))),
            )],
            outputs: vec![Value::untyped("y"), Value::untyped("longer")],
            nodes: vec![
                with(Node::new("ConcatFromSequence", ["s"], ["y"]), "axis", AttributeValue::Int(0)),
                Node::new("SequenceInsert", ["s", "y"], ["longer"]),
            ],
            ..Graph::default()
        },
    );
    let diagnostics = import(&module, &ImportOptions::default()).expect_err("an unknown length");
    assert!(diagnostics[0].message.contains("its number of values"), "{diagnostics:?}");
    let part = |dims: Vec<Dim>| Structure::Tensor(Type::new(DType::F32, dims));
    let parts = vec![part(vec![Dim::symbol("N")]), part(vec![2.into()])];
    let mut options = ImportOptions::default();
    options.structures.insert("s".into(), Structure::Sequence(parts));
    let imported = import(&module, &options).expect("a known length");
    let names: Vec<&str> = imported.graph.inputs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["s[0]", "s[1]"]);
    let names: Vec<&str> = imported.graph.outputs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["y", "longer[0]", "longer[1]", "longer[2]"]);
    let inputs = [("s[0]", row(&[1.0])), ("s[1]", row(&[2.0, 3.0]))];
    assert_eq!(run(&imported, &inputs).expect("it fits")[0], [1.0, 2.0, 3.0]);
}

#[test]
fn what_the_structure_depends_on_is_named() {
    let squeeze = onnx(
        13,
        Graph {
            inputs: vec![floats("x", &["N", "1"])],
            outputs: vec![Value::untyped("y")],
            nodes: vec![Node::new("Squeeze", ["x"], ["y"]), Node::new("Neg", ["y"], ["z"])],
            ..Graph::default()
        },
    );
    let diagnostics = import(&squeeze, &ImportOptions::default()).expect_err("an unknown rank");
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    assert_eq!(diagnostics[0].kind, NodeDiagnosticKind::NeedsShape(vec!["x".into()]));
    let mut options = ImportOptions::default();
    options.shapes.insert("x".into(), vec![3, 1]);
    let graph = import(&squeeze, &options).expect("a known shape").graph;
    assert_eq!(graph.ty(graph.outputs[0].1).to_string(), "f32[3]");
    let transposed = onnx(
        13,
        Graph {
            inputs: vec![floats("x", &["N"]), ints("axes", &[1])],
            outputs: vec![Value::untyped("y")],
            nodes: vec![Node::new("Unsqueeze", ["x", "axes"], ["y"])],
            ..Graph::default()
        },
    );
    let diagnostics = import(&transposed, &ImportOptions::default()).expect_err("unknown axes");
    assert_eq!(diagnostics[0].kind, NodeDiagnosticKind::NeedsValue(vec!["axes".into()]));
}

#[test]
fn a_size_that_is_given_is_that_of_all_inputs_that_name_it() {
    let module = onnx(
        13,
        Graph {
            inputs: vec![floats("x", &["N", "2"]), floats("y", &["N", "M"])],
            outputs: vec![Value::untyped("z")],
            nodes: vec![Node::new("Neg", ["y"], ["z"])],
            ..Graph::default()
        },
    );
    let shapes = [("x".to_owned(), vec![3, 2])].into();
    let options = ImportOptions { shapes, ..ImportOptions::default() };
    let graph = import(&module, &options).expect("a known shape").graph;
    assert_eq!(graph.ty(graph.outputs[0].1).to_string(), "f32[3,M]");
}

#[test]
fn sizes_are_what_the_model_says_if_requested() {
    let module = onnx(
        13,
        Graph {
            inputs: vec![floats("x", &["N"]), ints("shape", &[2])],
            outputs: vec![Value::untyped("z")],
            values: vec![floats("y", &["2", "M"])],
            nodes: vec![
                Node::new("Reshape", ["x", "shape"], ["y"]),
                Node::new("Expand", ["y", "shape"], ["e"]),
                Node::new("ConstantOfShape", ["shape"], ["z"]),
            ],
            ..Graph::default()
        },
    );
    let options = ImportOptions { assume_stated_shapes: true, ..ImportOptions::default() };
    let imported = import(&module, &options).expect("a valid module");
    let eval = |shape: &[i64]| {
        run(&imported, &[("x", row(&[1.0; 6])), ("shape", whole(shape))])
            .map(|found| found[0].len())
    };
    assert_eq!(eval(&[2, 3]), Ok(6));
    assert!(eval(&[3, 2]).is_err());
}

/// A library's functions and operators, in a module that bundles it.
fn common_ir() -> Module {
    let linear = Function {
        name: Some("Linear".into()),
        domain: Some("com.example.nn.mlp".into()),
        inputs: ["x", "w", "b"].map(Value::untyped).to_vec(),
        outputs: vec![Value::untyped("y")],
        nodes: vec![
            Node { arg_counts: vec![1, 1], ..Node::new("Product", ["x", "w"], ["t"]) },
            Node {
                domain: Some("com.example.nn.mlp".into()),
                arg_counts: vec![1, 1],
                ..Node::new("Plus", ["t", "b"], ["y"])
            },
        ],
        ..Function::default()
    };
    let product = Function {
        name: Some("Product".into()),
        domain: Some("com.example.nn.mlp".into()),
        inputs: ["a", "b"].map(Value::untyped).to_vec(),
        outputs: vec![Value::untyped("c")],
        nodes: vec![Node::new("Dot", ["a", "b"], ["c"])],
        ..Function::default()
    };
    let call = Node {
        domain: Some("com.example.nn.mlp".into()),
        arg_counts: vec![1, 1, 1],
        ..Node::new("Linear", ["x", "w", "b"], ["h"]).named("l1")
    };
    Module {
        functions: vec![linear, product],
        graph: Some(Graph {
            inputs: vec![floats("x", &["N", "2"]), floats("w", &["2", "1"]), floats("b", &["1"])],
            outputs: vec![floats("z", &["N", "3"])],
            initializers: vec![
                FileTensor::floats("w", [2, 1], &[1.0, 10.0]),
                FileTensor::floats("b", [1], &[0.5]),
            ],
            nodes: vec![
                call,
                Node {
                    arg_counts: vec![2],
                    control_inputs: vec!["l1".into()],
                    ..with(
                        Node::new("Concatenate", ["h", "x"], ["z"]),
                        "axis",
                        AttributeValue::Int(1),
                    )
                },
            ],
            ..Graph::default()
        }),
        ..Module::default()
    }
}

#[test]
fn common_ir_calls_functions_of_its_libraries() {
    let module = common_ir();
    assert!(unsupported(&module).is_empty());
    let imported = imported(&module);
    assert_eq!(imported.defaults.keys().collect::<Vec<_>>(), ["b", "w"]);
    let x = Tensor::from_values([2, 2], &[1.0f32, 2.0, 3.0, 4.0]).expect("a matrix");
    let found = run(&imported, &[("x", x)]).expect("it fits");
    assert_eq!(found, [vec![21.5, 1.0, 2.0, 43.5, 3.0, 4.0]]);
}

#[test]
fn functions_that_call_each_other_end() {
    let mut module = common_ir();
    module.functions[1].nodes = vec![Node::new("Linear", ["a", "b", "b"], ["c"])];
    for calls in [Calls::Inlined, Calls::Outlined] {
        let options = ImportOptions { calls, ..ImportOptions::default() };
        let diagnostics = import(&module, &options).expect_err("a ring");
        assert!(diagnostics[0].message.contains("deep"), "{diagnostics:?}");
    }
}

#[test]
fn functions_whose_calls_double_end() {
    let domain = Some("d".to_owned());
    let call = |index: usize, from: &str, to: &str| Node {
        domain: domain.clone(),
        ..Node::new(format!("f{index}"), [from], [to])
    };
    let double = |index: usize| Function {
        domain: domain.clone(),
        name: Some(format!("f{index}")),
        inputs: vec![Value::untyped("x")],
        outputs: vec![Value::untyped("y")],
        nodes: match index {
            0 => vec![Node::new("Relu", ["x"], ["y"])],
            _ => vec![call(index - 1, "x", "a"), call(index - 1, "a", "y")],
        },
        ..Function::default()
    };
    let graph = Graph {
        inputs: vec![floats("x", &["N", "2"])],
        outputs: vec![floats("y", &["N", "2"])],
        nodes: vec![call(39, "x", "y")],
        ..Graph::default()
    };
    let module = Module { functions: (0..40).map(double).collect(), ..onnx(17, graph) };
    // Calls that cannot be outlined are inlined: both are limited.
    let options = ImportOptions { calls: Calls::Outlined, ..ImportOptions::default() };
    let diagnostics = import(&module, &options).expect_err("too many nodes");
    assert!(diagnostics[0].message.contains("more than"), "{diagnostics:?}");
}

fn kinds(graph: &irc_tl::Graph, kind: fn(&irc_tl::NodeKind) -> bool) -> Vec<&irc_tl::NodeKind> {
    graph.nodes.iter().map(|node| &node.kind).filter(|own| kind(own)).collect()
}

#[test]
fn calls_of_one_function_are_equal_graphs() {
    let mut module = common_ir();
    let graph = module.graph.as_mut().expect("a graph");
    // The same function twice, of other arguments.
    let again = Node { outputs: vec!["h2".into()], ..graph.nodes[0].clone() }.named("l2");
    graph.nodes.insert(1, again);
    graph.nodes[2].inputs[1] = "h2".into();
    graph.outputs = vec![floats("z", &["N", "2"])];
    let x = Tensor::from_values([2, 2], &[1.0f32, 2.0, 3.0, 4.0]).expect("a matrix");
    let inlined = run(&imported(&module), &[("x", x.clone())]).expect("it fits");
    let options = ImportOptions { calls: Calls::Outlined, ..ImportOptions::default() };
    let outlined = import(&module, &options).expect("a graph");
    let calls = kinds(&outlined.graph, |kind| matches!(kind, irc_tl::NodeKind::Call { .. }));
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0], calls[1]);
    assert_eq!(run(&outlined, &[("x", x)]).expect("it fits"), inlined);
}

#[test]
fn control_inputs_order_nodes() {
    let mut module = common_ir();
    let graph = module.graph.as_mut().expect("a graph");
    // A node without users still runs if another waits for it.
    let dead = Node { arg_counts: vec![1], ..Node::new("Neg", ["x"], ["unused"]).named("dead") };
    graph.nodes.insert(0, dead);
    graph.nodes[2].control_inputs.push("dead".into());
    let after = |graph: &irc_tl::Graph| {
        let kind = |kind: &irc_tl::NodeKind| *kind == irc_tl::NodeKind::After;
        kinds(graph, kind).len()
    };
    let x = Tensor::from_values([1, 2], &[1.0f32, 2.0]).expect("a matrix");
    let ordered = imported(&module);
    assert_eq!(after(&ordered.graph), 2);
    let options = ImportOptions { ignore_control_inputs: true, ..ImportOptions::default() };
    let free = import(&module, &options).expect("a graph");
    assert_eq!(after(&free.graph), 0);
    assert_eq!(free.graph.nodes.len() + 3, ordered.graph.nodes.len());
    let values = |imported| run(imported, &[("x", x.clone())]).expect("it fits");
    assert_eq!(values(&ordered), values(&free));
}

#[test]
fn attributes_of_functions_have_defaults() {
    let leaky = Function {
        name: Some("Scaled".into()),
        domain: Some("local".into()),
        inputs: vec![Value::untyped("x")],
        outputs: vec![Value::untyped("y")],
        attributes: vec![Attribute::new("slope", AttributeValue::Float(0.5))],
        opsets: vec![Opset { domain: None, version: 16 }],
        nodes: vec![with(
            Node::new("LeakyRelu", ["x"], ["y"]),
            "alpha",
            AttributeValue::Reference { name: "slope".into(), kind: None },
        )],
        ..Function::default()
    };
    let call = |output: &str| Node {
        domain: Some("local".into()),
        ..Node::new("Scaled", ["x"], [output])
    };
    let mut module = onnx(
        16,
        Graph {
            inputs: vec![floats("x", &["N"])],
            outputs: vec![Value::untyped("a"), Value::untyped("b")],
            nodes: vec![call("a"), with(call("b"), "slope", AttributeValue::Float(0.25))],
            ..Graph::default()
        },
    );
    module.functions.push(leaky);
    let found = run(&imported(&module), &[("x", row(&[-2.0, 2.0]))]).expect("any size");
    assert_eq!(found, [vec![-1.0, 2.0], vec![-0.5, 2.0]]);
}
