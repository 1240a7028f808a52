//! The fast path: a model exactly as ARK writes it, read without a tree.
//!
//! Anything else, however harmless, is rejected without a diagnostic and read by the reader that can
//! report it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::origin::Origin;
use super::{Arg, Buffer, DataType, Float, Model, Node, Op, OpKind, Tensor};
use crate::json::OpPlace;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct RawModel<'a> {
    rank: i64,
    world_size: i64,
    #[serde(borrow)]
    nodes: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct RawNode<'a> {
    id: u64,
    producer_node_ids: Vec<u64>,
    consumer_node_ids: Vec<u64>,
    #[serde(borrow)]
    op: RawOp<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct RawOp<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    name: String,
    is_virtual: bool,
    #[serde(borrow)]
    read_tensors: Vec<RawTensor<'a>>,
    write_tensors: Vec<RawTensor<'a>>,
    result_tensors: Vec<RawTensor<'a>>,
    args: RawArgs<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct RawTensor<'a> {
    id: u64,
    #[serde(borrow)]
    data_type: Cow<'a, str>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    offsets: Vec<i64>,
    padded_shape: Vec<i64>,
    buffer: RawBuffer,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct RawBuffer {
    id: u64,
    rank: i64,
    send_tags: Vec<[i64; 2]>,
    recv_tags: Vec<[i64; 2]>,
}

#[derive(Deserialize)]
enum RawArg<'a> {
    #[serde(rename = "INT")]
    Int(i32),
    #[serde(rename = "INT64")]
    Int64(i64),
    #[serde(rename = "UINT32")]
    Uint32(u32),
    #[serde(rename = "UINT64")]
    Uint64(u64),
    #[serde(rename = "BOOL")]
    Bool(bool),
    #[serde(rename = "FLOAT", borrow)]
    Float(&'a RawValue),
    #[serde(rename = "DIMS")]
    Dims(Vec<i64>),
}

/// The arguments of one op; a key that occurs twice is rejected.
struct RawArgs<'a>(Vec<(String, RawArg<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for RawArgs<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Args;
        impl<'de> Visitor<'de> for Args {
            type Value = RawArgs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of arguments")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut args: Vec<(String, RawArg<'de>)> = vec![];
                while let Some((name, arg)) = map.next_entry::<String, _>()? {
                    if args.iter().any(|(seen, _)| *seen == name) {
                        return Err(serde::de::Error::custom("duplicate argument"));
                    }
                    args.push((name, arg));
                }
                Ok(RawArgs(args))
            }
        }
        deserializer.deserialize_map(Args)
    }
}

/// Reads a model exactly as ARK writes it, with the origin of every node.
pub(crate) fn read(text: &str) -> Option<(Model, Vec<Origin>)> {
    let raw: RawModel<'_> = serde_json::from_str(text).ok()?;
    let mut lines = Lines::new(text);
    let mut nodes = Vec::with_capacity(raw.nodes.len());
    let mut origins = Vec::with_capacity(raw.nodes.len());
    for (index, raw_node) in raw.nodes.into_iter().enumerate() {
        let raw_node = raw_node.get();
        let offset = raw_node.as_ptr() as usize - text.as_ptr() as usize;
        let (line, column) = lines.advance(offset);
        let place = OpPlace::Node(index);
        origins.push(Origin { place, offset, len: raw_node.len(), line, column });
        nodes.push(node(serde_json::from_str(raw_node).ok()?)?);
    }
    Some((Model { rank: raw.rank, world_size: raw.world_size, nodes }, origins))
}

/// Lines and columns of increasing offsets.
pub(crate) struct Lines<'a> {
    text: &'a str,
    offset: usize,
    line: usize,
    line_start: usize,
}

impl<'a> Lines<'a> {
    /// Starts at the beginning of the text.
    pub fn new(text: &'a str) -> Self {
        Self { text, offset: 0, line: 1, line_start: 0 }
    }

    /// Line and column, both from one, of an offset not before the previous one; the column counts
    /// characters.
    pub fn advance(&mut self, offset: usize) -> (usize, usize) {
        let passed = &self.text[self.offset..offset];
        self.line += passed.bytes().filter(|&byte| byte == b'\n').count();
        if let Some(newline) = passed.rfind('\n') {
            self.line_start = self.offset + newline + 1;
        }
        self.offset = offset;
        (self.line, self.text[self.line_start..offset].chars().count() + 1)
    }
}

fn node(raw: RawNode<'_>) -> Option<Node> {
    let op = op(raw.op)?;
    Some(Node {
        id: raw.id,
        producers: raw.producer_node_ids,
        consumers: raw.consumer_node_ids,
        op,
    })
}

fn op(raw: RawOp<'_>) -> Option<Op> {
    Some(Op {
        kind: OpKind::from_name(&raw.r#type)?,
        name: raw.name,
        is_virtual: raw.is_virtual,
        reads: tensors(raw.read_tensors)?,
        writes: tensors(raw.write_tensors)?,
        results: tensors(raw.result_tensors)?,
        args: raw.args.0.into_iter().map(arg).collect::<Option<BTreeMap<_, _>>>()?,
    })
}

fn tensors(raw: Vec<RawTensor<'_>>) -> Option<Vec<Tensor>> {
    raw.into_iter().map(tensor).collect()
}

fn tensor(raw: RawTensor<'_>) -> Option<Tensor> {
    let RawBuffer { id, rank, send_tags, recv_tags } = raw.buffer;
    Some(Tensor {
        id: raw.id,
        dtype: DataType::from_name(&raw.data_type)?,
        // The other reader converts an empty shape to one element.
        shape: Some(raw.shape).filter(|shape| !shape.is_empty())?,
        strides: raw.strides,
        offsets: raw.offsets,
        padded_shape: raw.padded_shape,
        buffer: Buffer { id, rank, send_tags, recv_tags },
    })
}

fn arg((name, raw): (String, RawArg<'_>)) -> Option<(String, Arg)> {
    let arg = match raw {
        RawArg::Int(value) => Arg::Int(value),
        RawArg::Int64(value) => Arg::Int64(value),
        RawArg::Uint32(value) => Arg::Uint32(value),
        RawArg::Uint64(value) => Arg::Uint64(value),
        RawArg::Bool(value) => Arg::Bool(value),
        RawArg::Dims(value) => Arg::Dims(value),
        RawArg::Float(text) => {
            let value = text.get().parse::<f64>().ok()? as f32;
            Arg::Float(Float(Some(value).filter(|value| value.is_finite())?))
        }
    };
    Some((name, arg))
}
