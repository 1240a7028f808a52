//! Products whose threads compute the elements of factors one by one, and copy them to shared memory: `f16` and `bf16` are
//! multiplied on tensor cores (`mma.m16n8k16`), `f32` in registers, 4 rows by several columns to a thread.
use super::{
    super::super::expression::{Body, Known, reads_along},
    super::team::{shared_memory, shared_type},
    Emit, Infallible, Lanes, Place, Range, SHARED_BYTES, Tiles, arith, indices,
};
use crate::kernel::emit::Buffer;
use irc_mlir::{Type as MlirType, Value, attr, ops::memref};
use irc_tl::{DType, Dim};

/// Rows and columns of a tile.
pub(super) const TILE: i64 = 64;

/// Summands of a block, in `f32` and in halves.
const DEPTH: i64 = 16;
const HALF_DEPTH: i64 = 32;

/// Elements between the rows of a tile in shared memory, beyond its extent, so that threads access different banks.
const F32_PADDING: i64 = 4;
const HALF_PADDING: i64 = 8;

/// Bytes of a factor's tile in shared memory.
const SIDE_BYTES: i64 = TILE * (HALF_DEPTH + HALF_PADDING) * 2;

const _: () = assert!(DEPTH * (TILE + F32_PADDING) * 4 <= SIDE_BYTES);
const _: () = assert!(2 * SIDE_BYTES <= SHARED_BYTES);

/// Summands of a block.
pub(super) fn depth(half: Option<DType>) -> i64 {
    if half.is_some() { HALF_DEPTH } else { DEPTH }
}

/// A product whose factors are any expressions.
pub(super) struct Staged<'t, 'w, 'n, 'c, 'a> {
    pub(super) tiles: &'t Tiles<'w, 'n, 'c, 'a>,
}

impl<'c: 'a, 'a> Staged<'_, '_, '_, 'c, 'a> {
    /// One tile: its sums, and then the elements of the result.
    pub(super) fn tile(&self, e: Emit<'c, 'a>, place: &Place<'c, 'a>, range: &Range<'c, 'a>) {
        let sides = [self.shared(e, 0), self.shared(e, 1)];
        let zero = e.float(0.0, e.f32(), Lanes::Scalar);
        let start = vec![zero; self.sums() as usize];
        let bounds = (range.first, range.end, self.depth());
        let Ok(sums) = e.for_each::<Infallible>(bounds, &start, |e, first, sums| {
            // The block before may still be read.
            self.tiles.team.wait_in_block(e);
            self.stage(e, place, (0, sides[0]), first);
            self.stage(e, place, (1, sides[1]), first);
            self.tiles.team.wait_in_block(e);
            Ok(match self.half() {
                Some(half) => self.multiply_halves(e, half, sums),
                None => self.multiply(e, sides, sums),
            })
        });
        for (sum, at) in sums.into_iter().zip(self.places(e)) {
            self.tiles.sink(e, (place, range), at, sum);
        }
    }

    fn half(&self) -> Option<DType> {
        self.tiles.product.half
    }

    fn threads(&self) -> i64 {
        self.tiles.threads
    }

    fn depth(&self) -> i64 {
        depth(self.half())
    }

    /// The element type in shared memory.
    fn element(&self, e: Emit<'c, 'a>) -> MlirType<'c> {
        match self.half() {
            Some(half) => {
                irc_mlir::ty::parse(e.context, if half == DType::F16 { "f16" } else { "bf16" })
            }
            None => e.f32(),
        }
    }

    /// A factor's tile in shared memory: halves row after row, others summand after summand.
    fn shared(&self, e: Emit<'c, 'a>, side: i64) -> Buffer<'c, 'a> {
        let element = self.element(e);
        let elements = match self.half() {
            Some(_) => sides_elements(),
            None => DEPTH * (TILE + F32_PADDING),
        };
        self.view(e, side, element, elements)
    }

    /// A factor's part of shared memory.
    fn view(
        &self,
        e: Emit<'c, 'a>,
        side: i64,
        element: MlirType<'c>,
        elements: i64,
    ) -> Buffer<'c, 'a> {
        let all = shared_memory(e);
        let ty = shared_type(e.context, elements, element);
        let start = e.offset(self.tiles.team.shared, side * SIDE_BYTES);
        let memref = e.op(memref::VIEW, &[all, start], ty);
        Buffer { memref, element }
    }

    /// The place of an element of a tile in shared memory.
    fn at(&self, e: Emit<'c, 'a>, row: Value<'c, 'a>, summand: Value<'c, 'a>) -> Value<'c, 'a> {
        match self.half() {
            Some(_) => e.add(e.scale(row, HALF_DEPTH + HALF_PADDING), summand),
            None => e.add(e.scale(summand, TILE + F32_PADDING), row),
        }
    }

    /// Copies a block of a factor to shared memory.
    fn stage(
        &self,
        e: Emit<'c, 'a>,
        place: &Place<'c, 'a>,
        (side, shared): (usize, Buffer<'c, 'a>),
        first: Value<'c, 'a>,
    ) {
        let (depth, summands) = (self.depth(), self.tiles.summands());
        let factor = self.tiles.product.factors[side];
        let compute = &self.tiles.writer.nest.compute;
        let reduced = compute.reduction.iter().flat_map(|it| it.dims.iter().cloned());
        let reduced: Vec<Dim> = reduced.collect();
        // Neighbouring threads read neighbouring elements.
        let last = compute.dims.len() + reduced.len() - 1;
        let along = reads_along(factor, last);
        let limit = self.tiles.count(1 + side);
        let base = if side == 0 { place.row } else { place.column };
        for turn in 0..TILE * depth / self.threads().min(TILE * depth) {
            let number = e.offset(self.tiles.team.thread, turn * self.threads());
            let by = e.index(if along { depth } else { TILE });
            let (inner, outer) =
                (e.binary(arith::REMUI, number, by), e.binary(arith::DIVUI, number, by));
            let (row, summand) = if along { (outer, inner) } else { (inner, outer) };
            let (line, depth_at) = (e.add(base, row), e.add(first, summand));
            let element = self.element(e);
            let zero = e.zero(element, Lanes::Scalar);
            let value = |e: Emit<'c, 'a>| {
                let numbers = match side {
                    0 => [place.outer, line, e.index(0)],
                    _ => [place.outer, e.index(0), line],
                };
                let mut at = self.tiles.result_index(e, numbers);
                at.extend(indices(e, &reduced, depth_at));
                let mut body: Body<'_, 'c, 'a> = self.tiles.writer.body(e, &at, &Known::new());
                let (value, _) = body.emit(e, factor);
                let value = match self.half() {
                    Some(_) => e.op(arith::TRUNCF, &[value], element),
                    None => value,
                };
                Ok::<_, Infallible>(vec![value])
            };
            let inside = e.binary(
                arith::ANDI,
                e.compare(ULT, line, e.index(limit)),
                e.compare(ULT, depth_at, e.index(summands)),
            );
            let Ok(found) = e.if_else(inside, &[element], value, |_| Ok(vec![zero]));
            e.store(found[0], shared, self.at(e, row, summand), Lanes::Scalar, None);
        }
    }

    /// The number of sums of a thread.
    fn sums(&self) -> i64 {
        TILE * TILE / self.threads()
    }

    /// The rows of warps and of threads: in products of halves, warps in rows of 16, at most four.
    fn warps(&self) -> (i64, i64) {
        let warps = self.threads() / 32;
        let down = warps.min(TILE / 16);
        (down, warps / down)
    }

    /// The row and column in the tile of each sum of a thread.
    fn places(&self, e: Emit<'c, 'a>) -> Vec<(Value<'c, 'a>, Value<'c, 'a>)> {
        let mut found = vec![];
        if self.half().is_none() {
            let wide = self.threads() / ROWS;
            let columns = TILE / wide;
            let (row, column) = self.thread_place(e, wide);
            for i in 0..TILE / ROWS {
                for j in 0..columns {
                    found.push((e.offset(row, i), e.offset(column, j)));
                }
            }
            return found;
        }
        let (row, column, group, pair) = self.warp_place(e);
        let (down, across) = self.warps();
        for i in 0..TILE / 16 / down {
            for j in 0..TILE / 8 / across {
                for half in 0..2 {
                    for k in 0..2 {
                        let own = e.add(row, e.offset(group, 16 * i + 8 * half));
                        let at = e.add(column, e.offset(pair, 8 * j + k));
                        found.push((own, at));
                    }
                }
            }
        }
        found
    }

    /// The first row and column of a thread's sums in a product in registers.
    fn thread_place(&self, e: Emit<'c, 'a>, wide: i64) -> (Value<'c, 'a>, Value<'c, 'a>) {
        let by = e.index(wide);
        let row = e.binary(arith::DIVUI, self.tiles.team.thread, by);
        let column = e.binary(arith::REMUI, self.tiles.team.thread, by);
        (e.scale(row, TILE / ROWS), e.scale(column, TILE / wide))
    }

    /// The first row and column of a warp's sums, the row of its lane in groups of four lanes, and twice the place in the
    /// group.
    fn warp_place(
        &self,
        e: Emit<'c, 'a>,
    ) -> (Value<'c, 'a>, Value<'c, 'a>, Value<'c, 'a>, Value<'c, 'a>) {
        let (down, across) = self.warps();
        let lane = e.binary(arith::REMUI, self.tiles.team.thread, e.index(32));
        let warp = e.binary(arith::DIVUI, self.tiles.team.thread, e.index(32));
        let row = e.binary(arith::DIVUI, warp, e.index(across));
        let column = e.binary(arith::REMUI, warp, e.index(across));
        let group = e.binary(arith::DIVUI, lane, e.index(4));
        let pair = e.scale(e.binary(arith::REMUI, lane, e.index(4)), 2);
        (e.scale(row, TILE / down), e.scale(column, TILE / across), group, pair)
    }

    /// Adds the products of a block in registers.
    fn multiply(
        &self,
        e: Emit<'c, 'a>,
        sides: [Buffer<'c, 'a>; 2],
        sums: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let wide = self.threads() / ROWS;
        let (row, column) = self.thread_place(e, wide);
        let fused = attr::parse(e.context, "#arith.fastmath<contract>");
        let Ok(sums) =
            e.for_each::<Infallible>((e.index(0), e.index(DEPTH), 1), sums, |e, k, sums| {
                let load = |side: usize, first, count: i64| -> Vec<Value<'c, 'a>> {
                    let start = self.at(e, first, k);
                    (0..count).map(|next| e.load(sides[side], e.offset(start, next))).collect()
                };
                let left = load(0, row, TILE / ROWS);
                let right = load(1, column, TILE / wide);
                let pairs = left.iter().flat_map(|x| right.iter().map(move |y| (*x, *y)));
                let next = pairs.zip(sums).map(|((x, y), sum)| {
                    let binary = |name, x, y| {
                        let spec = e.spec(name).operands(&[x, y]).results(&[e.f32()]);
                        e.value(spec.attr("fastmath", fused))
                    };
                    binary(arith::ADDF, binary(arith::MULF, x, y), *sum)
                });
                Ok(next.collect())
            });
        sums
    }

    /// Adds the products of a block on tensor cores.
    fn multiply_halves(
        &self,
        e: Emit<'c, 'a>,
        half: DType,
        sums: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let (row, column, group, pair) = self.warp_place(e);
        let (down, across) = self.warps();
        let words = [0, 1].map(|side| self.view(e, side, e.int(32), sides_elements() / 2));
        let pair_at = |side: usize, line: Value<'c, 'a>, summand: Value<'c, 'a>| {
            let at = self.at(e, line, summand);
            e.load(words[side], e.binary(arith::DIVUI, at, e.index(2)))
        };
        let mut sums = sums.to_vec();
        for block in 0..HALF_DEPTH / 16 {
            let low = e.offset(pair, 16 * block);
            let high = e.offset(pair, 16 * block + 8);
            let right: Vec<[Value<'c, 'a>; 2]> = (0..TILE / 8 / across)
                .map(|j| {
                    let line = e.add(column, e.offset(group, 8 * j));
                    [pair_at(1, line, low), pair_at(1, line, high)]
                })
                .collect();
            for i in 0..TILE / 16 / down {
                let upper = e.add(row, e.offset(group, 16 * i));
                let lower = e.offset(upper, 8);
                let left = [
                    pair_at(0, upper, low),
                    pair_at(0, lower, low),
                    pair_at(0, upper, high),
                    pair_at(0, lower, high),
                ];
                for (j, right) in right.iter().enumerate() {
                    let start = (i as usize * right_count(across) + j) * 4;
                    let sums = &mut sums[start..start + 4];
                    self.tiles.multiply_and_add(e, half, (&left, right), sums);
                }
            }
        }
        sums
    }
}

/// The elements of a block of halves in shared memory.
const fn sides_elements() -> i64 {
    TILE * (HALF_DEPTH + HALF_PADDING)
}

fn right_count(across: i64) -> usize {
    (TILE / 8 / across) as usize
}

/// Rows of threads of a product in registers.
const ROWS: i64 = 16;

/// `arith.cmpi` predicate.
const ULT: i64 = 6;
