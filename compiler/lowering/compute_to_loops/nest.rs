//! Loops around an expression.
pub(super) mod adjacent;
mod rows;

use super::{
    element,
    expression::{
        Body, Known, RESULT, Typed, accumulator, loads, loop_number, reads_along, scope, to_memory,
    },
    guards::{Guarded, Range, Update},
    sizes::Sizes,
};
use crate::kernel::{
    arithmetic,
    element::{Element, Kind},
    emit::{Buffer, Emit, Lanes},
};
use crate::lowering::linalg_to_vector::split::{self, Extent, Units};
use irc_mlir::ops::arith;
use irc_mlir::{Type as MlirType, Value, attr};
use irc_tl::{
    Binary, Combine, Compute, DType, Dim, Factor, Number, Reduce, Rounding, Scalar, Type,
};
use std::convert::Infallible;

/// Loops, the expression in them, and the use of each result.
pub(super) struct Nest {
    pub(super) compute: Compute,
    /// The stored element, with the reduced value as a load of [`RESULT`].
    pub(super) epilogue: Option<Scalar>,
    /// Whether there are no loops: another type of the same memory.
    pub(super) is_view: bool,
}

impl Nest {
    pub(super) fn of(compute: Compute) -> Self {
        Self { compute, epilogue: None, is_view: false }
    }

    /// A view.
    pub(super) fn view() -> Self {
        let nothing = Compute::map([], Scalar::index(0));
        Self { is_view: true, ..Self::of(nothing) }
    }

    /// The mean of the summands of a sum, which is divided before it is rounded or wraps around.
    pub(super) fn mean(mut sum: Compute, dtype: DType) -> Self {
        let wide = match dtype {
            DType::F64 => DType::F64,
            _ if dtype.is_float() => DType::F32,
            _ if dtype.is_signed_integer() => DType::I64,
            _ => DType::U64,
        };
        let over = sum.reduction.iter().flat_map(|reduction| &reduction.dims);
        let count = Scalar::Size(Dim::product(over)).cast(wide);
        sum.body = sum.body.cast(wide);
        let mean = Scalar::load(RESULT, []).binary(Binary::Div, count).cast(dtype);
        Self { epilogue: Some(mean), ..Self::of(sum) }
    }

    /// The operand whose elements it replaces, of operands of these types.
    pub(super) fn update(&self, types: &[&Type]) -> Option<Update> {
        let dims: Vec<&[Dim]> = types.iter().map(|ty| &ty.dims[..]).collect();
        Update::of(&self.compute, &dims).filter(|_| self.epilogue.is_none())
    }

    /// Adds every size in the nest to `found`.
    pub(super) fn sizes(&self, found: &mut Vec<Dim>) {
        found.extend(self.compute.dims.iter().cloned());
        found.extend(self.compute.reduction.iter().flat_map(|over| over.dims.iter().cloned()));
        let mut visit = |scalar: &Scalar| {
            if let Scalar::Size(dim) = scalar {
                found.push(dim.clone());
            }
        };
        self.compute.body.walk(&mut visit);
        self.epilogue.iter().for_each(|epilogue| epilogue.walk(&mut visit));
    }
}

/// Whether a nest is a sum of products of elements.
pub(super) fn adds_products(nest: &Nest) -> bool {
    let is_sum = nest.compute.reduction.as_ref().is_some_and(|it| it.combine == Combine::Sum);
    let mut found = false;
    nest.compute.body.walk(&mut |part| {
        if let Scalar::Binary(Binary::Mul, x, y) = part {
            found |= [x, y].iter().all(|factor| loads(factor));
        }
    });
    is_sum && found
}

/// The part of a nest to compute: its number, and the number of parts.
pub(super) type Part<'c, 'a> = [Value<'c, 'a>; 2];

/// The cycles that a nest takes, estimated: a number times symbols. `None` if its sizes are no such products.
pub(super) fn cycles(nest: &Nest) -> Option<Dim> {
    let compute = &nest.compute;
    let reduced = compute.reduction.iter().flat_map(|over| &over.dims);
    let points = Dim::product(compute.dims.iter().chain(reduced));
    cycles_of(points, [&compute.body])
}

/// The same of so many iterations with these expressions.
pub(super) fn cycles_of<'s>(
    points: Dim,
    bodies: impl IntoIterator<Item = &'s Scalar>,
) -> Option<Dim> {
    let mut ops = 0;
    bodies.into_iter().for_each(|body| body.walk(&mut |_| ops += 1));
    let cycles = points * Dim::Known(ops).ceil_div(&OPS_PER_CYCLE.into());
    let terms = cycles.terms();
    let is_symbol = |factor: &Factor| matches!(factor, Factor::Symbol(_));
    let is_product =
        terms.len() <= 1 && terms.iter().all(|(_, factors)| factors.iter().all(is_symbol));
    (is_product || cycles.known().is_some()).then_some(cycles)
}

/// The parts of an expression that are computed in a cycle, where LLVM vectorises it.
const OPS_PER_CYCLE: i64 = 8;

/// Emits a nest that writes `result`, or a part of it.
pub(super) fn emit<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    nest: &Nest,
    operands: &[(&Type, Buffer<'c, 'a>)],
    result: Buffer<'c, 'a>,
    sizes: &Sizes<'c, 'a>,
    part: Option<Part<'c, 'a>>,
) {
    let types: Vec<&Type> = operands.iter().map(|(ty, _)| *ty).collect();
    if let Some(update) = nest.update(&types) {
        let (ty, old) = operands[update.operand];
        let is_same = e.compare(0, e.address(old), e.address(result));
        let extents = [&ty.dims[update.axis], &nest.compute.dims[update.axis]];
        let is_same = match extents[0] == extents[1] {
            true => is_same,
            false => {
                let [old, own] = extents.map(|extent| sizes.value(e, extent));
                e.binary(arith::ANDI, is_same, e.compare(0, old, own))
            }
        };
        let in_place = |e| {
            emit_update(e, nest, &update, operands, result, (sizes, part));
            Ok::<_, Infallible>(vec![])
        };
        let Ok(_) = e.if_else(is_same, &[], in_place, |e| {
            emit_whole(e, nest, operands, result, sizes, part);
            Ok(vec![])
        });
        return;
    }
    emit_whole(e, nest, operands, result, sizes, part);
}

/// Emits what a nest replaces in an operand that is in the memory of the result. The loops around it are divided into
/// parts.
fn emit_update<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    nest: &Nest,
    update: &Update,
    operands: &[(&Type, Buffer<'c, 'a>)],
    result: Buffer<'c, 'a>,
    (sizes, part): (&Sizes<'c, 'a>, Option<Part<'c, 'a>>),
) {
    let new = Nest::of(Compute::map(nest.compute.dims.clone(), update.new.value.clone()));
    let writer = Writer::new(&new, operands, result, sizes);
    let around = &nest.compute.dims[..update.axis];
    let count = Extent::Passed(sizes.value(e, &Dim::product(around)));
    let units = Units::of(e, count, part);
    let extents: Vec<_> = around.iter().map(|dim| sizes.value(e, dim)).collect();
    let Ok(_) = e.for_each((units.from, units.to, 1), &[], |e, unit, _| {
        let mut at = split::indices(e, unit, &extents);
        let all = (e.index(0), sizes.value(e, &nest.compute.dims[update.axis]));
        let (from, to) = writer.range(e, &update.new, &at, all);
        let Ok(_) = e.for_each((from, to, 1), &[], |e, index, _| {
            at.push(index);
            writer.outer(e, &mut at, &Known::new(), None);
            Ok::<_, Infallible>(vec![])
        });
        Ok::<_, Infallible>(vec![])
    });
}

/// Emits all elements of a nest, or those of a part.
fn emit_whole<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    nest: &Nest,
    operands: &[(&Type, Buffer<'c, 'a>)],
    result: Buffer<'c, 'a>,
    sizes: &Sizes<'c, 'a>,
    part: Option<Part<'c, 'a>>,
) {
    let types: Vec<&Type> = operands.iter().map(|(ty, _)| *ty).collect();
    let flat = flattened(nest, operands).or_else(|| adjacent::joined(nest, &types));
    let (nest, types) = match &flat {
        Some((nest, types)) => (nest, types.iter().collect()),
        None => (nest, types),
    };
    let operands: Vec<_> =
        types.into_iter().zip(operands).map(|(ty, (_, buffer))| (ty, *buffer)).collect();
    let mut writer = Writer::new(nest, &operands, result, sizes);
    if runs_in_columns(&nest.compute) {
        writer.columns = Some(Columns::new(e, writer.elements(e).1));
    }
    writer.has_divided_rows = nest.epilogue.is_none() && rows::are_divided(&nest.compute);
    let dims = writer.divided();
    let units = part.filter(|_| !dims.is_empty()).map(|[part, parts]| {
        let count = sizes.value(e, &Dim::product(dims));
        Units::of_part(e, Extent::Passed(count), part, parts)
    });
    writer.outer(e, &mut vec![], &Known::new(), units);
}

/// Accumulators of adjacent elements of the result.
#[derive(Clone, Copy)]
struct Columns<'c, 'a> {
    totals: Buffer<'c, 'a>,
}

/// Number of elements of the result that are accumulated side by side.
const BLOCK: i64 = 256;

impl<'c: 'a, 'a> Columns<'c, 'a> {
    fn new(e: Emit<'c, 'a>, element: Element<'c>) -> Self {
        Self { totals: e.stack(BLOCK, element.storage) }
    }
}

/// Whether a reduction computes several elements of the result at a time: if adjacent elements of an
/// operand correspond to adjacent elements of the result, which then fill vectors. Few elements are not
/// worth it.
fn runs_in_columns(compute: &Compute) -> bool {
    const FEWEST: i64 = 8;
    let (Some(_), Some(last)) = (&compute.reduction, compute.dims.last()) else { return false };
    if last.known().is_some_and(|extent| extent < FEWEST) {
        return false;
    }
    reads_along(&compute.body, compute.dims.len() - 1)
}

pub(super) struct Writer<'n, 'c, 'a> {
    pub(super) nest: &'n Nest,
    pub(super) operands: &'n [(&'n Type, Buffer<'c, 'a>)],
    pub(super) result: Buffer<'c, 'a>,
    /// The strides of the result in elements, if it is not dense.
    pub(super) strides: Option<&'n [i64]>,
    pub(super) sizes: &'n Sizes<'c, 'a>,
    columns: Option<Columns<'c, 'a>>,
    /// Whether a row of a map has several loops.
    has_divided_rows: bool,
}

impl<'n, 'c: 'a, 'a> Writer<'n, 'c, 'a> {
    pub(super) fn new(
        nest: &'n Nest,
        operands: &'n [(&'n Type, Buffer<'c, 'a>)],
        result: Buffer<'c, 'a>,
        sizes: &'n Sizes<'c, 'a>,
    ) -> Self {
        Self {
            nest,
            operands,
            result,
            strides: None,
            sizes,
            columns: None,
            has_divided_rows: false,
        }
    }

    /// The remaining loops over the result, then one element.
    fn outer(
        &self,
        e: Emit<'c, 'a>,
        at: &mut Vec<Value<'c, 'a>>,
        known: &Known<'c, 'a>,
        units: Option<Units<'c, 'a>>,
    ) {
        if let (Some(columns), Some(reduction)) = (self.columns, &self.nest.compute.reduction)
            && at.len() + 1 == self.nest.compute.dims.len()
        {
            return self.row(e, reduction, at, columns);
        }
        let Some(dim) = self.nest.compute.dims.get(at.len()) else {
            return self.element(e, at, known);
        };
        if self.has_divided_rows && at.len() + 1 == self.nest.compute.dims.len() {
            let columns = [e.index(0), self.sizes.value(e, dim)];
            return self.divided_row(e, at, &self.nest.compute.body, columns);
        }
        let quotients = self.quotients(e, at, at.len());
        let inner = match units {
            None => Extent::Known(1),
            Some(_) => {
                let inner = Dim::product(&self.divided()[at.len() + 1..]);
                self.sizes.extent(e, &inner)
            }
        };
        let extent = Extent::Passed(self.sizes.value(e, dim));
        let Ok(()) =
            split::loop_over::<Infallible>(e, (extent, inner), units, |e, index, units| {
                at.push(index);
                self.outer(e, at, &quotients, units);
                at.pop();
                Ok(())
            });
    }

    /// The loops over the result whose iterations are divided into parts.
    fn divided(&self) -> &[Dim] {
        let dims = &self.nest.compute.dims;
        let has_rows = self.columns.is_some() || self.has_divided_rows;
        &dims[..dims.len() - usize::from(has_rows)]
    }

    /// A loop over `0..dim`; `body` gets the index and the carried values.
    fn each(
        &self,
        e: Emit<'c, 'a>,
        dim: &Dim,
        carried: &[Value<'c, 'a>],
        body: impl FnOnce(Emit<'c, 'a>, Value<'c, 'a>, &[Value<'c, 'a>]) -> Vec<Value<'c, 'a>>,
    ) -> Result<Vec<Value<'c, 'a>>, Infallible> {
        let bounds = (e.index(0), self.sizes.value(e, dim), 1);
        e.for_each(bounds, carried, |e, index, carried| Ok(body(e, index, carried)))
    }

    /// Computes one element of the result, and stores it.
    pub(super) fn element(&self, e: Emit<'c, 'a>, at: &[Value<'c, 'a>], known: &Known<'c, 'a>) {
        let value = self.value(e, at, known);
        self.store(e, at, value);
    }

    /// One element of the result.
    pub(super) fn value(
        &self,
        e: Emit<'c, 'a>,
        at: &[Value<'c, 'a>],
        known: &Known<'c, 'a>,
    ) -> Typed<'c, 'a> {
        match &self.nest.compute.reduction {
            None => self.body(e, at, known).emit(e, &self.nest.compute.body),
            Some(reduction) => {
                let start = self.neutral(e, reduction);
                let total = self.inner(e, reduction, &mut at.to_vec(), start, known);
                self.finished(e, at, total)
            }
        }
    }

    pub(super) fn store(
        &self,
        e: Emit<'c, 'a>,
        at: &[Value<'c, 'a>],
        (value, dtype): Typed<'c, 'a>,
    ) {
        let value = to_memory(e, value, dtype);
        if let Some(strides) = self.strides {
            let terms = at.iter().zip(strides).map(|(index, stride)| e.scale(*index, *stride));
            let place = terms.reduce(|left, right| e.add(left, right));
            let place = place.unwrap_or_else(|| e.index(0));
            return e.store(value, self.result, place, Lanes::Scalar, None);
        }
        let mut place = None;
        for (index, dim) in at.iter().zip(&self.nest.compute.dims) {
            place = Some(match place {
                None => *index,
                Some(outer) => {
                    e.add(e.binary(arith::MULI, outer, self.sizes.value(e, dim)), *index)
                }
            });
        }
        let place = place.unwrap_or_else(|| e.index(0));
        e.store(value, self.result, place, Lanes::Scalar, None);
    }

    /// The element types of the body and of its accumulator.
    pub(super) fn elements(&self, e: Emit<'c, 'a>) -> (Element<'c>, Element<'c>) {
        let dtype = self.dtype();
        (element(e.context, dtype), accumulator(e.context, dtype))
    }

    pub(super) fn dtype(&self) -> DType {
        let types: Vec<Type> = self.operands.iter().map(|(ty, _)| (*ty).clone()).collect();
        let dtype = self.nest.compute.body.dtype(&types, self.nest.compute.loops());
        dtype.unwrap_or_else(|error| panic!("the verifier accepted the body: {error}"))
    }

    pub(super) fn neutral(&self, e: Emit<'c, 'a>, reduction: &Reduce) -> Value<'c, 'a> {
        neutral(e, reduction.combine, self.dtype(), self.elements(e).1)
    }

    /// The element of the result for a reduced value.
    pub(super) fn finished(
        &self,
        e: Emit<'c, 'a>,
        at: &[Value<'c, 'a>],
        total: Value<'c, 'a>,
    ) -> Typed<'c, 'a> {
        self.finished_with(e, at, total, &Known::new())
    }

    /// The element of the result for a reduced value, with values that are known.
    pub(super) fn finished_with(
        &self,
        e: Emit<'c, 'a>,
        at: &[Value<'c, 'a>],
        total: Value<'c, 'a>,
        known: &Known<'c, 'a>,
    ) -> Typed<'c, 'a> {
        let (narrow, wide) = self.elements(e);
        let total = arithmetic::cast(&scope(e), total, wide, narrow, Rounding::TowardZero);
        let Some(epilogue) = &self.nest.epilogue else { return (total, self.dtype()) };
        let mut body = self.body(e, at, known);
        body.reduced = Some((total, self.dtype()));
        body.emit(e, epilogue)
    }

    /// A row of the result, in blocks of columns.
    fn row(
        &self,
        e: Emit<'c, 'a>,
        reduction: &Reduce,
        at: &[Value<'c, 'a>],
        columns: Columns<'c, 'a>,
    ) {
        let Some(width) = self.nest.compute.dims.last() else { return };
        let blocks = |from, to, count: &dyn Fn(Emit<'c, 'a>, Value<'c, 'a>) -> Value<'c, 'a>| {
            let Ok(_) = e.for_each((from, to, BLOCK), &[], |e, first, _| {
                self.block(e, reduction, at, (first, count(e, first)), columns);
                Ok::<_, Infallible>(vec![])
            });
        };
        // Blocks of known sizes are vectorized without a remainder computed at run time.
        let Some(known) = width.known() else {
            let end = self.sizes.value(e, width);
            blocks(e.index(0), end, &|e, first| {
                e.min(e.binary(arith::SUBI, end, first), e.index(BLOCK))
            });
            return;
        };
        let whole = known / BLOCK * BLOCK;
        if whole > 0 {
            blocks(e.index(0), e.index(whole), &|e, _| e.index(BLOCK));
        }
        if whole < known {
            let rest = (e.index(whole), e.index(known - whole));
            self.block(e, reduction, at, rest, columns);
        }
    }

    /// The `count` columns from `first` on.
    fn block(
        &self,
        e: Emit<'c, 'a>,
        reduction: &Reduce,
        at: &[Value<'c, 'a>],
        (first, count): (Value<'c, 'a>, Value<'c, 'a>),
        Columns { totals }: Columns<'c, 'a>,
    ) {
        let each =
            |e: Emit<'c, 'a>, body: &dyn Fn(Emit<'c, 'a>, Value<'c, 'a>, &[Value<'c, 'a>])| {
                let Ok(_) = e.for_each((e.index(0), count, 1), &[], |e, column, _| {
                    let at = [at, &[e.add(first, column)]].concat();
                    body(e, column, &at);
                    Ok::<_, Infallible>(vec![])
                });
            };
        let start = self.neutral(e, reduction);
        each(e, &|e, column, _| e.store(start, totals, column, Lanes::Scalar, None));
        let body = &self.nest.compute.body;
        let guarded = Guarded::of(body, reduction.combine, self.dtype(), at.len());
        self.around(e, &reduction.dims, &mut vec![], &|e, reduced| {
            let outside = [at, &[first], reduced].concat();
            let known = self.quotients(e, &outside, at.len());
            let each = |e: Emit<'c, 'a>, (from, to), body: &Scalar| {
                let Ok(_) = e.for_each((from, to, 1), &[], |e, column, _| {
                    let at = [at, &[e.add(first, column)], reduced].concat();
                    let total = e.load(totals, column);
                    let total = self.joined_with(e, reduction, &at, (total, body), &known);
                    e.store(total, totals, column, Lanes::Scalar, None);
                    Ok::<_, Infallible>(vec![])
                });
            };
            let Some(guarded) = &guarded else { return each(e, (e.index(0), count), body) };
            let range = self.range(e, guarded, &outside, (first, count));
            each(e, range, &guarded.value);
        });
        each(e, &|e, column, at| {
            let value = self.finished(e, at, e.load(totals, column));
            self.store(e, at, value);
        });
    }

    /// Loops over dimensions, with `body` in them.
    fn around(
        &self,
        e: Emit<'c, 'a>,
        dims: &[Dim],
        at: &mut Vec<Value<'c, 'a>>,
        body: &dyn Fn(Emit<'c, 'a>, &[Value<'c, 'a>]),
    ) {
        let Some(dim) = dims.get(at.len()) else { return body(e, at) };
        let Ok(_) = self.each(e, dim, &[], |e, index, _| {
            at.push(index);
            self.around(e, dims, at, body);
            at.pop();
            vec![]
        });
    }

    /// Those of the `count` columns from `first` on in which a guarded value counts: the first and the one after the last.
    /// `at` has the index of each loop, and of the columns any.
    fn range(
        &self,
        e: Emit<'c, 'a>,
        guarded: &Guarded,
        at: &[Value<'c, 'a>],
        (first, count): (Value<'c, 'a>, Value<'c, 'a>),
    ) -> (Value<'c, 'a>, Value<'c, 'a>) {
        let mut body = self.body(e, at, &Known::new());
        let number = |value: i64| e.integer(value, 64, Lanes::Scalar);
        let index = |value| e.op(arith::INDEX_CAST, &[value], MlirType::index(e.context));
        let zero = number(0);
        let (mut from, mut to) = (e.index(0), count);
        for Range { first: value, step } in &guarded.ranges {
            let (value, _) = body.emit(e, value);
            // Where it grows, the iterations in which it is negative; otherwise those in which it is not.
            let (is_start, step) = (*step > 0, step.abs());
            let distance = match is_start {
                true => e.binary(arith::SUBI, zero, value),
                false => e.binary(arith::ADDI, value, number(1)),
            };
            let distance = e.binary(arith::MAXSI, distance, zero);
            let up = e.binary(arith::ADDI, distance, number(step - 1));
            let edge = index(e.binary(arith::DIVUI, up, number(step)));
            let edge = e.binary(arith::SUBI, edge, first);
            match is_start {
                true => from = e.max(from, edge),
                false => to = e.min(to, edge),
            }
        }
        for condition in &guarded.fixed {
            let (holds, _) = body.emit(e, condition);
            to = e.op(arith::SELECT, &[holds, to, from], MlirType::index(e.context));
        }
        (from, to)
    }

    /// An accumulator combined with the body's value.
    pub(super) fn joined(
        &self,
        e: Emit<'c, 'a>,
        reduction: &Reduce,
        at: &[Value<'c, 'a>],
        total: Value<'c, 'a>,
        known: &Known<'c, 'a>,
    ) -> Value<'c, 'a> {
        self.joined_with(e, reduction, at, (total, &self.nest.compute.body), known)
    }

    /// An accumulator combined with a value.
    fn joined_with(
        &self,
        e: Emit<'c, 'a>,
        reduction: &Reduce,
        at: &[Value<'c, 'a>],
        (total, value): (Value<'c, 'a>, &Scalar),
        known: &Known<'c, 'a>,
    ) -> Value<'c, 'a> {
        let (narrow, wide) = self.elements(e);
        let (value, _) = self.body(e, at, known).emit(e, value);
        let value = arithmetic::cast(&scope(e), value, narrow, wide, Rounding::TowardZero);
        combine(e, reduction.combine, total, value, wide)
    }

    /// The remaining reduction loops, around an accumulator.
    fn inner(
        &self,
        e: Emit<'c, 'a>,
        reduction: &Reduce,
        at: &mut Vec<Value<'c, 'a>>,
        total: Value<'c, 'a>,
        known: &Known<'c, 'a>,
    ) -> Value<'c, 'a> {
        let Some(dim) = reduction.dims.get(at.len() - self.nest.compute.dims.len()) else {
            return self.joined(e, reduction, at, total, known);
        };
        let quotients = self.quotients(e, at, at.len());
        let Ok(totals) = self.each(e, dim, &[total], |e, index, carried| {
            at.push(index);
            let total = self.inner(e, reduction, at, carried[0], &quotients);
            at.pop();
            vec![total]
        });
        totals[0]
    }

    /// The quotients and remainders of the expression that do not depend on the innermost loop, computed
    /// before it; empty if another loop is inside of `innermost`. `at` has the index of every other loop.
    ///
    /// Inside of it, where a condition guards them, LLVM 22 vectorizes wrongly (`docs/kernels.md`).
    fn quotients(&self, e: Emit<'c, 'a>, at: &[Value<'c, 'a>], innermost: usize) -> Known<'c, 'a> {
        let compute = &self.nest.compute;
        if at.len() + 1 < compute.loops() {
            return Known::new();
        }
        let mut found = vec![];
        compute.body.walk(&mut |part| {
            if matches!(part, Scalar::Binary(Binary::Div | Binary::Rem | Binary::Mod, ..)) {
                let mut varies = false;
                part.walk(&mut |part| {
                    varies |= matches!(part, Scalar::Load(..)) || *part == Scalar::Loop(innermost);
                });
                found.extend((!varies).then_some(part.clone()));
            }
        });
        let mut body = self.body(e, at, &Known::new());
        found.iter().for_each(|quotient| {
            body.emit(e, quotient);
        });
        body.known.swap_remove(0)
    }

    /// The inputs of the expression at an iteration, given as indices, with values known outside of it.
    pub(super) fn body(
        &self,
        e: Emit<'c, 'a>,
        at: &[Value<'c, 'a>],
        known: &Known<'c, 'a>,
    ) -> Body<'_, 'c, 'a> {
        Body {
            operands: self.operands,
            sizes: self.sizes,
            loops: at.iter().map(|index| loop_number(e, *index)).collect(),
            reduced: None,
            known: vec![known.clone()],
        }
    }
}

/// Combines a value with an accumulator. Sums and products of floats may be reassociated.
pub(super) fn combine<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    combine: Combine,
    total: Value<'c, 'a>,
    value: Value<'c, 'a>,
    ty: Element<'c>,
) -> Value<'c, 'a> {
    if ty.kind != Kind::Float || matches!(combine, Combine::Max | Combine::Min) {
        return arithmetic::binary(&scope(e), combine.function(), total, value, ty);
    }
    let name = if combine == Combine::Sum { arith::ADDF } else { arith::MULF };
    let free = attr::parse(e.context, "#arith.fastmath<reassoc,contract>");
    e.value(e.spec(name).operands(&[total, value]).results(&[ty.storage]).attr("fastmath", free))
}

/// The neutral element of a combination, in the type of an accumulator.
pub(super) fn neutral<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    combine: Combine,
    dtype: DType,
    ty: Element<'c>,
) -> Value<'c, 'a> {
    match combine.neutral(dtype) {
        Number::Float(value) => e.float(value, ty.storage, Lanes::Scalar),
        Number::Int(value) => arithmetic::whole(&scope(e), value as i64, ty),
    }
}

/// The nest as one loop, if every operand is read at the result's own index, or where a reshape of it has that, or at a
/// fixed position.
pub(super) fn flattened(
    nest: &Nest,
    operands: &[(&Type, Buffer<'_, '_>)],
) -> Option<(Nest, Vec<Type>)> {
    let Compute { dims, reduction: None, body } = &nest.compute else { return None };
    if dims.is_empty() || nest.epilogue.is_some() {
        return None;
    }
    let own: Vec<_> = (0..dims.len()).map(Scalar::Loop).collect();
    let is_reshaped = |ty: &Type, at: &[Scalar]| {
        let reshaped = Compute::reshape(ty, dims.clone()).body;
        ty.rank() > 0 && matches!(reshaped, Scalar::Load(_, other) if other[..] == *at)
    };
    let reads_own = |operand: usize, at: &[Scalar]| {
        let ty = operands[operand].0;
        at == own && ty.dims == *dims || is_reshaped(ty, at)
    };
    let mut whole = vec![false; operands.len()];
    let mut parts = vec![false; operands.len()];
    let mut loose = false;
    let flat = body.replace(&mut |scalar| match scalar {
        Scalar::Load(operand, at) if reads_own(*operand, at) => {
            whole[*operand] = true;
            Some(Scalar::load(*operand, [Scalar::Loop(0)]))
        }
        Scalar::Load(operand, _) => {
            parts[*operand] = true;
            None
        }
        Scalar::Loop(_) => {
            loose = true;
            None
        }
        _ => None,
    });
    if loose || whole.iter().zip(&parts).any(|(whole, part)| *whole && *part) {
        return None;
    }
    let types = operands.iter().zip(&whole).map(|((ty, _), whole)| match whole {
        true => Type::new(ty.dtype, [ty.elements()]),
        false => (*ty).clone(),
    });
    let compute = Compute::map([Dim::product(dims)], flat);
    Some((Nest::of(compute), types.collect()))
}
