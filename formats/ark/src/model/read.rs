//! Reads ops, tensors and arguments from a tree; shared by the model and plan readers.
//!
//! Older and newer generations of the format are read into the one typed form, each with a warning
//! that describes the deviation.

use std::collections::BTreeMap;

use irc_diag::{Diagnostic, Sink, clip};
use irc_json::{At, Node, Object, Reader};

use super::{Arg, ArgKind, Buffer, DataType, Float, Op, OpKind, Tensor, old_matmul, validate};
use crate::json::{FORMAT, accepted, check_keys, float, integers, report_object, report_within};

const OP_KEYS: [&str; 7] =
    ["Type", "Name", "IsVirtual", "ReadTensors", "WriteTensors", "ResultTensors", "Args"];
const TENSOR_KEYS: [&str; 8] =
    ["Id", "DataType", "Shape", "Strides", "Offsets", "PaddedShape", "Pads", "Buffer"];
const BUFFER_KEYS: [&str; 5] = ["Id", "Rank", "SendTags", "RecvTags", "IsExternal"];

/// Op types of ARK's main branch of 2026, of which this reader knows only the names.
const NEWER_OPS: [&str; 9] = [
    "AllReducePacketFused",
    "KvCacheSlot",
    "LayerNorm",
    "MatmulAdd",
    "MatmulGelu",
    "MatmulScale",
    "Mma",
    "Softmax",
    "Store",
];

/// Reads an op; `extra` lists further keys that the caller reads itself.
///
/// Returns `None` if any part could not be read; every such part has been reported.
pub(crate) fn op(
    reader: &mut Reader<'_>,
    value: &Node<'_>,
    at: &At<'_>,
    extra: &[&str],
) -> Option<Op> {
    let object = reader.object(value, at)?;
    let known: Vec<&str> = OP_KEYS.iter().chain(extra).copied().collect();
    check_keys(reader, &object, &known);
    let kind = reader.required(&object, "Type").and_then(|v| kind(reader, v, &at.key("Type")));
    let name = reader.required(&object, "Name").and_then(|v| reader.string(v, &at.key("Name")));
    let is_virtual =
        reader.required(&object, "IsVirtual").and_then(|v| reader.boolean(v, &at.key("IsVirtual")));
    let reads = tensors(reader, &object, "ReadTensors");
    let writes = tensors(reader, &object, "WriteTensors");
    let results = tensors(reader, &object, "ResultTensors");
    let args =
        reader.required(&object, "Args").and_then(|v| args(reader, kind, v, &at.key("Args")));
    let read = || {
        let (reads, writes, results) = (reads?, writes?, results?);
        let (kind, name, is_virtual, args) = (kind?, name?.to_owned(), is_virtual?, args?);
        Some(Op { kind, name, is_virtual, reads, writes, results, args })
    };
    let op = read();
    match (&op, object.get("Args")) {
        (Some(op), Some(args)) => old_matmul::check(reader, op, args, &at.key("Args")),
        _ => check_readable_tensors(reader, &object),
    }
    op
}

/// Checks the tensors of an incomplete op, which is not validated otherwise.
fn check_readable_tensors(reader: &mut Reader<'_>, object: &Object<'_, '_, '_>) {
    for key in ["ReadTensors", "WriteTensors", "ResultTensors"] {
        let elements = object.get(key).and_then(Node::elements).unwrap_or_default();
        for (index, value) in elements.iter().enumerate() {
            // Unreadable parts have been reported already.
            let mut silent = Sink::with_limit(0);
            let place = object.at.key(key);
            let place = place.index(index);
            let read = tensor(&mut Reader::new(&mut silent, &FORMAT, false), value, &place);
            if let Some(tensor) = read.filter(|_| !silent.has_errors()) {
                report_within(reader, validate::check_tensor(&tensor), value, &place);
            }
        }
    }
}

fn kind(reader: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<OpKind> {
    let Some(name) = value.text() else {
        reader.wrong_type("the name of an op type", value, at);
        return None;
    };
    if name == "Placeholder" {
        accepted(reader, "op type `Placeholder` is read as a virtual `Tensor`", value, at);
        return Some(OpKind::Tensor);
    }
    let kind = OpKind::from_name(name);
    if kind.is_none() {
        if NEWER_OPS.contains(&name) {
            report_newer(reader, name, value, at);
            return None;
        }
        let message = format!("unknown op type `{}`", clip(name));
        let mut diagnostic = Diagnostic::error("ark-unknown-op", message);
        if let Some(near) = OpKind::nearest(name) {
            diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
        }
        reader.report(diagnostic, value.span(), at, "not an op type of this format");
    }
    kind
}

fn report_newer(reader: &mut Reader<'_>, name: &str, value: &Node<'_>, at: &At<'_>) {
    let message = format!("op type `{name}` belongs to a later generation of the format");
    let diagnostic = Diagnostic::error("ark-unknown-op", message)
        .with_note("ARK writes it since 2026 (G4); models are read up to the branch of October 2024 (G3)")
        .help("write the model with the ops of that generation; Softmax is ReduceMax, Sub, Exp, ReduceSum, Div");
    reader.report(diagnostic, value.span(), at, "not read yet");
}

fn tensors(
    reader: &mut Reader<'_>,
    object: &Object<'_, '_, '_>,
    key: &'static str,
) -> Option<Vec<Tensor>> {
    let value = reader.required(object, key)?;
    let at = object.at.key(key);
    let elements = reader.array(value, &at)?;
    let read = |(index, value)| tensor(reader, value, &at.index(index));
    // All are read before the first error is returned, so that each is reported.
    let all: Vec<Option<Tensor>> = elements.iter().enumerate().map(read).collect();
    all.into_iter().collect()
}

/// Reads a tensor.
fn tensor(reader: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Tensor> {
    let object = reader.object(value, at)?;
    check_keys(reader, &object, &TENSOR_KEYS);
    let id = id(reader, &object);
    let dtype = reader
        .required(&object, "DataType")
        .and_then(|value| data_type(reader, value, &at.key("DataType")));
    let shape = dims(reader, &object, "Shape");
    let strides = dims(reader, &object, "Strides");
    let offsets = dims(reader, &object, "Offsets");
    let padded_shape = padded_shape(reader, &object, shape.as_deref());
    let buffer = reader
        .required(&object, "Buffer")
        .and_then(|value| buffer(reader, value, &at.key("Buffer")));
    let tensor = Tensor {
        id: id?,
        dtype: dtype?,
        shape: shape?,
        strides: strides?,
        offsets: offsets?,
        padded_shape: padded_shape?,
        buffer: buffer?,
    };
    Some(with_a_dimension(reader, tensor, value, at))
}

/// ARK interprets an empty shape as one element.
fn with_a_dimension(
    reader: &mut Reader<'_>,
    mut tensor: Tensor,
    value: &Node<'_>,
    at: &At<'_>,
) -> Tensor {
    let all = [&tensor.shape, &tensor.strides, &tensor.offsets, &tensor.padded_shape];
    if all.iter().all(|dims| dims.is_empty()) {
        accepted(reader, "empty `Shape` is read as [1]", value, at);
        (tensor.shape, tensor.strides) = (vec![1], vec![1]);
        (tensor.offsets, tensor.padded_shape) = (vec![0], vec![1]);
    }
    tensor
}

fn id(reader: &mut Reader<'_>, object: &Object<'_, '_, '_>) -> Option<u64> {
    let value = reader.required(object, "Id")?;
    reader.integer(value, &object.at.key("Id"), "a non-negative integer")
}

fn dims(
    reader: &mut Reader<'_>,
    object: &Object<'_, '_, '_>,
    key: &'static str,
) -> Option<Vec<i64>> {
    let value = reader.required(object, key)?;
    integers(reader, value, &object.at.key(key), "a 64-bit integer")
}

/// `PaddedShape`, or `Pads` of the first generation, or the shape itself if both are missing.
fn padded_shape(
    reader: &mut Reader<'_>,
    object: &Object<'_, '_, '_>,
    shape: Option<&[i64]>,
) -> Option<Vec<i64>> {
    if object.get("PaddedShape").is_some() {
        return dims(reader, object, "PaddedShape");
    }
    let Some(value) = object.get("Pads") else {
        let diagnostic = Diagnostic::warning("ark-generation", "no `PaddedShape`: `Shape` is used");
        report_object(reader, diagnostic, object);
        return shape.map(<[i64]>::to_vec);
    };
    let at = object.at.key("Pads");
    let pads: Vec<i64> = integers(reader, value, &at, "a 64-bit integer")?;
    if shape.is_some_and(|shape| shape.len() != pads.len()) || pads.iter().any(|&pad| pad != 1) {
        let diagnostic =
            Diagnostic::error("ark-pads", "`Pads` must be ones, one for each dimension");
        reader.report(diagnostic, value.span(), &at, "not all ones");
        return None;
    }
    accepted(reader, "`Pads` is read as no padding", value, &at);
    shape.map(<[i64]>::to_vec)
}

fn data_type(reader: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<DataType> {
    let Some(name) = value.text() else {
        reader.wrong_type("the name of a data type", value, at);
        return None;
    };
    let dtype = DataType::from_name(name);
    if dtype.is_none() {
        let message = format!("unknown data type `{}`", clip(name));
        let names: Vec<&str> = DataType::ALL.iter().map(|dtype| dtype.name()).collect();
        let diagnostic = Diagnostic::error("ark-unknown-dtype", message)
            .help(format!("the data types are {}", names.join(", ")));
        reader.report(diagnostic, value.span(), at, "not a data type of this format");
    }
    dtype
}

fn buffer(reader: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Buffer> {
    let object = reader.object(value, at)?;
    check_keys(reader, &object, &BUFFER_KEYS);
    if let Some(external) = object.get("IsExternal") {
        reader.boolean(external, &at.key("IsExternal"))?;
        accepted(reader, "`IsExternal` is ignored", external, &at.key("IsExternal"));
    }
    let id = id(reader, &object);
    let rank = reader
        .required(&object, "Rank")
        .and_then(|value| reader.integer(value, &at.key("Rank"), "a rank, or -1"));
    let send_tags = tags(reader, &object, "SendTags");
    let recv_tags = tags(reader, &object, "RecvTags");
    Some(Buffer { id: id?, rank: rank?, send_tags: send_tags?, recv_tags: recv_tags? })
}

fn tags(
    reader: &mut Reader<'_>,
    object: &Object<'_, '_, '_>,
    key: &'static str,
) -> Option<Vec<[i64; 2]>> {
    let value = reader.required(object, key)?;
    let at = object.at.key(key);
    let elements = reader.array(value, &at)?;
    let read = |(index, value)| tag(reader, value, &at.index(index));
    let all: Vec<Option<[i64; 2]>> = elements.iter().enumerate().map(read).collect();
    all.into_iter().collect()
}

fn tag(reader: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<[i64; 2]> {
    if value.elements().is_none_or(|pair| pair.len() != 2) {
        reader.wrong_type("a pair [remote rank, tag]", value, at);
        return None;
    }
    integers(reader, value, at, "a 64-bit integer")?.try_into().ok()
}

/// Reads `Args`; `kind` determines which older names are accepted.
fn args(
    reader: &mut Reader<'_>,
    kind: Option<OpKind>,
    value: &Node<'_>,
    at: &At<'_>,
) -> Option<BTreeMap<String, Arg>> {
    let object = reader.object(value, at)?;
    let mut args = BTreeMap::new();
    let mut complete = true;
    for (key, value) in object.entries() {
        let at = at.key(key);
        if kind == Some(OpKind::Matmul) && old_matmul::NAMES.contains(&key) {
            let message = format!("`{key}` is dropped: it follows from the shapes and strides");
            accepted(reader, &message, value, &at);
            continue;
        }
        let arg = arg(reader, value, &at);
        complete &= arg.is_some();
        args.extend(arg.map(|arg| (current_name(reader, kind, key, value, &at), arg)));
    }
    complete.then_some(args)
}

/// The current name of an argument, which may have another name in older files.
fn current_name(
    reader: &mut Reader<'_>,
    kind: Option<OpKind>,
    key: &str,
    value: &Node<'_>,
    at: &At<'_>,
) -> String {
    let args = kind.map_or(&[][..], |kind| kind.row().args);
    let Some(renamed) = args.iter().find(|argument| argument.old_name == Some(key)) else {
        return key.into();
    };
    let name = renamed.name;
    accepted(reader, &format!("`{key}` is read as `{name}`"), value, at);
    name.into()
}

fn arg(reader: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Arg> {
    let object = reader.object(value, at)?;
    let mut entries = object.entries();
    let (Some((name, inner)), None) = (entries.next(), entries.next()) else {
        reader.wrong_type("one argument such as {\"INT\": 3}", value, at);
        return None;
    };
    let Some(kind) = ArgKind::from_name(name) else {
        let names: Vec<&str> = ArgKind::ALL.iter().map(|kind| kind.name()).collect();
        let message = format!("unknown argument type `{}`", clip(name));
        let diagnostic = Diagnostic::error("ark-unknown-arg-type", message)
            .help(format!("the argument types are {}", names.join(", ")));
        reader.report(diagnostic, value.span(), at, "");
        return None;
    };
    arg_value(reader, kind, inner, &at.key(name))
}

fn arg_value(reader: &mut Reader<'_>, kind: ArgKind, value: &Node<'_>, at: &At<'_>) -> Option<Arg> {
    Some(match kind {
        ArgKind::Int => Arg::Int(reader.integer(value, at, "a 32-bit integer")?),
        ArgKind::Int64 => Arg::Int64(reader.integer(value, at, "a 64-bit integer")?),
        ArgKind::Uint32 => Arg::Uint32(reader.integer(value, at, "an unsigned 32-bit integer")?),
        ArgKind::Uint64 => Arg::Uint64(reader.integer(value, at, "an unsigned 64-bit integer")?),
        ArgKind::Bool => Arg::Bool(reader.boolean(value, at)?),
        ArgKind::Float => Arg::Float(Float(float(reader, value, at)?)),
        ArgKind::Dims => Arg::Dims(integers(reader, value, at, "a 64-bit integer")?),
        ArgKind::Tensor => Arg::Tensor(Box::new(tensor(reader, value, at)?)),
        ArgKind::Offset => offset(reader, value, at)?,
    })
}

fn offset(reader: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Arg> {
    let object = reader.object(value, at)?;
    check_keys(reader, &object, &["BufferId", "Value"]);
    let buffer_id = reader
        .required(&object, "BufferId")
        .and_then(|value| reader.integer(value, &at.key("BufferId"), "a non-negative integer"));
    let value = reader
        .required(&object, "Value")
        .and_then(|value| reader.integer(value, &at.key("Value"), "a 64-bit integer"));
    Some(Arg::Offset { buffer_id: buffer_id?, value: value? })
}
