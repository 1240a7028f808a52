//! Arguments of ops: separate attributes if the kind declares them, otherwise `extra_args`.
use super::{names::attr_name, types};
use crate::attributes::{self, dictionary, entry, integer, integers, text};
use irc_ark_format::model::{Arg, ArgKind, Argument, Buffer, Float, OpKind, Tensor};
use irc_mlir::{Attribute, Context, OperationRef, Type, attr};
use irc_mlir::{
    OperationLike,
    melior::ir::attribute::{BoolAttribute, FloatAttribute, TypeAttribute},
};
use std::collections::BTreeMap;

/// The attributes of the arguments of an op of a kind, by name.
pub(crate) fn to_attributes<'c>(
    context: &'c Context,
    kind: OpKind,
    args: &BTreeMap<String, Arg>,
) -> Vec<(String, Attribute<'c>)> {
    let is_declared = |name: &str, arg: &Arg| {
        let mut declared = kind.row().args.iter();
        declared.any(|argument| argument.name == name && argument.kind == arg.kind())
    };
    let (own, extra): (Vec<_>, Vec<_>) =
        args.iter().partition(|(name, arg)| is_declared(name, arg));
    let mut attributes: Vec<_> =
        own.into_iter().map(|(name, arg)| (attr_name(name), value(context, arg))).collect();
    if !extra.is_empty() {
        let entries = extra.into_iter().map(|(name, arg)| (name.as_str(), tagged(context, arg)));
        attributes.push(("extra_args".to_owned(), dictionary(context, entries)));
    }
    attributes
}

/// The arguments in an op's attributes.
///
/// # Errors
/// If an attribute is missing or of the wrong kind.
pub(crate) fn from_attributes(
    kind: OpKind,
    op: OperationRef<'_, '_>,
) -> Result<BTreeMap<String, Arg>, String> {
    let mut args = BTreeMap::new();
    for Argument { name, kind, .. } in kind.row().args {
        let key = attr_name(name);
        if let Ok(attribute) = op.attribute(&key) {
            let arg = untagged(*kind, attribute)
                .ok_or_else(|| format!("attribute '{key}' is not of kind {}", kind.name()))?;
            args.insert((*name).to_owned(), arg);
        }
    }
    for (name, attribute) in extra(op)? {
        let arg = argument(attribute)
            .ok_or_else(|| format!("entry '{name}' of 'extra_args' is not an argument"))?;
        args.insert(name, arg);
    }
    Ok(args)
}

fn extra<'c>(op: OperationRef<'c, '_>) -> Result<Vec<(String, Attribute<'c>)>, String> {
    op.attribute("extra_args").map_or(Ok(vec![]), attributes::entries)
}

fn tagged<'c>(context: &'c Context, arg: &Arg) -> Attribute<'c> {
    let kind = attr::string(context, arg.kind().name());
    dictionary(context, [("kind", kind), ("value", value(context, arg))])
}

fn value<'c>(context: &'c Context, arg: &Arg) -> Attribute<'c> {
    match arg {
        Arg::Int(value) => attr::i64(context, i64::from(*value)),
        Arg::Int64(value) => attr::i64(context, *value),
        Arg::Uint32(value) => attr::i64(context, i64::from(*value)),
        Arg::Uint64(value) => attr::i64(context, value.cast_signed()),
        Arg::Bool(value) => attr::bool(context, *value),
        Arg::Float(Float(value)) => attr::float(context, Type::float32(context), (*value).into()),
        Arg::Dims(values) => attr::i64s(context, values),
        Arg::Tensor(tensor) => tensor_value(context, tensor),
        Arg::Offset { buffer_id, value } => {
            let buffer = attr::i64(context, buffer_id.cast_signed());
            dictionary(context, [("buffer", buffer), ("offset", attr::i64(context, *value))])
        }
    }
}

fn tensor_value<'c>(context: &'c Context, tensor: &Tensor) -> Attribute<'c> {
    let Buffer { id, rank, send_tags, recv_tags } = &tensor.buffer;
    let buffer = dictionary(
        context,
        [
            ("id", attr::i64(context, id.cast_signed())),
            ("rank", attr::i64(context, *rank)),
            ("recv_tags", attr::i64s(context, recv_tags.as_flattened())),
            ("send_tags", attr::i64s(context, send_tags.as_flattened())),
        ],
    );
    let ty = attr::ty(types::tensor_type(context, tensor));
    let id = attr::i64(context, tensor.id.cast_signed());
    dictionary(context, [("buffer", buffer), ("id", id), ("type", ty)])
}

fn argument(attribute: Attribute<'_>) -> Option<Arg> {
    let kind = ArgKind::from_name(&text(entry(attribute, "kind")?)?)?;
    untagged(kind, entry(attribute, "value")?)
}

fn untagged(kind: ArgKind, value: Attribute<'_>) -> Option<Arg> {
    Some(match kind {
        ArgKind::Int => Arg::Int(integer(value)?.try_into().ok()?),
        ArgKind::Int64 => Arg::Int64(integer(value)?),
        ArgKind::Uint32 => Arg::Uint32(integer(value)?.try_into().ok()?),
        ArgKind::Uint64 => Arg::Uint64(integer(value)?.cast_unsigned()),
        ArgKind::Bool => Arg::Bool(BoolAttribute::try_from(value).ok()?.value()),
        // The attribute is an f32, so its double is exact.
        ArgKind::Float => Arg::Float(Float(FloatAttribute::try_from(value).ok()?.value() as f32)),
        ArgKind::Dims => Arg::Dims(integers(value)?),
        ArgKind::Tensor => Arg::Tensor(Box::new(tensor(value)?)),
        ArgKind::Offset => Arg::Offset {
            buffer_id: integer(entry(value, "buffer")?)?.cast_unsigned(),
            value: integer(entry(value, "offset")?)?,
        },
    })
}

fn tensor(value: Attribute<'_>) -> Option<Tensor> {
    let buffer = entry(value, "buffer")?;
    let tags = |name| attributes::pairs(&integers(entry(buffer, name)?)?);
    let buffer = Buffer {
        id: integer(entry(buffer, "id")?)?.cast_unsigned(),
        rank: integer(entry(buffer, "rank")?)?,
        send_tags: tags("send_tags")?,
        recv_tags: tags("recv_tags")?,
    };
    let ty = TypeAttribute::try_from(entry(value, "type")?).ok()?.value();
    types::tensor_of(ty, integer(entry(value, "id")?)?.cast_unsigned(), buffer)
}
