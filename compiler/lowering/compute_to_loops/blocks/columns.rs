//! Calls the kernels of a block of attention for some columns of its scores at a time.
//!
//! Three values pass from one call to the next: the highest scores of rows, the sums of powers, and sums of values.
//! The first two are read and written in different memory; the third is updated in place.
use super::{Callee, Frame, arguments, call, is_kept, keep, sizes_of};
use crate::attributes::Columns;
use crate::kernel::emit::{Buffer, Emit, Lanes};
use irc_mlir::ops::arith;
use irc_mlir::{Type, TypeLike, Value};
use irc_tl::Dim;
use melior::ir::r#type::{DimSize, MemRefType, ShapedTypeLike};
use std::convert::Infallible;

/// How a block is computed in calls for some columns each.
pub(super) struct Calls<'c> {
    /// The kernel of all columns but the last ones.
    first: Box<Callee<'c>>,
    /// The maximum number of columns of a call.
    items: i64,
    count: Dim,
    /// Bytes from one column to the next, per operand.
    bytes: Vec<i64>,
    /// Bytes from one row to the next, of operands that are copied; 0 for others.
    copied: Vec<Dim>,
    /// The number of columns that row 0 sees, less one, if there is a causal mask.
    causal: Option<Dim>,
}

/// Bytes of a vector that copies columns.
const VECTOR: i64 = 16;

/// The most calls of a block whose packed operands are kept for the next blocks. Those of more are packed for each block.
const MAX_KEPT: i64 = 8;

/// The number of values that pass from one call to the next.
const CARRIED: usize = 3;

impl<'c> Calls<'c> {
    pub(super) fn of(columns: &Columns, first: Callee<'c>) -> Result<Self, String> {
        let count = sizes_of("count", std::slice::from_ref(&columns.count))?.remove(0);
        let copied = sizes_of("copied", &columns.copied)?;
        let bytes = columns.bytes.clone();
        let causal = sizes_of("causal", columns.causal.as_slice())?.pop();
        Ok(Self { first: Box::new(first), items: columns.items, count, bytes, copied, causal })
    }

    /// The sizes that calls depend on.
    pub(super) fn sizes(&self) -> impl Iterator<Item = &Dim> {
        self.causal.iter().chain([&self.count]).chain(&self.copied)
    }

    pub(super) fn is_causal(&self) -> bool {
        self.causal.is_some()
    }

    /// The number of the first parameter that is carried. The numbers of columns and those of a causal mask come
    /// before.
    fn carried(&self) -> usize {
        self.bytes.len() + if self.is_causal() { 2 } else { 0 }
    }

    /// The number of columns.
    pub(super) fn count(&self) -> &Dim {
        &self.count
    }

    /// The bytes that calls need beside the scratch memory of the kernel of the last columns.
    pub(super) fn bytes(&self, last: &Callee<'c>) -> u64 {
        let own = |callee: &Callee<'c>| callee.info.scratch() + callee.kept().unwrap_or(0);
        let kept = (self.kept(last) * self.slots(last)).cast_unsigned();
        own(&self.first).saturating_sub(own(last)) + self.layout(last, 0).1.cast_unsigned() + kept
    }

    /// The bytes that a call keeps, in multiples of a cache line.
    fn kept(&self, last: &Callee<'c>) -> i64 {
        (last.kept().unwrap_or(0).cast_signed() + 63) / 64 * 64
    }

    /// The number of calls of a block that keep what they pack for the calls for the same columns of the next blocks, in
    /// memory of their own.
    fn slots(&self, last: &Callee<'c>) -> i64 {
        let is_same = last.kept().is_some() && last.kept() == self.first.kept();
        let calls =
            self.count.known().map_or(MAX_KEPT, |count| (count + self.items - 1) / self.items);
        if is_same && calls > 1 { calls.min(MAX_KEPT) } else { 0 }
    }

    /// The offsets of copied operands and of what is carried, from a first one on, and the one after the last.
    fn layout(&self, last: &Callee<'c>, first: i64) -> (Vec<i64>, i64) {
        let mut end = first;
        let mut place = |bytes: i64| {
            let start = end;
            end += (bytes + 63) / 64 * 64;
            start
        };
        let carried = self.carried();
        let memory = last.parameters.iter().take(carried + CARRIED).enumerate();
        let offsets = memory.map(|(at, ty)| match self.copied.get(at) {
            Some(copied) if copied.is(0) => 0,
            // Highest scores and sums of powers alternate.
            None if (carried..carried + 2).contains(&at) => place(2 * byte_size(*ty)),
            _ => place(byte_size(*ty)),
        });
        let offsets = offsets.collect();
        (offsets, end)
    }

    /// Emits the calls of a block.
    pub(super) fn emit<'a>(
        &self,
        e: Emit<'c, 'a>,
        last: &Callee<'c>,
        frame: &Frame<'_, 'c, 'a>,
        (windows, rows): (&[(Value<'c, 'a>, Value<'c, 'a>)], Option<Value<'c, 'a>>),
        (unit, from, block, row): (Value<'c, 'a>, Value<'c, 'a>, Value<'c, 'a>, Value<'c, 'a>),
    ) where
        'c: 'a,
    {
        let Some(workspace) = frame.buffers.last().copied() else { return };
        let (slots, kept) = (self.slots(last), self.kept(last));
        let after = self.layout(last, 0).1 + slots * kept;
        let own = last.workspace() - after.cast_unsigned();
        let (offsets, end) = self.layout(last, own.cast_signed());
        let operands = self.bytes.len();
        let total = frame.sizes.value(e, &self.count);
        let (mut count, mut most) = (total, total);
        // The columns that row 0 of the block sees, less one.
        let seen = self.causal.as_ref().map(|offset| e.add(row, frame.sizes.value(e, offset)));
        if let Some(seen) = seen {
            let all = e.add(seen, rows.unwrap_or_else(|| e.index(last.items)));
            count = e.min(total, all);
            // Of the block before, which is the next one.
            most = e.min(total, e.offset(all, last.items));
        }
        let first = self.carried();
        // All but the last call have as many columns as fit.
        let before =
            e.binary(arith::DIVUI, e.max(e.offset(count, -1), e.index(0)), e.index(self.items));
        let memory = |offset: Value<'c, 'a>| (workspace, offset);
        let carried: Vec<Type<'c>> = last.parameters[first..first + CARRIED].to_vec();
        let alternating = |e: Emit<'c, 'a>, number: usize, call: Value<'c, 'a>| {
            let odd = e.binary(arith::ANDI, call, e.index(1));
            e.offset(e.scale(odd, byte_size(carried[number])), offsets[first + number])
        };
        let sums = e.index(offsets[first + 2]);

        // Without memory for each call, what several pack is that of the last one.
        const SLT: i64 = 2;
        const SLE: i64 = 3;
        let is_later = last.kept().map(|_| is_kept(e, (unit, from), block));
        let kept_at = |e: Emit<'c, 'a>, number: Value<'c, 'a>| {
            let Some(is_later) = is_later else { return e.index(0) };
            if slots == 0 {
                let is_only = e.compare(SLE, most, e.index(self.items));
                keep(e, (workspace, e.index(0)), e.binary(arith::ANDI, is_later, is_only));
                return e.index(0);
            }
            let has_slot = e.compare(SLT, number, e.index(slots));
            let slot = e.offset(e.scale(number, kept), end);
            let place = e.op(arith::SELECT, &[has_slot, slot, e.index(0)], Type::index(e.context));
            keep(e, (workspace, place), e.binary(arith::ANDI, is_later, has_slot));
            place
        };
        let lowest = e.float(f64::from(f32::MIN), e.f32(), Lanes::Scalar);
        let [zero, one] = [0.0, 1.0].map(|value| e.float(value, e.f32(), Lanes::Scalar));
        // Without columns, the result is 0.
        let is_empty = e.compare(0, count, e.index(0));
        let sum = e.op(arith::SELECT, &[is_empty, one, zero], e.f32());
        for (number, value) in [lowest, sum, zero].into_iter().enumerate() {
            let elements = byte_size(carried[number]) / 4;
            let place = offsets[first + number];
            let view = e.workspace_view(workspace, place, elements, e.f32());
            let bounds = (e.index(0), e.index(elements), 1);
            let Ok(_) = e.for_each::<Infallible>(bounds, &[], |e, at, _| {
                e.store(value, view, at, Lanes::Scalar, None);
                Ok(vec![])
            });
        }
        let inputs = |e: Emit<'c, 'a>, number: Value<'c, 'a>, columns: Value<'c, 'a>| {
            let start = e.scale(number, self.items);
            let mut inputs = vec![];
            for at in 0..operands {
                let (buffer, place) = windows[at];
                let place = e.add(place, e.scale(start, self.bytes[at]));
                if self.copied[at].is(0) {
                    inputs.push((buffer, place));
                    continue;
                }
                let ty = last.parameters[at];
                let height = match rows {
                    Some(rows) if height(ty, self.items) == last.items => rows,
                    _ => e.index(height(ty, self.items)),
                };
                let stride = frame.sizes.value(e, &self.copied[at]);
                let bytes = e.scale(columns, self.bytes[at]);
                let row = self.items * self.bytes[at];
                let to = (workspace, offsets[at], row);
                copy_rows(e, (buffer, place, stride), to, (height, bytes));
                inputs.push(memory(e.index(offsets[at])));
            }
            if let Some(seen) = seen {
                let own = [operands, operands + 1];
                let seen = e.binary(arith::SUBI, e.offset(seen, 1), start);
                for (at, from) in own.into_iter().zip([e.index(0), seen]) {
                    self.count_up(e, (workspace, offsets[at]), last.parameters[at], from);
                    inputs.push(memory(e.index(offsets[at])));
                }
            }
            inputs.extend([0, 1].map(|state| memory(alternating(e, state, number))));
            inputs.push(memory(sums));
            inputs
        };
        let emit = |e: Emit<'c, 'a>,
                    callee: &Callee<'c>,
                    mut windows: Vec<(Value<'c, 'a>, Value<'c, 'a>)>,
                    outputs: &[(Value<'c, 'a>, Value<'c, 'a>)],
                    (number, columns): (Value<'c, 'a>, Value<'c, 'a>)| {
            windows.extend(outputs);
            let passed = rows.into_iter().chain([columns]);
            let memory = (workspace, kept_at(e, number), first + CARRIED);
            let operands = arguments(e, callee, &windows, memory, passed);
            call(e, &callee.name, &operands);
        };
        let bounds = (e.index(0), before, 1);
        let Ok(_) = e.for_each::<Infallible>(bounds, &[], |e, number, _| {
            let columns = e.index(self.items);
            let next = e.offset(number, 1);
            let [highest, powers] = [0, 1].map(|state| memory(alternating(e, state, next)));
            let outputs = [highest, powers, memory(sums)];
            emit(e, &self.first, inputs(e, number, columns), &outputs, (number, columns));
            Ok(vec![])
        });
        let columns = e.binary(arith::SUBI, count, e.scale(before, self.items));
        emit(e, last, inputs(e, before, columns), &windows[operands..], (before, columns));
    }
}

impl<'c> Calls<'c> {
    /// Writes numbers from one on to memory, as `i32`.
    fn count_up<'a>(
        &self,
        e: Emit<'c, 'a>,
        (workspace, offset): (Value<'c, 'a>, i64),
        ty: Type<'c>,
        from: Value<'c, 'a>,
    ) where
        'c: 'a,
    {
        let count = elements(ty);
        let view = e.workspace_view(workspace, offset, count, e.int(32));
        let Ok(_) = e.for_each::<Infallible>((e.index(0), e.index(count), 1), &[], |e, at, _| {
            let number = e.op(arith::INDEX_CAST, &[e.add(from, at)], e.int(32));
            e.store(number, view, at, Lanes::Scalar, None);
            Ok(vec![])
        });
    }
}

/// Copies so many bytes of each of some rows: from a place on, with a stride, to an offset, with another one.
fn copy_rows<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    (from, place, stride): (Value<'c, 'a>, Value<'c, 'a>, Value<'c, 'a>),
    (to, offset, row): (Value<'c, 'a>, i64, i64),
    (rows, bytes): (Value<'c, 'a>, Value<'c, 'a>),
) {
    let byte = e.int(8);
    let of_bytes = |memref| Buffer { memref, element: byte };
    let rest = e.binary(arith::REMUI, bytes, e.index(VECTOR));
    let whole = e.binary(arith::SUBI, bytes, rest);
    let Ok(_) = e.for_each::<Infallible>((e.index(0), rows, 1), &[], |e, number, _| {
        let source = e.add(place, e.binary(arith::MULI, number, stride));
        let target = e.offset(e.scale(number, row), offset);
        let spans = [(e.index(0), whole, Lanes::Vector(VECTOR)), (whole, bytes, Lanes::Scalar)];
        for (first, end, lanes) in spans {
            let bounds = (first, end, lanes.count());
            let Ok(_) = e.for_each::<Infallible>(bounds, &[], |e, at, _| {
                let value = e.load_lanes(of_bytes(from), e.add(source, at), lanes, None);
                e.store(value, of_bytes(to), e.add(target, at), lanes, None);
                Ok(vec![])
            });
        }
        Ok(vec![])
    });
}

/// The number of elements of memory of known size.
fn elements(ty: Type<'_>) -> i64 {
    let Ok(memref) = MemRefType::try_from(ty) else { return 0 };
    let sizes = (0..memref.rank()).map(|dim| match memref.dim_size(dim) {
        Ok(DimSize::Static(size)) => size as i64,
        _ => 0,
    });
    sizes.product()
}

fn height(ty: Type<'_>, columns: i64) -> i64 {
    elements(ty) / columns
}

/// The bytes of memory of known size.
fn byte_size(ty: Type<'_>) -> i64 {
    let element = MemRefType::try_from(ty).map_or(ty, |memref| memref.element());
    let bytes = match element {
        _ if element.is_f32() => 4,
        _ if element.is_f16() || element.is_bf16() => 2,
        _ => element
            .to_string()
            .trim_start_matches('i')
            .parse::<i64>()
            .map_or(8, |bits| (bits + 7) / 8),
    };
    elements(ty) * bytes
}
