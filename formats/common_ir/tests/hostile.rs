//! Invalid files are rejected with located diagnostics, never a panic.

use crate::support::small;
use irc_common_format::model::*;
use irc_common_format::write::{self, Target, write};
use irc_common_format::{Document, Encoding, Format, Options, Root, read};
use irc_diag::{Diagnostic, Sink};

fn try_read(bytes: &[u8], format: Format) -> (Option<Document>, Vec<Diagnostic>) {
    let mut sink = Sink::new();
    let options = Options { format, ..Options::default() };
    let document = read("hostile", bytes.to_vec().into(), &options, &mut sink);
    assert!(document.is_some() || sink.has_errors(), "rejected without a diagnostic");
    (document, sink.into_diagnostics())
}

#[test]
fn a_byte_order_mark_changes_no_location() {
    for encoding in [Encoding::Json, Encoding::Text] {
        let plain = bytes(&small::graph(), Target::CommonIr, encoding);
        let marked = [b"\xef\xbb\xbf", &*plain].concat();
        let locate = |bytes: &[u8]| {
            let (document, diagnostics) = try_read(bytes, Format::default());
            assert_eq!(diagnostics, []);
            document.expect("a graph").input.locate("node[0]").expect("a node")
        };
        let (before, after) = (locate(&plain), locate(&marked));
        assert_eq!(plain[before], marked[after], "{encoding:?}");
    }
}

/// Diagnostics about the whole file, which have no location.
const WHOLE: [&str; 2] = ["cir-ambiguous", "cir-root"];

/// Code and location of each diagnostic: its path, or the text it points at.
fn found(bytes: &[u8], format: Format) -> Vec<(&'static str, String)> {
    let place = |diagnostic: Diagnostic| {
        let is_placed = diagnostic.notes.iter().any(|note| note.starts_with("at byte "))
            || diagnostic.primary_span().is_some()
            || WHOLE.contains(&diagnostic.code);
        assert!(is_placed, "{diagnostic:?}");
        (diagnostic.code, diagnostic.path.unwrap_or_default())
    };
    try_read(bytes, format).1.into_iter().map(place).collect()
}

fn format(root: Root, encoding: Encoding) -> Format {
    Format { root: Some(root), encoding: Some(encoding) }
}

fn bytes(module: &Module, target: Target, encoding: Encoding) -> Vec<u8> {
    let options = write::Options { encoding, ..write::Options::binary(target) };
    write(module, &options, &mut Sink::new()).expect("a file")
}

fn onnx(graph: Graph) -> Module {
    Module { schema: Schema::Onnx, graph: Some(graph), ..Module::default() }
}

#[test]
fn every_start_of_a_file_is_explained() {
    let files = [
        (bytes(&small::graph(), Target::CommonIr, Encoding::Binary), Root::Graph),
        (bytes(&small::library(), Target::CommonIr, Encoding::Binary), Root::Library),
        (bytes(&small::graph(), Target::Carrier, Encoding::Binary), Root::Model),
    ];
    for (bytes, root) in files {
        for end in 0..bytes.len() {
            found(&bytes[..end], Format::default());
            let (document, found) = try_read(&bytes[..end], format(root, Encoding::Binary));
            // A prefix that ends between two fields is a shorter message.
            assert!(document.is_some() || found.iter().any(Diagnostic::is_error));
        }
    }
    for encoding in [Encoding::Json, Encoding::Text] {
        let bytes = bytes(&small::graph(), Target::CommonIr, encoding);
        for end in 1..bytes.len() - 2 {
            found(&bytes[..end], format(Root::Graph, encoding));
        }
    }
}

#[test]
fn every_changed_byte_is_survived() {
    let bytes = bytes(&small::graph(), Target::CommonIr, Encoding::Binary);
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            for root in Root::ALL {
                try_read(&changed, format(root, Encoding::Binary));
            }
        }
    }
}

#[test]
fn a_model_is_no_library() {
    let model = bytes(&small::graph(), Target::Onnx, Encoding::Binary);
    assert_eq!(found(&model, format(Root::Library, Encoding::Binary)), [("cir-root", "".into())]);
    let graph = bytes(&small::graph(), Target::CommonIr, Encoding::Binary);
    assert_eq!(found(&graph, format(Root::Library, Encoding::Binary)), [("cir-root", "".into())]);
    assert_eq!(found(&graph, format(Root::Model, Encoding::Binary)), [("cir-root", "".into())]);
    // Without a name its form is ambiguous.
    assert_eq!(found(&[0x08, 1], Format::default()), [("cir-ambiguous", "".into())]);
}

#[test]
fn a_broken_field_is_found_deep_in_the_file() {
    let mut module = small::graph();
    let graph = module.graph.as_mut().expect("a graph");
    graph.nodes[1].attributes[2].name = Some("MARK".into());
    let mut bytes = bytes(&module, Target::CommonIr, Encoding::Binary);
    let at = bytes.windows(4).position(|window| window == b"MARK").expect("the name");
    bytes[at + 1] = 0xff;
    let (_, found) = try_read(&bytes, Format::default());
    assert_eq!(found[0].code, "cir-wire");
    assert_eq!(found[0].path.as_deref(), Some("node[1].attribute[2].name"));
    let note = format!("at byte {}, read as LotusIR.GraphProto", at + 1);
    let node = "in node `second` (com.example.nn.mlp.Clip)".to_owned();
    assert_eq!(found[0].notes, [note, node]);
    assert_eq!(found[0].message, "the text is not UTF-8");
}

#[test]
fn unknown_fields_of_common_ir_are_named() {
    let mut bytes = bytes(&small::library(), Target::CommonIr, Encoding::Binary);
    bytes.extend([0xf8, 0x01, 1]);
    let found = found(&bytes, format(Root::Library, Encoding::Binary));
    assert_eq!(found, [("cir-unknown-field", "".into())]);
}

/// A graph in an attribute of a node of a graph, and so on.
fn nested(depth: usize) -> Graph {
    let mut graph = Graph::default();
    for _ in 0..depth {
        let value = AttributeValue::Graph(Box::new(graph));
        let attributes = vec![Attribute::new("body", value)];
        let node = Node { attributes, ..Node::new("Loop", ["x"], ["y"]) };
        graph = Graph { nodes: vec![node], ..Graph::default() };
    }
    graph
}

#[test]
fn graphs_nest_only_so_deep() {
    let deep = |depth| bytes(&onnx(nested(depth)), Target::Onnx, Encoding::Binary);
    assert_eq!(found(&deep(20), Format::default()), []);
    let found = found(&deep(40), Format::default());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, "cir-nesting");
    assert!(found[0].1.ends_with("attribute[body].g"), "{}", found[0].1);
    // Deeper than any stack.
    let mut bytes = vec![];
    for _ in 0..50_000 {
        // A node with an attribute with a graph.
        for field in [6 << 3 | 2, 5 << 3 | 2, 1 << 3 | 2_u8] {
            let mut length = bytes.len();
            let mut head = vec![field];
            while length > 0x7f {
                head.push((length & 0x7f) as u8 | 0x80);
                length >>= 7;
            }
            head.push(length as u8);
            bytes.splice(0..0, head);
        }
        if bytes.len() > 100_000 {
            break;
        }
    }
    for root in Root::ALL {
        try_read(&bytes, format(root, Encoding::Binary));
    }
}

#[test]
fn text_nests_only_so_deep() {
    let json = "{\"node\":[{\"attribute\":[{\"g\":".repeat(10_000);
    let text = "node { attribute { g { ".repeat(10_000);
    let expected = [("cir-nesting", String::new())];
    assert_eq!(
        found(json.as_bytes(), format(Root::Graph, Encoding::Json)),
        [("cir-truncated", "".into())]
    );
    assert_eq!(found(text.as_bytes(), format(Root::Graph, Encoding::Text)), expected);
    let closed = format!("{json}{{}}{}", "}]}]}".repeat(10_000));
    assert_eq!(found(closed.as_bytes(), format(Root::Graph, Encoding::Json)), expected);
}

/// Line and column of the first diagnostic.
fn line_column(text: &str, encoding: Encoding) -> (&'static str, (usize, usize)) {
    let (_, found) = try_read(text.as_bytes(), format(Root::Graph, encoding));
    let source = irc_diag::Source::new("x", text);
    let span = found[0].primary_span().expect("a place");
    (found[0].code, source.line_column(span.start))
}

#[test]
fn text_and_json_say_line_and_column() {
    let json = "{\n  \"node\": [\n    {\"nam\": \"a\"}\n  ]\n}";
    assert_eq!(line_column(json, Encoding::Json), ("cir-syntax", (3, 10)));
    let json = "{\n  \"irVersion\": \"one\"\n}";
    assert_eq!(line_column(json, Encoding::Json).1.0, 2);
    let json = "{\n  \"name\": \"a\",\n  \"producerVersion\": 0.2\n}";
    assert_eq!(line_column(json, Encoding::Json).1.0, 3);
    let text = "name: \"a\"\nnode {\n  nam: \"a\"\n}";
    assert_eq!(line_column(text, Encoding::Text), ("cir-syntax", (3, 3)));
    let text = "name: \"a\"\nnode {\n  name: 3\n}";
    assert_eq!(line_column(text, Encoding::Text), ("cir-syntax", (3, 9)));
    let text = "name: \"a\"\nnode {\n";
    assert_eq!(line_column(text, Encoding::Text).0, "cir-truncated");
    assert_eq!(line_column("name: \"\\377\"", Encoding::Text).0, "cir-syntax");
}

#[test]
fn diagnostics_of_text_point_at_their_item() {
    let text =
        "node {\n  name: \"a\"\n  attribute {\n    name: \"axis\"\n    i: 3\n    f: 1\n  }\n}";
    let (document, found) = try_read(text.as_bytes(), Format::default());
    assert!(document.is_some());
    assert_eq!(found[0].code, "cir-attribute-fields");
    assert_eq!(found[0].path.as_deref(), Some("graph.node[0].attribute[axis]"));
    assert_eq!(found[0].notes, ["in node `a`"]);
    assert!(text[found[0].primary_span().expect("a place")].starts_with("attribute {"));
}

fn tensor(element: ElementType, dims: &[i64], data: TensorData) -> Tensor {
    Tensor { name: Some("w".into()), element, dims: dims.into(), data, ..Tensor::default() }
}

#[test]
fn huge_sizes_take_no_memory() {
    let huge = tensor(ElementType::Float, &[i64::MAX, i64::MAX], TensorData::Floats(vec![1.0]));
    let wide = tensor(ElementType::Float, &[1 << 40], TensorData::Raw(vec![0; 4].into()));
    let file = bytes(
        &onnx(Graph { initializers: vec![huge, wide], ..Graph::default() }),
        Target::Onnx,
        Encoding::Binary,
    );
    let module = try_read(&file, Format::default()).0.expect("a module").module;
    let said = |index: usize| {
        let tensor = &module.graph.as_ref().expect("a graph").initializers[index];
        tensor.elements().expect_err("an error").to_string()
    };
    assert!(said(0).contains("exceeds 63 bits"), "{}", said(0));
    assert!(said(1).starts_with("4 bytes for the sizes [1099511627776] of float"), "{}", said(1));
}

#[test]
fn confused_fields_are_named() {
    // An attribute of type FLOAT with its value in `i`, a tensor with two fields of data, external
    // data without a place, all as fields of a message.
    let graph = "name: 'g' node { op_type: 'A' attribute { name: 'a' i: 1 type: FLOAT } \
        attribute { name: 'b' type: TENSOR } attribute { name: 'c' f: 1 type: FLOAT } }\
        initializer { name: 'w' float_data: 1 int64_data: 1 } \
        initializer { name: 'x' data_location: EXTERNAL external_data { key: 'offset' value: '-1' } }";
    let found = found(format!("graph {{ {graph} }}").as_bytes(), Format::default());
    let expected = [
        ("cir-tensor-fields", "graph.initializer[0]"),
        ("cir-external", "graph.initializer[1]"),
        ("cir-external", "graph.initializer[1]"),
        ("cir-attribute-type", "graph.node[0].attribute[a]"),
        ("cir-attribute-type", "graph.node[0].attribute[b]"),
    ];
    let expected = expected.map(|(code, path)| (code, path.to_owned()));
    assert_eq!(found, expected);
}

#[test]
fn a_model_that_breaks_off_is_still_a_model() {
    let model = bytes(&small::graph(), Target::Onnx, Encoding::Binary);
    let starts = (80..model.len()).map(|end| found(&model[..end], Format::default()));
    // A prefix that ends between two fields is a shorter model.
    let broken: Vec<_> = starts.filter(|found| !found.is_empty()).collect();
    assert!(broken.len() > model.len() / 2);
    assert!(broken.iter().all(|found| found[0].0 == "cir-wire"), "{broken:?}");
}
