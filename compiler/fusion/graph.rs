//! A function of the tensor level as plain data.
//!
//! Fusion works on this graph, so that its decisions depend only on owned values: they can be cached,
//! hashed and tested without MLIR. [`read_function`] builds it, [`super::emit`] writes the groups back.
use super::open::{Extents, is_open};
use irc_dialects::tl;
use irc_mlir::{BlockLike, OperationLike, OperationRef, RegionLike, Value, ValueLike, read};
use irc_tl::{Family, Op, TensorType};
use std::collections::BTreeMap;

/// Index of a value of a [`Graph`].
pub type ValueId = usize;

/// Index of a node of a [`Graph`].
pub type NodeId = usize;

/// The ops of one function, in topological order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The type of every value.
    pub types: Vec<TensorType>,
    /// The node that defines a value; `None` for the function's arguments.
    pub makers: Vec<Option<NodeId>>,
    /// The ops.
    pub nodes: Vec<Node>,
    /// The returned values.
    pub results: Vec<ValueId>,
}

/// One op of a [`Graph`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The `tl` op; `None` for ops that fusion does not change.
    pub op: Option<Op>,
    /// Its operands.
    pub operands: Vec<ValueId>,
    /// Its results: one for a `tl` op.
    pub results: Vec<ValueId>,
    /// The ops of the function that it represents, by position in the body.
    pub origins: Vec<usize>,
}

impl Graph {
    /// Adds a value that `maker` defines.
    pub fn add_value(&mut self, ty: TensorType, maker: Option<NodeId>) -> ValueId {
        self.types.push(ty);
        self.makers.push(maker);
        self.types.len() - 1
    }

    /// Adds a `tl` op whose result has type `ty`.
    pub fn add_op(
        &mut self,
        op: Op,
        operands: Vec<ValueId>,
        ty: TensorType,
        origins: Vec<usize>,
    ) -> ValueId {
        let result = self.add_value(ty, Some(self.nodes.len()));
        self.nodes.push(Node { op: Some(op), operands, results: vec![result], origins });
        result
    }

    /// The types of a node's operands.
    pub fn operand_types(&self, node: NodeId) -> Vec<TensorType> {
        self.nodes[node].operands.iter().map(|value| self.types[*value].clone()).collect()
    }

    /// Per node: whether its value is used by a result or by an op that fusion does not change.
    pub fn live(&self) -> Vec<bool> {
        let mut live: Vec<bool> = self.nodes.iter().map(|node| node.op.is_none()).collect();
        let makers = |values: &[ValueId]| -> Vec<NodeId> {
            values.iter().filter_map(|value| self.makers[*value]).collect()
        };
        makers(&self.results).into_iter().for_each(|maker| live[maker] = true);
        for node in (0..self.nodes.len()).rev() {
            if live[node] {
                let operands = makers(&self.nodes[node].operands);
                operands.into_iter().for_each(|maker| live[maker] = true);
            }
        }
        live
    }

    /// The op of a node that must be in a group: every `tl` op except for the free views.
    pub fn compute(&self, node: NodeId) -> Option<&Op> {
        self.nodes[node].op.as_ref().filter(|op| !is_view(op))
    }
}

/// Whether an op is free: its result has the bytes of its operand.
pub fn is_view(op: &Op) -> bool {
    op.family() == Family::View
}

/// A [`Graph`] with the ops and values of the function it was read from.
pub struct Function<'c, 'a> {
    /// The graph.
    pub graph: Graph,
    /// The ops of the body, without the terminator; indexed by [`Node::origins`].
    pub ops: Vec<OperationRef<'c, 'a>>,
    /// The MLIR value of every value of the graph.
    pub values: Vec<Value<'c, 'a>>,
    /// The terminator.
    pub terminator: OperationRef<'c, 'a>,
    /// The extents that stand for numbers of rows.
    pub(super) extents: Extents,
}

/// Reads a function. Returns `None` if it has no `tl` op outside of groups.
///
/// # Errors
/// If the function cannot be represented as a graph of tensors.
pub fn read_function<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
) -> Result<Option<Function<'c, 'a>>, String> {
    read(func, Reader::default())
}

/// As [`read_function`], with the ops whose number of rows depends on symbols: primes stand for the numbers of rows.
///
/// # Errors
/// As [`read_function`].
pub fn read_open_function<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
) -> Result<Option<Function<'c, 'a>>, String> {
    read(func, Reader { extents: Some(Extents::default()), ..Reader::default() })
}

fn read<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    mut reader: Reader<'c, 'a>,
) -> Result<Option<Function<'c, 'a>>, String> {
    let mut ops = read::body_ops(func);
    let computes = |op: &OperationRef| tl::op_of(*op).is_ok();
    if !ops.iter().any(computes) {
        return Ok(None);
    }
    let blocks = func.region(0).ok().and_then(|region| region.first_block());
    let (Some(block), Some(terminator)) = (blocks, ops.pop()) else {
        return Err("expected a function with a body".into());
    };
    if block.next_in_region().is_some() {
        return Err("expected a body of one block, found more".into());
    }
    for index in 0..block.argument_count() {
        let argument = block.argument(index).map_err(|error| error.to_string())?;
        reader.define(argument.into(), None)?;
    }
    for (index, op) in ops.iter().enumerate() {
        reader.read_op(index, *op)?;
    }
    reader.graph.results = reader.operands(terminator)?;
    let Reader { graph, values, extents, .. } = reader;
    let extents = extents.unwrap_or_default();
    Ok(Some(Function { graph, ops, values, terminator, extents }))
}

#[derive(Default)]
struct Reader<'c, 'a> {
    graph: Graph,
    values: Vec<Value<'c, 'a>>,
    ids: BTreeMap<usize, ValueId>,
    /// The extents that stand for numbers of rows, if ops with rows are read.
    extents: Option<Extents>,
}

impl<'c: 'a, 'a> Reader<'c, 'a> {
    fn read_op(&mut self, index: usize, op: OperationRef<'c, 'a>) -> Result<(), String> {
        let name = read::op_name(&op);
        if op.region_count() > 0 && name != tl::GROUP {
            return Err(format!("expected a flat body of tensor-level ops, found '{name}'"));
        }
        let operands = self.operands(op)?;
        let node = self.graph.nodes.len();
        let is_read = !is_general(op) || self.extents.is_some() && is_open(op);
        let tl_op = tl::op_of(op).ok().filter(|_| is_read);
        let origins = vec![index];
        self.graph.nodes.push(Node { op: tl_op, operands, results: vec![], origins });
        for result in op.results() {
            let id = self.define(result.into(), Some(node))?;
            self.graph.nodes[node].results.push(id);
        }
        Ok(())
    }

    fn operands(&self, op: OperationRef<'c, 'a>) -> Result<Vec<ValueId>, String> {
        let known = |operand: Value| self.ids.get(&key(operand)).copied();
        let outside = || format!("'{}' uses a value from outside the body", read::op_name(&op));
        op.operands().map(|operand| known(operand).ok_or_else(outside)).collect()
    }

    fn define(&mut self, value: Value<'c, 'a>, maker: Option<NodeId>) -> Result<ValueId, String> {
        let ty = tl::type_of(value.r#type())?;
        let ty = match &mut self.extents {
            Some(extents) => extents.of(&ty),
            // Ops on values with symbolic sizes are not changed.
            None => {
                let extents = ty.dims.iter().map(|dim| dim.known().unwrap_or_default());
                TensorType::new(ty.dtype, extents.collect::<Vec<_>>())
            }
        };
        let id = self.graph.add_value(ty, maker);
        self.values.push(value);
        self.ids.insert(key(value), id);
        Ok(id)
    }
}

/// Whether an op is always a kernel of its own: an algorithm, or an op with symbolic sizes.
pub(super) fn is_general(op: OperationRef<'_, '_>) -> bool {
    let symbolic = |value: Value| tl::tensor_type_of(value.r#type()).is_err();
    let results = op.results().any(|result| symbolic(result.into()));
    matches!(tl::algorithm_of(op), Ok(Some(_))) || results || op.operands().any(symbolic)
}

/// The identity of a value during the lifetime of its function.
fn key(value: Value<'_, '_>) -> usize {
    value.to_raw().ptr as usize
}
