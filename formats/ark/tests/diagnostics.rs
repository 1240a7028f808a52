//! Every error of a model is found and located.

use std::collections::BTreeMap;

use irc_ark_format::json;
use irc_ark_format::model::{
    self, Buffer, DataType, Document, Model, Node, Op, OpKind, Options, Tensor,
};
use irc_diag::{Diagnostic, Severity, Sink, Source};

const SMALL: &str = include_str!("data/small.model.json");
const GENERATION_0: &str = include_str!("data/generation0.model.json");

fn parse(text: &str) -> (Option<Document>, Vec<Diagnostic>) {
    let mut sink = Sink::new();
    let source = Source::new("small.model.json", text);
    let document = model::parse(&source, &Options::default(), &mut sink);
    (document, sink.into_diagnostics())
}

fn small() -> Model {
    parse(SMALL).0.expect("a valid model").model
}

/// The text with the only occurrence of `from` replaced.
fn edit(from: &str, to: &str) -> String {
    assert_eq!(SMALL.matches(from).count(), 1, "`{from}` must occur once");
    SMALL.replacen(from, to, 1)
}

/// The text with the first occurrence of `from` replaced.
fn edit_first(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "`{from}` must occur");
    SMALL.replacen(from, to, 1)
}

/// The codes of the errors of a text, each with the text at its location.
fn errors(text: &str) -> Vec<(&'static str, String)> {
    let (document, found) = parse(text);
    let errors: Vec<_> = found.iter().filter(|diagnostic| diagnostic.is_error()).collect();
    assert_eq!(document.is_none(), !errors.is_empty(), "a model is returned if it has no error");
    let at = |diagnostic: &&Diagnostic| {
        let span = diagnostic.primary_span().expect("every diagnostic has a place");
        (diagnostic.code, text[span].to_owned())
    };
    errors.iter().map(at).collect()
}

/// Checks that the text has exactly one error, with this code, at this location.
#[track_caller]
fn expect(text: &str, code: &'static str, at: &str) {
    assert_eq!(errors(text), [(code, at.to_owned())]);
}

const READ_0: &str = r#"{"Id":0,"DataType":"FP16","Shape":[8,16],"Strides":[8,16],"Offsets":[0,0]"#;

#[test]
fn the_form_of_the_file() {
    expect(&SMALL[..SMALL.len() / 2], "ark-truncated", "");
    expect("", "ark-truncated", "");
    expect("[]", "ark-wrong-type", "[]");
    expect(&edit("\"Rank\": 0,", "\"Rank\": NaN,"), "ark-non-finite", "NaN");
    expect(&edit("\"Rank\": 0,", "\"Rank\": \"0\","), "ark-wrong-type", "\"0\"");
    expect(&edit("\"Rank\": 0,", "\"Rank\": 0.5,"), "ark-wrong-type", "0.5");
    expect(&edit("\"Rank\": 0,", ""), "ark-missing-key", "{");
    expect(&edit("\"Rank\": 0,", "\"Rank\": 0, \"Rank\": 1,"), "ark-duplicate-key", "\"Rank\"");
    expect(&edit("\"WorldSize\": 1,", "\"WorldSize\": 1,,"), "ark-syntax", ",");
    expect(&edit("\"Rank\": 0,", "\"Rank\": 9e99,"), "ark-wrong-type", "9e99");
    let bomb = format!("\"Rank\": {}0{},", "[".repeat(10), "]".repeat(10));
    let nested = format!("{}0{}", "[".repeat(10), "]".repeat(10));
    expect(&edit("\"Rank\": 0,", &bomb), "ark-wrong-type", &nested);
    expect(&format!("{{\"Rank\": {}", "[".repeat(90_000)), "ark-nesting", "[");
}

#[test]
fn values_of_nodes_and_tensors() {
    expect(&edit("\"Matmul\"", "\"MatMul\""), "ark-unknown-op", "\"MatMul\"");
    expect(&edit_first("\"FP16\"", "\"FP8\""), "ark-unknown-dtype", "\"FP8\"");
    expect(&edit("\"INT\":1", "\"INT\":true"), "ark-wrong-type", "true");
    expect(&edit("\"INT\":1", "\"INT\":4294967296"), "ark-number-range", "4294967296");
    expect(&edit("\"INT\":1", "\"REAL\":1"), "ark-unknown-arg-type", "{\"REAL\":1}");
    expect(&edit("\"INT\":1", "\"INT64\":1"), "ark-arg-type", "{\"INT64\":1}");
    expect(&edit("\"FLOAT\":0.10000000149011612", "\"FLOAT\":null"), "ark-null-float", "null");
    expect(&edit("\"FLOAT\":0.10000000149011612", "\"FLOAT\":1e300"), "ark-number-range", "1e300");
    expect(&edit("\"Axis\": {\"INT\":1},", ""), "ark-missing-arg", {
        "{\n          \n          \"KeepDim\": {\"BOOL\":true}\n        }"
    });
    expect(&edit_first("\"IsVirtual\": false", "\"IsVirtual\": true"), "ark-virtual", "true");
    let tags = "\"SendTags\":[3]";
    expect(&edit_first("\"SendTags\":[]", tags), "ark-wrong-type", "3");
}

#[test]
fn tensors_lie_in_their_buffers() {
    let with = |from: &str, to: &str| edit(READ_0, &READ_0.replace(from, to));
    expect(&with("\"Offsets\":[0,0]", "\"Offsets\":[0]"), "ark-rank-mismatch", "[0]");
    expect(&with("\"Offsets\":[0,0]", "\"Offsets\":[0,-1]"), "ark-offsets", "-1");
    expect(&with("\"Offsets\":[0,0]", "\"Offsets\":[0,4]"), "ark-strides", "16");
    expect(&with("\"Shape\":[8,16]", "\"Shape\":[0,16]"), "ark-shape", "0");
    expect(&with("\"Shape\":[8,16]", "\"Shape\":[9,16]"), "ark-padded-shape", "8");
    let five = "[1,1,1,1,1]";
    let tensor = format!(
        "{{\"Id\":0,\"DataType\":\"FP16\",\"Shape\":{five},\"Strides\":{five},\
         \"Offsets\":[0,0,0,0,0]"
    );
    let text =
        edit(READ_0, &tensor).replacen("\"PaddedShape\":[8,16]", "\"PaddedShape\":[1,1,1,1,1]", 1);
    expect(&text, "ark-rank", five);
    let huge = 1i64 << 62;
    let text = with("\"Strides\":[8,16]", &format!("\"Strides\":[{huge},16]"));
    expect(&text, "ark-buffer-bytes", &format!("[{huge},16]"));
    let text = with("\"Offsets\":[0,0]", &format!("\"Offsets\":[{},0]", i64::MAX));
    expect(&text, "ark-strides", "8");
}

#[test]
fn ops_have_their_operands() {
    let bias = SMALL.lines().find(|line| line.contains("{\"Id\":2,")).expect("the bias");
    let text = SMALL.replacen(&format!(",\n{bias}"), "", 1);
    let (_, found) = parse(&text);
    assert_eq!(found[0].code, "ark-arity");
    assert_eq!(found[0].path.as_deref(), Some("$.Nodes[1].Op.ReadTensors"));
    expect(&edit("\"DIMS\":[1,0]", "\"DIMS\":[1,1]"), "ark-permutation", "{\"DIMS\":[1,1]}");
    expect(&edit("\"INT\":1", "\"INT\":2"), "ark-axis", "{\"INT\":2}");
    let [(code, _)] = &errors(&edit("{\"BOOL\":true}\n        }\n      }\n    },", {
        "{\"BOOL\":false}\n        }\n      }\n    },"
    }))[..] else {
        panic!("one error");
    };
    assert_eq!(*code, "ark-matmul-k");
}

/// Paths and codes of the errors of a changed model.
fn model_errors(change: impl FnOnce(&mut Model)) -> Vec<(&'static str, String)> {
    let mut model = small();
    change(&mut model);
    let found = model::validate(&model);
    let errors = found.into_iter().filter(Diagnostic::is_error);
    errors.map(|diagnostic| (diagnostic.code, diagnostic.path.unwrap_or_default())).collect()
}

#[track_caller]
fn expect_in_model(change: impl FnOnce(&mut Model), code: &'static str, path: &str) {
    assert_eq!(model_errors(change), [(code, path.to_owned())]);
}

#[test]
fn nodes_agree_on_their_edges() {
    let consumers = "$.Nodes[2].ConsumerNodeIds";
    expect_in_model(|m| m.nodes[3].id = 4, "ark-duplicate-node", "$.Nodes[4].Id");
    expect_in_model(
        |m| m.nodes[2].consumers.push(9),
        "ark-dangling-node",
        &format!("{consumers}[1]"),
    );
    expect_in_model(
        |m| m.nodes[2].consumers.push(4),
        "ark-asymmetric-edge",
        &format!("{consumers}[1]"),
    );
    expect_in_model(|m| m.nodes[2].consumers.push(2), "ark-cycle", &format!("{consumers}[1]"));
    let cycle = |m: &mut Model| {
        m.nodes[0].producers.push(3);
        m.nodes[3].consumers.push(0);
    };
    expect_in_model(cycle, "ark-cycle", "$.Nodes[0].ProducerNodeIds");
}

#[test]
fn results_name_what_was_written() {
    let change = |m: &mut Model| {
        let result = &mut m.nodes[3].op.results[0];
        (result.strides[0], result.offsets[0]) = (33, 1);
    };
    let list = "$.Nodes[3].Op.ResultTensors[0]";
    let expected = ["Strides", "Offsets"].map(|key| ("ark-result-region", format!("{list}.{key}")));
    assert_eq!(model_errors(change), expected);
}

#[test]
fn ids_mean_one_thing() {
    let read = "$.Nodes[2].Op.ReadTensors[0]";
    let found = model_errors(|m| m.nodes[2].op.reads[0].shape = vec![8, 31]);
    assert_eq!(found[0].0, "ark-broadcast");
    assert_eq!(found[1], ("ark-tensor-redefined", format!("{read}.Shape")));
    expect_in_model(
        |m| m.nodes[2].op.reads[0].buffer.rank = 0,
        "ark-buffer-rank",
        &format!("{read}.Buffer.Rank"),
    );
}

#[test]
fn a_later_node_cannot_feed_an_earlier_one() {
    let swap = |m: &mut Model| m.nodes.swap(0, 1);
    let codes: Vec<_> = model_errors(swap).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, ["ark-node-order", "ark-use-before-result"]);
}

#[test]
fn all_diagnostics_not_the_first() {
    let text = edit("\"Matmul\"", "\"Matmux\"")
        .replacen("\"INT\":1", "\"INT\":7", 1)
        .replacen("\"Shape\":[8,16]", "\"Shape\":[9,16]", 1)
        .replacen("\"WorldSize\": 1", "\"WorldSize\": Infinity", 1)
        .replacen("\"ConsumerNodeIds\": [3]", "\"ConsumerNodeIds\": [77]", 1);
    let codes: Vec<_> = errors(&text).into_iter().map(|(code, _)| code).collect();
    // No error about the world size: its literal is not a number.
    let expected = [
        "ark-non-finite",
        "ark-unknown-op",
        "ark-padded-shape",
        "ark-axis",
        "ark-dangling-node",
        "ark-asymmetric-edge",
    ];
    assert_eq!(codes, expected);
}

#[test]
fn unknown_keys_are_notes_unless_strict() {
    let text = edit("\"Rank\": 0,", "\"Rank\": 0, \"Comment\": 1,");
    let (document, found) = parse(&text);
    assert_eq!(document.map(|document| document.model), Some(small()));
    assert_eq!((found[0].severity, found[0].code), (Severity::Note, "ark-unknown-key"));
    let mut sink = Sink::new();
    let options = Options { strict: true, ..Options::default() };
    assert!(model::parse(&Source::new("x", &text), &options, &mut sink).is_none());
    assert_eq!(sink.error_count(), 1);
}

#[test]
fn the_first_generation_is_read_with_warnings() {
    let (document, found) = parse(GENERATION_0);
    assert!(found.iter().all(|f| f.code == "ark-generation" && f.severity == Severity::Warning));
    for accepted in ["`Ops`", "`Pads`", "`Value`", "`ShapeMNK`"] {
        assert!(found.iter().any(|f| f.message.contains(accepted)), "{accepted}");
    }
    let document = document.expect("a model");
    let nodes = &document.model.nodes;
    let kinds: Vec<OpKind> = nodes.iter().map(|node| node.op.kind).collect();
    assert_eq!(kinds, [OpKind::Matmul, OpKind::ScalarMul, OpKind::Relu]);
    let edges: Vec<_> = nodes.iter().map(|n| (n.id, &n.producers[..], &n.consumers[..])).collect();
    assert_eq!(edges, [(0, &[][..], &[1][..]), (1, &[0], &[2]), (2, &[1], &[])]);
    assert_eq!(nodes[1].op.float_arg("Factor"), Some(2.0));
    assert_eq!(model::validate(&document.model), []);
    let path = document.source_path("$.Nodes[2].Op.Type");
    let span = json::locate(GENERATION_0, &path).expect("a place");
    assert_eq!((&path[..], &GENERATION_0[span]), ("$.Nodes[1].Ops[0].Type", "\"Relu\""));
}

#[test]
fn arguments_of_the_first_generation_that_contradict_the_tensors_are_said() {
    let flat: String = GENERATION_0.split_whitespace().collect();
    let shape = "{\"DIMS\":[8,32,16]}";
    assert_eq!(flat.matches(shape).count(), 1);
    let (document, found) = parse(&flat.replace(shape, "{\"DIMS\":[8,32,17]}"));
    assert!(document.is_some());
    let message =
        "`ShapeMNK` is [8, 32, 17], but [8, 32, 16] by the tensors, which take precedence";
    let place =
        found.iter().find(|diagnostic| diagnostic.message == message).map(|f| f.path.clone());
    assert_eq!(place, Some(Some("$.Nodes[0].Ops[0].Args.ShapeMNK".to_owned())));
    let (_, found) = parse(GENERATION_0);
    assert!(
        !found.iter().any(|diagnostic| diagnostic.message.contains("take precedence")),
        "{found:?}"
    );
}

#[test]
fn both_readers_agree() {
    let text = edit("\"Rank\": 0,", "\"Comment\": [], \"Rank\": 0,");
    assert_eq!(parse(&text).0.map(|document| document.model), Some(small()));
}

#[test]
fn the_small_model_is_written_as_it_was_read() {
    assert_eq!(model::write(&small()), SMALL);
}

/// Rank 0 sends a tensor to rank 1 and receives one back.
fn exchange() -> Model {
    let buffer = |id, rank, send: &[[i64; 2]], recv: &[[i64; 2]]| Buffer {
        id,
        rank,
        send_tags: send.to_vec(),
        recv_tags: recv.to_vec(),
    };
    let tensor = |id, buffer: Buffer| Tensor::dense(id, DataType::Fp16, &[64], buffer);
    let node = |id: u64, kind, read, write: Tensor| Node {
        id,
        producers: vec![],
        consumers: vec![],
        op: Op {
            kind,
            name: String::new(),
            is_virtual: false,
            reads: vec![read],
            results: vec![Tensor { id: write.id + 10, ..write.clone() }],
            writes: vec![write],
            args: BTreeMap::new(),
        },
    };
    let (out, far) = (buffer(0, -1, &[[1, 7]], &[]), buffer(1, 1, &[], &[[-1, 7]]));
    let (back, here) = (buffer(2, 1, &[[-1, 8]], &[]), buffer(3, -1, &[], &[[1, 8]]));
    let send = node(0, OpKind::Send, tensor(0, out), tensor(1, far));
    let recv = node(1, OpKind::Recv, tensor(2, back), tensor(3, here));
    Model { rank: 0, world_size: 2, nodes: vec![send, recv] }
}

#[test]
fn communication_names_ranks_and_tags() {
    let errors = |change: fn(&mut Model)| {
        let mut model = exchange();
        change(&mut model);
        let found = model::validate(&model);
        found.into_iter().map(|f| (f.code, f.path.unwrap_or_default())).collect::<Vec<_>>()
    };
    assert_eq!(errors(|_| {}), []);
    let far = "$.Nodes[0].Op.WriteTensors[0].Buffer";
    let untag = |m: &mut Model| m.nodes[0].op.reads[0].buffer.send_tags[0] = [1, 9];
    assert_eq!(errors(untag), [("ark-tag", format!("{far}.RecvTags"))]);
    let unrank = |m: &mut Model| {
        m.nodes[1].op.reads[0].buffer.rank = -1;
    };
    let path = "$.Nodes[1].Op.ReadTensors[0].Buffer.Rank";
    assert_eq!(errors(unrank), [("ark-remote-rank", path.to_owned())]);
    let alone = |m: &mut Model| m.world_size = 0;
    assert_eq!(errors(alone), [("ark-world-size", "$.WorldSize".to_owned())]);
}

/// The errors of a model of one op on rank 0 of 2, with their paths.
fn errors_of(op: Op) -> Vec<(&'static str, String)> {
    let node = Node { id: 0, producers: vec![], consumers: vec![], op };
    let found = model::validate(&Model { rank: 0, world_size: 2, nodes: vec![node] });
    found.into_iter().map(|f| (f.code, f.path.unwrap_or_default())).collect()
}

#[test]
fn packets_become_what_the_peer_sent() {
    let receive = OpKind::RecvPacket.example();
    assert_eq!(errors_of(receive.clone()), []);
    let path = "$.Nodes[0].Op.WriteTensors[0]";
    let mut other = receive.clone();
    other.reads[0].dtype = DataType::Int32;
    assert_eq!(errors_of(other), [("ark-shape-mismatch", format!("{path}.DataType"))]);
    let mut view = receive;
    view.reads[0] = Tensor::dense(0, DataType::Fp32, &[16], view.reads[0].buffer.clone());
    assert_eq!(errors_of(view), []);
}

#[test]
fn a_synchronisation_waits_on_this_rank_for_every_other() {
    let mut sync = OpKind::DeviceSync.example();
    assert_eq!(errors_of(sync.clone()), []);
    sync.args.insert("PeerNum".to_owned(), model::Arg::Int(3));
    let path = "$.Nodes[0].Op.Args.PeerNum".to_owned();
    assert_eq!(errors_of(sync), [("ark-arg-value", path)]);
}
