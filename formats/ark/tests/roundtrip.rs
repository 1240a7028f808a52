//! Any model is read back as it was written.

use std::collections::BTreeMap;

use irc_ark_format::model::{
    self, Arg, Buffer, DataType, Float, Model, Node, Op, OpKind, Options, Tensor,
};
use irc_diag::{Sink, Source};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;

fn buffer() -> impl Strategy<Value = Buffer> {
    let tags = || vec(any::<(i32, i32)>().prop_map(|(a, b)| [a.into(), b.into()]), 0..3);
    (any::<u32>(), any::<i8>(), tags(), tags()).prop_map(|(id, rank, send_tags, recv_tags)| {
        Buffer { id: id.into(), rank: rank.into(), send_tags, recv_tags }
    })
}

fn tensor() -> impl Strategy<Value = Tensor> {
    let dims = || vec(any::<i64>(), 1..5);
    let dtype = select(&DataType::ALL[..]);
    (any::<u64>(), dtype, dims(), dims(), dims(), dims(), buffer()).prop_map(
        |(id, dtype, shape, strides, offsets, padded_shape, buffer)| Tensor {
            id,
            dtype,
            shape,
            strides,
            offsets,
            padded_shape,
            buffer,
        },
    )
}

fn arg() -> impl Strategy<Value = Arg> {
    let float = any::<f32>().prop_filter("finite", |value| value.is_finite());
    prop_oneof![
        any::<i32>().prop_map(Arg::Int),
        any::<i64>().prop_map(Arg::Int64),
        any::<u32>().prop_map(Arg::Uint32),
        any::<u64>().prop_map(Arg::Uint64),
        any::<bool>().prop_map(Arg::Bool),
        float.prop_map(|value| Arg::Float(Float(value))),
        vec(any::<i64>(), 0..5).prop_map(Arg::Dims),
        tensor().prop_map(|tensor| Arg::Tensor(Box::new(tensor))),
        (any::<u32>(), any::<i64>())
            .prop_map(|(id, value)| Arg::Offset { buffer_id: id.into(), value }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    // The reader renames `Value` of two op kinds to its current name, and drops old arguments.
    let args = btree_map("[A-Z][a-z]{0,3}\\PC?", arg(), 0..3);
    let tensors = || vec(tensor(), 0..3);
    (select(OpKind::ALL), any::<String>(), any::<bool>(), tensors(), tensors(), tensors(), args)
        .prop_map(|(kind, name, is_virtual, reads, writes, results, args)| Op {
            kind,
            name,
            is_virtual,
            reads,
            writes,
            results,
            args,
        })
}

fn models() -> impl Strategy<Value = Model> {
    let ids = || vec(any::<u64>(), 0..3);
    let node = (any::<u64>(), ids(), ids(), op());
    (any::<i32>(), any::<i32>(), vec(node, 0..4)).prop_map(|(rank, world_size, nodes)| {
        let nodes: BTreeMap<u64, _> = nodes.into_iter().map(|node| (node.0, node)).collect();
        let node = |(id, producers, consumers, op)| Node { id, producers, consumers, op };
        let nodes = nodes.into_values().map(node).collect();
        Model { rank: rank.into(), world_size: world_size.into(), nodes }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_written_model_is_read_back(model in models()) {
        let text = model::write(&model);
        let options = Options { validate: false, strict: true };
        let mut sink = Sink::new();
        let read = model::parse(&Source::new("x", &text), &options, &mut sink);
        prop_assert!(sink.diagnostics().is_empty(), "{:?}\n{text}", sink.diagnostics());
        prop_assert_eq!(&read.expect("a model").model, &model);
        // The same through the other reader, which handles unknown keys.
        let noted = text.replacen('{', "{\"Note\": 0,", 1);
        let options = Options { strict: false, ..options };
        let read = model::parse(&Source::new("x", &noted), &options, &mut sink);
        prop_assert_eq!(read.expect("a model").model, model);
    }

    #[test]
    fn checking_any_model_ends(model in models()) {
        let found = model::validate(&model);
        prop_assert!(found.iter().all(|diagnostic| diagnostic.path.is_some()));
    }
}
