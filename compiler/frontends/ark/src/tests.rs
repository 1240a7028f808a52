use crate::{Accumulate, ImportOptions, Meaning, import};
use irc_ark_format::model::{
    Arg, ArgKind, Buffer, DataType, Float, Model, Node, Op, OpKind, Tensor,
};
use irc_diag::{Diagnostic, codes};
use irc_tl::{Graph, Results, Unary};
use std::path::Path;

/// Buffers of four floats.
fn floats(buffer: u64) -> Tensor {
    Tensor::dense(0, DataType::Fp32, &[2, 2], Buffer::local(buffer))
}

/// A model of a sequence of ops.
fn model(ops: impl IntoIterator<Item = Op>) -> Model {
    let node = |(id, op)| Node { id, producers: vec![], consumers: vec![], op };
    Model { rank: 0, world_size: 1, nodes: (0..).zip(ops).map(node).collect() }
}

/// An op on tensors of four floats, with valid arguments.
fn op(kind: OpKind, reads: &[u64], writes: &[u64]) -> Op {
    let argument = |kind| match kind {
        ArgKind::Bool => Arg::Bool(true),
        ArgKind::Int => Arg::Int(0),
        ArgKind::Float => Arg::Float(Float(2.0)),
        ArgKind::Dims => Arg::Dims(vec![1, 0]),
        _ => Arg::Uint32(1),
    };
    let args = kind.row().args.iter();
    Op {
        kind,
        name: "op".to_owned(),
        is_virtual: kind.is_virtual(),
        reads: reads.iter().copied().map(floats).collect(),
        writes: writes.iter().copied().map(floats).collect(),
        results: vec![],
        args: args.map(|arg| (arg.name.to_owned(), argument(arg.kind))).collect(),
    }
}

fn all(model: &Model) -> Result<Graph, Vec<Diagnostic>> {
    import(model, &ImportOptions { results: Results::All, accumulate: Accumulate::Wide })
}

#[test]
fn every_kind_has_a_meaning_or_a_reason_why_none() {
    for kind in OpKind::ALL.iter().copied() {
        let op = kind.example();
        let writes = op.writes.len();
        let written = all(&model([op]));
        match (Meaning::of(kind), written) {
            (Meaning::None(why), Ok(graph)) => {
                assert!(!why.is_empty() && graph.nodes.is_empty(), "{kind}");
            }
            (Meaning::None(why), Err(found)) => {
                assert!(kind.is_communication() && found[0].message.contains(why), "{kind}");
                assert_eq!(found[0].code, "ark-communication", "{kind}");
            }
            (_, written) => {
                let graph = written.unwrap_or_else(|found| panic!("{kind}: {found:?}"));
                assert_eq!(graph.outputs.len(), writes, "{kind}");
            }
        }
    }
}

#[test]
fn the_op_of_a_meaning_is_found_by_it() {
    let is_exp = |meaning: &Meaning| matches!(meaning, Meaning::Unary(Unary::Exp));
    assert_eq!(Meaning::find(is_exp), Some(OpKind::Exp));
    assert_eq!(Meaning::find(|meaning| matches!(meaning, Meaning::Unary(Unary::Erf))), None);
}

#[test]
fn everything_that_is_wrong_is_reported_at_once() {
    let mut axis = op(OpKind::ReduceSum, &[1], &[2]);
    axis.args.insert("Axis".to_owned(), Arg::Int(7));
    let ops = [
        op(OpKind::Send, &[0], &[1]),
        axis,
        op(OpKind::Relu, &[2], &[3]),
        op(OpKind::DeviceSync, &[3], &[3]),
    ];
    let options = ImportOptions {
        results: Results::Named(vec!["buffer_9".to_owned()]),
        accumulate: Accumulate::Wide,
    };
    let found = import(&model(ops), &options).expect_err("three nodes and a name are wrong");
    let places: Vec<_> =
        found.iter().map(|diagnostic| (diagnostic.code, diagnostic.path.as_deref())).collect();
    let expected = [
        ("ark-unknown-result", None),
        ("ark-communication", Some("$.Nodes[0].Op")),
        ("ark-unsupported", Some("$.Nodes[1].Op")),
        ("ark-communication", Some("$.Nodes[3].Op")),
    ];
    assert_eq!(places, expected);
    assert_eq!(found[0].help.as_deref(), Some("the model writes buffer_1, buffer_2, buffer_3"));
}

#[test]
fn results_are_all_buffers_those_that_nothing_reads_or_those_named() {
    let ops = [op(OpKind::Relu, &[0], &[2]), op(OpKind::Exp, &[2], &[1])];
    let model = model(ops);
    let names = |results| {
        let options = ImportOptions { results, accumulate: Accumulate::Wide };
        let graph = import(&model, &options).expect("two ops");
        graph.outputs.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(names(Results::All), ["buffer_1", "buffer_2"]);
    assert_eq!(names(Results::Outputs), ["buffer_1"]);
    let named = ["buffer_2", "buffer_1", "buffer_2"].map(str::to_owned);
    assert_eq!(names(Results::Named(named.to_vec())), ["buffer_2", "buffer_1"]);
}

#[test]
fn a_buffer_that_is_written_in_part_before_it_is_read_is_preserved() {
    let mut half = op(OpKind::Relu, &[0], &[1]);
    half.reads[0].shape = vec![1, 2];
    half.writes[0].shape = vec![1, 2];
    let graph = all(&model([half, op(OpKind::Exp, &[1], &[2])])).expect("two ops");
    let preserved: Vec<_> =
        graph.inputs.iter().filter(|(_, value)| graph.preserved.contains(value)).collect();
    assert_eq!(graph.inputs.len(), 2);
    assert_eq!(preserved.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["buffer_1"]);
}

#[test]
fn nodes_have_the_paths_of_their_ops() {
    let graph = all(&model([op(OpKind::Relu, &[0], &[1])])).expect("an op");
    let origins: Vec<_> = graph.nodes.iter().map(|node| node.origin.as_deref()).collect();
    assert_eq!(origins, [Some("$.Nodes[0].Op"); 3]);
}

#[test]
fn every_code_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Not a literal, which would be recognised as an error code.
    let prefix = &[concat!("ark", "-")];
    let readme = std::fs::read_to_string(root.join("README.md")).expect("a README");
    let used = codes::in_sources(&root.join("src"), prefix).expect("source files");
    assert_eq!(used, codes::in_page(&readme, prefix));
}
