//! Joins the kernels of attention: products whose rows pass through a softmax and are multiplied again.
//!
//! Before: groups. After: the group of `q * k`, scaled and masked, that of a softmax along its rows, and that of the
//! product with `v` are one group of the kind `attention`, if nothing else reads what they pass on. So are
//! transpositions around them, and views of the first keys and values in buffers for more. Not the probabilities are divided by their sum, but the result, which has fewer
//! elements. `split-blocks` computes such a kernel a block of rows at a time, whose scores stay in a cache.
pub mod causal;
mod masks;
mod open;
pub mod prefix;

use super::form::Kind;
use irc_dialects::tl;
use irc_mlir::{
    Block, BlockLike, Context, Erase, OpSpec, OperationLike, OperationRef, RegionLike,
    Type as MlirType, Value, ValueLike, attr, block_with, context_of, read, rebind,
    replace_all_uses,
};
use irc_tl::{Binary, DType, Family, Op, Rounding};
use std::collections::BTreeMap;

pub use masks::state_masks;
pub use open::join_open_attention;

/// Joins the kernels of attention of a function whose ops are groups.
///
/// # Errors
/// If an op cannot be rebuilt.
pub fn join_attention<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Result<(), String> {
    // Groups that are joined come before the last one of them, so that none of those that follow is erased.
    for group in read::body_ops(func) {
        join_group(group)?;
    }
    Ok(())
}

/// Joins the groups of attention that end with a group; returns whether they are.
///
/// # Errors
/// If an op cannot be rebuilt.
fn join_group<'c: 'a, 'a>(group: OperationRef<'c, 'a>) -> Result<bool, String> {
    match Attention::of(group) {
        Some(found) => found.join().map(|()| true),
        None => Ok(false),
    }
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

    /// The views before an operand that is a matrix of its product, if nothing else reads what they compute.
    fn matrix_views(&self, at: usize, operand: Value<'c, 'a>) -> Option<Self> {
        let product = self.product()?;
        let mut matrices = product.operands();
        matrices.any(|matrix| self.operand_of(matrix) == Some(at)).then_some(())?;
        let group = Self::before(operand, Kind::Elementwise)
            .or_else(|| Self::before(operand, Kind::Loops))?;
        group.is_views().then_some(group)
    }

    /// Whether it is a view of the first elements of its operand, a transposition, a conversion of halves to single
    /// precision, or several of them in this order.
    fn is_views(&self) -> bool {
        let is_chain = self
            .body
            .windows(2)
            .all(|ops| ops[1].operand(0).ok() == ops[0].result(0).ok().map(Value::from));
        let mut rest = &self.body[..];
        for is_next in [is_prefix, is_transposition, is_widening] {
            if let [first, others @ ..] = rest
                && is_next(*first)
            {
                rest = others;
            }
        }
        is_chain && rest.is_empty()
    }

    /// The transposition that it is.
    fn transposition(&self) -> Option<OperationRef<'c, 'a>> {
        let [op] = self.body[..] else { return None };
        is_transposition(op).then_some(op)
    }
}

fn is_transposition(op: OperationRef<'_, '_>) -> bool {
    tl::op_of(op).is_ok_and(|op| op.permutation().is_some())
}

fn is_prefix(op: OperationRef<'_, '_>) -> bool {
    let operand = op.operand(0).ok().and_then(|operand| tl::type_of(operand.r#type()).ok());
    operand.is_some_and(|ty| tl::op_of(op).is_ok_and(|op| prefix::is_prefix(&op, &ty)))
}

/// Whether it makes halves single precision.
fn is_widening(op: OperationRef<'_, '_>) -> bool {
    let operand = op.operand(0).ok().and_then(|operand| tl::type_of(operand.r#type()).ok());
    let is_half = operand.is_some_and(|ty| matches!(ty.dtype, DType::F16 | DType::BF16));
    is_half && tl::op_of(op).is_ok_and(|op| matches!(op, Op::Cast { to: DType::F32, .. }))
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
        let type_of = |value: Value<'c, 'a>| tl::type_of(value.r#type()).ok();
        let Some(scores) = type_of(self.scores.yielded) else { return false };
        let result = self.softmax.op.result(0).ok().and_then(|result| type_of(result.into()));
        let groups = [&self.scores, &self.softmax, &self.values];
        let Some(product) = self.scores.product() else { return false };
        let is_matrix = |value: Value<'c, 'a>| {
            type_of(value).is_some_and(|ty| is_matrix_type(ty.dtype) && ty.rank() == scores.rank())
        };
        let of_matrices = product.operands().all(is_matrix)
            && self.values.product().is_some_and(|product| product.operands().all(is_matrix));
        // All scores are multiplied: none is made by broadcasting.
        let whole = product
            .result(0)
            .is_ok_and(|result| type_of(result.into()).is_some_and(|ty| ty.dims == scores.dims));
        let ops = groups.into_iter().map(Group::ops).collect::<Option<Vec<_>>>();
        let Some(ops) = ops else { return false };
        let softmax = ["reduce_max", "exp", "reduce_sum"];
        let is_softmax = softmax.iter().all(|name| ops[1].iter().any(|op| op.name() == *name));
        is_softmax
            && of_matrices
            && whole
            && scores.rank() >= 3
            && result.as_ref() == Some(&scores)
            && groups
                .into_iter()
                .all(|group| group.body.iter().all(|op| runs_in_blocks(*op, scores.rank())))
    }

    /// The division by which the softmax ends, if nothing else reads the quotients.
    fn division(&self) -> Option<OperationRef<'c, 'a>> {
        let mut quotients = self.softmax.yielded;
        let mut division = read::defining_op(quotients)?;
        let mut is_read_once = irc_mlir::uses(quotients).len() == 1;
        if matches!(tl::op_of(division).ok()?, Op::Cast { .. }) {
            quotients = division.operand(0).ok()?;
            division = read::defining_op(quotients)?;
            is_read_once &= irc_mlir::uses(quotients).len() == 1;
        }
        let is_division = tl::op_of(division).ok()? == Op::Binary(Binary::Div);
        let [dividend, sum] = [0, 1].map(|at| division.operand(at).ok());
        let of_scores = dividend?.r#type() == quotients.r#type();
        let of_rows = tl::type_of(sum?.r#type()).ok()?.dims.last()?.is(1);
        let is_computed = read::owner_of_argument(sum?).is_none();
        (is_division && is_read_once && of_scores && of_rows && is_computed).then_some(division)
    }

    /// The transposition of the result, if it keeps the last dimension and nothing else reads the result.
    fn turned(&self) -> Option<(OperationRef<'c, 'a>, Group<'c, 'a>)> {
        let result = self.values.op.result(0).ok()?;
        let [(user, _)] = irc_mlir::uses(result.into())[..] else { return None };
        let group = Group::of(user, Kind::Elementwise)?;
        let op = group.transposition()?;
        let kept = tl::op_of(op).ok()?.permutation()?.last().copied()? + 1;
        let rank = tl::type_of(result.r#type()).ok()?.rank();
        (kept == rank).then_some((op, group))
    }

    /// Replaces the groups by one.
    fn join(self) -> Result<(), String> {
        let context = context_of(&self.values.op);
        let groups = [&self.scores, &self.softmax, &self.values];
        let (mut sources, mut inputs) = (vec![], vec![]);
        for (number, group) in groups.iter().enumerate() {
            for (at, operand) in group.op.operands().enumerate() {
                let maker = read::defining_op(operand);
                let inner = groups[..number].iter().find(|inner| maker == Some(inner.op));
                if let Some(inner) = inner {
                    sources.push(Source::Inner(inner.yielded));
                    continue;
                }
                let turned = group.matrix_views(at, operand);
                inputs.push(match &turned {
                    Some(group) => group.op.operand(0).map_err(|error| error.to_string())?,
                    None => operand,
                });
                sources.push(Source::Operand(inputs.len() - 1, turned));
            }
        }
        let location = self.values.op.location();
        let types: Vec<MlirType> = inputs.iter().map(ValueLike::r#type).collect();
        let (region, block) = block_with(&types, location);
        let mut body = Body { context, block: &block, values: BTreeMap::new() };
        let dtype = tl::type_of(self.values.yielded.r#type())?.dtype;
        let division = self.division();
        let mut reciprocal = None;
        let mut arguments = sources.iter();
        for group in groups {
            let own = group.op.region(0).ok().and_then(|region| region.first_block());
            let own = own.ok_or("expected a group with a body")?;
            for index in 0..own.argument_count() {
                let old = own.argument(index).map_err(|error| error.to_string())?;
                let new = match arguments.next().ok_or("expected as many operands as arguments")? {
                    Source::Inner(value) => body.value(*value)?,
                    Source::Operand(at, turned) => body.argument(*at, turned.as_ref(), group.op)?,
                };
                body.values.insert(read::identity(old.into()), new);
            }
            for op in &group.body {
                if division == Some(*op) {
                    reciprocal = Some(body.reciprocal(*op)?);
                    continue;
                }
                body.copy(*op)?;
                if let Some(by) = reciprocal
                    && self.values.product() == Some(*op)
                {
                    body.scale(*op, by)?;
                }
            }
        }
        let mut result = body.value(self.values.yielded)?;
        if dtype != DType::F32 {
            result = body.append(&cast(dtype), &[result], self.values.op)?;
        }
        let turned = self.turned();
        if let Some((op, _)) = &turned {
            result = body.append(&tl::op_of(*op)?, &[result], *op)?;
        }
        let ty = result.r#type();
        OpSpec::new(context, tl::YIELD, location).operands(&[result]).append(&block);
        region.append_block(block);
        let last = turned.as_ref().map_or(self.values.op, |(_, group)| group.op);
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
        let after = turned.into_iter().map(|(_, group)| group.op);
        let own = [self.values.op, self.softmax.op, self.scores.op];
        let before = sources.into_iter().filter_map(|source| match source {
            Source::Operand(_, Some(group)) => Some(group.op),
            _ => None,
        });
        after.chain(own).chain(before.collect::<Vec<_>>()).for_each(Erase::erase);
        Ok(())
    }
}

/// What an argument of the block of a joined group is.
enum Source<'c, 'a> {
    /// What another group yields.
    Inner(Value<'c, 'a>),
    /// An operand of the joined group, and the views that it passes through.
    Operand(usize, Option<Group<'c, 'a>>),
}

/// The body of the joined group.
struct Body<'b, 'c> {
    context: &'c Context,
    block: &'b Block<'c>,
    /// The new values of those of the groups, by identity.
    values: BTreeMap<usize, Value<'c, 'b>>,
}

impl<'b, 'c> Body<'b, 'c> {
    fn value(&self, old: Value<'c, '_>) -> Result<Value<'c, 'b>, String> {
        let found = self.values.get(&read::identity(old)).copied();
        found.ok_or_else(|| "uses a value from outside".to_owned())
    }

    fn append(
        &self,
        op: &Op,
        operands: &[Value<'c, 'b>],
        from: OperationRef<'c, '_>,
    ) -> Result<Value<'c, 'b>, String> {
        let built = tl::build(self.context, op, operands, from.location())?;
        let built = self.block.append_operation(built);
        Ok(rebind(built.result(0).map_err(|error| error.to_string())?.into()))
    }

    /// An argument, seen through views if there are any, and in single precision.
    fn argument(
        &self,
        at: usize,
        views: Option<&Group<'c, '_>>,
        reader: OperationRef<'c, '_>,
    ) -> Result<Value<'c, 'b>, String> {
        let argument = self.block.argument(at).map_err(|error| error.to_string())?;
        let mut value = argument.into();
        for op in views.iter().flat_map(|group| &group.body) {
            value = self.append(&tl::op_of(*op)?, &[value], *op)?;
        }
        match tl::type_of(value.r#type())?.dtype {
            DType::F16 | DType::BF16 => self.append(&cast(DType::F32), &[value], reader),
            _ => Ok(value),
        }
    }

    /// Copies an op; halves become single precision.
    fn copy(&mut self, op: OperationRef<'c, '_>) -> Result<(), String> {
        let operands = op.operands().map(|operand| self.value(operand));
        let operands = operands.collect::<Result<Vec<_>, _>>()?;
        let new = match tl::op_of(op)? {
            Op::Cast { to, .. } if is_matrix_type(to) => {
                let from = tl::type_of(operands[0].r#type())?.dtype;
                match from == DType::F32 {
                    true => operands[0],
                    false => self.append(&cast(DType::F32), &operands, op)?,
                }
            }
            Op::Fill { value, shape, dtype } if is_matrix_type(dtype) => {
                self.append(&Op::Fill { value, shape, dtype: DType::F32 }, &[], op)?
            }
            copied => self.append(&copied, &operands, op)?,
        };
        self.define(op, new)
    }

    fn define(&mut self, op: OperationRef<'c, '_>, new: Value<'c, 'b>) -> Result<(), String> {
        let old = op.result(0).map_err(|error| error.to_string())?;
        self.values.insert(read::identity(old.into()), new);
        Ok(())
    }

    /// Makes the dividend the result of a division; returns the reciprocal of the divisor, by which the product of
    /// the result is multiplied instead: it has fewer elements.
    fn reciprocal(&mut self, division: OperationRef<'c, '_>) -> Result<Value<'c, 'b>, String> {
        let operand = |at| division.operand(at).map_err(|error| error.to_string());
        let (dividend, sum) = (self.value(operand(0)?)?, self.value(operand(1)?)?);
        self.define(division, dividend)?;
        let one = self.append(&Op::fill(1.0, [], DType::F32), &[], division)?;
        self.append(&Op::Binary(Binary::Div), &[one, sum], division)
    }

    /// Multiplies the result of an op.
    fn scale(&mut self, op: OperationRef<'c, '_>, by: Value<'c, 'b>) -> Result<(), String> {
        let old = op.result(0).map_err(|error| error.to_string())?;
        let product = self.value(old.into())?;
        let scaled = self.append(&Op::Binary(Binary::Mul), &[product, by], op)?;
        self.define(op, scaled)
    }
}

/// Whether an op computes a row of its result from a row of its operands, and is the same op for a block of rows.
fn runs_in_blocks(op: OperationRef<'_, '_>, rank: usize) -> bool {
    let Ok(found) = tl::op_of(op) else { return false };
    let is_scalar = op
        .result(0)
        .is_ok_and(|result| tl::type_of(result.r#type()).is_ok_and(|ty| ty.elements().is(1)));
    match &found {
        Op::Reduce { axes, keep_dims, .. } => *keep_dims && axes[..] == [rank - 1],
        Op::Matmul { .. } => true,
        Op::Compute(compute) => causal::offset_of(compute).is_some(),
        _ if found.row().arity() == Some(0) => is_scalar,
        _ => found.family() == Family::Elementwise,
    }
}

/// The conversion of floats.
fn cast(to: DType) -> Op {
    Op::Cast { to, rounding: Rounding::TowardZero }
}

/// Whether matrices of a type can be multiplied in blocks.
fn is_matrix_type(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
}
