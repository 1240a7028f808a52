//! Joins the kernels of attention: products whose rows pass through a softmax and are multiplied again.
//!
//! Before: groups. After: the group of `q * k`, scaled and masked, that of a softmax along its rows, and that of the product
//! with `v` are one group of the kind `attention`, if nothing else reads what they pass on. So are transpositions around
//! them that keep rows whole. `split-blocks` computes such a kernel a block of rows at a time, whose scores stay in a cache.
use super::form::Kind;
use irc_dialects::tl;
use irc_mlir::{
    BlockLike, Erase, OpSpec, OperationLike, OperationRef, RegionLike, Type as MlirType, Value,
    ValueLike, attr, block_with, context_of, read, rebind, replace_all_uses,
};
use irc_tl::{DType, Family, Op, TensorType};
use std::collections::BTreeMap;

/// Joins the kernels of attention of a function whose ops are groups.
///
/// # Errors
/// If an op cannot be rebuilt.
pub fn join_attention<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Result<(), String> {
    // Groups that are joined come before the last one of them, so that none of those that follow is erased.
    for group in read::body_ops(func) {
        if let Some(found) = Attention::of(group) {
            found.join()?;
        }
    }
    Ok(())
}

/// A group, with what is read of it.
#[derive(Clone)]
struct Group<'c, 'a> {
    op: OperationRef<'c, 'a>,
    /// Its ops, without the terminator.
    body: Vec<OperationRef<'c, 'a>>,
    yielded: Value<'c, 'a>,
}

/// The groups that are joined.
struct Attention<'c, 'a> {
    scores: Group<'c, 'a>,
    softmax: Group<'c, 'a>,
    values: Group<'c, 'a>,
}

impl<'c: 'a, 'a> Group<'c, 'a> {
    /// A group of a kind with one result.
    fn of(op: OperationRef<'c, 'a>, kind: Kind) -> Option<Self> {
        let is_kind = read::op_name(&op) == tl::GROUP
            && read::string(&op, "kind").as_deref() == Some(kind.name())
            && op.result_count() == 1;
        let mut body = if is_kind { read::body_ops(op) } else { return None };
        let yielded = body.pop()?.operand(0).ok()?;
        Some(Self { op, body, yielded })
    }

    /// The group that computes a value that nothing else reads.
    fn before(value: Value<'c, 'a>, kind: Kind) -> Option<Self> {
        let op = read::defining_op(value)?;
        (irc_mlir::uses(value).len() == 1).then(|| Self::of(op, kind))?
    }

    /// The operand of the group that an argument of its block stands for.
    fn operand_of(&self, argument: Value<'c, 'a>) -> Option<usize> {
        let (owner, index) = read::owner_of_argument(argument)?;
        (owner == self.op).then_some(index)
    }

    fn ops(&self) -> Option<Vec<Op>> {
        self.body.iter().map(|op| tl::op_of(*op).ok()).collect()
    }

    /// Its product, whose matrices are read from memory and by nothing else.
    fn product(&self) -> Option<OperationRef<'c, 'a>> {
        let products = self.body.iter().filter(|op| {
            tl::op_of(**op).is_ok_and(|op| matches!(op, Op::Matmul { transpose_lhs: false, .. }))
        });
        let [product] = products.copied().collect::<Vec<_>>()[..] else { return None };
        let is_read_once = |operand| irc_mlir::uses(operand).len() == 1;
        let operands: Vec<Value> = product.operands().collect();
        operands.iter().copied().all(is_read_once).then_some(product)
    }

    /// The transposition that it is, if its rows stay whole.
    fn transposition(&self) -> Option<OperationRef<'c, 'a>> {
        let [op] = self.body[..] else { return None };
        tl::op_of(op).ok()?.permutation()?;
        Some(op)
    }
}

impl<'c: 'a, 'a> Attention<'c, 'a> {
    /// The attention that ends with a group.
    fn of(op: OperationRef<'c, 'a>) -> Option<Self> {
        let values = Group::of(op, Kind::Contraction)?;
        let product = values.product()?;
        let at = values.operand_of(product.operand(0).ok()?)?;
        let probabilities = op.operand(at).ok()?;
        let softmax = Group::before(probabilities, Kind::Rows)?;
        let inputs: Vec<Value> = softmax.op.operands().collect();
        let scores =
            inputs.into_iter().find_map(|input| Group::before(input, Kind::Contraction))?;
        let found = Self { scores, softmax, values };
        found.applies().then_some(found)
    }

    /// Whether the kernels can be computed a block of rows at a time.
    fn applies(&self) -> bool {
        let known = |value: Value<'c, 'a>| tl::type_of(value.r#type()).ok()?.known();
        let Some(scores) = known(self.scores.yielded) else { return false };
        let result = self.softmax.op.result(0).ok().and_then(|result| known(result.into()));
        let groups = [&self.scores, &self.softmax, &self.values];
        let Some(product) = self.scores.product() else { return false };
        let is_matrix = |value: Value<'c, 'a>| {
            known(value).is_some_and(|ty| ty.dtype == DType::F32 && ty.rank() == scores.rank())
        };
        let of_matrices = product.operands().all(is_matrix)
            && self.values.product().is_some_and(|product| product.operands().all(is_matrix));
        // What is multiplied is as a whole.
        let whole = product.result(0).is_ok_and(|result| {
            known(result.into()).is_some_and(|ty| ty.shape == scores.shape)
        });
        let ops = groups.into_iter().map(Group::ops).collect::<Option<Vec<_>>>();
        let Some(ops) = ops else { return false };
        let is_softmax = ops[1].iter().any(|op| op.name() == "exp")
            && ops[1].iter().any(|op| op.name() == "reduce_sum");
        is_softmax
            && of_matrices
            && whole
            && scores.rank() >= 3
            && result.as_ref() == Some(&scores)
            && groups.into_iter().all(|group| {
                group.body.iter().all(|op| runs_in_blocks(*op, scores.rank()))
            })
    }

    /// Replaces the groups by one.
    fn join(self) -> Result<(), String> {
        let context = context_of(&self.values.op);
        let mut sources: Vec<Source<'c, 'a>> = vec![];
        let groups = [&self.scores, &self.softmax, &self.values];
        let mut inputs: Vec<Value<'c, 'a>> = vec![];
        let mut erased: Vec<OperationRef<'c, 'a>> = vec![];
        for (number, group) in groups.iter().enumerate() {
            let product = group.product();
            for (at, operand) in group.op.operands().enumerate() {
                let inner = groups[..number].iter().find(|inner| {
                    read::defining_op(operand).is_some_and(|maker| maker == inner.op)
                });
                let is_matrix = product.is_some_and(|product| {
                    product.operands().any(|matrix| group.operand_of(matrix) == Some(at))
                });
                let turned = is_matrix.then(|| Group::before(operand, Kind::Elementwise)).flatten();
                let turned = turned.and_then(|group| Some((group.transposition()?, group)));
                sources.push(match (inner, turned) {
                    (Some(inner), _) => Source::Inner(read::identity(inner.yielded)),
                    (None, Some((op, turned))) => {
                        let from = turned.op.operand(0).map_err(|error| error.to_string())?;
                        inputs.push(from);
                        erased.push(turned.op);
                        Source::Transposed(inputs.len() - 1, op)
                    }
                    (None, None) => {
                        inputs.push(operand);
                        Source::Operand(inputs.len() - 1)
                    }
                });
            }
        }
        let result: Value = self.values.op.result(0).map_err(|error| error.to_string())?.into();
        let after = match &irc_mlir::uses(result)[..] {
            [(user, _)] => Group::of(*user, Kind::Elementwise),
            _ => None,
        };
        let after = after.and_then(|group| Some((group.transposition()?, group)));
        let after = after.filter(|(op, _)| keeps_rows(*op));
        let last = after.as_ref().map_or(self.values.op, |(_, group)| group.op);

        let location = self.values.op.location();
        let types: Vec<MlirType> = inputs.iter().map(ValueLike::r#type).collect();
        let (region, block) = block_with(&types, location);
        let mut values: BTreeMap<usize, Value<'c, '_>> = BTreeMap::new();
        let mut sources = sources.iter();
        let mut end: Option<Value<'c, '_>> = None;
        for group in groups {
            let own = group.op.region(0).ok().and_then(|region| region.first_block());
            let own = own.ok_or("expected a group with a body")?;
            for index in 0..own.argument_count() {
                let old = own.argument(index).map_err(|error| error.to_string())?;
                let argument = |at: usize| -> Result<Value<'c, '_>, String> {
                    block.argument(at).map(Value::from).map_err(|error| error.to_string())
                };
                let new = match sources.next().ok_or("expected as many operands as arguments")? {
                    Source::Inner(value) => values[value],
                    Source::Operand(at) => argument(*at)?,
                    Source::Transposed(at, op) => {
                        let built =
                            tl::build(context, &tl::op_of(*op)?, &[argument(*at)?], op.location())?;
                        let built = block.append_operation(built);
                        rebind(built.result(0).map_err(|error| error.to_string())?.into())
                    }
                };
                values.insert(read::identity(old.into()), rebind(new));
            }
            for op in &group.body {
                let operands: Vec<Value> =
                    op.operands().map(|operand| values[&read::identity(operand)]).collect();
                let built = tl::build(context, &tl::op_of(*op)?, &operands, op.location())?;
                let built = block.append_operation(built);
                let old = op.result(0).map_err(|error| error.to_string())?;
                let new = built.result(0).map_err(|error| error.to_string())?;
                values.insert(read::identity(old.into()), rebind(new.into()));
            }
            end = values.get(&read::identity(group.yielded)).copied();
        }
        let mut end = end.ok_or("expected a result")?;
        if let Some((op, _)) = &after {
            let built = tl::build(context, &tl::op_of(*op)?, &[end], op.location())?;
            let built = block.append_operation(built);
            end = rebind(built.result(0).map_err(|error| error.to_string())?.into());
        }
        let ty = end.r#type();
        OpSpec::new(context, tl::YIELD, location).operands(&[end]).append(&block);
        region.append_block(block);
        let parent = last.block().ok_or("expected a group in a block")?;
        let group = OpSpec::new(context, tl::GROUP, location)
            .operands(&inputs)
            .results(&[ty])
            .attr("kind", attr::string(context, tl::ATTENTION))
            .region(region)
            .before(&parent, last);
        let old = last.result(0).map_err(|error| error.to_string())?;
        let new = group.result(0).map_err(|error| error.to_string())?;
        replace_all_uses(old.into(), new.into());
        // Readers come before what they read.
        let own = [after.map(|(_, group)| group.op), Some(self.values.op)];
        own.into_iter().flatten().for_each(Erase::erase);
        [self.softmax.op, self.scores.op].into_iter().chain(erased).for_each(Erase::erase);
        Ok(())
    }
}

/// What an argument of the block of a joined group is.
enum Source<'c, 'a> {
    /// What another group yields, by identity.
    Inner(usize),
    /// An operand of the joined group.
    Operand(usize),
    /// An operand of the joined group, transposed.
    Transposed(usize, OperationRef<'c, 'a>),
}

/// Whether a transposition keeps the last dimension.
fn keeps_rows(op: OperationRef<'_, '_>) -> bool {
    let op = tl::op_of(op).ok();
    let kept = op.as_ref().and_then(Op::permutation).and_then(|order| {
        Some(*order.last()? == order.len() - 1)
    });
    kept == Some(true)
}

/// Whether an op computes a row of its result from a row of its operands, and is the same op for a block of rows.
fn runs_in_blocks(op: OperationRef<'_, '_>, rank: usize) -> bool {
    let Ok(found) = tl::op_of(op) else { return false };
    let operands: Result<Vec<TensorType>, _> = tl::operand_types(op);
    if operands.is_err() {
        return false;
    }
    let is_scalar = op.result(0).is_ok_and(|result| {
        tl::type_of(irc_mlir::ValueLike::r#type(&result))
            .is_ok_and(|ty| ty.elements().is(1))
    });
    match &found {
        Op::Reduce { axes, keep_dims, .. } => *keep_dims && axes[..] == [rank - 1],
        Op::Matmul { .. } => true,
        _ if found.row().arity() == Some(0) => is_scalar,
        _ => found.family() == Family::Elementwise,
    }
}
