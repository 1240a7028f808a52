//! A small graph and a small library with all features of Common IR.

use irc_common_format::model::*;

fn float(name: &str, dims: &[&str]) -> Value {
    Value::tensor(name, ElementType::Float, dims.iter().copied())
}

/// A graph with a function, its call, another library's call, counts, control inputs, wildcards.
pub fn graph() -> Module {
    let function = Function {
        name: Some("Twice".into()),
        inputs: vec![float("a", &["n", "m*"])],
        outputs: vec![float("b", &["n", "m*"])],
        attributes: vec![Attribute::new("times", AttributeValue::Int(2))],
        nodes: vec![Node { arg_counts: vec![1, 1], ..Node::new("Add", ["a", "a"], ["b"]) }],
        ..Function::default()
    };
    let call = Node { arg_counts: vec![1], ..Node::new("Twice", ["x"], ["t"]).named("first") };
    let clip = Node {
        domain: Some("com.example.nn.mlp".into()),
        arg_counts: vec![1, 0, 1],
        control_inputs: vec!["first".into()],
        attributes: vec![
            Attribute::new("alpha", AttributeValue::Float(0.5)),
            Attribute::new("axes", AttributeValue::Ints(vec![0, -1])),
            Attribute::new("mode", AttributeValue::String("edge".into())),
        ],
        output_types: vec![Value { name: None, ..float("", &["?", "4"]) }],
        ..Node::new("Clip", ["t", "w"], ["y"]).named("second")
    };
    let mut module = Module {
        metadata: Metadata {
            name: Some("small".into()),
            domain: Some("com.example".into()),
            ir_version: Some(1),
            model_version: Some(3),
            author: Some("someone".into()),
            license: Some("MIT".into()),
            producer: Some("hand-1".into()),
            producer_version: Some(ProducerVersion::Number(20_000)),
            doc: Some("A *small* model.".into()),
            properties: vec![],
        },
        imports: vec!["libs/mlp.pb".into(), "https://example.com/b.pb".into()],
        functions: vec![function],
        graph: Some(Graph {
            inputs: vec![float("x", &["n", "m*"]), Value::untyped("w")],
            outputs: vec![Value::tensor("y", ElementType::Float, [2, 3])],
            nodes: vec![call, clip],
            initializers: vec![Tensor::floats("w", [], &[6.0])],
            ..Graph::default()
        }),
        ..Module::default()
    };
    // An unspecified dimension has no text.
    let ty = &mut module.graph.as_mut().expect("a graph").nodes[1].output_types[0].ty;
    if let Some(Type::Tensor(TensorType { shape: Some(shape), .. })) = ty {
        shape.dims = vec![Dim::Unknown, Dim::Size(4)];
    }
    module
}

/// A library with overloads, a variadic parameter, an attribute, every kind of type.
pub fn library() -> Module {
    let axis = Value::tensor("axis", ElementType::Int64, [] as [i64; 0]);
    let any = |element| Value::tensor("inputs", element, ["*"]);
    let signature = |element| Signature {
        inputs: vec![any(element)],
        outputs: vec![Value { doc: Some("joined".into()), ..any(element) }],
        attributes: vec![axis.clone()],
        doc: None,
    };
    let float_type = || Box::new(Type::unranked(ElementType::Float));
    let map = Type::Map { key: ElementType::String, value: Some(float_type()) };
    let tuple = Type::Tuple(vec![Type::Handle, Type::Sequence(Some(Box::new(map)))]);
    let sparse = TensorType { element: ElementType::Double, shape: Some(Shape::new(["n", "n"])) };
    let pack = Signature {
        inputs: vec![Value::new("handle", Type::Handle), Value::new("s", Type::Sparse(sparse))],
        outputs: vec![Value::new("packed", tuple)],
        ..Signature::default()
    };
    let operator = |name: &str, signatures| Operator {
        name: Some(name.into()),
        signatures,
        doc: Some("A declared operator.".into()),
        ..Operator::default()
    };
    let join = vec![signature(ElementType::Float), signature(ElementType::Int32)];
    Module {
        metadata: Metadata {
            name: Some("mlp".into()),
            domain: Some("com.example.nn".into()),
            ir_version: Some(1),
            model_version: Some(1),
            ..Metadata::default()
        },
        operators: vec![operator("Concatenate", join), operator("Pack", vec![pack])],
        functions: vec![Function {
            name: Some("Linear".into()),
            inputs: vec![float("x", &["B", "I"]), float("w", &["I", "O"])],
            outputs: vec![float("y", &["B", "O"])],
            nodes: vec![Node { arg_counts: vec![1, 1], ..Node::new("Dot", ["x", "w"], ["y"]) }],
            ..Function::default()
        }],
        ..Module::default()
    }
}
