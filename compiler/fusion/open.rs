//! Ops with rows whose number depends on symbols, which are fused like ops of known sizes.
//!
//! [`join_rows`] gives each of them one leading dimension of rows, with views around it. Fusion then reads that
//! dimension as a large prime, one for each number of rows ([`Extents`]), so that shapes are equal if and only if the
//! sizes are.
use super::inline::COMPUTE;
use irc_dialects::tl;
use irc_mlir::{
    BlockLike, BlockRef, Erase, OpSpec, OperationLike, OperationRef, Value, ValueLike, context_of,
    read, replace_all_uses, uses,
};
use irc_tl::{Dim, Op, TensorType, Type};
use std::collections::BTreeMap;

/// The number of leading dimensions that are rows of an op; `None` if it has none, and for general ops.
fn rows_of(op: OperationRef<'_, '_>) -> Option<(Op, usize)> {
    if read::op_name(&op) == COMPUTE {
        return None;
    }
    let types = tl::symbolic_operand_types(op).ok()?;
    if types.iter().all(|ty| ty.known().is_some()) {
        return None;
    }
    let work = tl::op_of(op).ok()?;
    let rows = work.open_rows(&types)?;
    Some((work, rows))
}

/// Whether an op has one leading dimension of rows, whose number depends on symbols.
pub(super) fn is_open(op: OperationRef<'_, '_>) -> bool {
    rows_of(op).is_some_and(|(_, rows)| rows == 1)
}

/// Rewrites every op with several leading dimensions of rows as one with a single dimension of them.
///
/// # Errors
/// An op that cannot be rebuilt.
pub(super) fn join_rows<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Result<(), String> {
    let mut views = vec![];
    for op in read::body_ops(func) {
        let Some((work, rows)) = rows_of(op).filter(|(_, rows)| *rows > 1) else { continue };
        let block = op.block().ok_or("expected an op in a block")?;
        let result: Value = op.result(0).map_err(|error| error.to_string())?.into();
        let ty = tl::type_of(result.r#type())?;
        let rank = ty.rank().max(rank_of(op)?);
        let mut operands = vec![];
        for operand in op.operands() {
            let own = tl::type_of(operand.r#type())?;
            operands.push(match joined(&work, &own, rows, rank) {
                Some(joined) => view(block, op, operand, &joined, &mut views),
                None => operand,
            });
        }
        let built =
            tl::build(context_of(&op), &work.with_joined_rows(rows), &operands, op.location())?;
        let built = block.insert_operation_before(op, built);
        let value: Value = built.result(0).map_err(|error| error.to_string())?.into();
        let whole = view(block, op, value, &ty, &mut views);
        replace_all_uses(result, whole);
        op.erase();
    }
    for op in views.into_iter().rev() {
        if op.results().all(|result| uses(Value::from(result)).is_empty()) {
            op.erase();
        }
    }
    Ok(())
}

/// The maximum rank of the operands.
fn rank_of(op: OperationRef<'_, '_>) -> Result<usize, String> {
    Ok(tl::symbolic_operand_types(op)?.iter().map(Type::rank).max().unwrap_or(0))
}

/// The type of an operand once the rows are one dimension; `None` if it stays as it is.
fn joined(work: &Op, ty: &Type, rows: usize, rank: usize) -> Option<Type> {
    if ty.known().is_none() {
        let mut dims = vec![Dim::product(&ty.dims[..rows])];
        dims.extend_from_slice(&ty.dims[rows..]);
        return Some(Type::new(ty.dtype, dims));
    }
    if !work.is_elementwise() {
        return None;
    }
    // Leading dimensions of extent 1, which all rows share.
    let extra = (ty.rank() + rows).saturating_sub(rank).min(rows).saturating_sub(1);
    (extra > 0).then(|| Type::new(ty.dtype, ty.dims[extra..].to_vec()))
}

/// A view of a value in another shape, before an op; what it is a view of, if that has the shape.
fn view<'c: 'a, 'a>(
    block: BlockRef<'c, 'a>,
    op: OperationRef<'c, 'a>,
    value: Value<'c, 'a>,
    ty: &Type,
    views: &mut Vec<OperationRef<'c, 'a>>,
) -> Value<'c, 'a> {
    let context = context_of(&op);
    let wanted = tl::type_to_mlir(context, ty);
    if value.r#type() == wanted {
        return value;
    }
    if let Some(maker) = read::defining_op(value)
        && read::op_name(&maker) == "tl.reshape"
        && let Ok(source) = maker.operand(0)
        && source.r#type() == wanted
    {
        return source;
    }
    let spec = OpSpec::new(context, "tl.reshape", op.location());
    let view = spec.operands(&[value]).results(&[wanted]).before(&block, op);
    views.push(view);
    view.result(0).map_or(value, Value::from)
}

/// Extents that stand for sizes that depend on symbols.
#[derive(Default)]
pub(super) struct Extents {
    primes: BTreeMap<Dim, i64>,
    /// What each prime stands for.
    rows: BTreeMap<i64, Dim>,
}

/// Larger than the extents of models, so that none of these is also the extent of a known dimension.
const FIRST: i64 = 1_000_003;

impl Extents {
    /// The type with an extent for its rows; an extent of 0 stands for every other size that is not known.
    pub(super) fn of(&mut self, ty: &Type) -> TensorType {
        let mut extents: Vec<i64> = ty.dims.iter().map(|dim| dim.known().unwrap_or(0)).collect();
        let is_inner_known = ty.dims.iter().skip(1).all(|dim| dim.known().is_some());
        if let Some(rows) = ty.dims.first().filter(|rows| rows.known().is_none() && is_inner_known)
        {
            extents[0] = self.prime(rows);
        }
        TensorType::new(ty.dtype, extents)
    }

    /// Whether an extent of a shape stands for a number of rows.
    pub(super) fn are_in(&self, shape: &[i64]) -> bool {
        shape.iter().any(|extent| self.rows.contains_key(extent))
    }

    /// A text in which sizes stand for the extents.
    pub(super) fn named(&self, text: &str) -> String {
        let mut named = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) {
            let after = rest[start..].find(|letter: char| !letter.is_ascii_digit());
            let end = after.map_or(rest.len(), |length| start + length);
            let rows = rest[start..end].parse().ok().and_then(|number| self.rows.get(&number));
            named += &rest[..start];
            match rows {
                Some(rows) => named += &rows.to_string(),
                None => named += &rest[start..end],
            }
            rest = &rest[end..];
        }
        named + rest
    }

    fn prime(&mut self, rows: &Dim) -> i64 {
        if let Some(known) = self.primes.get(rows) {
            return *known;
        }
        let first = self.rows.last_key_value().map_or(FIRST, |(last, _)| last + 2);
        let is_prime = |number: &i64| {
            (3..).step_by(2).take_while(|by| by * by <= *number).all(|by| number % by != 0)
        };
        let prime = (first..).step_by(2).find(is_prime).unwrap_or(first);
        self.rows.insert(prime, rows.clone());
        self.primes.insert(rows.clone(), prime);
        prime
    }
}
