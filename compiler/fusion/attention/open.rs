//! Attention whose sizes depend on symbols, found among ops of the tensor level before they are inlined into loops.
//!
//! Ops on symbolic sizes without rows are general ops, `tl.compute`, with the expression of the op that they stand
//! for. Those of attention become groups of named ops again, as if sizes were known, and [`join_group`] makes one
//! group of them. Sizes of queries and keys, and all before them, may depend on symbols; the depth and the width of
//! the values are known.
use super::join_group;
use super::{causal, is_widening, prefix};
use crate::fusion::inline::key;
use irc_dialects::tl;
use irc_mlir::{
    BlockLike, Erase, OpSpec, OperationLike, OperationRef, RegionLike, Type as MlirType, Value,
    ValueLike, attr, block_with, context_of, read, rebind, replace_all_uses, uses,
};
use irc_tl::{Binary, Compute, DType, Dim, Family, Op, Reduction, Scalar, Type, Unary};
use std::collections::{BTreeMap, BTreeSet};

/// Joins the ops of attention of a function whose sizes are not all known after the first.
///
/// # Errors
/// If an op cannot be rebuilt.
pub fn join_open_attention<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Result<(), String> {
    // Ops that are joined come before the result, but for its conversion and its transposition.
    let mut erased = BTreeSet::new();
    for op in read::body_ops(func) {
        if erased.contains(&key(op)) {
            continue;
        }
        if let Some(found) = OpenAttention::of(op) {
            let later = found.values[1..].iter().chain(&found.turned);
            erased.extend(later.map(|(op, _)| key(*op)));
            found.join()?;
        }
    }
    Ok(())
}

/// An op, and the one with a name that it stands for.
type Named<'c, 'a> = (OperationRef<'c, 'a>, Op);

/// The ops of attention, in order.
struct OpenAttention<'c, 'a> {
    scores: Vec<Named<'c, 'a>>,
    softmax: Vec<Named<'c, 'a>>,
    /// The product with the values, and the conversion of its result to halves.
    values: Vec<Named<'c, 'a>>,
    /// Views of the queries, keys and values: of the first ones in a buffer, transpositions, conversions of halves.
    matrices: Vec<Vec<Named<'c, 'a>>>,
    /// That of the result.
    turned: Option<Named<'c, 'a>>,
}

impl<'c: 'a, 'a> OpenAttention<'c, 'a> {
    /// The attention whose last product is an op.
    fn of(op: OperationRef<'c, 'a>) -> Option<Self> {
        let plain = |op| match tl::op_of(op).ok()? {
            found @ Op::Matmul { transpose_lhs: false, .. } => Some(found),
            _ => None,
        };
        let values: Vec<_> = [(op, plain(op)?)].into_iter().chain(narrowing(op)).collect();
        if values[0].1 != (Op::Matmul { transpose_lhs: false, transpose_rhs: false }) {
            return None;
        }
        let mut softmax = vec![];
        let mut quotients = op.operand(0).ok()?;
        let ty = tl::type_of(quotients.r#type()).ok()?;
        let rank = ty.rank();
        let is_open = ty.dims.iter().skip(1).any(|dim| dim.known().is_none());
        let is_read_once = |value: Value<'c, 'a>| uses(value).len() == 1;
        if rank < 3 || !is_matrix(&ty) || !is_read_once(quotients) {
            return None;
        }
        if let Some((cast, named @ Op::Cast { .. })) = named_of(quotients) {
            softmax.push((cast, named));
            quotients = cast.operand(0).ok()?;
        }
        let (division, Op::Binary(Binary::Div)) = named_of(quotients)? else { return None };
        let [powers, sum] = [0, 1].map(|at| division.operand(at).ok());
        let (powers, sum) = (powers?, sum?);
        let (exp, Op::Unary(Unary::Exp)) = named_of(powers)? else { return None };
        let distances = exp.operand(0).ok()?;
        let (sub, Op::Binary(Binary::Sub)) = named_of(distances)? else { return None };
        let scores = sub.operand(0).ok()?;
        let highest = reduced(sub.operand(1).ok()?, Reduction::Max, scores)?;
        let sums = reduced(sum, Reduction::Sum, powers)?;
        let once = [quotients, distances];
        let is_softmax = [scores, powers].into_iter().all(|value| uses(value).len() == 2)
            && once.into_iter().all(is_read_once)
            && tl::type_of(scores.r#type()).ok()?.dims == ty.dims;
        if !is_softmax {
            return None;
        }
        softmax.push((division, Op::Binary(Binary::Div)));
        softmax.extend(sums);
        softmax.extend([(exp, Op::Unary(Unary::Exp)), (sub, Op::Binary(Binary::Sub))]);
        softmax.extend(highest);
        softmax.reverse();
        let mut body = vec![];
        let mut from = scores;
        let mask = named_of(scores).filter(|(_, named)| is_causal(named));
        if let Some((op, _)) = &mask {
            from = op.operand(0).ok()?;
        }
        // Others of known sizes are fused as groups.
        let is_read_once = from == scores || is_read_once(from);
        (is_read_once && (is_open || mask.is_some())).then_some(())?;
        add_scores(from, &ty.dims, &mut body).then_some(())?;
        let masks = usize::from(mask.is_some());
        body.extend(mask);
        // Scores that are widened for the softmax, and then masked, are narrow outside of it, as probabilities are.
        let dtype_of = |value: Value<'c, 'a>| Some(tl::type_of(value.r#type()).ok()?.dtype);
        if dtype_of(scores)? != ty.dtype {
            let at = body.len().checked_sub(1 + masks)?;
            let (cast, Op::Cast { .. }) = body.get(at)? else { return None };
            (dtype_of(cast.operand(0).ok()?)? == ty.dtype).then_some(())?;
            softmax.splice(0..0, body.drain(at..));
        }
        let product = match body.iter().filter(|(op, _)| plain(*op).is_some()).collect::<Vec<_>>()[..]
        {
            [(product, _)] => *product,
            _ => return None,
        };
        let mut found = Self { scores: body, softmax, values, matrices: vec![], turned: None };
        found.has_matrices(product, &ty.dims).then_some(())?;
        let left =
            [product.operand(0).ok()?, product.operand(1).ok()?].map(|matrix| (matrix, false));
        for (matrix, is_right) in left.into_iter().chain([(op.operand(1).ok()?, true)]) {
            found.matrices.extend(views(matrix, rank, is_right));
        }
        found.turned = found.turned();
        Some(found)
    }

    /// Whether the products are of matrices whose other sizes are known.
    fn has_matrices(&self, product: OperationRef<'c, 'a>, dims: &[Dim]) -> bool {
        let outer = dims.len() - 2;
        let is_matrix = |value: Option<Value<'c, 'a>>, known: usize| {
            let Some(ty) = value.and_then(|value| tl::type_of(value.r#type()).ok()) else {
                return false;
            };
            let shared =
                ty.dims.iter().zip(&dims[..outer]).all(|(own, dim)| own == dim || own.is(1));
            is_matrix(&ty)
                && ty.rank() == dims.len()
                && shared
                && ty.dims[outer + known].known().is_some_and(|size| size > 0)
        };
        let results = [product, self.values[0].0]
            .map(|op| op.result(0).ok().and_then(|result| tl::type_of(result.r#type()).ok()));
        let whole = |ty: &Option<Type>, count: usize| {
            ty.as_ref()
                .is_some_and(|ty| ty.dims.len() == dims.len() && ty.dims[..count] == dims[..count])
        };
        let distinct = product.operand(0).ok() != product.operand(1).ok();
        whole(&results[0], dims.len())
            && whole(&results[1], outer + 1)
            && distinct
            && is_matrix(product.operand(0).ok(), 1)
            && is_matrix(product.operand(1).ok(), usize::from(transposes(product)))
            && is_matrix(self.values[0].0.operand(1).ok(), 1)
    }

    /// The transposition of the result, if it keeps the last dimension and nothing else reads the result.
    fn turned(&self) -> Option<Named<'c, 'a>> {
        let result: Value = self.values.last()?.0.result(0).ok()?.into();
        let [(user, _)] = uses(result)[..] else { return None };
        let named = named(user)?;
        let order = named.permutation()?.to_vec();
        let rank = order.len();
        let ty = tl::type_of(Value::from(user.result(0).ok()?).r#type()).ok()?;
        // The distance of rows of the result.
        let row = order.iter().position(|from| *from == rank - 2)?;
        let is_known = ty.dims[row + 1..].iter().all(|dim| dim.known().is_some());
        (order.last() == Some(&(rank - 1)) && is_known).then_some((user, named))
    }

    /// Replaces the ops by a group.
    fn join(self) -> Result<(), String> {
        for matrix in self.matrices {
            wrap(&matrix, "elementwise")?;
        }
        wrap(&self.scores, "contraction")?;
        wrap(&self.softmax, "rows")?;
        let values = wrap(&self.values, "contraction")?;
        if let Some(turned) = self.turned {
            wrap(&[turned], "elementwise")?;
        }
        match join_group(values)? {
            true => Ok(()),
            false => Err("expected attention to be one kernel".to_owned()),
        }
    }
}

/// The conversion of a result to halves, if nothing else reads it.
fn narrowing<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Option<Named<'c, 'a>> {
    let result: Value = op.result(0).ok()?.into();
    let [(user, _)] = uses(result)[..] else { return None };
    let is_wide = tl::type_of(result.r#type()).ok()?.dtype == DType::F32;
    let named @ Op::Cast { to: DType::F16 | DType::BF16, .. } = named(user)? else { return None };
    is_wide.then_some((user, named))
}

/// Whether a product is one with a transposed right operand.
fn transposes(product: OperationRef<'_, '_>) -> bool {
    matches!(tl::op_of(product), Ok(Op::Matmul { transpose_rhs: true, .. }))
}

/// Whether an op is a causal mask.
fn is_causal(op: &Op) -> bool {
    matches!(op, Op::Compute(compute) if causal::offset_of(compute).is_some())
}

/// Whether an op on operands of these types returns the first elements of one.
fn is_prefix(op: &Op, types: &[Type]) -> bool {
    matches!(types, [ty] if prefix::is_prefix(op, ty))
}

/// The ops that reduce the rows of a value, the last one first, if nothing else reads what they compute: a reduction,
/// and possibly a bound of its result.
fn reduced<'c: 'a, 'a>(
    value: Value<'c, 'a>,
    kind: Reduction,
    rows: Value<'c, 'a>,
) -> Option<Vec<Named<'c, 'a>>> {
    let mut ops = vec![];
    let (mut op, mut named) = named_of(value)?;
    if named == Op::Binary(Binary::Max) {
        let (_, Op::Fill { .. }) = named_of(op.operand(1).ok()?)? else { return None };
        ops.push((op, named));
        (op, named) = named_of(op.operand(0).ok()?)?;
    }
    let rank = tl::type_of(rows.r#type()).ok()?.rank();
    let wanted = Op::Reduce { kind, axes: vec![rank - 1], keep_dims: true };
    ops.push((op, named));
    let are_read_once = ops
        .iter()
        .all(|(op, _)| op.result(0).is_ok_and(|result| uses(Value::from(result)).len() == 1));
    let applies = ops.last()?.1 == wanted && op.operand(0).ok()? == rows && are_read_once;
    applies.then_some(ops)
}

/// Whether matrices of a type can be multiplied in blocks.
fn is_matrix(ty: &Type) -> bool {
    matches!(ty.dtype, DType::F32 | DType::F16 | DType::BF16)
}

/// Adds the ops that compute scores from a product, in order; returns whether there is one.
fn add_scores<'c: 'a, 'a>(
    value: Value<'c, 'a>,
    dims: &[Dim],
    body: &mut Vec<Named<'c, 'a>>,
) -> bool {
    let Some((op, named)) = named_of(value) else { return false };
    if matches!(named, Op::Matmul { .. }) {
        body.push((op, named));
        return true;
    }
    if named.family() != Family::Elementwise || body.len() > MAX_SCORE_OPS {
        return false;
    }
    let types: Result<Vec<Type>, _> =
        op.operands().map(|value| tl::type_of(value.r#type())).collect();
    let Ok(types) = types else { return false };
    let fits = |ty: &Type| {
        let own = ty.dims.iter().rev().zip(dims.iter().rev());
        ty.rank() <= dims.len()
            && own.into_iter().all(|(own, dim)| own == dim || own.is(1))
            && !ty.dtype.is_small()
    };
    if !types.iter().all(fits) {
        return false;
    }
    let inner = op.operands().zip(&types).filter(|(value, ty)| {
        ty.dims[..] == *dims && uses(*value).len() == 1 && is_from_product(*value, dims, 0)
    });
    let inner: Vec<Value> = inner.map(|(value, _)| value).collect();
    let [from] = inner[..] else { return false };
    let found = add_scores(from, dims, body);
    body.push((op, named));
    found
}

/// The maximum number of ops between the products.
const MAX_SCORE_OPS: usize = 16;

/// Whether a value is computed from a product by ops that nothing else reads.
pub(super) fn is_from_product<'c: 'a, 'a>(
    value: Value<'c, 'a>,
    dims: &[Dim],
    depth: usize,
) -> bool {
    let Some((op, named)) = named_of(value) else { return false };
    if matches!(named, Op::Matmul { .. }) {
        return true;
    }
    named.family() == Family::Elementwise
        && depth < MAX_SCORE_OPS
        && op.operands().any(|value| {
            tl::type_of(value.r#type()).is_ok_and(|ty| ty.dims[..] == *dims)
                && uses(value).len() == 1
                && is_from_product(value, dims, depth + 1)
        })
}

/// The views that a matrix is computed by, in order, if blocks can read it where it is: its rows and columns are known
/// distances apart.
fn views<'c: 'a, 'a>(
    matrix: Value<'c, 'a>,
    rank: usize,
    is_right: bool,
) -> Option<Vec<Named<'c, 'a>>> {
    if uses(matrix).len() != 1 {
        return None;
    }
    let (op, named) = named_of(matrix)?;
    let operand = op.operand(0).ok()?;
    if is_widening(op) {
        let mut all = views(operand, rank, is_right).unwrap_or_default();
        all.push((op, named));
        return Some(all);
    }
    let prefix_of = |value: Value<'c, 'a>| {
        let (op, named) = named_of(value)?;
        let ty = tl::type_of(op.operand(0).ok()?.r#type()).ok()?;
        (uses(value).len() == 1 && prefix::is_prefix(&named, &ty)).then_some((op, named))
    };
    let Some(order) = named.permutation() else { return Some(vec![prefix_of(matrix)?]) };
    let ty = tl::type_of(operand.r#type()).ok()?;
    let is_known = |dim: usize| ty.dims[dim + 1..].iter().all(|dim| dim.known().is_some());
    let is_contiguous = !is_right || order.last() == Some(&(rank - 1));
    let all = order[rank - 2..].iter().all(|dim| is_known(*dim));
    let first = prefix_of(operand);
    (all && is_contiguous).then(|| first.into_iter().chain([(op, named.clone())]).collect())
}

/// The op that computes a value, and the one with a name that it stands for.
fn named_of<'c: 'a, 'a>(value: Value<'c, 'a>) -> Option<Named<'c, 'a>> {
    let op = read::defining_op(value)?;
    Some((op, named(op)?))
}

/// The op with a name that an op stands for.
fn named(op: OperationRef<'_, '_>) -> Option<Op> {
    let own = tl::op_of(op).ok()?;
    let Op::Compute(compute) = &own else { return Some(own) };
    let types = tl::symbolic_operand_types(op).ok()?;
    let stands_for = |named: &Op| named.as_compute(&types).is_some_and(|own| own == **compute);
    candidates(compute, &types)
        .into_iter()
        .find(stands_for)
        .or_else(|| Some(own.clone()).filter(|own| is_causal(own) || is_prefix(own, &types)))
}

/// Ops whose expression may be that of a general op.
fn candidates(compute: &Compute, types: &[Type]) -> Vec<Op> {
    match (types, &compute.reduction) {
        ([ty], Some(_)) => [Reduction::Max, Reduction::Sum]
            .map(|kind| Op::Reduce {
                kind,
                axes: vec![ty.rank().saturating_sub(1)],
                keep_dims: true,
            })
            .to_vec(),
        ([_], None) => match &compute.body {
            Scalar::Load(_, at) => {
                let loops: Option<Vec<usize>> = at
                    .iter()
                    .map(|index| match index {
                        Scalar::Loop(number) => Some(*number),
                        _ => None,
                    })
                    .collect();
                let Some(loops) = loops else { return vec![] };
                let of = |number| loops.iter().position(|own| *own == number);
                let order: Option<Vec<usize>> = (0..loops.len()).map(of).collect();
                order.map(|permutation| Op::Transpose { permutation }).into_iter().collect()
            }
            _ => vec![],
        },
        ([_, _], None) => match &compute.body {
            Scalar::Binary(function, ..) => vec![Op::Binary(*function)],
            Scalar::Compare(comparison, ..) => vec![Op::Compare(*comparison)],
            _ => vec![],
        },
        ([_, _, _], None) => vec![Op::Select],
        _ => vec![],
    }
}

/// Makes a group of ops, of which the last alone is read by others. Constants are copied into it.
fn wrap<'c: 'a, 'a>(ops: &[Named<'c, 'a>], kind: &str) -> Result<OperationRef<'c, 'a>, String> {
    let (last, _) = ops.last().ok_or("expected ops to group")?;
    let context = context_of(last);
    let message = |error: irc_mlir::melior::Error| error.to_string();
    let is_own = |op| ops.iter().any(|(own, _)| *own == op);
    let constant = |value| {
        let (op, named) = named_of(value)?;
        let is_one = tl::type_of(Value::from(op.result(0).ok()?).r#type()).ok()?.elements().is(1);
        (is_one && matches!(named, Op::Fill { .. })).then_some((op, named))
    };
    let mut inputs: Vec<Value> = vec![];
    for operand in ops.iter().flat_map(|(op, _)| op.operands()) {
        let is_inner =
            read::defining_op(operand).is_some_and(is_own) || constant(operand).is_some();
        if !is_inner && !inputs.contains(&operand) {
            inputs.push(operand);
        }
    }
    let types: Vec<MlirType> = inputs.iter().map(ValueLike::r#type).collect();
    let location = last.location();
    let (region, block) = block_with(&types, location);
    let mut values: BTreeMap<usize, Value> = BTreeMap::new();
    for (at, input) in inputs.iter().enumerate() {
        values.insert(read::identity(*input), block.argument(at).map_err(message)?.into());
    }
    for (op, named) in ops {
        let mut operands = vec![];
        for operand in op.operands() {
            let key = read::identity(operand);
            if let (false, Some((fill, named))) = (values.contains_key(&key), constant(operand)) {
                let built = tl::build(context, &named, &[], fill.location())?;
                let built = block.append_operation(built);
                values.insert(key, rebind(built.result(0).map_err(message)?.into()));
            }
            operands.push(values.get(&key).copied().ok_or("uses a value from outside")?);
        }
        let built = block.append_operation(tl::build(context, named, &operands, op.location())?);
        let result: Value = op.result(0).map_err(message)?.into();
        values.insert(read::identity(result), rebind(built.result(0).map_err(message)?.into()));
    }
    let result: Value = last.result(0).map_err(message)?.into();
    let yielded = values.get(&read::identity(result)).copied().ok_or("computes nothing")?;
    OpSpec::new(context, tl::YIELD, location).operands(&[yielded]).append(&block);
    region.append_block(block);
    let parent = last.block().ok_or("expected an op in a block")?;
    let group = OpSpec::new(context, tl::GROUP, location)
        .operands(&inputs)
        .results(&[result.r#type()])
        .attr("kind", attr::string(context, kind))
        .region(region)
        .before(&parent, *last);
    replace_all_uses(result, group.result(0).map_err(message)?.into());
    ops.iter().rev().for_each(|(op, _)| op.erase());
    Ok(group)
}
