//! Sums of products in tiles: matrix products, convolutions, and what else is a product of two factors of which each
//! depends on loops that the other does not.
//!
//! A team computes one tile of the result after another, 64 rows by 64 columns. For each block of summands, its threads
//! copy the factors to shared memory, wait for each other, and multiply: `f16` and `bf16` on tensor cores
//! (`mma.m16n8k16`), `f32` in registers, 4 rows by several columns to a thread. The loops over the result that only the
//! left factor depends on are rows, those of the right one columns, and all others number the products.
use super::{
    super::{
        expression::{Body, Known, depends_on, reads_along},
        nest::Writer,
    },
    Emit, Infallible, Lanes, arith, func,
    team::{Team, extent, indices, product},
};
use crate::kernel::emit::Buffer;
use irc_mlir::{Type as MlirType, Value, attr, ops::memref};
use irc_tl::{Binary, Combine, DType, Dim, Scalar};

/// Rows and columns of a tile.
const TILE: i64 = 64;

/// Summands of a block, in `f32` and in halves.
const DEPTH: i64 = 16;
const HALF_DEPTH: i64 = 32;

/// Elements between the rows of a tile in shared memory, beyond its extent, so that threads access different banks.
const F32_PADDING: i64 = 4;
const HALF_PADDING: i64 = 8;

/// The minimum number of rows, columns and summands.
const MIN_EXTENT: i64 = 16;

/// Bytes of shared memory of a team.
pub const SHARED_BYTES: i64 = 2 * TILE * (HALF_DEPTH + HALF_PADDING) * 2;

const _: () = assert!(2 * DEPTH * (TILE + F32_PADDING) * 4 <= SHARED_BYTES);

/// A sum of products.
pub(super) struct Product<'n> {
    /// The factors.
    factors: [&'n Scalar; 2],
    /// The loops over the result that number products, rows and columns, each in their order.
    groups: [Vec<usize>; 3],
    /// The type of both factors in memory, if it is one of halves.
    half: Option<DType>,
}

impl<'n> Product<'n> {
    /// The product that a nest computes, if it is large enough for tiles.
    pub(super) fn of(writer: &Writer<'n, '_, '_>) -> Option<Self> {
        let compute = &writer.nest.compute;
        let reduction = compute.reduction.as_ref()?;
        let Scalar::Binary(Binary::Mul, left, right) = &compute.body else { return None };
        if reduction.combine != Combine::Sum || writer.dtype() != DType::F32 {
            return None;
        }
        let mut factors = [&**left, &**right];
        let loops = 0..compute.dims.len();
        let long = loops.filter(|it| !compute.dims[*it].is(1)).collect::<Vec<_>>();
        let last = *long.last()?;
        if depends_on(factors[0], last) && !depends_on(factors[1], last) {
            factors.swap(0, 1);
        }
        let mut groups = [vec![], vec![], vec![]];
        for it in long {
            let by = [depends_on(factors[0], it), depends_on(factors[1], it)];
            groups[match by {
                [true, false] => 1,
                [false, true] => 2,
                _ => 0,
            }]
            .push(it);
        }
        let count = |group: &[usize]| {
            group.iter().map(|it| extent(&compute.dims[*it])).fold(1, i64::saturating_mul)
        };
        let extents = [count(&groups[1]), count(&groups[2]), product(&reduction.dims)];
        let fits = extents.iter().all(|extent| *extent >= MIN_EXTENT);
        let half = [DType::F16, DType::BF16]
            .into_iter()
            .find(|half| factors.iter().all(|factor| is_of(factor, *half, writer)));
        fits.then_some(Self { factors, groups, half })
    }
}

/// Whether an expression only selects and widens elements of a type, or zero.
fn is_of(factor: &Scalar, half: DType, writer: &Writer<'_, '_, '_>) -> bool {
    match factor {
        Scalar::Cast(DType::F32, _, x) => is_of(x, half, writer),
        Scalar::Load(operand, _) => {
            writer.operands.get(*operand).is_some_and(|(ty, _)| ty.dtype == half)
        }
        Scalar::Select(parts) => is_of(&parts[1], half, writer) && is_of(&parts[2], half, writer),
        Scalar::Float(bits, _) => f64::from_bits(*bits) == 0.0,
        _ => false,
    }
}

/// The numbers of warps of a team that tiles are for.
fn is_supported(threads: i64) -> bool {
    [32, 64, 128, 256, 512].contains(&threads)
}

/// Where a tile is: the first row and column, and the indices of the product.
struct Place<'c, 'a> {
    outer: Value<'c, 'a>,
    row: Value<'c, 'a>,
    column: Value<'c, 'a>,
}

/// A product that is being emitted.
pub(super) struct Tiles<'w, 'n, 'c, 'a> {
    pub(super) product: Product<'n>,
    pub(super) writer: &'w Writer<'n, 'c, 'a>,
    pub(super) team: &'w Team<'c, 'a>,
    /// The number of threads of a team.
    pub(super) threads: i64,
}

impl<'c: 'a, 'a> Tiles<'_, '_, 'c, 'a> {
    /// Emits the loops; `false` if a team has a number of threads that tiles are not for.
    pub(super) fn emit(&self, e: Emit<'c, 'a>) -> bool {
        if !is_supported(self.threads) {
            return false;
        }
        let [outer, rows, columns] = [0, 1, 2].map(|group| self.count(group));
        let (down, across) = (
            rows.div_euclid(TILE) + i64::from(rows % TILE != 0),
            columns.div_euclid(TILE) + i64::from(columns % TILE != 0),
        );
        let bounds = (self.team.team, e.index(outer * down * across), self.team.teams);
        let Ok(_) = e.for_each_step::<Infallible>(bounds, &[], |e, tile, _| {
            let column = e.binary(arith::REMUI, tile, e.index(across));
            let rest = e.binary(arith::DIVUI, tile, e.index(across));
            let row = e.binary(arith::REMUI, rest, e.index(down));
            let place = Place {
                outer: e.binary(arith::DIVUI, rest, e.index(down)),
                row: e.scale(row, TILE),
                column: e.scale(column, TILE),
            };
            self.tile(e, &place);
            Ok(vec![])
        });
        true
    }

    /// The number of iterations of the loops of a group.
    fn count(&self, group: usize) -> i64 {
        let dims = &self.writer.nest.compute.dims;
        self.product.groups[group].iter().map(|it| extent(&dims[*it])).fold(1, i64::saturating_mul)
    }

    fn depth(&self) -> i64 {
        if self.product.half.is_some() { HALF_DEPTH } else { DEPTH }
    }

    /// The element type in shared memory.
    fn element(&self, e: Emit<'c, 'a>) -> MlirType<'c> {
        match self.product.half {
            Some(half) => {
                irc_mlir::ty::parse(e.context, if half == DType::F16 { "f16" } else { "bf16" })
            }
            None => e.f32(),
        }
    }

    /// A factor's tile in shared memory: halves row after row, others summand after summand.
    fn shared(&self, e: Emit<'c, 'a>, side: i64) -> Buffer<'c, 'a> {
        let element = self.element(e);
        let elements = match self.product.half {
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
        let callee = attr::symbol(e.context, "irc_gpu_shared");
        let all = irc_mlir::ty::parse(e.context, SHARED);
        let call = e.spec(func::CALL).attr("callee", callee).results(&[all]);
        let all = e.value(call);
        let ty = irc_mlir::ty::parse(e.context, &format!("memref<{elements}x{element}, 3>"));
        let start = e.offset(self.team.shared, side * SHARED_BYTES / 2);
        let memref = e.op(memref::VIEW, &[all, start], ty);
        Buffer { memref, element }
    }

    /// The place of an element of a tile in shared memory.
    fn at(&self, e: Emit<'c, 'a>, row: Value<'c, 'a>, summand: Value<'c, 'a>) -> Value<'c, 'a> {
        match self.product.half {
            Some(_) => e.add(e.scale(row, HALF_DEPTH + HALF_PADDING), summand),
            None => e.add(e.scale(summand, TILE + F32_PADDING), row),
        }
    }

    /// One tile: its sums, and then the elements of the result.
    fn tile(&self, e: Emit<'c, 'a>, place: &Place<'c, 'a>) {
        let reduction = self.writer.nest.compute.reduction.iter().flat_map(|it| &it.dims);
        let summands = reduction.map(extent).fold(1, i64::saturating_mul);
        let sides = [self.shared(e, 0), self.shared(e, 1)];
        let zero = e.float(0.0, e.f32(), Lanes::Scalar);
        let start = vec![zero; self.sums() as usize];
        let bounds = (e.index(0), e.index(summands), self.depth());
        let Ok(sums) = e.for_each::<Infallible>(bounds, &start, |e, first, sums| {
            // The block before may still be read.
            self.team.wait_in_block(e);
            self.stage(e, place, (0, sides[0]), (first, summands));
            self.stage(e, place, (1, sides[1]), (first, summands));
            self.team.wait_in_block(e);
            Ok(match self.product.half {
                Some(half) => self.multiply_halves(e, half, sums),
                None => self.multiply(e, sides, sums),
            })
        });
        for (sum, (row, column)) in sums.into_iter().zip(self.places(e)) {
            let row = e.add(place.row, row);
            let column = e.add(place.column, column);
            let (rows, columns) = (self.count(1), self.count(2));
            let inside = e.binary(
                arith::ANDI,
                e.compare(ULT, row, e.index(rows)),
                e.compare(ULT, column, e.index(columns)),
            );
            let then = |e: Emit<'c, 'a>| {
                let at = self.result_index(e, [place.outer, row, column]);
                let value = self.writer.finished(e, &at, sum);
                self.writer.store(e, &at, value);
                Ok::<_, Infallible>(vec![])
            };
            let Ok(_) = e.if_else(inside, &[], then, |_| Ok(vec![]));
        }
    }

    /// The indices of the result, from the numbers of the product, the row and the column.
    fn result_index(&self, e: Emit<'c, 'a>, numbers: [Value<'c, 'a>; 3]) -> Vec<Value<'c, 'a>> {
        let dims = &self.writer.nest.compute.dims;
        let mut found = vec![None; dims.len()];
        for (group, number) in self.product.groups.iter().zip(numbers) {
            let own: Vec<Dim> = group.iter().map(|it| dims[*it].clone()).collect();
            for (it, index) in group.iter().zip(indices(e, &own, number)) {
                found[*it] = Some(index);
            }
        }
        found.into_iter().map(|index| index.unwrap_or_else(|| e.index(0))).collect()
    }

    /// Copies a block of a factor to shared memory.
    fn stage(
        &self,
        e: Emit<'c, 'a>,
        place: &Place<'c, 'a>,
        (side, shared): (usize, Buffer<'c, 'a>),
        (first, summands): (Value<'c, 'a>, i64),
    ) {
        let depth = self.depth();
        let factor = self.product.factors[side];
        let compute = &self.writer.nest.compute;
        let reduced = compute.reduction.iter().flat_map(|it| it.dims.iter().cloned());
        let reduced: Vec<Dim> = reduced.collect();
        // Neighbouring threads read neighbouring elements.
        let last = compute.dims.len() + reduced.len() - 1;
        let along = reads_along(factor, last);
        let limit = self.count(1 + side);
        let base = if side == 0 { place.row } else { place.column };
        for turn in 0..TILE * depth / self.threads.min(TILE * depth) {
            let number = e.offset(self.team.thread, turn * self.threads);
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
                let mut at = self.result_index(e, numbers);
                at.extend(indices(e, &reduced, depth_at));
                let mut body: Body<'_, 'c, 'a> = self.writer.body(e, &at, &Known::new());
                let (value, _) = body.emit(e, factor);
                let value = match self.product.half {
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
        TILE * TILE / self.threads
    }

    /// The rows of warps and of threads: in products of halves, warps in rows of 16, at most four.
    fn warps(&self) -> (i64, i64) {
        let warps = self.threads / 32;
        let down = warps.min(TILE / 16);
        (down, warps / down)
    }

    /// The row and column in the tile of each sum of a thread.
    fn places(&self, e: Emit<'c, 'a>) -> Vec<(Value<'c, 'a>, Value<'c, 'a>)> {
        let mut found = vec![];
        if self.product.half.is_none() {
            let wide = self.threads / ROWS;
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
        let row = e.binary(arith::DIVUI, self.team.thread, by);
        let column = e.binary(arith::REMUI, self.team.thread, by);
        (e.scale(row, TILE / ROWS), e.scale(column, TILE / wide))
    }

    /// The first row and column of a warp's sums, the row of its lane in groups of four lanes, and twice the place in the
    /// group.
    fn warp_place(
        &self,
        e: Emit<'c, 'a>,
    ) -> (Value<'c, 'a>, Value<'c, 'a>, Value<'c, 'a>, Value<'c, 'a>) {
        let (down, across) = self.warps();
        let lane = e.binary(arith::REMUI, self.team.thread, e.index(32));
        let warp = e.binary(arith::DIVUI, self.team.thread, e.index(32));
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
        let wide = self.threads / ROWS;
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
        let name = if half == DType::F16 { "irc_gpu_mma_f16" } else { "irc_gpu_mma_bf16" };
        let callee = attr::symbol(e.context, name);
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
                    let operands = [&left[..], &right[..], &sums[start..start + 4]].concat();
                    let call = e.spec(func::CALL).attr("callee", callee).operands(&operands);
                    let call = call.results(&[e.f32(); 4]).append(&e.block);
                    use irc_mlir::OperationLike;
                    for (sum, result) in sums[start..start + 4].iter_mut().zip(call.results()) {
                        *sum = result.into();
                    }
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

/// The type of all of shared memory.
pub(super) const SHARED: &str = "memref<1048576xi8, 3>";
