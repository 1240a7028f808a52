//! Import of a model as a module.
use super::{args, names::mnemonic, types::tensor_text};
use irc_ark_format::model::{Buffer, Model, Node, Op, Origin, Tensor};
use irc_mlir::{
    Attribute, Block, BlockRef, Context, Location, Module, OpSpec, OperationRef, Region,
    RegionLike, Type, Value, attr,
    melior::ir::{attribute::DenseI32ArrayAttribute, operation::OperationResult},
};
use std::collections::BTreeMap;

/// The origins of the nodes of a model, for locations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origins<'a> {
    /// The file's name. Without it, locations have only JSON paths, so that they are unchanged when an
    /// edit moves lines.
    pub file: Option<&'a str>,
    /// One origin for each node; without origins, the paths are those of the model as written.
    pub nodes: &'a [Origin],
}

/// Creates a module with one `ark.model`: every node, tensor, buffer and argument.
///
/// The location of an op is the JSON path of the op in the file and, nested in it, file, line and
/// column of its node.
pub fn import<'c>(context: &'c Context, model: &Model, origins: Origins<'_>) -> Module<'c> {
    context.get_or_load_dialect("ark");
    let whole = location(context, "$", origins.file.map(|file| (file, 1, 1)));
    let module = Module::new(whole);
    let region = Region::new();
    region.append_block(Block::new(&[]));
    let op = OpSpec::new(context, "ark.model", whole)
        .attr("rank", attr::i64(context, model.rank))
        .attr("world_size", attr::i64(context, model.world_size))
        .region(region)
        .append(&module.body());
    let mut builder = Builder::new(context, body(op));
    for (index, node) in model.nodes.iter().enumerate() {
        builder.node(node, node_location(context, index, origins));
    }
    module
}

/// The single block of an op that was just built.
fn body<'c, 'a>(op: OperationRef<'c, 'a>) -> BlockRef<'c, 'a> {
    let block =
        irc_mlir::OperationLike::region(&op, 0).ok().and_then(|region| region.first_block());
    block.expect("the op was built with a region of one block")
}

fn node_location<'c>(context: &'c Context, index: usize, origins: Origins<'_>) -> Location<'c> {
    let Some(origin) = origins.nodes.get(index) else {
        return location(context, &format!("$.Nodes[{index}].Op"), None);
    };
    let place = origins.file.map(|file| (file, origin.line, origin.column));
    location(context, &origin.place.to_string(), place)
}

fn location<'c>(
    context: &'c Context,
    path: &str,
    place: Option<(&str, usize, usize)>,
) -> Location<'c> {
    let child = match place {
        Some((file, line, column)) => Location::new(context, file, line, column),
        None => Location::unknown(context),
    };
    Location::name(context, path, child)
}

/// Appends `ark` ops to a block, declaring buffers and tensors before their first use.
pub struct Builder<'c, 'a> {
    context: &'c Context,
    block: BlockRef<'c, 'a>,
    types: BTreeMap<String, Type<'c>>,
    buffers: BTreeMap<Buffer, Value<'c, 'a>>,
    tensors: BTreeMap<Tensor, Value<'c, 'a>>,
}

impl<'c, 'a> Builder<'c, 'a> {
    /// A builder at the end of a block.
    pub fn new(context: &'c Context, block: BlockRef<'c, 'a>) -> Self {
        let (types, buffers, tensors) = Default::default();
        Self { context, block, types, buffers, tensors }
    }

    /// Appends the op of a node; later ops that use its results refer to its values.
    pub fn node(&mut self, node: &Node, location: Location<'c>) -> OperationRef<'c, 'a> {
        let spec = self.declare(node, location);
        let op = spec.append(&self.block);
        for (index, tensor) in node.op.results.iter().enumerate() {
            let result: Option<OperationResult<'c, 'a>> = op.result(index).ok();
            if let Some(result) = result {
                self.tensors.insert(tensor.clone(), result.into());
            }
        }
        op
    }

    /// The op of a node, not yet in a block; its operands have been declared in this block.
    pub fn declare(&mut self, node: &Node, location: Location<'c>) -> OpSpec<'c> {
        let Node { id, producers, consumers, op } = node;
        let context = self.context;
        let values = |builder: &mut Self, tensors: &[Tensor]| -> Vec<_> {
            tensors.iter().map(|tensor| builder.tensor(tensor, location)).collect()
        };
        let (reads, writes) = (values(self, &op.reads), values(self, &op.writes));
        let buffers: Vec<_> =
            op.results.iter().map(|tensor| self.buffer(&tensor.buffer, location)).collect();
        let results: Vec<_> = op.results.iter().map(|tensor| self.ty(tensor)).collect();
        let sizes = [&reads, &writes, &buffers].map(|values| values.len() as i32);
        let ids: Vec<_> = op.results.iter().map(|tensor| tensor.id).collect();
        let mut spec = OpSpec::new(context, &format!("ark.{}", mnemonic(op.kind)), location)
            .operands(&[reads, writes, buffers].concat())
            .results(&results)
            .attr("operandSegmentSizes", DenseI32ArrayAttribute::new(context, &sizes).into())
            .attr("node", attr::i64(context, id.cast_signed()))
            .attr("op_name", attr::string(context, &op.name))
            .maybe_attr("producers", some_ids(context, producers))
            .maybe_attr("consumers", some_ids(context, consumers))
            .attr("result_ids", ids_attr(context, &ids));
        for (name, value) in args::to_attributes(context, op.kind, &op.args) {
            spec = spec.attr(&name, value);
        }
        spec.maybe_attr("is_virtual", unusual_virtual(context, op))
    }

    fn tensor(&mut self, tensor: &Tensor, location: Location<'c>) -> Value<'c, 'a> {
        if let Some(value) = self.tensors.get(tensor) {
            return *value;
        }
        let buffer = self.buffer(&tensor.buffer, location);
        let ty = self.ty(tensor);
        let op = OpSpec::new(self.context, "ark.tensor", location)
            .operands(&[buffer])
            .results(&[ty])
            .attr("id", attr::i64(self.context, tensor.id.cast_signed()));
        let value = only_result(op.append(&self.block));
        self.tensors.insert(tensor.clone(), value);
        value
    }

    fn buffer(&mut self, buffer: &Buffer, location: Location<'c>) -> Value<'c, 'a> {
        if let Some(value) = self.buffers.get(buffer) {
            return *value;
        }
        let context = self.context;
        let ty = self.parsed("!ark.buffer".to_owned());
        let op = OpSpec::new(context, "ark.buffer", location)
            .results(&[ty])
            .attr("id", attr::i64(context, buffer.id.cast_signed()))
            .maybe_attr("rank", (buffer.rank != -1).then(|| attr::i64(context, buffer.rank)))
            .maybe_attr("send_tags", some_tags(context, &buffer.send_tags))
            .maybe_attr("recv_tags", some_tags(context, &buffer.recv_tags));
        let value = only_result(op.append(&self.block));
        self.buffers.insert(buffer.clone(), value);
        value
    }

    fn ty(&mut self, tensor: &Tensor) -> Type<'c> {
        self.parsed(tensor_text(tensor))
    }

    fn parsed(&mut self, text: String) -> Type<'c> {
        let context = self.context;
        *self.types.entry(text).or_insert_with_key(|text| irc_mlir::ty::parse(context, text))
    }
}

/// The single result of an op that was just built with one.
fn only_result<'c, 'a>(op: OperationRef<'c, 'a>) -> Value<'c, 'a> {
    let result: Result<OperationResult<'c, 'a>, _> = op.result(0);
    result.expect("the op was built with a result").into()
}

fn ids_attr<'c>(context: &'c Context, ids: &[u64]) -> Attribute<'c> {
    let ids: Vec<i64> = ids.iter().map(|id| id.cast_signed()).collect();
    attr::i64s(context, &ids)
}

fn some_ids<'c>(context: &'c Context, ids: &[u64]) -> Option<Attribute<'c>> {
    (!ids.is_empty()).then(|| ids_attr(context, ids))
}

fn some_tags<'c>(context: &'c Context, tags: &[[i64; 2]]) -> Option<Attribute<'c>> {
    (!tags.is_empty()).then(|| attr::i64s(context, tags.as_flattened()))
}

fn unusual_virtual<'c>(context: &'c Context, op: &Op) -> Option<Attribute<'c>> {
    (op.is_virtual != op.kind.is_virtual()).then(|| attr::bool(context, op.is_virtual))
}
