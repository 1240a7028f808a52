//! One step of a kernel, shared by the threads of a team.
use super::{
    super::{
        expression::{Known, from_memory, reads_along, to_memory},
        nest::{Nest, Writer, combine, flattened},
    },
    Device, Emit, Infallible, Lanes, Sizes,
    access::{Windows, aligned, element_bytes, windowed},
    arith, product as tiles,
    team::{Team, indices, product, shuffle, when},
};
use crate::kernel::emit::Buffer;
use irc_mlir::Value;
use irc_mlir::ops::vector;
use irc_tl::{Scalar, Type};

/// The number of threads of a warp.
pub(super) const WARP: i64 = 32;

/// The number of summands from which on a warp computes a reduction together.
const MIN_WARP_REDUCTION: i64 = 64;

/// The number of elements from which on a thread computes several neighbours.
const MIN_NEIGHBOURS: i64 = 1 << 14;

/// Bytes that a thread reads or writes at once.
pub(super) const ACCESS: i64 = 16;

/// Emits a nest that writes `result`, which has the given strides if it is a window; so do operands.
pub(super) fn emit<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    nest: &Nest,
    (operands, strides): (&[(&Type, Buffer<'c, 'a>)], Windows<'_>),
    (result, result_strides): (Buffer<'c, 'a>, Option<&[i64]>),
    sizes: &Sizes<'c, 'a>,
    (team, device, partial): (&Team<'c, 'a>, &Device, Option<Value<'c, 'a>>),
) {
    let dense = result_strides.is_none() && strides.iter().all(Option::is_none);
    let flat = if dense { flattened(nest, operands) } else { None };
    let is_flat = flat.is_some() || dense && nest.compute.dims.len() == 1;
    let types = || operands.iter().map(|(ty, _)| *ty);
    let (nest, types) = flat.unwrap_or_else(|| windowed(nest, types(), strides));
    let operands: Vec<_> =
        types.iter().zip(operands).map(|(ty, (_, buffer))| (ty, *buffer)).collect();
    let mut writer = Writer::new(&nest, &operands, result, sizes);
    writer.strides = result_strides;
    if tiles::emit(e, &writer, team, device, partial) {
        return;
    }
    let work = Work { writer: &writer, team };
    if work.is_warps() {
        work.warps(e);
    } else {
        work.threads(e, is_flat);
    }
}

struct Work<'w, 'c, 'a> {
    writer: &'w Writer<'w, 'c, 'a>,
    team: &'w Team<'c, 'a>,
}

impl<'c: 'a, 'a> Work<'_, 'c, 'a> {
    /// Whether a warp computes each element together: if that reads neighbouring elements, or if there are few elements.
    fn is_warps(&self) -> bool {
        let compute = &self.writer.nest.compute;
        let Some(reduction) = &compute.reduction else { return false };
        let (elements, summands) = (product(&compute.dims), product(&reduction.dims));
        if summands < MIN_WARP_REDUCTION {
            return false;
        }
        let last_reduced = compute.dims.len() + reduction.dims.len() - 1;
        let last = compute.dims.iter().rposition(|dim| !dim.is(1));
        let along_reduced = reads_along(&compute.body, last_reduced);
        let along_elements = last.is_some_and(|last| reads_along(&compute.body, last));
        (along_reduced && !along_elements) || elements < 1024
    }

    /// A loop over the positions from `first` on below `count`, in steps.
    fn strided(
        &self,
        e: Emit<'c, 'a>,
        (first, count, step): (Value<'c, 'a>, i64, Value<'c, 'a>),
        carried: &[Value<'c, 'a>],
        body: impl FnOnce(Emit<'c, 'a>, Value<'c, 'a>, &[Value<'c, 'a>]) -> Vec<Value<'c, 'a>>,
    ) -> Vec<Value<'c, 'a>> {
        let Ok(values) = e.for_each_step::<Infallible>(
            (first, e.index(count), step),
            carried,
            |e, index, carried| Ok(body(e, index, carried)),
        );
        values
    }

    /// Each element by one thread.
    fn threads(&self, e: Emit<'c, 'a>, is_flat: bool) {
        let dims = &self.writer.nest.compute.dims;
        let count = product(dims);
        let (first, all) = (self.team.first(e), self.team.all(e));
        let neighbours = if is_flat && self.writer.nest.compute.reduction.is_none() {
            self.neighbours(count)
        } else {
            1
        };
        if neighbours == 1 {
            self.strided(e, (first, count, all), &[], |e, linear, _| {
                let at = indices(e, dims, linear);
                self.writer.element(e, &at, &Known::new());
                vec![]
            });
            return;
        }
        self.strided(e, (first, count / neighbours, all), &[], |e, group, _| {
            let start = e.scale(group, neighbours);
            let known = self.loaded(e, start, neighbours);
            let values = known.iter().zip(0..).map(|(known, next)| {
                let (value, dtype) = self.writer.value(e, &[e.offset(start, next)], known);
                to_memory(e, value, dtype)
            });
            let values: Vec<_> = values.collect();
            let result = self.writer.result;
            let ty = Lanes::Vector(neighbours).of(result.element);
            let all = e.op(vector::FROM_ELEMENTS, &values, ty);
            let spec = e.spec(vector::STORE).operands(&[all, result.memref, start]);
            spec.attr("alignment", aligned(e, result.element, neighbours)).append(&e.block);
            vec![]
        });
    }

    /// The elements of operands at neighbouring positions, loaded together, for each of them.
    fn loaded(&self, e: Emit<'c, 'a>, start: Value<'c, 'a>, neighbours: i64) -> Vec<Known<'c, 'a>> {
        let mut known = vec![Known::new(); neighbours as usize];
        for (operand, (ty, buffer)) in self.writer.operands.iter().enumerate() {
            let own = Scalar::load(operand, [Scalar::Loop(0)]);
            let mut is_read = false;
            self.writer.nest.compute.body.walk(&mut |part| is_read |= *part == own);
            if !is_read || ty.rank() != 1 {
                continue;
            }
            let vector = Lanes::Vector(neighbours).of(buffer.element);
            let spec = e.spec(vector::LOAD).operands(&[buffer.memref, start]).results(&[vector]);
            let all = e.value(spec.attr("alignment", aligned(e, buffer.element, neighbours)));
            for (known, lane) in known.iter_mut().zip(0..) {
                let value = from_memory(e, e.extract(all, buffer.element, lane), ty.dtype);
                known.insert(own.clone(), (value, ty.dtype));
            }
        }
        known
    }

    /// The number of neighbouring elements that a thread computes: so that it reads and writes several bytes at once.
    fn neighbours(&self, count: i64) -> i64 {
        let operands = self.writer.operands.iter().filter(|(ty, _)| ty.rank() == 1);
        let operands = operands.map(|(ty, _)| ty.dtype.size() as i64);
        let widest = operands.chain([element_bytes(self.writer.result.element)]).max();
        let neighbours = ACCESS / widest.unwrap_or(ACCESS).clamp(1, ACCESS);
        match count >= MIN_NEIGHBOURS && count % neighbours == 0 {
            true => neighbours,
            false => 1,
        }
    }

    /// Each element by one warp.
    fn warps(&self, e: Emit<'c, 'a>) {
        let nest = self.writer.nest;
        let Some(reduction) = &nest.compute.reduction else { return };
        let (dims, reduced) = (&nest.compute.dims, &reduction.dims);
        let (elements, summands) = (product(dims), product(reduced));
        let warp = e.index(WARP);
        let lane = e.binary(arith::REMUI, self.team.thread, warp);
        let first = e.binary(arith::DIVUI, self.team.first(e), warp);
        let all = e.binary(arith::DIVUI, self.team.all(e), warp);
        self.strided(e, (first, elements, all), &[], |e, element, _| {
            let at = indices(e, dims, element);
            let start = self.writer.neutral(e, reduction);
            let total = self.strided(e, (lane, summands, warp), &[start], |e, summand, total| {
                let inner = indices(e, reduced, summand);
                let at = [&at[..], &inner].concat();
                vec![self.writer.joined(e, reduction, &at, total[0], &Known::new())]
            });
            let (_, wide) = self.writer.elements(e);
            let mut total = total[0];
            for distance in [16, 8, 4, 2, 1] {
                let other = shuffle(e, total, distance);
                total = combine(e, reduction.combine, total, other, wide);
            }
            let is_first = e.compare(0, lane, e.index(0));
            when(e, is_first, |e| {
                let value = self.writer.finished(e, &at, total);
                self.writer.store(e, &at, value);
            });
            vec![]
        });
    }
}
