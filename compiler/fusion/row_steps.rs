//! Steps over rows whose length depends on symbols, as those of a softmax or a normalisation: they join in one group, whose kernel
//! computes one row after another, while it is in the cache.
use super::{
    inline::{Inlined, depth, key, take_parts},
    wrap::wrap,
};
use irc_dialects::tl;
use irc_mlir::{OperationLike, OperationRef, Value, ValueLike, is_used_only_by, read};
use irc_tl::{Compute, MAX_DEPTH, RowForm, RowPattern, RowSpace, Scalar, Type};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of steps in a group.
const MAX_STEPS: usize = 24;

/// Maximum number of steps in a group, before the last one, that compute elements with expensive functions: all but one of them are
/// computed again in each pass over a row.
const MAX_EXPENSIVE: usize = 2;

/// Maximum number of ops before one in which the reduction of its rows is sought.
const MAX_AHEAD: usize = 16;

/// Joins each op over such rows and the steps before it whose results nothing else reads, if one of these reduces rows.
///
/// # Errors
/// If an op cannot be rebuilt.
pub(super) fn join_row_steps<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    inlined: &mut Inlined<'c>,
) -> Result<(), String> {
    let ops = read::body_ops(func);
    let places: BTreeMap<usize, usize> =
        ops.iter().enumerate().map(|(place, op)| (key(*op), place)).collect();
    let mut joined = BTreeSet::new();
    for op in ops.into_iter().rev() {
        if joined.contains(&key(op)) {
            continue;
        }
        let Some(mut steps) = steps_of(op) else { continue };
        steps.sort_by_key(|step| places.get(&key(*step)));
        joined.extend(steps.iter().map(|step| key(*step)));
        let parts = take_parts(&steps, inlined);
        inlined.insert(key(wrap(&steps)?), parts);
    }
    Ok(())
}

/// A step over rows.
struct Step<'c, 'a> {
    op: OperationRef<'c, 'a>,
    form: RowForm,
    /// How it reads each of its operands.
    reads: Vec<(Value<'c, 'a>, RowPattern)>,
    /// How deeply its expression is nested, which those of steps after it contain.
    depth: usize,
    /// Whether it computes elements with expensive functions.
    is_expensive: bool,
}

impl<'c: 'a, 'a> Step<'c, 'a> {
    /// An op with these loops that computes rows in vectors.
    fn of(
        op: OperationRef<'c, 'a>,
        (compute, types): &(Compute, Vec<Type>),
        space: &RowSpace,
    ) -> Option<Self> {
        let form = space.vector_form(compute, types)?;
        let operands: Vec<Value> = op.operands().collect();
        let mut reads = vec![];
        compute.body.walk(&mut |part| {
            if let Scalar::Load(operand, at) = part {
                let pattern = space.pattern((compute, form), &types[*operand], at);
                reads.push((operands[*operand], pattern));
            }
        });
        let is_expensive = compute.reduction.is_none() && compute.body.any(&Scalar::is_expensive);
        Some(Self { op, form, reads, depth: depth(&compute.body), is_expensive })
    }

    /// Whether it reads a value, if it does, as the element or the value of a row that it is.
    fn reads_as(&self, value: Value<'c, 'a>, made: RowForm) -> bool {
        self.reads.iter().all(|(read, pattern)| *read != value || *pattern == made.pattern())
    }
}

/// An op over rows and those before it that join it, in any order; `None` if there is no row or no such op.
fn steps_of<'c: 'a, 'a>(last: OperationRef<'c, 'a>) -> Option<Vec<OperationRef<'c, 'a>>> {
    let loops = loops_of(last)?;
    let space = space_of(last, &loops.0)?;
    let mut steps = vec![Step::of(last, &loops, &space)?];
    // Operands of steps whose makers do not join, whatever the other steps are.
    let mut outside: Vec<Value> = vec![];
    while steps.len() < MAX_STEPS
        && let Some(step) = before(&steps, &space, &mut outside)
    {
        steps.push(step);
    }
    let reduces = |step: &Step<'_, '_>| step.form == RowForm::Reduced;
    (steps.len() > 1 && steps.iter().any(reduces))
        .then(|| steps.into_iter().map(|step| step.op).collect())
}

/// An op that joins steps of these rows: what it computes is read by these alone, as elements or values of their rows.
fn before<'c: 'a, 'a>(
    steps: &[Step<'c, 'a>],
    space: &RowSpace,
    outside: &mut Vec<Value<'c, 'a>>,
) -> Option<Step<'c, 'a>> {
    let is_step = |op: OperationRef<'c, 'a>| steps.iter().any(|step| step.op == op);
    let depth: usize = steps.iter().map(|step| step.depth).sum();
    let expensive = steps[1..].iter().filter(|step| step.is_expensive).count();
    for operand in steps.iter().flat_map(|step| step.op.operands()) {
        if outside.contains(&operand) {
            continue;
        }
        let Some(op) = read::defining_op(operand) else { continue };
        if is_step(op) || !is_used_only_by(operand, is_step) {
            continue;
        }
        let step = loops_of(op).and_then(|loops| Step::of(op, &loops, space)).filter(|step| {
            depth + step.depth <= MAX_DEPTH
                && (!step.is_expensive || expensive < MAX_EXPENSIVE)
                && steps.iter().all(|reader| reader.reads_as(operand, step.form))
        });
        match step {
            Some(step) => return Some(step),
            None => outside.push(operand),
        }
    }
    None
}

/// The rows of an op, if their length depends on symbols: those that it reduces, or the ops before it.
fn space_of(op: OperationRef<'_, '_>, own: &Compute) -> Option<RowSpace> {
    let is_open = |space: &RowSpace| space.columns.iter().any(|dim| dim.known().is_none());
    if let Some(space) = RowSpace::of(own) {
        return Some(space).filter(is_open);
    }
    let mut ahead = vec![op];
    let mut next = 0;
    while let Some(op) = ahead.get(next).copied() {
        next += 1;
        for operand in op.operands() {
            let Some(maker) = read::defining_op(operand).filter(|op| !ahead.contains(op)) else {
                continue;
            };
            let Some((compute, _)) = loops_of(maker) else { continue };
            match RowSpace::of(&compute) {
                Some(space) if is_open(&space) && space.form(own).is_some() => return Some(space),
                Some(_) => {}
                None if ahead.len() < MAX_AHEAD => ahead.push(maker),
                None => return None,
            }
        }
    }
    None
}

/// An op with one result as loops, of the sum if it is a mean, with the types of its operands.
fn loops_of(op: OperationRef<'_, '_>) -> Option<(Compute, Vec<Type>)> {
    let result = tl::type_of(op.results().next()?.r#type()).ok()?;
    let types = tl::symbolic_operand_types(op).ok()?;
    if result.known().is_some() && types.iter().all(|ty| ty.known().is_some()) {
        return None;
    }
    let work = tl::op_of(op).ok()?;
    let compute = work.dividend().unwrap_or(work).as_compute(&types)?;
    Some((compute, types))
}
