//! Inlines general ops: a `tl.compute` with one use, which reads one element per iteration, becomes a part
//! of its consumer's expression.
//!
//! Ops that only reshape become views first. This fuses chains of elementwise ops with symbolic sizes into
//! one kernel. Every step is rounded as before, so that results are the same bit for bit.
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    BlockLike, Erase, Location, OpSpec, OperationLike, OperationRef, Value, ValueLike, context_of,
    has_one_use, is_used_only_by, read, replace_all_uses, uses,
};
use irc_tl::{Compute, DType, Dim, Family, MAX_DEPTH, Op, Scalar};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Maximum number of operands of an op after inlining.
const MAX_OPERANDS: usize = 64;

/// Maximum number of parts of an expression after inlining.
const MAX_PARTS: usize = 2048;

/// Replaces every general op that only reshapes its operand by a view, as its elements stay in place, unless it is passed to
/// a branch or loop, whose operands have memory of their own.
///
/// # Errors
/// If an op has no block.
pub fn reshapes_to_views<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Result<(), String> {
    for op in read::body_ops(func) {
        let Some(compute) = compute_of(op) else { continue };
        let types = tl::symbolic_operand_types(op)?;
        let [from] = &types[..] else { continue };
        let reads_in_place = |user: OperationRef<'c, 'a>| {
            tl::op_of(user).is_ok() || read::op_name(&user) == func::RETURN
        };
        let is_read_in_place = op.results().all(|result| {
            uses(Value::from(result)).into_iter().all(|(user, _)| reads_in_place(user))
        });
        // A broadcast scalar has the expression of a reshape, but of fewer elements. Otherwise numbers of elements that differ
        // are equal when the program runs, as it checks.
        let elements = [from.elements(), Dim::product(&compute.dims)];
        let are_equal = elements[0] == elements[1]
            || elements.iter().all(|elements| elements.known().is_none());
        let reshapes = are_equal && *compute == Compute::reshape(from, compute.dims.clone());
        if !is_read_in_place || !reshapes {
            continue;
        }
        let operands: Vec<Value> = op.operands().collect();
        let results: Vec<_> = op.results().map(|result| result.r#type()).collect();
        let block = op.block().ok_or("expected an op in a block")?;
        let view = OpSpec::new(context_of(&op), "tl.reshape", op.location())
            .operands(&operands)
            .results(&results)
            .before(&block, op);
        for (old, new) in op.results().zip(view.results()) {
            replace_all_uses(old.into(), new.into());
        }
        op.erase();
    }
    Ok(())
}

/// The name of a general op.
pub const COMPUTE: &str = "tl.compute";

/// The names and locations of the ops that became parts of others, by the [`key`] of the reader.
pub type Inlined<'c> = BTreeMap<usize, Vec<(String, Location<'c>)>>;

/// What becomes a part of the first of some ops: the others, and what became parts of each of them.
pub fn take_parts<'c: 'a, 'a>(
    ops: &[OperationRef<'c, 'a>],
    inlined: &mut Inlined<'c>,
) -> Vec<(String, Location<'c>)> {
    let mut parts = vec![];
    for (number, op) in ops.iter().enumerate() {
        parts.extend(inlined.remove(&key(*op)).unwrap_or_default());
        parts.extend((number > 0).then(|| (name_in_report(*op), op.location())));
    }
    parts
}

/// The name of an op in a report: of a general op with what it computes, as `tl.compute reduce_max`.
pub fn name_in_report(op: OperationRef<'_, '_>) -> String {
    tl::op_of(op).map_or_else(|_| read::op_name(&op), |op| described(&op))
}

/// As [`name_in_report`].
pub fn described(op: &Op) -> String {
    let what = op.summary().filter(|_| matches!(op, Op::Compute(_)));
    format!("tl.{}{}", op.name(), what.map_or_else(String::new, |what| format!(" {what}")))
}

/// The identity of an op during its lifetime.
pub fn key(op: OperationRef<'_, '_>) -> usize {
    op.to_raw().ptr as usize
}

/// Inlines general ops in a function. Parts of an op that is inlined itself are parts of its reader.
///
/// # Errors
/// If an op cannot be rebuilt.
pub fn inline_computes<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Result<Inlined<'c>, String> {
    let mut inlined = Inlined::new();
    inline(func, &mut inlined, compute_of, |_| true)?;
    Ok(inlined)
}

/// As [`inline_computes`], also elementwise ops of open sizes into maps that are general ops, and such maps into elementwise
/// ops, which so become general.
///
/// # Errors
/// If an op cannot be rebuilt.
pub fn inline_elementwise<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    inlined: &mut Inlined<'c>,
) -> Result<(), String> {
    inline(func, inlined, map_of, |ops| ops.iter().any(|op| compute_of(*op).is_some()))
}

/// Inlines ops with these expressions in each other, where this is wanted of an op and what would become parts of it.
fn inline<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    inlined: &mut Inlined<'c>,
    compute_of: impl Fn(OperationRef<'c, 'a>) -> Option<Arc<Compute>>,
    is_wanted: impl Fn(&[OperationRef<'c, 'a>]) -> bool,
) -> Result<(), String> {
    let mut done = BTreeSet::new();
    // The last ones first, so that each expression is read once; what one cannot inline, those before it cannot either.
    for op in read::body_ops(func).into_iter().rev() {
        if done.contains(&key(op)) {
            continue;
        }
        let Some(reader) = compute_of(op) else { continue };
        let joined = Joined::of(op, reader, &compute_of);
        done.extend(joined.gone.iter().map(|part| key(*part)));
        if is_wanted(&[&[op], &joined.gone[..]].concat()) {
            joined.replace(op, inlined)?;
        }
    }
    Ok(())
}

/// An op with what was inlined in it.
struct Joined<'c, 'a> {
    compute: Arc<Compute>,
    operands: Vec<Value<'c, 'a>>,
    gone: Vec<OperationRef<'c, 'a>>,
}

impl<'c: 'a, 'a> Joined<'c, 'a> {
    /// Inlines what produces the operands of an op, as long as `part_of` gives the expression of a producer.
    fn of(
        op: OperationRef<'c, 'a>,
        reader: Arc<Compute>,
        part_of: impl Fn(OperationRef<'c, 'a>) -> Option<Arc<Compute>>,
    ) -> Self {
        let operands = op.operands().collect();
        let mut own = Self { compute: reader, operands, gone: vec![] };
        while let Some((at, producer, part)) = own.candidate(op, &part_of) {
            let more: Vec<Value> = producer.operands().collect();
            let room = own.operands.len() + more.len() <= MAX_OPERANDS;
            let joined = room.then(|| joined(&own.compute, at, &part, own.operands.len()));
            let Some(joined) = joined.flatten() else { break };
            own.operands.extend(more);
            // Several parts may have read one value, which then has a single reader.
            let (tidy, kept) = tidied(&joined, &own.operands);
            (own.compute, own.operands) = (Arc::new(tidy), kept);
            own.gone.push(producer);
        }
        own
    }

    /// An operand that only the op and its parts use and that can be inlined, its producer, and the expression of that.
    fn candidate(
        &self,
        op: OperationRef<'c, 'a>,
        part_of: impl Fn(OperationRef<'c, 'a>) -> Option<Arc<Compute>>,
    ) -> Option<(usize, OperationRef<'c, 'a>, Arc<Compute>)> {
        self.operands.iter().enumerate().find_map(|(at, operand)| {
            let producer = read::defining_op(*operand)?;
            let once = self.operands.iter().filter(|other| *other == operand).count() == 1;
            let is_part = |user: OperationRef<'c, 'a>| user == op || self.gone.contains(&user);
            let alone = once && is_used_only_by(*operand, is_part);
            let is_free = alone && reads_each_once(&self.compute, at);
            let part = is_free.then(|| part_of(producer)).flatten();
            part.filter(|part| part.reduction.is_none()).map(|part| (at, producer, part))
        })
    }

    /// Replaces the op.
    fn replace(self, op: OperationRef<'c, 'a>, inlined: &mut Inlined<'c>) -> Result<(), String> {
        let Self { compute, operands, gone } = self;
        if gone.is_empty() {
            return Ok(());
        }
        let parts = take_parts(&[&[op], &gone[..]].concat(), inlined);
        let (compute, operands) =
            numbered(&compute, &operands).unwrap_or_else(|| ((*compute).clone(), operands));
        let built = rebuilt(op, compute, &operands)?;
        inlined.insert(key(built), parts);
        // The consumers of earlier ops were among the later ones.
        gone.into_iter().for_each(Erase::erase);
        Ok(())
    }
}

/// Why the producer of an operand of `reader` is a kernel of its own; `value` is what it computes.
pub fn why_apart<'c: 'a, 'a>(
    reader: OperationRef<'c, 'a>,
    operand: usize,
    producer: OperationRef<'c, 'a>,
    value: Value<'c, 'a>,
) -> &'static str {
    match (compute_of(producer), compute_of(reader)) {
        (None, _) => "the producer is an algorithm, whose result is stored whole",
        (_, None) => "the consumer is an algorithm, which reads its operands from memory",
        (Some(part), _) if part.reduction.is_some() => {
            "the producer reduces, and would be computed again for each element that reads it"
        }
        _ if !has_one_use(value) => "several ops read it, and each would compute it again",
        (_, Some(reader)) if !reads_each_once(&reader, operand) => {
            "the consumer reads its elements more than once, or at indices that it computes"
        }
        _ => "the expression would be too large",
    }
}

fn compute_of(op: OperationRef<'_, '_>) -> Option<Arc<Compute>> {
    if read::op_name(&op) != COMPUTE {
        return None;
    }
    match tl::op_of(op).ok()? {
        Op::Compute(compute) => Some(compute),
        _ => None,
    }
}

/// The expression of a map of open sizes: a general op, or an elementwise one.
fn map_of(op: OperationRef<'_, '_>) -> Option<Arc<Compute>> {
    if let Some(compute) = compute_of(op) {
        return Some(compute).filter(|compute| compute.reduction.is_none());
    }
    let found = tl::op_of(op).ok().filter(|op| op.family() == Family::Elementwise)?;
    let types = tl::symbolic_operand_types(op).ok()?;
    let compute = found.as_compute(&types)?;
    let is_open = compute.dims.iter().any(|dim| dim.known().is_none());
    is_open.then(|| Arc::new(compute))
}

/// Whether an operand is read at one index, which is different in every iteration.
fn reads_each_once(reader: &Compute, operand: usize) -> bool {
    let mut found: Option<Vec<Scalar>> = None;
    let mut same = true;
    reader.body.walk(&mut |scalar| {
        if let Scalar::Load(from, at) = scalar
            && *from == operand
        {
            same &= found.as_ref().is_none_or(|known| known == at);
            found = Some(at.clone());
        }
    });
    let Some(at) = found.filter(|_| same) else { return false };
    let over = reader.reduction.iter().flat_map(|over| &over.dims);
    let mut extents = reader.dims.iter().chain(over).enumerate();
    extents.all(|(index, extent)| extent.is(1) || at.contains(&Scalar::Loop(index)))
}

/// The consumer with the producer of operand `at` inlined; the producer's operands follow the consumer's.
/// Returns `None` if the expression would be nested too deeply or too large.
fn joined(reader: &Compute, at: usize, part: &Compute, operands: usize) -> Option<Arc<Compute>> {
    let body = reader.body.replace(&mut |scalar| match scalar {
        Scalar::Load(from, index) if *from == at => Some(placed(&part.body, index, operands)),
        _ => None,
    });
    let fits = depth(&body) < MAX_DEPTH / 2 && parts(&body) <= MAX_PARTS;
    fits.then(|| Arc::new(Compute { body, ..reader.clone() }))
}

/// An expression at an index, with its operands renumbered from `operands`.
fn placed(body: &Scalar, index: &[Scalar], operands: usize) -> Scalar {
    body.replace(&mut |scalar| match scalar {
        Scalar::Loop(position) => Some(index[*position].clone()),
        Scalar::Load(from, at) => {
            let at = at.iter().map(|part| placed(part, index, operands));
            Some(Scalar::Load(from + operands, at.collect()))
        }
        _ => None,
    })
}

fn parts(scalar: &Scalar) -> usize {
    let mut parts = 0;
    scalar.walk(&mut |_| parts += 1);
    parts
}

/// How deeply an expression is nested.
pub(super) fn depth(scalar: &Scalar) -> usize {
    let below = match scalar {
        Scalar::Load(_, at) => at.iter().map(depth).max().unwrap_or(0),
        Scalar::Unary(_, x) | Scalar::Cast(_, _, x) => depth(x),
        Scalar::Binary(_, x, y) | Scalar::Compare(_, x, y) => depth(x).max(depth(y)),
        Scalar::Select(parts) => parts.iter().map(depth).max().unwrap_or(0),
        Scalar::Float(..) | Scalar::Int(..) | Scalar::Loop(_) | Scalar::Size(_) => 0,
    };
    below + 1
}

/// Replaces an op by loops around an expression of operands.
pub(super) fn rebuilt<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    compute: Compute,
    operands: &[Value<'c, 'a>],
) -> Result<OperationRef<'c, 'a>, String> {
    let block = op.block().ok_or("expected an op in a block")?;
    let built = tl::build(context_of(&op), &Op::compute(compute), operands, op.location())?;
    let built = block.insert_operation_before(op, built);
    for (old, new) in op.results().zip(built.results()) {
        replace_all_uses(old.into(), new.into());
    }
    op.erase();
    Ok(built)
}

/// Loops with numbers in their expression instead of operands that are filled with them, such as bounds, and the other operands;
/// `None` if there are no such operands.
pub(super) fn numbered<'c: 'a, 'a>(
    compute: &Compute,
    operands: &[Value<'c, 'a>],
) -> Option<(Compute, Vec<Value<'c, 'a>>)> {
    let number = |operand: &Value<'c, 'a>| {
        let maker = read::defining_op(*operand).filter(|op| op.operand_count() == 0)?;
        let ty = tl::type_of(operand.r#type()).ok()?;
        let is_number = ty.dtype == DType::F32 && ty.dims.iter().all(|dim| dim.is(1));
        let made = is_number.then(|| tl::op_of(maker).ok()?.eval(&[]).ok()).flatten()?;
        made.to_f64().first().copied().filter(|value| value.is_finite())
    };
    let numbers: Vec<_> = operands.iter().map(number).collect();
    if numbers.iter().all(Option::is_none) {
        return None;
    }
    let body = compute.body.replace(&mut |part| match part {
        Scalar::Load(operand, _) => numbers[*operand].map(|value| Scalar::float(value, DType::F32)),
        _ => None,
    });
    Some(tidied(&Compute { body, ..compute.clone() }, operands))
}

/// The op without unused and duplicate operands.
fn tidied<'c: 'a, 'a>(
    compute: &Compute,
    operands: &[Value<'c, 'a>],
) -> (Compute, Vec<Value<'c, 'a>>) {
    let mut kept: Vec<Value<'c, 'a>> = vec![];
    let body = renumbered(&compute.body, &mut |operand| {
        let value = operands[operand];
        kept.iter().position(|known| *known == value).unwrap_or_else(|| {
            kept.push(value);
            kept.len() - 1
        })
    });
    (Compute { body, ..compute.clone() }, kept)
}

fn renumbered(scalar: &Scalar, number: &mut dyn FnMut(usize) -> usize) -> Scalar {
    scalar.replace(&mut |part| match part {
        Scalar::Load(operand, at) => {
            let operand = number(*operand);
            Some(Scalar::Load(operand, at.iter().map(|index| renumbered(index, number)).collect()))
        }
        _ => None,
    })
}
