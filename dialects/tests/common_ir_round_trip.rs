//! Import, print, parse, export: the same module of the format, through text and bytecode.
use irc_common_format::model::*;
use irc_common_format::{ExternalData, Options, open};
use irc_dialects::common_ir::{Origins, export, import, module_op};
use irc_mlir::{
    Capture, Context, Frame, OperationLike, frames, parse_bytecode, parse_module, read::body_ops,
    to_bytecode, to_text,
};
use std::{
    fs,
    path::{Path as FilePath, PathBuf},
};

fn files(folder: &FilePath, suffixes: &[&str]) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        println!("skipped: no files in {}", folder.display());
        return vec![];
    };
    let mut found = vec![];
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            found.extend(files(&path, suffixes));
        } else if suffixes.iter().any(|suffix| path.to_string_lossy().ends_with(suffix)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

const SUFFIXES: [&str; 5] = [".onnx", ".json", ".pbtxt", "library.pb", "graph.pb"];

/// The files that the format's crate carries, those of the corpus, and those of the folder
/// `IRC_MODELS`, if that is set.
fn all_files() -> Vec<PathBuf> {
    let own = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../formats/common_ir/tests/data");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpus");
    let root = std::env::var("IRC_CORPUS").unwrap_or_else(|_| root.to_owned());
    let corpus = PathBuf::from(root).join("common_ir");
    let mut found = files(&own, &[".onnx", ".json", ".pbtxt", ".pb"]);
    assert_eq!(found.len(), 7, "the files that the crate carries");
    found.extend(files(&corpus.join("era"), &[".pb", ".onnx"]));
    found.extend(files(&corpus.join("samples"), &SUFFIXES));
    found.extend(files(&corpus.join("models"), &[".onnx"]));
    if let Some(more) = std::env::var_os("IRC_MODELS") {
        found.extend(files(FilePath::new(&more), &[".onnx"]));
    }
    found
}

/// Whether two modules say the same; numbers that are none are compared as they print.
fn same(left: &Module, right: &Module) -> bool {
    left == right || format!("{left:?}") == format!("{right:?}")
}

fn assert_round_trip(context: &Context, what: &str, module: &Module, origins: &Origins) {
    let capture = Capture::new(context);
    let made = import(context, module, origins);
    assert!(made.as_operation().verify(), "{what}: {:?}", capture.take());
    let exported = |made: &irc_mlir::Module<'_>, how: &str| {
        let root = module_op(made.as_operation()).expect("a module");
        let found = export(root).unwrap_or_else(|_| panic!("{what}, {how}: {:?}", capture.take()));
        assert!(same(&found.module, module), "{what}, {how}");
    };
    exported(&made, "at once");
    let text = to_text(&made.as_operation(), true);
    let parsed = parse_module(context, &text);
    exported(&parsed.unwrap_or_else(|| panic!("{what}: {:?}", capture.take())), "as text");
    let parsed = parse_bytecode(context, &to_bytecode(&made));
    exported(&parsed.unwrap_or_else(|| panic!("{what}: {:?}", capture.take())), "as bytecode");
}

#[test]
fn files_come_back() {
    let mut count = 0;
    for path in all_files() {
        // A context holds its resources until it goes.
        let context = irc_dialects::new_context();
        let options = Options { external: ExternalData::Leave, ..Options::default() };
        let mut sink = irc_diag::Sink::new();
        let document = open(&path, &options, &mut sink);
        let name = path.display().to_string();
        let document = document.unwrap_or_else(|| panic!("{name}: {:?}", sink.diagnostics()));
        assert_round_trip(&context, &name, &document.module, &Origins::of(&document));
        count += 1;
    }
    println!("{count} files come back");
}

fn literal(name: &str, value: AttributeValue) -> Attribute {
    Attribute::new(name, value)
}

fn data(data: TensorData) -> Tensor {
    Tensor { element: ElementType::Float16, dims: vec![-1, 3], data, ..Tensor::default() }
}

/// Every kind of value of an attribute.
fn literals() -> Vec<Attribute> {
    use AttributeValue as V;
    let nan = f32::from_bits(0x7fc0_1234);
    let odd: bytes::Bytes = vec![0xff, 0, b'"', b'\\'].into();
    let tensor = || Tensor::ints("t", [2], &[1, -2]);
    let sparse = SparseTensor {
        dims: vec![4],
        indices: Some(Tensor { name: None, ..tensor() }),
        values: Some(Tensor::floats("s", [2], &[0.5, f32::NAN])),
    };
    let shape = Shape::new(["n", "m*", ""]);
    let mut list = vec![
        literal("nothing", V::Nothing),
        literal("float", V::Float(nan)),
        literal("int", V::Int(i64::MIN)),
        literal("string", V::String(odd.clone())),
        literal("tensor", V::Tensor(Box::new(tensor()))),
        literal("sparse", V::SparseTensor(Box::new(sparse.clone()))),
        literal("type", V::Type(Box::new(Type::Sequence(None)))),
        literal("shape", V::Shape(shape.clone())),
        literal("floats", V::Floats(vec![nan, -0.0, 1e-40, f32::INFINITY])),
        literal("ints", V::Ints(vec![0, -1])),
        literal("strings", V::Strings(vec![odd, "".into()])),
        literal("tensors", V::Tensors(vec![tensor(), data(TensorData::Nothing)])),
        literal("sparses", V::SparseTensors(vec![sparse, SparseTensor::default()])),
        literal("types", V::Types(vec![Type::Handle])),
        literal("shapes", V::Shapes(vec![shape])),
        literal("reference", V::Reference { name: "a".into(), kind: None }),
        literal("kind", V::Reference { name: "a".into(), kind: Some(AttributeKind::Ints) }),
        // The same name again, and none at all.
        literal("int", V::Int(1)),
    ];
    list.push(Attribute { name: None, value: V::Int(2), doc: Some("said".into()) });
    list
}

/// Every way to hold elements.
fn tensors() -> Vec<Tensor> {
    let raw = |element, dims: &[i64], bytes: Vec<u8>| Tensor::raw("", element, dims, bytes);
    let external = External {
        location: "weights.bin".into(),
        offset: u64::MAX,
        length: Some(4),
        others: vec![("checksum".into(), "ab".into())],
        bytes: None,
    };
    let counted = |count: u8| (0..count).collect::<Vec<u8>>();
    let mut tensors = vec![
        data(TensorData::Nothing),
        data(TensorData::Raw(counted(200).into())),
        data(TensorData::Floats(vec![f32::NAN, 1.0])),
        data(TensorData::Floats((0..200_u8).map(f32::from).collect())),
        data(TensorData::Ints32(vec![1, i32::MIN])),
        data(TensorData::Ints64(vec![i64::MAX])),
        data(TensorData::Doubles(vec![0.1, -0.0])),
        data(TensorData::Uints64(vec![u64::MAX])),
        data(TensorData::Strings(vec![vec![0xff, 0].into(), "".into()])),
        data(TensorData::External(external)),
        raw(ElementType::Float, &[2, 1], counted(8)),
        raw(ElementType::Float, &[2, 1], counted(7)),
        raw(ElementType::Float, &[64], counted(255).into_iter().chain([9]).collect()),
        raw(ElementType::Float, &[0, 3], vec![]),
        raw(ElementType::Double, &[], counted(8)),
        raw(ElementType::Int64, &[3], vec![7; 24]),
        raw(ElementType::Bool, &[3], vec![1, 0, 1]),
        raw(ElementType::Bool, &[3], vec![1, 2, 1]),
        raw(ElementType::Bool, &[2], vec![1, 1]),
        raw(ElementType::Int4, &[3], vec![0x21, 0x03]),
        raw(ElementType::Int4, &[3], vec![0x21, 0xf3]),
        raw(ElementType::Uint2, &[5], vec![0xe4, 0x02]),
        raw(ElementType::Float4E2M1, &[2], vec![0xfa]),
        raw(ElementType::Float6E2M3, &[4], vec![1, 2, 3]),
        raw(ElementType::Float8E5M2, &[2], vec![0x7f, 0x80]),
        raw(ElementType::Float8E8M0, &[2], vec![0xff, 0x00]),
        raw(ElementType::Complex64, &[1], counted(8)),
        raw(ElementType::Bfloat16, &[2], vec![0xc0, 0x7f, 0, 0x80]),
        raw(ElementType::String, &[1], vec![1]),
        raw(ElementType::Other(99), &[1], vec![1]),
    ];
    for (index, tensor) in tensors.iter_mut().enumerate() {
        tensor.name = Some(format!("tensor {index}"));
    }
    tensors[0].segment = Some(Segment { begin: Some(1), end: None });
    tensors[1].doc = Some("said".into());
    tensors[2].properties = vec![("k".into(), "v".into()), ("k".into(), String::new())];
    tensors.push(Tensor::default());
    tensors
}

fn graph() -> Graph {
    let then = Graph {
        name: Some("then".into()),
        outputs: vec![Value::untyped("x"), Value::untyped("late")],
        ..Graph::default()
    };
    let inner = Graph {
        inputs: vec![Value::untyped("i")],
        outputs: vec![Value::untyped("o")],
        nodes: vec![Node::new("Add", ["i", "late"], ["o"])],
        quantizations: vec![Quantization {
            tensor: Some("o".into()),
            parameters: vec![("SCALE_TENSOR".into(), "s".into())],
        }],
        ..Graph::default()
    };
    let mut branch = Node::new("If", ["x", "", "y", ""], ["a", "", "b"]);
    branch.attributes = literals();
    branch.attributes.insert(2, literal("g", AttributeValue::Graph(Box::new(then.clone()))));
    branch.attributes.push(literal("gs", AttributeValue::Graphs(vec![inner, then])));
    branch.name = Some("branch".into());
    branch.overload = Some("o".into());
    branch.arg_counts = vec![1, -1, 0];
    branch.control_inputs = vec!["late node".into()];
    let half = Type::tensor(ElementType::Float16, ["n"]);
    branch.input_types = vec![Value { ty: Some(half.clone()), ..Value::default() }];
    branch.output_types = vec![
        Value { ty: Some(half.clone()), ..Value::default() },
        Value::default(),
        Value { shape: Some(Shape::new([1])), ..Value::default() },
    ];
    let late = Node::new("Neg", ["unknown"], ["late"]).named("late node");
    let described = Value {
        denotation: Some("IMAGE".into()),
        doc: Some("said".into()),
        properties: vec![("k".into(), "v".into())],
        ..Value::new("x", half.clone())
    };
    Graph {
        inputs: vec![described, Value::untyped("y"), Value::default()],
        outputs: vec![
            Value::new("b", half),
            Value::untyped("a"),
            Value::untyped("nobody"),
            Value::default(),
            Value::untyped(""),
        ],
        values: vec![
            Value::tensor("b", ElementType::Float, [2]),
            Value::untyped("late"),
            Value::untyped("gone"),
            Value::tensor("x", ElementType::Double, [1]),
        ],
        initializers: tensors().into_iter().chain([Tensor::floats("y", [1], &[2.0])]).collect(),
        sparse_initializers: vec![SparseTensor {
            dims: vec![3, 3],
            values: Some(Tensor::floats("sparse", [1], &[1.0])),
            indices: None,
        }],
        nodes: vec![branch, late],
        properties: vec![("p".into(), "q".into())],
        ..Graph::default()
    }
}

#[test]
fn whatever_a_module_can_say_comes_back() {
    let function = Function {
        name: Some("Twice".into()),
        overload: Some("f".into()),
        inputs: vec![Value::untyped("a")],
        outputs: vec![Value::untyped("b"), Value::untyped("a")],
        attributes: vec![literal("k", AttributeValue::Nothing)],
        values: vec![Value::tensor("b", ElementType::Float, [2])],
        nodes: vec![Node::new("Add", ["a", "a"], ["b"])],
        opsets: vec![Opset { domain: None, version: 7 }],
        ..Function::default()
    };
    let signature = Signature {
        inputs: vec![Value::untyped("x"), Value::default()],
        outputs: vec![Value::new("t", Type::Tuple(vec![Type::Handle]))],
        attributes: vec![Value { doc: Some("optional".into()), ..Value::untyped("axis") }],
        doc: Some("said".into()),
    };
    let operator = Operator {
        name: Some("Op".into()),
        signatures: vec![signature, Signature::default()],
        ..Operator::default()
    };
    let module = Module {
        schema: Schema::Onnx,
        metadata: Metadata {
            name: Some("whole".into()),
            domain: Some(String::new()),
            ir_version: Some(-1),
            model_version: Some(i64::MAX),
            producer_version: Some(ProducerVersion::Text("1".into())),
            properties: vec![("k".into(), "\n\"é".into())],
            ..Metadata::default()
        },
        imports: vec!["libs/a.pb".into()],
        opsets: vec![Opset { domain: Some(String::new()), version: 21 }],
        operators: vec![operator, Operator::default()],
        functions: vec![function, Function::default()],
        graph: Some(graph()),
    };
    let context = irc_dialects::new_context();
    assert_round_trip(&context, "module", &module, &Origins::default());
    let library = Module { graph: None, schema: Schema::CommonIr, ..module };
    assert_round_trip(&context, "library", &library, &Origins::default());
    assert_round_trip(&context, "nothing", &Module::default(), &Origins::default());
}

#[test]
fn nodes_have_their_place_in_the_file() {
    let path =
        FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../lit_tests/common_ir/inputs/chain.pbtxt");
    let mut sink = irc_diag::Sink::new();
    let document = open(&path, &Options::default(), &mut sink).expect("a document");
    let context = irc_dialects::new_context();
    let module = import(&context, &document.module, &Origins::of(&document));
    let root = module_op(module.as_operation()).expect("a module");
    let graph = body_ops(root).pop().expect("a graph");
    let nodes = body_ops(graph);
    let text = fs::read_to_string(&path).expect("a file");
    let mut seen = vec![];
    for node in nodes.iter().filter(|op| irc_mlir::read::op_name(*op) == "common_ir.node") {
        let frames = frames(node.location());
        let [Frame::Name(name), Frame::File { line, .. }] = &frames[..] else {
            panic!("{frames:?}");
        };
        seen.push(name.clone());
        assert!(text.lines().nth(line - 1).is_some_and(|line| line == "node {"), "{line}");
    }
    assert_eq!(seen, ["graph.node[0]", "graph.node[1]", "graph.node[2]"]);
}

#[test]
fn what_is_mapped_is_not_copied_on_import() {
    let bytes = bytes::Bytes::from(vec![7_u8; 1 << 20]);
    let tensor = Tensor::raw("w", ElementType::Uint8, [1 << 20], bytes.clone());
    let graph = Graph { initializers: vec![tensor], ..Graph::default() };
    let module = Module { graph: Some(graph), ..Module::default() };
    let context = irc_dialects::new_context();
    let made = import(&context, &module, &Origins::default());
    drop(module);
    // The context holds the same memory, until it goes.
    assert!(!bytes.is_unique());
    drop(made);
    drop(context);
    assert!(bytes.is_unique());
}
