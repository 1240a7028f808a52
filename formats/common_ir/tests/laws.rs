//! Any module that a form can represent is equal after writing and reading.

use irc_common_format::model::*;
use irc_common_format::write::{self, Target, write};
use irc_common_format::{Encoding, Format, Options, Root, read};
use irc_diag::Sink;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

fn name() -> impl Strategy<Value = String> {
    "[a-z_][a-z0-9_]{0,5}"
}

fn text() -> impl Strategy<Value = String> {
    // Quotes, escapes, line ends, and multibyte characters.
    "[a-z \"'\\\\\n<é漢]{1,6}"
}

fn element() -> impl Strategy<Value = ElementType> {
    (1..=15).prop_map(ElementType::from_number)
}

fn dim() -> impl Strategy<Value = Dim> {
    let size = any::<i64>().prop_map(Dim::Size);
    let wildcard = of(name()).prop_map(Dim::Wildcard);
    prop_oneof![size, name().prop_map(Dim::Variable), wildcard, Just(Dim::Unknown)]
}

fn shape() -> impl Strategy<Value = Shape> {
    vec(dim(), 0..4).prop_map(Shape::new)
}

fn tensor_type() -> impl Strategy<Value = Type> {
    let ty = (element(), of(shape())).prop_map(|(element, shape)| TensorType { element, shape });
    (ty, any::<bool>())
        .prop_map(|(ty, dense)| if dense { Type::Tensor(ty) } else { Type::Sparse(ty) })
}

/// Element types in Common IR have no shapes.
fn inner_type() -> impl Strategy<Value = Type> {
    let map = (element(), of(element())).prop_map(|(key, value)| Type::Map {
        key,
        value: value.map(|element| Box::new(Type::unranked(element))),
    });
    let leaf = prop_oneof![element().prop_map(Type::unranked), Just(Type::Handle), map];
    leaf.prop_recursive(3, 8, 3, |inner| {
        let list = of(inner.clone()).prop_map(|of| Type::Sequence(of.map(Box::new)));
        prop_oneof![list, vec(inner, 0..3).prop_map(Type::Tuple)]
    })
}

fn value() -> impl Strategy<Value = Value> {
    let plain = (name(), of(tensor_type())).prop_map(|(name, ty)| match ty {
        Some(ty) => Value::new(name, ty),
        None => Value::untyped(name),
    });
    let other = (name(), inner_type(), of(shape())).prop_map(|(name, ty, shape)| {
        let mut value = Value::new(name, ty);
        match &mut value.ty {
            Some(Type::Tensor(tensor)) => tensor.shape = shape,
            _ => value.shape = shape,
        }
        value
    });
    prop_oneof![plain, other]
}

fn tensor() -> impl Strategy<Value = Tensor> {
    let bytes = || vec(any::<u8>(), 0..9).prop_map(bytes::Bytes::from);
    let data = prop_oneof![
        Just(TensorData::Nothing),
        bytes().prop_map(TensorData::Raw),
        vec(-1e30_f32..1e30, 1..4).prop_map(TensorData::Floats),
        vec(any::<i32>(), 1..4).prop_map(TensorData::Ints32),
        vec(any::<i64>(), 1..4).prop_map(TensorData::Ints64),
        vec(-1e300..1e300, 1..4).prop_map(TensorData::Doubles),
        vec(bytes(), 1..4).prop_map(TensorData::Strings),
    ];
    // ONNX has another field for unsigned numbers.
    let element = element().prop_filter("unsigned", |element| {
        !matches!(element, ElementType::Uint32 | ElementType::Uint64)
    });
    (of(name()), element, vec(any::<i64>(), 0..3), data).prop_map(|(name, element, dims, data)| {
        Tensor { name, element, dims, data, ..Tensor::default() }
    })
}

fn attribute_value() -> impl Strategy<Value = AttributeValue> {
    use AttributeValue as V;
    let string = || text().prop_map(bytes::Bytes::from);
    prop_oneof![
        Just(V::Nothing),
        (-1e30_f32..1e30).prop_map(V::Float),
        any::<i64>().prop_map(V::Int),
        string().prop_map(V::String),
        tensor().prop_map(|tensor| V::Tensor(Box::new(tensor))),
        inner_type().prop_map(|ty| V::Type(Box::new(ty))),
        shape().prop_map(V::Shape),
        vec(-1e30_f32..1e30, 1..4).prop_map(V::Floats),
        vec(any::<i64>(), 1..4).prop_map(V::Ints),
        vec(string(), 1..3).prop_map(V::Strings),
        vec(tensor(), 1..3).prop_map(V::Tensors),
        vec(inner_type(), 1..3).prop_map(V::Types),
        vec(shape(), 1..3).prop_map(V::Shapes),
    ]
}

fn attributes() -> impl Strategy<Value = Vec<Attribute>> {
    let attribute = (name(), attribute_value());
    vec(attribute.prop_map(|(name, value)| Attribute::new(name, value)), 0..3)
}

fn node() -> impl Strategy<Value = Node> {
    let names = || vec(name(), 0..4);
    let typed =
        vec(value().prop_map(|value| Value { name: None, ..value }), 0..2).prop_map(|mut types| {
            // A list of types ends with a present one.
            while types.last().is_some_and(|last| last.ty.is_none()) {
                types.pop();
            }
            types
        });
    let about = (of(name()), of("com\\.[a-z]{1,3}"), "[A-Z][a-z]{0,3}", of(text()));
    let lists = (names(), names(), vec(0..3_i32, 0..4), names());
    (about, lists, attributes(), typed).prop_map(
        |((name, domain, op, doc), (inputs, outputs, arg_counts, control), attributes, types)| {
            Node {
                name,
                domain,
                doc,
                attributes,
                arg_counts,
                control_inputs: control,
                output_types: types,
                ..Node::new(op, inputs, outputs)
            }
        },
    )
}

fn graph() -> impl Strategy<Value = Graph> {
    let values = || vec(value(), 0..3);
    let leaf = (values(), values(), vec(tensor(), 0..2), vec(node(), 0..4)).prop_map(
        |(inputs, outputs, initializers, nodes)| Graph {
            inputs,
            outputs,
            initializers,
            nodes,
            ..Graph::default()
        },
    );
    leaf.prop_recursive(2, 4, 2, |inner| {
        (inner.clone(), inner, name(), node()).prop_map(|(mut outer, mut inner, name, mut node)| {
            inner.name = Some(name);
            let value = AttributeValue::Graph(Box::new(inner));
            node.attributes.push(Attribute::new("body", value));
            outer.nodes.push(node);
            outer
        })
    })
}

fn module() -> impl Strategy<Value = Module> {
    let named = |value: Value| Value { doc: Some("said".into()), ..value };
    let parameters = move || vec(value().prop_map(named), 0..3);
    let signature = (parameters(), parameters(), parameters(), of(text())).prop_map(
        |(inputs, outputs, attributes, doc)| Signature { inputs, outputs, attributes, doc },
    );
    let operator =
        (of(name()), vec(signature, 0..2), of(text())).prop_map(|(name, signatures, doc)| {
            Operator { name, signatures, doc, ..Operator::default() }
        });
    let function = (name(), parameters(), attributes(), vec(node(), 0..3)).prop_map(
        |(name, inputs, attributes, nodes)| Function {
            name: Some(name),
            outputs: inputs.clone(),
            inputs,
            attributes,
            nodes,
            ..Function::default()
        },
    );
    let metadata = (of(name()), of(1..9_i64), of(any::<i64>()), of(text()), of(0..10_000_000_i64));
    let metadata = metadata.prop_map(|(name, ir_version, model_version, doc, version)| Metadata {
        name,
        domain: Some("com.own".into()),
        ir_version,
        model_version,
        author: doc.clone(),
        producer_version: version.map(ProducerVersion::Number),
        doc,
        ..Metadata::default()
    });
    // A file with only a name and a domain is a library.
    let graph = graph().prop_filter("a graph has nodes, inputs or outputs", |graph| {
        !(graph.nodes.is_empty() && graph.inputs.is_empty() && graph.outputs.is_empty())
    });
    (metadata, vec(text(), 0..2), vec(operator, 0..2), vec(function, 0..2), graph).prop_map(
        |(metadata, imports, operators, functions, graph)| Module {
            metadata,
            imports,
            operators,
            functions,
            graph: Some(graph),
            ..Module::default()
        },
    )
}

fn check(module: &Module, target: Target, root: Root) -> Result<(), TestCaseError> {
    for encoding in Encoding::ALL {
        let mut sink = Sink::new();
        let options = write::Options { encoding, ..write::Options::binary(target) };
        let bytes = write(module, &options, &mut sink);
        prop_assert!(sink.diagnostics().is_empty(), "{:?}", sink.diagnostics());
        let format = Format { root: Some(root), encoding: Some(encoding) };
        let options = Options { format, ..Options::default() };
        let found = read("again", bytes.expect("a file").into(), &options, &mut sink);
        prop_assert!(sink.diagnostics().is_empty(), "{:?}", sink.diagnostics());
        prop_assert_eq!(&found.expect("a module").module, module);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn common_ir_comes_back(module in module()) {
        check(&module, Target::CommonIr, Root::Graph)?;
    }

    #[test]
    fn common_ir_comes_back_from_its_carrier(module in module()) {
        check(&module, Target::Carrier, Root::Model)?;
    }

    #[test]
    fn libraries_come_back(module in module()) {
        let library = Module { graph: None, ..module };
        check(&library, Target::CommonIr, Root::Library)?;
    }
}
