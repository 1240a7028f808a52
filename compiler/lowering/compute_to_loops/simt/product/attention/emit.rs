//! The loops of attention.
use super::{
    super::{
        super::{
            super::{
                expression::{Known, RESULT, Typed, depends_on, scope},
                kernel::Work,
                nest::Writer,
                sizes::Sizes as Extents,
            },
            access::aligned,
            team::{Team, indices, shuffle, when},
        },
        Device, Emit, Infallible, Lanes, Product, Tiles, arith, on_part, part_of,
    },
    Attention, Form, ROW_NUMBERS,
    lines::{Axis, Factor, Lines},
    shape::{FLAG_BYTES, ROWS, SUM_PADDING, Shape, Sizes},
};
use crate::kernel::{
    arithmetic,
    emit::{Buffer, first_result},
};
use irc_mlir::{Type as MlirType, Value, ValueLike, attr, ops::vector};
use irc_tl::{DType, Dim, Scalar, Type, Unary};
use std::collections::BTreeMap;

/// What a row of a tile has come to: the maximum of its scores, the sum of their exponentials less that, and the sum of a
/// column.
#[derive(Clone, Copy)]
struct Sums<'c, 'a> {
    max: Value<'c, 'a>,
    sum: Value<'c, 'a>,
    column: Value<'c, 'a>,
}

/// Attention that is being emitted.
struct Emission<'t, 'n, 'c, 'a> {
    attention: &'t Attention,
    place: &'t super::Place<'t, 'c, 'a>,
    writers: &'t [Writer<'n, 'c, 'a>],
    scores: Tiles<'t, 'n, 'c, 'a>,
    values: Tiles<'t, 'n, 'c, 'a>,
    team: Team<'c, 'a>,
    is_grid: bool,
}

/// Where a lane is: its number, the row of its scores, and the number in the four lanes of the row.
#[derive(Clone, Copy)]
struct Lane<'c, 'a> {
    number: Value<'c, 'a>,
    row: Value<'c, 'a>,
    quarter: Value<'c, 'a>,
    /// The number of the warp, the first row of its queries in a block, and its first key.
    warp: Value<'c, 'a>,
    first_row: Value<'c, 'a>,
    first_key: Value<'c, 'a>,
}

/// A block of rows: the number of the product, the first row and column, and the keys.
struct Tile<'c, 'a> {
    outer: Value<'c, 'a>,
    row: Value<'c, 'a>,
    /// The first column.
    column: Value<'c, 'a>,
    part: Value<'c, 'a>,
    first: Value<'c, 'a>,
    end: Value<'c, 'a>,
}

/// What a lane carries from one block of keys to the next: of two rows, the maximum and the sum, and sums of columns.
struct State<'c, 'a> {
    max: [Value<'c, 'a>; 2],
    sum: [Value<'c, 'a>; 2],
    columns: Vec<Value<'c, 'a>>,
}

impl<'c: 'a, 'a> State<'c, 'a> {
    fn values(&self) -> Vec<Value<'c, 'a>> {
        [&self.max[..], &self.sum, &self.columns].concat()
    }

    fn of(values: &[Value<'c, 'a>]) -> Self {
        let [low, high, first, second, columns @ ..] = values else {
            unreachable!("two rows are carried")
        };
        Self { max: [*low, *high], sum: [*first, *second], columns: columns.to_vec() }
    }
}

impl Attention {
    /// Emits the loops over blocks of queries.
    pub(in super::super::super) fn emit<'c: 'a, 'a>(
        &self,
        e: Emit<'c, 'a>,
        place: &super::Place<'_, 'c, 'a>,
        (team, device): (&Team<'c, 'a>, &Device),
        sizes: &Extents<'c, 'a>,
    ) {
        let Some((scores, values)) = self.products() else {
            unreachable!("the steps are two products")
        };
        let steps = self.nests.iter().zip(&self.types).zip(place.steps);
        let operands: Vec<Vec<(&Type, Buffer<'c, 'a>)>> = steps
            .map(|((_, types), step)| {
                let buffers = step.operands.iter().map(|value| place.buffers[*value]);
                types.iter().zip(buffers).collect()
            })
            .collect();
        let writers: Vec<Writer<'_, 'c, 'a>> = self
            .nests
            .iter()
            .zip(&operands)
            .zip(place.steps)
            .map(|((nest, operands), step)| {
                let result = step.results[0];
                let mut writer = Writer::new(nest, operands, place.buffers[result], sizes);
                writer.strides = place.strides.values[result].as_deref();
                writer
            })
            .collect();
        let [first, .., last] = &writers[..] else { unreachable!("there are several steps") };
        let own = part_of(e, team, self.threads, device);
        let tiles = |product, writer| Tiles {
            product,
            writer,
            team: own,
            threads: self.threads,
            is_grid: device.is_grid,
            fragments: 0,
            tile: [0; 2],
            division: None,
        };
        let emission = Emission {
            attention: self,
            place,
            writers: &writers,
            scores: tiles(scores, first),
            values: tiles(values, last),
            team: own,
            is_grid: device.is_grid,
        };
        on_part(e, team, self.threads, device, |e| emission.tiles(e));
        if let Some(partial) = place.partial {
            team.wait(e);
            emission.join_parts(e, team, partial);
        }
    }
}

impl<'c: 'a, 'a> Emission<'_, '_, 'c, 'a> {
    fn sizes(&self) -> &Sizes {
        &self.attention.sizes
    }

    fn shape(&self) -> &Shape {
        &self.attention.shape
    }

    fn lowest(&self, e: Emit<'c, 'a>) -> Value<'c, 'a> {
        e.float(f64::NEG_INFINITY, e.f32(), Lanes::Scalar)
    }

    /// The loop over blocks of rows and parts of keys.
    fn tiles(&self, e: Emit<'c, 'a>) {
        let (sizes, shape) = (self.sizes(), self.shape());
        let [down, across] = shape.tiles(sizes);
        let all = sizes.outer * down * across * shape.parts;
        let bounds = (self.team.team, e.index(all), self.team.teams);
        let Ok(_) = e.for_each_step::<Infallible>(bounds, &[], |e, number, _| {
            let divided = |number, by: i64| {
                let by = e.index(by);
                (e.binary(arith::DIVUI, number, by), e.binary(arith::REMUI, number, by))
            };
            let (rest, part) = divided(number, shape.parts);
            let (rest, column) = divided(rest, across);
            let (outer, row) = divided(rest, down);
            let own = shape.part(sizes);
            let first = e.scale(part, own);
            let end = match shape.parts {
                1 => e.index(sizes.keys),
                _ => e.min(e.offset(first, own), e.index(sizes.keys)),
            };
            let (row, column) = (e.scale(row, shape.rows()), e.scale(column, shape.columns));
            let tile = Tile { outer, row, column, part, first, end };
            self.tile(e, &tile);
            Ok(vec![])
        });
    }

    fn factor(&self, number: usize) -> Factor<'_, '_, '_, 'c, 'a> {
        let sizes = self.sizes();
        let [depth, _] = sizes.padded();
        let columns = self.shape().columns;
        let [key, value] = self.shape().pitches(sizes);
        let of_scores = |axis, lines| (&self.scores, axis, lines, sizes.depth, depth, key);
        let (tiles, axis, lines, elements, padded, pitch) = match number {
            0 => of_scores(Axis::Rows, sizes.rows),
            1 => of_scores(Axis::Columns, sizes.keys),
            _ => (&self.values, Axis::Summands, sizes.keys, sizes.columns, columns, value),
        };
        Factor {
            tiles,
            axis,
            window: self.attention.windows[number].as_ref(),
            half: self.attention.half,
            lines,
            elements,
            padded,
            pitch,
            is_anywhere: !self.is_grid,
        }
    }

    fn lane(&self, e: Emit<'c, 'a>) -> Lane<'c, 'a> {
        let divided = |x, by: i64| e.binary(arith::DIVUI, x, e.index(by));
        let rest = |x, by: i64| e.binary(arith::REMUI, x, e.index(by));
        let (warp, number) = (divided(self.team.thread, 32), rest(self.team.thread, 32));
        let shape = self.shape();
        Lane {
            number,
            row: divided(number, 4),
            quarter: rest(number, 4),
            warp,
            first_row: e.scale(divided(warp, shape.across), ROWS),
            first_key: e.scale(rest(warp, shape.across), shape.keys),
        }
    }

    /// All of the team's shared memory.
    fn shared(&self, e: Emit<'c, 'a>, element: MlirType<'c>, bytes: i64) -> Buffer<'c, 'a> {
        let all = self.attention.threads / 32 * super::super::SHARED_BYTES;
        self.team.shared_view(e, element, all / bytes)
    }

    /// One block of rows.
    fn tile(&self, e: Emit<'c, 'a>, tile: &Tile<'c, 'a>) {
        let (sizes, shape) = (self.sizes(), self.shape());
        let lane = self.lane(e);
        let [queries, keys, values] = [0, 1, 2].map(|number| self.factor(number));
        let shared = self.shared(e, queries.element(e), sizes.bytes);
        let call = |e, name: &str| {
            self.scores.call(e, name, &[], &[]);
        };
        let wait = |e| self.team.wait_in_block(e);
        // What the tile before has left may still be read.
        wait(e);
        let to = e.index(shape.queries(sizes));
        let count = shape.rows();
        let lines = Lines { outer: tile.outer, first: tile.row, element: e.index(0), count, to };
        queries.fill(e, &lines, shared);
        call(e, "irc_gpu_copies_commit");
        let count = e.binary(arith::SUBI, tile.end, tile.first);
        let blocks =
            e.binary(arith::DIVUI, e.offset(count, shape.block() - 1), e.index(shape.block()));
        self.flag(e, (tile, &lane), blocks);
        call(e, "irc_gpu_copies_wait_0");
        wait(e);
        let held = if shape.holds_queries { self.held(e, &lane) } else { vec![] };
        if shape.holds_queries {
            wait(e);
        }
        let [stage, second] = shape.stage(sizes);
        let at = |e: Emit<'c, 'a>, number| {
            e.scale(e.binary(arith::REMUI, number, e.index(shape.stages)), stage)
        };
        let fill = |e: Emit<'c, 'a>, number| {
            let copy = |e: Emit<'c, 'a>| {
                let first = e.add(tile.first, e.scale(number, shape.block()));
                let to = at(e, number);
                let (count, element) = (shape.block(), e.index(0));
                let lines = Lines { outer: tile.outer, first, element, count, to };
                keys.fill(e, &lines, shared);
                let (element, to) = (tile.column, e.offset(to, second));
                values.fill(e, &Lines { element, to, ..lines }, shared);
            };
            when(e, e.compare(ULT, number, blocks), |e| match self.counts(e, number) {
                Some(counts) => when(e, counts, copy),
                None => copy(e),
            });
            call(e, "irc_gpu_copies_commit");
        };
        (0..shape.stages - 1).for_each(|number| fill(e, e.index(number)));
        let zero = e.float(0.0, e.f32(), Lanes::Scalar);
        let start = State {
            max: [self.lowest(e); 2],
            sum: [zero; 2],
            columns: vec![zero; (shape.columns / 2) as usize],
        };
        let bounds = (e.index(0), blocks, 1);
        let Ok(end) = e.for_each::<Infallible>(bounds, &start.values(), |e, number, carried| {
            if shape.stages == 1 {
                wait(e);
                fill(e, number);
                call(e, "irc_gpu_copies_wait_0");
                wait(e);
            } else {
                call(e, &format!("irc_gpu_copies_wait_{}", shape.stages - 2));
                wait(e);
                fill(e, e.offset(number, shape.stages - 1));
            }
            let first = e.add(tile.first, e.scale(number, shape.block()));
            let first = e.add(first, lane.first_key);
            let block = |e: Emit<'c, 'a>| {
                let at = (at(e, number), first);
                Ok::<_, Infallible>(self.block(e, (tile, &lane), at, &held, &State::of(carried)))
            };
            let Some(counts) = self.counts(e, number) else { return block(e) };
            let types: Vec<_> = carried.iter().map(ValueLike::r#type).collect();
            e.if_else(counts, &types, block, |_| Ok(carried.to_vec()))
        });
        call(e, "irc_gpu_copies_wait_0");
        let mut state = State::of(&end);
        for sum in &mut state.sum {
            *sum = self.of_row(e, *sum, arith::ADDF);
        }
        self.exchange(e, (tile, &lane), &state);
    }

    /// The place of the flag of a block of keys, and the flags.
    fn flags(&self, e: Emit<'c, 'a>, number: Value<'c, 'a>) -> (Buffer<'c, 'a>, Value<'c, 'a>) {
        let bytes = self.attention.threads / 32 * super::super::SHARED_BYTES - FLAG_BYTES;
        (self.shared(e, e.int(32), 4), e.offset(number, bytes / 4))
    }

    /// Whether a score of a block of keys counts; `None` if all are computed.
    fn counts(&self, e: Emit<'c, 'a>, number: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
        let blocks = self.shape().flagged(self.sizes())?;
        let (flags, place) = self.flags(e, e.binary(arith::DIVUI, number, e.index(blocks)));
        Some(e.compare(NE, e.load(flags, place), e.integer(0, 32, Lanes::Scalar)))
    }

    /// Writes which blocks of keys have scores that count: a warp looks at those of one block after another until it finds
    /// one that is not minus infinity.
    fn flag(
        &self,
        e: Emit<'c, 'a>,
        (tile, lane): (&Tile<'c, 'a>, &Lane<'c, 'a>),
        blocks: Value<'c, 'a>,
    ) {
        let (sizes, shape) = (self.sizes(), self.shape());
        let Some(each) = shape.flagged(sizes) else { return };
        let groups = &self.scores.product.groups;
        let nest = self.writers[0].nest;
        let by_row = |epilogue: &Scalar| groups[1].iter().any(|it| depends_on(epilogue, *it));
        let rows = if nest.epilogue.as_ref().is_some_and(by_row) { shape.rows() } else { 1 };
        let keys = each * shape.block();
        let turns = (rows * keys + 31) / 32;
        let count = e.binary(arith::DIVUI, e.offset(blocks, each - 1), e.index(each));
        let bounds = (lane.warp, count, e.index(self.attention.threads / 32));
        let Ok(_) = e.for_each_step::<Infallible>(bounds, &[], |e, flag, _| {
            let first = e.add(tile.first, e.scale(flag, keys));
            let none = e.integer(0, 1, Lanes::Scalar);
            let Ok(found) = e.repeat_while::<Infallible>(&[e.index(0), none], |e, carried| {
                let number = e.add(e.scale(carried[0], 32), lane.number);
                let by = e.index(keys);
                let row = e.add(tile.row, e.binary(arith::DIVUI, number, by));
                let key = e.add(first, e.binary(arith::REMUI, number, by));
                let last = |count: i64| e.index(count - 1);
                let numbers = [tile.outer, e.min(row, last(sizes.rows)), e.index(0)];
                let mut at = self.scores.result_index(e, numbers);
                let own = e.min(key, last(sizes.keys));
                groups[2].iter().for_each(|it| at[*it] = own);
                let zero = e.float(0.0, e.f32(), Lanes::Scalar);
                let (score, _) = self.writers[0].finished_with(e, &at, zero, &Known::new());
                let is_lowest = self.compare(e, OEQ, score, self.lowest(e));
                let is_beyond = e.compare(UGE, key, tile.end);
                let is_masked = e.binary(arith::ORI, is_lowest, is_beyond);
                let all = self.scores.call(e, "irc_gpu_all", &[is_masked], &[e.int(1)]);
                let all = first_result(all);
                let next = e.offset(carried[0], 1);
                let more = e.binary(arith::ANDI, all, e.compare(ULT, next, e.index(turns)));
                let counts = e.binary(arith::XORI, all, e.integer(1, 1, Lanes::Scalar));
                Ok((more, vec![next, counts]))
            });
            let is_first = e.compare(EQ, lane.number, e.index(0));
            when(e, is_first, |e| {
                let (flags, place) = self.flags(e, flag);
                let counts = e.op(arith::EXTUI, &[found[1]], e.int(32));
                e.store(counts, flags, place, Lanes::Scalar, None);
            });
            Ok(vec![])
        });
    }

    /// Combines the values of the four lanes of a row.
    fn of_row(&self, e: Emit<'c, 'a>, value: Value<'c, 'a>, combine: &str) -> Value<'c, 'a> {
        [1, 2].into_iter().fold(value, |value, distance| {
            let other = shuffle(e, value, distance);
            e.binary(combine, value, other)
        })
    }

    /// Queries in registers, for each 16 summands.
    fn held(&self, e: Emit<'c, 'a>, lane: &Lane<'c, 'a>) -> Vec<Vec<Value<'c, 'a>>> {
        let depth = self.sizes().padded()[0];
        (0..depth / 16).map(|block| self.queries(e, lane, block)).collect()
    }

    /// 16 rows and summands of queries.
    fn queries(&self, e: Emit<'c, 'a>, lane: &Lane<'c, 'a>, block: i64) -> Vec<Value<'c, 'a>> {
        let (sizes, start) = (self.sizes(), e.index(self.shape().queries(self.sizes())));
        let lines = e.add(lane.first_row, self.eight(e, lane, [0, 1]));
        let place = e.add(start, e.scale(lines, self.shape().pitches(sizes)[0]));
        let place = e.add(place, e.scale(self.part_of_four(e, lane, 1), 16));
        self.matrices(e, e.offset(place, 32 * block), false)
    }

    /// The number of one of the two bits of the matrix that a lane gives the address of a row of.
    fn part_of_four(&self, e: Emit<'c, 'a>, lane: &Lane<'c, 'a>, bit: i64) -> Value<'c, 'a> {
        let matrix = e.binary(arith::DIVUI, lane.number, e.index(8 << bit));
        e.binary(arith::REMUI, matrix, e.index(2))
    }

    /// The row of a lane in matrices of eight rows, of which a bit numbers the upper and the lower ones.
    fn eight(&self, e: Emit<'c, 'a>, lane: &Lane<'c, 'a>, [bit, _]: [i64; 2]) -> Value<'c, 'a> {
        let own = e.binary(arith::REMUI, lane.number, e.index(8));
        e.add(own, e.scale(self.part_of_four(e, lane, bit), 8))
    }

    /// Four matrices of eight rows of eight halves in the team's shared memory.
    fn matrices(
        &self,
        e: Emit<'c, 'a>,
        place: Value<'c, 'a>,
        is_transposed: bool,
    ) -> Vec<Value<'c, 'a>> {
        let start = e.add(self.scores.shared_address(e), self.team.shared);
        let name = if is_transposed { "irc_gpu_matrices_transposed" } else { "irc_gpu_matrices" };
        let call = self.scores.call(e, name, &[e.add(start, place)], &[e.int(32); 4]);
        irc_mlir::OperationLike::results(&call).map(Into::into).collect()
    }

    /// One block of keys of a warp: `first` is the first of them.
    fn block(
        &self,
        e: Emit<'c, 'a>,
        (tile, lane): (&Tile<'c, 'a>, &Lane<'c, 'a>),
        (stage, first): (Value<'c, 'a>, Value<'c, 'a>),
        held: &[Vec<Value<'c, 'a>>],
        state: &State<'c, 'a>,
    ) -> Vec<Value<'c, 'a>> {
        let sums = match self.attention.half {
            Some(half) => self.scores_of_halves(e, lane, stage, (half, held)),
            None => self.single_scores(e, lane, stage),
        };
        let scores = self.finished_scores(e, (tile, lane), first, &sums);
        let mut max = [self.lowest(e); 2];
        for (number, score) in scores.iter().enumerate() {
            let max = &mut max[row_of(number, 2)];
            *max = e.binary(arith::MAXIMUMF, *max, *score);
        }
        let max = max.map(|max| self.of_row(e, max, arith::MAXIMUMF));
        let next = |e: Emit<'c, 'a>| self.next(e, (lane, stage), &scores, max, state).values();
        if !self.sizes().is_masked {
            return next(e);
        }
        // Scores so far below the maximum have no weight in single precision.
        let below = e.float(MIN_WEIGHT, e.f32(), Lanes::Scalar);
        let is_below = [0, 1].map(|row| {
            let difference = e.binary(arith::SUBF, max[row], state.max[row]);
            self.compare(e, OLT, difference, below)
        });
        let all = e.binary(arith::ANDI, is_below[0], is_below[1]);
        let skipped = self.scores.call(e, "irc_gpu_all", &[all], &[e.int(1)]);
        let skipped = first_result(skipped);
        let values = state.values();
        let types: Vec<_> = values.iter().map(ValueLike::r#type).collect();
        let Ok(values) = e.if_else::<Infallible>(skipped, &types, |_| Ok(values), |e| Ok(next(e)));
        values
    }

    /// The state after a block, from its scores and their maxima.
    fn next(
        &self,
        e: Emit<'c, 'a>,
        (lane, stage): (&Lane<'c, 'a>, Value<'c, 'a>),
        scores: &[Value<'c, 'a>],
        max: [Value<'c, 'a>; 2],
        state: &State<'c, 'a>,
    ) -> State<'c, 'a> {
        let max = [0, 1].map(|row| e.binary(arith::MAXIMUMF, state.max[row], max[row]));
        let base = max.map(|max| self.finite(e, max));
        let scale = [0, 1].map(|row| self.exp(e, state.max[row], base[row]));
        let weights: Vec<_> = scores
            .iter()
            .enumerate()
            .map(|(number, score)| self.exp(e, *score, base[row_of(number, 2)]))
            .collect();
        let mut sum = [0, 1].map(|row| e.binary(arith::MULF, state.sum[row], scale[row]));
        for (number, weight) in weights.iter().enumerate() {
            let sum = &mut sum[row_of(number, 2)];
            *sum = e.binary(arith::ADDF, *sum, *weight);
        }
        let wide = if self.attention.half.is_some() { 2 } else { 4 };
        let columns: Vec<_> = state
            .columns
            .iter()
            .enumerate()
            .map(|(number, column)| e.binary(arith::MULF, *column, scale[row_of(number, wide)]))
            .collect();
        let columns = match self.attention.half {
            Some(half) => self.columns_of_halves(e, (lane, stage), (half, &weights), columns),
            None => self.single_columns(e, (lane, stage), &weights, columns),
        };
        State { max, sum, columns }
    }

    /// Where the lines of a warp's keys or values begin in shared memory.
    fn line(
        &self,
        e: Emit<'c, 'a>,
        lane: &Lane<'c, 'a>,
        stage: Value<'c, 'a>,
        (is_value, own): (bool, Value<'c, 'a>),
    ) -> Value<'c, 'a> {
        let [_, second] = self.shape().stage(self.sizes());
        let start = if is_value { e.offset(stage, second) } else { stage };
        let pitch = self.shape().pitches(self.sizes())[usize::from(is_value)];
        e.add(start, e.scale(e.add(lane.first_key, own), pitch))
    }

    /// Products of queries and keys on tensor cores: for each 8 keys, two neighbours of a row, and of that 8 rows below.
    fn scores_of_halves(
        &self,
        e: Emit<'c, 'a>,
        lane: &Lane<'c, 'a>,
        stage: Value<'c, 'a>,
        (half, held): (DType, &[Vec<Value<'c, 'a>>]),
    ) -> Vec<Value<'c, 'a>> {
        let (sizes, keys) = (self.sizes(), self.shape().keys);
        let place = self.line(e, lane, stage, (false, self.eight(e, lane, [1, 0])));
        let place = e.add(place, e.scale(self.part_of_four(e, lane, 0), 16));
        let zero = e.float(0.0, e.f32(), Lanes::Scalar);
        let mut sums = vec![zero; (keys / 2) as usize];
        for block in 0..sizes.padded()[0] / 16 {
            let own;
            let left = match held.get(block as usize) {
                Some(held) => held,
                None => {
                    own = self.queries(e, lane, block);
                    &own
                }
            };
            for (number, sums) in sums.chunks_mut(8).enumerate() {
                let by = 16 * number as i64 * self.shape().pitches(sizes)[0] + 32 * block;
                let right = self.matrices(e, e.offset(place, by), false);
                for (sums, right) in sums.chunks_mut(4).zip(right.chunks(2)) {
                    self.scores.multiply_and_add(e, half, (left, right), sums);
                }
            }
        }
        sums
    }

    /// Adds the products of weights, as halves, and values on tensor cores.
    fn columns_of_halves(
        &self,
        e: Emit<'c, 'a>,
        (lane, stage): (&Lane<'c, 'a>, Value<'c, 'a>),
        (half, weights): (DType, &[Value<'c, 'a>]),
        mut columns: Vec<Value<'c, 'a>>,
    ) -> Vec<Value<'c, 'a>> {
        let pitch = self.shape().pitches(self.sizes())[1];
        let place = self.line(e, lane, stage, (true, self.eight(e, lane, [0, 1])));
        let place = e.add(place, e.scale(self.part_of_four(e, lane, 1), 16));
        let name = if half == DType::F16 { "irc_gpu_pair_f16" } else { "irc_gpu_pair_bf16" };
        for (block, weights) in weights.chunks(8).enumerate() {
            let left: Vec<_> = weights
                .chunks(2)
                .map(|pair| {
                    let call = self.values.call(e, name, pair, &[e.int(32)]);
                    first_result(call)
                })
                .collect();
            for (number, sums) in columns.chunks_mut(8).enumerate() {
                let by = 16 * block as i64 * pitch + 32 * number as i64;
                let right = self.matrices(e, e.offset(place, by), true);
                for (sums, right) in sums.chunks_mut(4).zip(right.chunks(2)) {
                    self.values.multiply_and_add(e, half, (&left, right), sums);
                }
            }
        }
        columns
    }

    /// Four neighbouring elements in shared memory, from a byte on.
    fn four(&self, e: Emit<'c, 'a>, place: Value<'c, 'a>) -> Vec<Value<'c, 'a>> {
        let shared = self.shared(e, e.f32(), 4);
        let at = e.binary(arith::DIVUI, place, e.index(4));
        let ty = Lanes::Vector(4).of(e.f32());
        let spec = e.spec(vector::LOAD).operands(&[shared.memref, at]).results(&[ty]);
        let all = e.value(spec.attr("alignment", aligned(e, e.f32(), 4)));
        (0..4).map(|lane| e.extract(all, e.f32(), lane)).collect()
    }

    fn multiply_and_add(
        &self,
        e: Emit<'c, 'a>,
        (x, y): (Value<'c, 'a>, Value<'c, 'a>),
        sum: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let fused = attr::parse(e.context, "#arith.fastmath<contract>");
        let binary = |name, x, y| {
            let spec = e.spec(name).operands(&[x, y]).results(&[e.f32()]);
            e.value(spec.attr("fastmath", fused))
        };
        binary(arith::ADDF, binary(arith::MULF, x, y), sum)
    }

    /// As [`Self::scores_of_halves`], in registers.
    fn single_scores(
        &self,
        e: Emit<'c, 'a>,
        lane: &Lane<'c, 'a>,
        stage: Value<'c, 'a>,
    ) -> Vec<Value<'c, 'a>> {
        let (sizes, keys) = (self.sizes(), self.shape().keys);
        let [pitch, _] = self.shape().pitches(sizes);
        let start = e.index(self.shape().queries(sizes));
        let query = e.add(start, e.scale(e.add(lane.first_row, lane.row), pitch));
        let key = self.line(e, lane, stage, (false, e.scale(lane.quarter, 2)));
        let zero = e.float(0.0, e.f32(), Lanes::Scalar);
        let sums = vec![zero; (keys / 2) as usize];
        let bounds = (e.index(0), e.index(4 * sizes.padded()[0]), 16);
        let Ok(sums) = e.for_each::<Infallible>(bounds, &sums, |e, byte, sums| {
            let rows = [0, 8].map(|row| self.four(e, e.add(e.offset(query, row * pitch), byte)));
            let mut sums = sums.to_vec();
            for (number, sums) in sums.chunks_mut(4).enumerate() {
                for next in 0..2 {
                    let by = (8 * number as i64 + next as i64) * pitch;
                    let key = self.four(e, e.add(e.offset(key, by), byte));
                    for (row, queries) in rows.iter().enumerate() {
                        let sum = &mut sums[2 * row + next];
                        for (x, y) in queries.iter().zip(&key) {
                            *sum = self.multiply_and_add(e, (*x, *y), *sum);
                        }
                    }
                }
            }
            Ok(sums)
        });
        sums
    }

    /// Adds the products of weights and values in registers: for each 16 columns, four neighbours of a row, and of that 8
    /// rows below.
    fn single_columns(
        &self,
        e: Emit<'c, 'a>,
        (lane, stage): (&Lane<'c, 'a>, Value<'c, 'a>),
        weights: &[Value<'c, 'a>],
        mut columns: Vec<Value<'c, 'a>>,
    ) -> Vec<Value<'c, 'a>> {
        let pitch = self.shape().pitches(self.sizes())[1];
        let place = self.line(e, lane, stage, (true, e.index(0)));
        let place = e.add(place, e.scale(lane.quarter, 16));
        let word = |value: Value<'c, 'a>, ty| e.op(arith::BITCAST, &[value], ty);
        for key in 0..self.shape().keys {
            let first = (key / 8 * 4 + key % 2) as usize;
            let rows = [first, first + 2].map(|number| {
                let owner = e.integer(key % 8 / 2, 32, Lanes::Scalar);
                let operands = [word(weights[number], e.int(32)), owner];
                let call = self.values.call(e, "irc_gpu_of_four", &operands, &[e.int(32)]);
                word(first_result(call), e.f32())
            });
            for (number, sums) in columns.chunks_mut(8).enumerate() {
                let values = self.four(e, e.offset(place, key * pitch + 64 * number as i64));
                for (sum, (weight, value)) in sums
                    .iter_mut()
                    .zip(rows.iter().flat_map(|row| values.iter().map(move |value| (row, value))))
                {
                    *sum = self.multiply_and_add(e, (*weight, *value), *sum);
                }
            }
        }
        columns
    }

    /// The scores of sums: those of keys beyond the last have no weight.
    fn finished_scores(
        &self,
        e: Emit<'c, 'a>,
        (tile, lane): (&Tile<'c, 'a>, &Lane<'c, 'a>),
        first: Value<'c, 'a>,
        sums: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let (sizes, shape) = (self.sizes(), self.shape());
        let Product { groups, .. } = &self.scores.product;
        let last = |count: i64| e.index(count - 1);
        let rows = [0, 8].map(|by| {
            let row = e.add(tile.row, e.add(lane.first_row, e.offset(lane.row, by)));
            let row = match sizes.rows % shape.rows() {
                0 => row,
                _ => e.min(row, last(sizes.rows)),
            };
            self.scores.result_index(e, [tile.outer, row, e.index(0)])
        });
        let is_whole = sizes.keys % shape.block() == 0;
        let start = e.add(first, e.scale(lane.quarter, 2));
        let lowest = self.lowest(e);
        let each = sums.iter().enumerate().map(|(number, sum)| {
            let key = e.offset(start, 8 * (number as i64 / 4) + number as i64 % 2);
            let own = if is_whole { key } else { e.min(key, last(sizes.keys)) };
            let mut at = rows[row_of(number, 2)].clone();
            groups[2].iter().for_each(|it| at[*it] = own);
            let (score, _) = self.writers[0].finished_with(e, &at, *sum, &Known::new());
            if is_whole {
                return score;
            }
            let there = e.compare(ULT, key, e.index(sizes.keys));
            e.op(arith::SELECT, &[there, score, lowest], e.f32())
        });
        each.collect()
    }

    /// A comparison of floats by an `arith.cmpf` predicate.
    fn compare(
        &self,
        e: Emit<'c, 'a>,
        predicate: i64,
        x: Value<'c, 'a>,
        y: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let spec = e.spec(arith::CMPF).operands(&[x, y]).results(&[e.int(1)]);
        e.value(spec.attr("predicate", attr::i64(e.context, predicate)))
    }

    /// A maximum from which scores can be subtracted: 0 if all are minus infinity.
    fn finite(&self, e: Emit<'c, 'a>, max: Value<'c, 'a>) -> Value<'c, 'a> {
        let is_lowest = self.compare(e, OEQ, max, self.lowest(e));
        let zero = e.float(0.0, e.f32(), Lanes::Scalar);
        e.op(arith::SELECT, &[is_lowest, zero, max], e.f32())
    }

    /// The exponential of a difference.
    fn exp(&self, e: Emit<'c, 'a>, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        if self.attention.half.is_none() {
            let difference = e.binary(arith::SUBF, x, y);
            let element = super::super::super::super::element(e.context, DType::F32);
            return arithmetic::unary(&scope(e), Unary::Exp, difference, element);
        }
        let factor = e.float(std::f64::consts::LOG2_E, e.f32(), Lanes::Scalar);
        let minus = e.float(-std::f64::consts::LOG2_E, e.f32(), Lanes::Scalar);
        let power = self.multiply_and_add(e, (x, factor), e.binary(arith::MULF, y, minus));
        let call = self.scores.call(e, "irc_gpu_exp2", &[power], &[e.f32()]);
        first_result(call)
    }

    /// Joins the sums of the warps that share rows, through shared memory, so that neighbouring threads have neighbouring
    /// columns.
    fn exchange(
        &self,
        e: Emit<'c, 'a>,
        (tile, lane): (&Tile<'c, 'a>, &Lane<'c, 'a>),
        state: &State<'c, 'a>,
    ) {
        let (sizes, shape) = (self.sizes(), self.shape());
        let shared = self.shared(e, e.f32(), 4);
        let warps = self.attention.threads / 32;
        let exchanged = shape.exchanged();
        let pitch = exchanged + SUM_PADDING;
        let numbers = e.index(warps * ROWS * pitch);
        let wide = if self.attention.half.is_some() { 2 } else { 4 };
        let own = e.add(e.scale(lane.warp, ROWS), lane.row);
        for first in (0..shape.columns).step_by(exchanged as usize) {
            self.team.wait_in_block(e);
            let row = |row: usize| e.offset(own, 8 * row as i64);
            let is_first = e.compare(EQ, lane.quarter, e.index(0));
            when(e, is_first, |e| {
                for at in 0..2 {
                    let place = e.add(numbers, e.scale(e.offset(own, 8 * at as i64), 2));
                    e.store(state.max[at], shared, place, Lanes::Scalar, None);
                    e.store(state.sum[at], shared, e.offset(place, 1), Lanes::Scalar, None);
                }
            });
            for (number, column) in state.columns.iter().enumerate() {
                let (at, place) = (number as i64 / wide / 2, number as i64 % wide);
                let offset = 4 * wide * at + place - first;
                if !(0..exchanged).contains(&(4 * wide * at - first)) {
                    continue;
                }
                let line = e.scale(row(row_of(number, wide as usize)), pitch);
                let place = e.offset(e.add(line, e.scale(lane.quarter, wide)), offset);
                e.store(*column, shared, place, Lanes::Scalar, None);
            }
            self.team.wait_in_block(e);
            // Columns beyond the last are skipped, or not there at all.
            let is_whole = sizes.columns % shape.columns == 0;
            let is_single = sizes.columns <= shape.columns;
            let wide = exchanged.min(if is_single { sizes.columns } else { shape.columns } - first);
            let bounds =
                (self.team.thread, e.index(shape.rows() * wide), e.index(self.attention.threads));
            let Ok(_) = e.for_each_step::<Infallible>(bounds, &[], |e, number, _| {
                let by = e.index(wide);
                let (row, column) =
                    (e.binary(arith::DIVUI, number, by), e.binary(arith::REMUI, number, by));
                let at = e.add(tile.row, row);
                let of_result = e.add(tile.column, e.offset(column, first));
                let inside = e.compare(ULT, at, e.index(sizes.rows));
                let inside = match is_whole || is_single {
                    true => inside,
                    false => {
                        let own = e.compare(ULT, of_result, e.index(sizes.columns));
                        e.binary(arith::ANDI, inside, own)
                    }
                };
                when(e, inside, |e| {
                    let sixteen = e.index(ROWS);
                    let group = e.binary(arith::DIVUI, row, sixteen);
                    let line = e.binary(arith::REMUI, row, sixteen);
                    let first_line = e.add(e.scale(group, ROWS * shape.across), line);
                    let all = (0..shape.across).map(|warp| {
                        let line = e.offset(first_line, ROWS * warp);
                        let place = e.add(numbers, e.scale(line, 2));
                        let at = e.add(e.scale(line, pitch), column);
                        Sums {
                            max: e.load(shared, place),
                            sum: e.load(shared, e.offset(place, 1)),
                            column: e.load(shared, at),
                        }
                    });
                    let sums = self.joined(e, &all.collect::<Vec<_>>());
                    let numbers = [tile.outer, at, of_result];
                    match self.place.partial {
                        Some(partial) => self.keep(e, (partial, tile.part), numbers, sums),
                        None => self.finish(e, numbers, sums),
                    }
                });
                Ok(vec![])
            });
        }
    }

    /// Joins sums of different keys.
    fn joined(&self, e: Emit<'c, 'a>, all: &[Sums<'c, 'a>]) -> Sums<'c, 'a> {
        let [first, rest @ ..] = all else { unreachable!("there are sums") };
        if rest.is_empty() {
            return *first;
        }
        let max = rest.iter().fold(first.max, |max, own| e.binary(arith::MAXIMUMF, max, own.max));
        let base = self.finite(e, max);
        let scaled = all.iter().map(|own| {
            let scale = self.exp(e, own.max, base);
            [own.sum, own.column].map(|sum| e.binary(arith::MULF, sum, scale))
        });
        let total = scaled.reduce(|[sum, column], own| {
            [e.binary(arith::ADDF, sum, own[0]), e.binary(arith::ADDF, column, own[1])]
        });
        let Some([sum, column]) = total else { unreachable!("there are sums") };
        Sums { max, sum, column }
    }

    /// The place of a row of a part in the workspace.
    fn kept(
        &self,
        e: Emit<'c, 'a>,
        part: Value<'c, 'a>,
        [outer, row, _]: [Value<'c, 'a>; 3],
    ) -> Value<'c, 'a> {
        let sizes = self.sizes();
        let first = e.add(e.scale(part, sizes.outer), outer);
        let line = e.add(e.scale(first, sizes.rows), row);
        e.scale(line, sizes.columns + ROW_NUMBERS)
    }

    /// Writes the sums of a part to the workspace.
    fn keep(
        &self,
        e: Emit<'c, 'a>,
        (partial, part): (Buffer<'c, 'a>, Value<'c, 'a>),
        numbers: [Value<'c, 'a>; 3],
        sums: Sums<'c, 'a>,
    ) {
        let start = self.kept(e, part, numbers);
        let [_, _, column] = numbers;
        e.store(sums.column, partial, e.add(start, column), Lanes::Scalar, None);
        when(e, e.compare(EQ, column, e.index(0)), |e| {
            let place = e.offset(start, self.sizes().columns);
            e.store(sums.max, partial, place, Lanes::Scalar, None);
            e.store(sums.sum, partial, e.offset(place, 1), Lanes::Scalar, None);
        });
    }

    /// Joins the sums of parts.
    fn join_parts(&self, e: Emit<'c, 'a>, team: &Team<'c, 'a>, partial: Buffer<'c, 'a>) {
        let sizes = self.sizes();
        let all = sizes.outer * sizes.rows * sizes.columns;
        let bounds = (team.first(e), e.index(all), team.all(e));
        let Ok(_) = e.for_each_step::<Infallible>(bounds, &[], |e, at, _| {
            let dims = [sizes.outer, sizes.rows, sizes.columns].map(Dim::from);
            let [outer, row, column] = indices(e, &dims, at)[..] else {
                unreachable!("three indices of three dimensions")
            };
            let numbers = [outer, row, column];
            let parts = (0..self.shape().parts).map(|part| {
                let start = self.kept(e, e.index(part), numbers);
                let place = e.offset(start, sizes.columns);
                Sums {
                    max: e.load(partial, place),
                    sum: e.load(partial, e.offset(place, 1)),
                    column: e.load(partial, e.add(start, column)),
                }
            });
            let sums = self.joined(e, &parts.collect::<Vec<_>>());
            self.finish(e, numbers, sums);
            Ok(vec![])
        });
    }

    /// Computes and stores the element of the result of sums.
    fn finish(&self, e: Emit<'c, 'a>, numbers: [Value<'c, 'a>; 3], sums: Sums<'c, 'a>) {
        let [outer, row, _] = numbers;
        let scores = &self.writers[0].nest.compute.dims;
        let at = self.scores.result_index(e, [outer, row, e.index(0)]);
        let own: Vec<_> = scores.iter().zip(at).filter(|(dim, _)| !dim.is(1)).collect();
        let mut rows: BTreeMap<_, Typed<'c, 'a>> = BTreeMap::new();
        let mut factor = None;
        let steps = self.attention.forms.iter().zip(self.writers).zip(self.place.steps);
        for (number, ((form, writer), step)) in steps.enumerate() {
            let origin = |value: usize| self.place.kernel.values[value].origin;
            let mut known = Known::new();
            let mut note = |part: &Scalar| {
                if let Scalar::Load(operand, _) = part
                    && *operand != RESULT
                    && let Some(value) = rows.get(&origin(step.operands[*operand]))
                {
                    known.insert(part.clone(), *value);
                }
            };
            writer.nest.compute.body.walk(&mut note);
            writer.nest.epilogue.iter().for_each(|epilogue| epilogue.walk(&mut note));
            let mut index = own.iter().map(|(_, index)| *index);
            let at = writer.nest.compute.dims.iter().map(|dim| match dim.is(1) {
                true => e.index(0),
                false => index.next().unwrap_or_else(|| e.index(0)),
            });
            let value = match form {
                Form::Scores | Form::Weights => continue,
                Form::Max => writer.finished_with(e, &at.collect::<Vec<_>>(), sums.max, &known),
                Form::Row => writer.value(e, &at.collect::<Vec<_>>(), &known),
                Form::Sum | Form::Result => {
                    let Some(factor) = factor else {
                        unreachable!("what is subtracted from scores comes before their sums")
                    };
                    let scaled = |sum| e.binary(arith::MULF, sum, factor);
                    if *form == Form::Sum {
                        writer.finished_with(e, &at.collect::<Vec<_>>(), scaled(sums.sum), &known)
                    } else {
                        let at = self.values.result_index(e, numbers);
                        let value = writer.finished_with(e, &at, scaled(sums.column), &known);
                        return writer.store(e, &at, value);
                    }
                }
            };
            if number == self.attention.shift {
                // What has been subtracted from scores is their maximum so far.
                factor = Some(self.exp(e, sums.max, value.0));
            }
            if let Work::Nest(_) = step.work {
                rows.insert(origin(step.results[0]), value);
            }
        }
    }
}

/// The row, of two, of a number of which so many neighbours are in one.
fn row_of(number: usize, wide: usize) -> usize {
    number / wide % 2
}

/// The difference from the maximum below which the exponential is zero in single precision.
const MIN_WEIGHT: f64 = -105.0;

/// `arith.cmpi` and `arith.cmpf` predicates.
const EQ: i64 = 0;
const NE: i64 = 1;
const ULT: i64 = 6;
const UGE: i64 = 9;
const OEQ: i64 = 1;
const OLT: i64 = 4;
