//! Merges steps of a kernel, so that threads need to wait for each other less often and less goes through memory.
//!
//! A step that computes each element by itself becomes part of the expressions that read it, unless that computes
//! elements many times; a step that reads each element of a reduction once becomes its epilogue.
use super::super::{
    expression::RESULT,
    kernel::{Kernel, Origin, Step, ValueId, Work},
    nest::Nest,
};
use super::team::{long, product};
use irc_tl::{Binary, Combine, DType, Dim, Scalar};
use std::collections::BTreeMap;

/// The maximum number of parts of an expression.
const MAX_PARTS: usize = 256;

/// The maximum number of parts of an expression that may be computed more than once for each element.
const MAX_REPEATED: usize = 3;

/// Products of halves that are summed stay exact: they are rounded once, after the sum.
pub(super) fn widen(kernel: &mut Kernel<'_>) {
    for step in &mut kernel.steps {
        let Work::Nest(nest) = &mut step.work else { continue };
        let is_sum = nest.compute.reduction.as_ref().is_some_and(|it| it.combine == Combine::Sum);
        let Scalar::Binary(Binary::Mul, left, right) = &nest.compute.body else { continue };
        let types: Vec<_> =
            step.operands.iter().map(|value| kernel.values[*value].ty.clone()).collect();
        let dtype = nest.compute.body.dtype(&types, nest.compute.loops());
        let Ok(half @ (DType::F16 | DType::BF16)) = dtype else { continue };
        if is_sum && nest.epilogue.is_none() {
            let [left, right] = [left, right].map(|side| (**side).clone().cast(DType::F32));
            nest.compute.body = left * right;
            nest.epilogue = Some(Scalar::load(RESULT, []).cast(half));
        }
    }
}

/// Merges the steps of a kernel of known sizes.
pub(super) fn inline(kernel: &mut Kernel<'_>) {
    let mut step = 0;
    while step < kernel.steps.len() {
        while let Some((operand, producer)) = next(kernel, step) {
            expand(kernel, step, operand, producer);
        }
        if let Some(reduction) = reduction_of(kernel, step) {
            append(kernel, step, reduction);
            step -= 1;
            continue;
        }
        step += 1;
    }
    let read = readers(kernel);
    let is_read = |step: &Step<'_>| {
        step.results.iter().any(|result| {
            let origin = kernel.values[*result].origin;
            matches!(origin, Origin::Output(_)) || read.contains_key(&origin)
        })
    };
    let kept: Vec<bool> = kernel.steps.iter().map(is_read).collect();
    let mut kept = kept.into_iter();
    kernel.steps.retain(|_| kept.next().unwrap_or(true));
}

/// The number of steps that read each value.
fn readers(kernel: &Kernel<'_>) -> BTreeMap<Origin, usize> {
    let mut readers = BTreeMap::new();
    for step in &kernel.steps {
        let mut read: Vec<_> =
            step.operands.iter().map(|operand| kernel.values[*operand].origin).collect();
        read.sort_unstable();
        read.dedup();
        for origin in read {
            *readers.entry(origin).or_insert(0) += 1;
        }
    }
    readers
}

/// The step before `step` that computes a value.
fn producer(kernel: &Kernel<'_>, step: usize, value: ValueId) -> Option<usize> {
    let origin = kernel.values[value].origin;
    let computes = |before: &Step<'_>| {
        before.results.iter().any(|result| kernel.values[*result].origin == origin)
    };
    kernel.steps[..step].iter().rposition(computes)
}

fn parts(scalar: &Scalar) -> usize {
    let mut count = 0;
    scalar.walk(&mut |_| count += 1);
    count
}

fn points(nest: &Nest) -> i64 {
    let reduced = nest.compute.reduction.iter().map(|reduction| product(&reduction.dims));
    reduced.fold(product(&nest.compute.dims), i64::saturating_mul)
}

fn loads_of(nest: &Nest, operand: usize) -> usize {
    let mut found = 0;
    let mut count = |part: &Scalar| {
        found += usize::from(matches!(part, Scalar::Load(read, _) if *read == operand));
    };
    nest.compute.body.walk(&mut count);
    nest.epilogue.iter().for_each(|epilogue| epilogue.walk(&mut count));
    found
}

/// Whether the first of two steps may not be computed as part of the last: a step between them, or the last itself, may
/// overwrite what it reads.
fn overwrites(kernel: &Kernel<'_>, first: usize, last: usize) -> bool {
    let is_input = |value: &ValueId| matches!(kernel.values[*value].origin, Origin::Input(_));
    let output = |value: &ValueId| match kernel.values[*value].origin {
        Origin::Output(index) => Some(index),
        Origin::Input(_) | Origin::Scratch(_) => None,
    };
    let mut between = kernel.steps[first + 1..last].iter().flat_map(|step| &step.results);
    let mut own = kernel.steps[last].results.iter().filter_map(output);
    kernel.steps[first].operands.iter().any(is_input)
        && (kernel.is_in_place && between.any(|value| output(value).is_some())
            || own.any(|index| kernel.overwrites.get(index).is_some_and(|overwrites| *overwrites)))
}

/// An operand of a step that may be replaced by the expression of its producer, and that producer.
fn next(kernel: &Kernel<'_>, step: usize) -> Option<(usize, usize)> {
    let Work::Nest(reader) = &kernel.steps[step].work else { return None };
    let operands = kernel.steps[step].operands.iter().enumerate();
    operands
        .filter_map(|(operand, value)| {
            let before = producer(kernel, step, *value)?;
            let Work::Nest(nest) = &kernel.steps[before].work else { return None };
            let made = kernel.steps[before].results[0];
            if nest.compute.reduction.is_some()
                || nest.epilogue.is_some()
                || overwrites(kernel, before, step)
                || kernel.values[made].ty.dtype != kernel.values[*value].ty.dtype
                || kernel.values[made].ty.dtype.is_small()
            {
                return None;
            }
            let loads = loads_of(reader, operand);
            let own = parts(&nest.compute.body);
            let reader_parts =
                parts(&reader.compute.body) + reader.epilogue.as_ref().map_or(0, parts);
            let elements: i64 = points(nest);
            let once = points(reader) <= elements.saturating_mul(2) && loads <= 2;
            let pays = loads > 0 && (once || own <= MAX_REPEATED + nest.compute.dims.len());
            (pays && reader_parts + loads * own <= MAX_PARTS).then_some((operand, before))
        })
        .next()
}

/// Replaces an operand of a step by the expression that computes it.
fn expand(kernel: &mut Kernel<'_>, step: usize, operand: usize, producer: usize) {
    let value = kernel.steps[step].operands[operand];
    let made = kernel.steps[producer].results[0];
    let from = kernel.values[value].ty.dims.clone();
    let to = kernel.values[made].ty.dims.clone();
    let Work::Nest(source) = &kernel.steps[producer].work else { return };
    let source = source.compute.body.clone();
    let read = kernel.steps[producer].operands.clone();
    let reader = &mut kernel.steps[step];
    let first = reader.operands.len();
    reader.operands.extend(read);
    let Work::Nest(nest) = &mut reader.work else { return };
    let replaced = Inlined { operand, source: &source, first, dims: (&from, &to) };
    nest.compute.body = replaced.of(&nest.compute.body);
    nest.epilogue = nest.epilogue.as_ref().map(|epilogue| replaced.of(epilogue));
    // Nothing loads the operand any more; its number stays, so that those of the others do.
    reader.operands[operand] = match reader.operands.get(first) {
        Some(any) => *any,
        None => value,
    };
    compact(reader);
}

/// Removes the operands that nothing loads.
fn compact(step: &mut Step<'_>) {
    let Work::Nest(nest) = &mut step.work else { return };
    let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
    let mut kept = vec![];
    for (operand, value) in step.operands.iter().enumerate() {
        if loads_of(nest, operand) > 0 {
            let number = kept.iter().position(|known| known == value).unwrap_or_else(|| {
                kept.push(*value);
                kept.len() - 1
            });
            numbers.insert(operand, number);
        }
    }
    let number = |operand| numbers[&operand];
    nest.compute.body = renumber(&nest.compute.body, &number);
    nest.epilogue = nest.epilogue.as_ref().map(|epilogue| renumber(epilogue, &number));
    step.operands = kept;
}

/// The expression with other numbers of operands.
fn renumber(scalar: &Scalar, number: &dyn Fn(usize) -> usize) -> Scalar {
    scalar.replace(&mut |part| match part {
        Scalar::Load(RESULT, _) => Some(part.clone()),
        Scalar::Load(operand, at) => {
            let at: Vec<_> = at.iter().map(|index| renumber(index, number)).collect();
            Some(Scalar::load(number(*operand), at))
        }
        _ => None,
    })
}

/// The expression of an operand, in place of loads of it.
struct Inlined<'n> {
    operand: usize,
    source: &'n Scalar,
    /// The number of the first operand of the source among those of the reader.
    first: usize,
    /// The extents of the operand as it is read, and as it is computed.
    dims: (&'n [Dim], &'n [Dim]),
}

impl Inlined<'_> {
    fn of(&self, scalar: &Scalar) -> Scalar {
        scalar.replace(&mut |part| match part {
            Scalar::Load(read, at) if *read == self.operand => {
                let at: Vec<_> = at.iter().map(|index| self.of(index)).collect();
                let at = through_view(&at, self.dims.0, self.dims.1);
                Some(at_index(self.source, &at, &|operand| self.first + operand))
            }
            _ => None,
        })
    }
}

/// The expression of an element at an index, with other numbers of operands.
fn at_index(source: &Scalar, at: &[Scalar], number: &dyn Fn(usize) -> usize) -> Scalar {
    source.replace(&mut |part| match part {
        Scalar::Loop(index) => Some(at[*index].clone()),
        Scalar::Load(RESULT, _) => Some(part.clone()),
        Scalar::Load(operand, inner) => {
            let inner: Vec<_> = inner.iter().map(|index| at_index(index, at, number)).collect();
            Some(Scalar::load(number(*operand), inner))
        }
        _ => None,
    })
}

/// The index in memory of the same elements with other extents.
fn through_view(at: &[Scalar], from: &[Dim], to: &[Dim]) -> Vec<Scalar> {
    if from == to {
        return at.to_vec();
    }
    if long(from).eq(long(to)) {
        let mut rest = from.iter().zip(at).filter(|(dim, _)| !dim.is(1)).map(|(_, index)| index);
        let index = |dim: &Dim| match dim.is(1) {
            true => Scalar::index(0),
            false => rest.next().cloned().unwrap_or(Scalar::index(0)),
        };
        return to.iter().map(index).collect();
    }
    let linear = at.iter().zip(from).fold(None, |linear: Option<Scalar>, (index, dim)| {
        Some(match linear {
            None => index.clone(),
            Some(outer) => outer * Scalar::Size(dim.clone()) + index.clone(),
        })
    });
    let linear = linear.unwrap_or(Scalar::index(0));
    let mut inner = Dim::from(1);
    let mut found = vec![];
    for (number, dim) in to.iter().enumerate().rev() {
        let quotient = match inner.is(1) {
            true => linear.clone(),
            false => linear.clone().binary(Binary::Div, Scalar::Size(inner.clone())),
        };
        found.push(match number {
            0 => quotient,
            _ => quotient.binary(Binary::Rem, Scalar::Size(dim.clone())),
        });
        inner = inner * dim.clone();
    }
    found.reverse();
    found
}

/// A reduction that becomes part of the step that reads it.
struct Appended {
    /// The number of its step.
    reduction: usize,
    /// The loop of the reader over each of its dimensions of more than one element.
    loops: Vec<usize>,
}

/// The reduction whose elements a step reads once each, in any order, and that no other step reads.
fn reduction_of(kernel: &Kernel<'_>, step: usize) -> Option<Appended> {
    let Work::Nest(nest) = &kernel.steps[step].work else { return None };
    if nest.compute.reduction.is_some() || nest.epilogue.is_some() {
        return None;
    }
    let readers = readers(kernel);
    let operands = kernel.steps[step].operands.iter().enumerate();
    operands
        .filter_map(|(operand, value)| {
            let before = producer(kernel, step, *value)?;
            let Work::Nest(reduced) = &kernel.steps[before].work else { return None };
            let made = &kernel.values[kernel.steps[before].results[0]];
            let read = &kernel.values[*value];
            if reduced.compute.reduction.is_none()
                || overwrites(kernel, before, step)
                || !matches!(made.origin, Origin::Scratch(_))
                || readers.get(&made.origin) != Some(&1)
                || made.ty.dtype != read.ty.dtype
                || made.ty.dtype.is_small()
                || !long(&read.ty.dims).eq(long(&made.ty.dims))
            {
                return None;
            }
            let loops = loops_of(nest, operand, &read.ty.dims)?;
            let total = parts(&nest.compute.body) + reduced.epilogue.as_ref().map_or(0, parts);
            (total <= MAX_PARTS).then_some(Appended { reduction: before, loops })
        })
        .next()
}

/// The loops over the dimensions of an operand of more than one element, if every load of it is at these loops, and they
/// are all of the nest.
fn loops_of(nest: &Nest, operand: usize, dims: &[Dim]) -> Option<Vec<usize>> {
    let mut found: Option<Vec<usize>> = None;
    let mut own = true;
    nest.compute.body.walk(&mut |part| {
        let Scalar::Load(from, at) = part else { return };
        if *from != operand {
            return;
        }
        let index =
            dims.iter().zip(at).filter(|(dim, _)| !dim.is(1)).map(|(dim, index)| match index {
                Scalar::Loop(index) => (nest.compute.dims[*index] == *dim).then_some(*index),
                _ => None,
            });
        let index: Option<Vec<usize>> = index.collect();
        own &= index.is_some() && (found.is_none() || found == index);
        found = index;
    });
    let found = found.filter(|_| own)?;
    let mut sorted = found.clone();
    sorted.sort_unstable();
    let all = (0..nest.compute.dims.len()).filter(|it| !nest.compute.dims[*it].is(1));
    all.eq(sorted).then_some(found)
}

/// Makes a step the epilogue of a reduction that it reads, in the place of the step. The loops over the result are those of
/// the step.
fn append(kernel: &mut Kernel<'_>, step: usize, Appended { reduction, loops }: Appended) {
    let made = kernel.steps[reduction].results[0];
    let origin = kernel.values[made].origin;
    let after = kernel.steps.remove(step);
    let mut merged = kernel.steps.remove(reduction);
    let (Work::Nest(nest), Work::Nest(last)) = (&mut merged.work, &after.work) else { return };
    let mut own = loops.into_iter().map(Scalar::Loop);
    let mut at: Vec<Scalar> = vec![];
    for dim in &nest.compute.dims {
        at.push(match dim.is(1) {
            true => Scalar::index(0),
            false => own.next().unwrap_or(Scalar::index(0)),
        });
    }
    let reduced = nest.compute.reduction.iter().flat_map(|it| &it.dims);
    let reduced = (last.compute.dims.len()..).map(Scalar::Loop).zip(reduced);
    at.extend(reduced.map(|(index, _)| index));
    nest.compute.body = at_index(&nest.compute.body, &at, &|operand| operand);
    let finished = match &nest.epilogue {
        Some(epilogue) => at_index(epilogue, &at, &|operand| operand),
        None => Scalar::load(RESULT, []),
    };
    nest.compute.dims.clone_from(&last.compute.dims);
    let first = merged.operands.len();
    let body = renumber(&last.compute.body, &|operand| first + operand);
    let reads: Vec<bool> =
        after.operands.iter().map(|value| kernel.values[*value].origin == origin).collect();
    let body = body.replace(&mut |part| match part {
        Scalar::Load(operand, _) if *operand != RESULT && reads[operand - first] => {
            Some(finished.clone())
        }
        _ => None,
    });
    nest.epilogue = Some(body);
    merged.operands.extend(&after.operands);
    merged.results.clone_from(&after.results);
    merged.location = after.location;
    compact(&mut merged);
    kernel.steps.insert(step - 1, merged);
}
