//! Export of a module as a model.
use super::{args, names::kind_of, types::tensor_of};
use crate::attributes;
use irc_ark_format::model::{Buffer, Model, Node, Op, Tensor};
use irc_mlir::{
    Module, OperationLike, OperationRef, PassError, Value, ValueLike,
    melior::ir::operation::OperationResult, read::body_ops,
};

/// The model of the single `ark.model` of a module.
///
/// # Errors
/// After a diagnostic at the op: there is no model or several, or an op does not represent a node.
pub fn export(module: &Module<'_>) -> Result<Model, PassError> {
    let op = model_op(module.as_operation())?;
    model_of(op, &nodes(op)?)
}

/// The model of an `ark.model` whose nodes have already been read.
///
/// # Errors
/// After a diagnostic at the op: the rank or world size is missing.
pub fn model_of(
    op: OperationRef<'_, '_>,
    nodes: &[(OperationRef<'_, '_>, Node)],
) -> Result<Model, PassError> {
    let located = |message| PassError::at(&op, message);
    let rank = attributes::op_integer(op, "rank").map_err(located)?;
    let world_size = attributes::op_integer(op, "world_size").map_err(located)?;
    Ok(Model { rank, world_size, nodes: nodes.iter().map(|(_, node)| node.clone()).collect() })
}

/// The single `ark.model` of a `builtin.module`.
///
/// # Errors
/// After a diagnostic at the module: there is no model or several.
pub fn model_op<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
) -> Result<OperationRef<'c, 'a>, PassError> {
    let mut models = body_ops(module).into_iter().filter(|op| is_named(*op, "ark.model"));
    match (models.next(), models.next()) {
        (Some(model), None) => Ok(model),
        (None, _) => Err(PassError::at(&module, "expected one ark.model, found none")),
        _ => Err(PassError::at(&module, "expected one ark.model, found several")),
    }
}

/// The nodes of an `ark.model` with their ops, in file order.
///
/// # Errors
/// After a diagnostic at each op that does not represent a node.
pub fn nodes<'c: 'a, 'a>(
    model: OperationRef<'c, 'a>,
) -> Result<Vec<(OperationRef<'c, 'a>, Node)>, PassError> {
    let mut nodes = vec![];
    let mut failed = None;
    for op in body_ops(model) {
        if !is_node(op) {
            continue;
        }
        match node(op) {
            Ok(node) => nodes.push((op, node)),
            Err(message) => failed = Some(PassError::at(&op, message)),
        }
    }
    failed.map_or(Ok(nodes), Err)
}

/// Whether an op of a model is a node, rather than a declaration.
pub(super) fn is_node(op: OperationRef<'_, '_>) -> bool {
    !is_named(op, "ark.buffer") && !is_named(op, "ark.tensor")
}

fn is_named(op: OperationRef<'_, '_>, name: &str) -> bool {
    op.name().as_string_ref().as_str() == Ok(name)
}

/// The node that an op represents.
///
/// # Errors
/// If something is missing or not understood.
pub fn node(op: OperationRef<'_, '_>) -> Result<Node, String> {
    let name = op.name();
    let name = name.as_string_ref().as_str().unwrap_or_default();
    let kind = kind_of(name).ok_or_else(|| format!("expected an op of a node, found '{name}'"))?;
    let [reads, writes, buffers] = attributes::segments(op)?[..] else {
        return Err("expected three operand segments: reads, writes, result buffers".to_owned());
    };
    let ids = attributes::op_integers(op, "result_ids")?;
    if ids.len() != op.result_count() || buffers != op.result_count() {
        return Err(format!(
            "expected one id and one buffer for each of {} results, found {} ids and {buffers} \
             buffers",
            op.result_count(),
            ids.len()
        ));
    }
    let operands =
        |begin: usize, count: usize| (begin..begin + count).map(|index| operand(op, index));
    let unsigned = |ids: Vec<i64>| ids.into_iter().map(i64::cast_unsigned).collect();
    let results = ids.iter().zip(operands(reads + writes, buffers)).enumerate();
    let results = results.map(|(index, (id, buffer))| result(op, index, *id, buffer?));
    Ok(Node {
        id: attributes::op_integer(op, "node")?.cast_unsigned(),
        producers: unsigned(attributes::op_maybe_integers(op, "producers")?),
        consumers: unsigned(attributes::op_maybe_integers(op, "consumers")?),
        op: Op {
            kind,
            name: attributes::op_text(op, "op_name")?,
            is_virtual: attributes::op_bool(op, "is_virtual").unwrap_or(kind.is_virtual()),
            reads: operands(0, reads).map(|value| tensor(value?)).collect::<Result<_, _>>()?,
            writes: operands(reads, writes)
                .map(|value| tensor(value?))
                .collect::<Result<_, _>>()?,
            results: results.collect::<Result<_, _>>()?,
            args: args::from_attributes(kind, op)?,
        },
    })
}

fn operand<'c, 'a>(op: OperationRef<'c, 'a>, index: usize) -> Result<Value<'c, 'a>, String> {
    op.operand(index).map_err(|error| error.to_string())
}

fn result(
    op: OperationRef<'_, '_>,
    index: usize,
    id: i64,
    buffer: Value<'_, '_>,
) -> Result<Tensor, String> {
    let value = op.result(index).map_err(|error| error.to_string())?;
    tensor_of(value.r#type(), id.cast_unsigned(), self::buffer(buffer)?)
        .ok_or_else(|| format!("expected a result of type !ark.tensor, found {}", value.r#type()))
}

/// The tensor of a value: of an `ark.tensor`, or a result of an earlier node.
pub(crate) fn tensor(value: Value<'_, '_>) -> Result<Tensor, String> {
    let result = OperationResult::try_from(value).map_err(|_| {
        "expected a tensor declared in the model, found a block argument".to_owned()
    })?;
    let (owner, index) = (result.owner(), result.result_number());
    let (id, place) = if is_named(owner, "ark.tensor") {
        (attributes::op_integer(owner, "id")?, operand(owner, 0)?)
    } else {
        let ids = attributes::op_integers(owner, "result_ids")?;
        let id = ids.get(index).ok_or("the op of this operand lacks result ids")?;
        let before: usize = attributes::segments(owner)?.iter().take(2).sum();
        (*id, operand(owner, before + index)?)
    };
    tensor_of(value.r#type(), id.cast_unsigned(), buffer(place)?)
        .ok_or_else(|| format!("expected a value of type !ark.tensor, found {}", value.r#type()))
}

/// The buffer of a value.
fn buffer(value: Value<'_, '_>) -> Result<Buffer, String> {
    let result = OperationResult::try_from(value).map_err(|_| {
        "expected a buffer declared in the model, found a block argument".to_owned()
    })?;
    let owner = result.owner();
    if !is_named(owner, "ark.buffer") {
        return Err(format!("expected an ark.buffer, found {value}"));
    }
    declared_buffer(owner)
}

/// The buffer that an `ark.buffer` declares.
pub(super) fn declared_buffer(op: OperationRef<'_, '_>) -> Result<Buffer, String> {
    let tags = |name: &str| {
        attributes::pairs(&attributes::op_maybe_integers(op, name)?)
            .ok_or_else(|| format!("expected pairs in '{name}', found an odd number of integers"))
    };
    Ok(Buffer {
        id: attributes::op_integer(op, "id")?.cast_unsigned(),
        rank: if op.has_attribute("rank") { attributes::op_integer(op, "rank")? } else { -1 },
        send_tags: tags("send_tags")?,
        recv_tags: tags("recv_tags")?,
    })
}
