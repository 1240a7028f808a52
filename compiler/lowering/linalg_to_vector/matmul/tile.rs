//! One register tile: its sums over a block of depth, and the final store.
use super::{Ahead, Depth, Emitter, LINE, Source, Tile};
use crate::kernel::{
    column_tail,
    emit::{Buffer, Emit, Lanes, Prefetch},
    in_place, transpose,
};
use crate::lowering::linalg_to_vector::{
    access::Access,
    codegen::{Codegen, Place},
    contraction::Factors,
    dots,
    error::{LowerError, Result},
    pass::{Pass, emit_result},
    split::Extent,
};
use irc_mlir::{
    Value, ValueLike,
    ops::{arith, math},
};
use irc_packing::Extension;

/// The minimum depth of a product whose tiles prefetch what they read and write at their end: with less, that does not arrive
/// in time, and they prefetch for the tile to the right instead.
const MIN_DEPTH: i64 = 32;

/// The number of elements of a packed left operand from one that is read to one that is prefetched.
const LEFT_AHEAD: i64 = 1024;

/// The same for a right operand that is read once, from memory: processors prefetch no further than to the end of a page.
const STREAM_AHEAD: i64 = 2048;

/// The number of steps after which sums of products of high bytes still fit in 32 bits: each adds four products of a byte and
/// 256 times a signed one.
const HIGH_STEPS: i64 = 64;

/// The bytes between rows from which on processors do not prefetch them: those of a quarter of a page.
const FAR_APART: i64 = 1024;

impl<'c: 'a, 'a> Emitter<'_, 'c, 'a> {
    /// Computes a tile over a block of depth.
    pub(super) fn emit_tile(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        outer: &[Value<'c, 'a>],
        (a, b): (Source<'c, 'a>, Source<'c, 'a>),
        tile: Tile<'c, 'a>,
        depth: Depth<'c, 'a>,
    ) -> Result<()> {
        self.prefetch_ends(cg, e, outer, tile);
        let starts = self.start(cg, e, outer, tile, depth)?;
        let sums = self.accumulate(e, (a, b), tile, depth, &starts)?;
        if self.partial.is_none() {
            return self.finish(cg, e, outer, tile, &sums);
        }
        let end = self.depth.value(e);
        let last = e.compare(5, e.offset(depth.from, self.blocks.kc), end);
        let partial = self.partial;
        let mut finished = Ok(());
        e.if_else::<LowerError>(
            last,
            &[],
            |e| {
                finished = self.finish(cg, e, outer, tile, &sums);
                Ok(vec![])
            },
            |e| {
                for (at, (value, mask)) in self.vectors(e, tile, &sums) {
                    if let Some((buffer, index)) = self.partial_at(e, partial, outer, tile, at) {
                        e.store(value, buffer, index, self.lanes, mask);
                    }
                }
                Ok(vec![])
            },
        )?;
        finished
    }

    /// Computes a tile of a transposed product, of which the last one has fewer rows: they have sums of their own, and are
    /// transposed and stored by the same code.
    pub(super) fn emit_transposed(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        outer: &[Value<'c, 'a>],
        (a, b): (Source<'c, 'a>, Source<'c, 'a>),
        (tile, left): (Tile<'c, 'a>, i64),
        depth: Depth<'c, 'a>,
    ) -> Result<()> {
        let is_last = e.compare(0, tile.row, e.index(self.m - left));
        let count = (tile.rows * self.vectors_per_row(tile)) as usize;
        let types = vec![self.lanes.of(self.element); count];
        let (own, of) = (&*cg, |rows| Tile { rows, ..tile });
        let sums = |e: Emit<'c, 'a>, tile| {
            let starts = self.start(own, e, outer, tile, depth)?;
            let mut sums = self.accumulate(e, (a, b), tile, depth, &starts)?;
            sums.resize(count, e.zero(self.element, self.lanes));
            Ok::<_, LowerError>(sums)
        };
        let sums = e.if_else(is_last, &types, |e| sums(e, of(left)), |e| sums(e, tile))?;
        let rows = [left, tile.rows].map(|rows| e.index(rows));
        let live = e.op(arith::SELECT, &[is_last, rows[0], rows[1]], rows[0].r#type());
        let mask = e.first_lanes(live, self.lanes);
        self.finish_transposed(cg, e, outer, tile, &sums, mask)
    }

    /// Prefetches what a finished tile reads and writes, where rows are so far apart that processors do not: while the
    /// sums are computed, it arrives.
    fn prefetch_ends(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        outer: &[Value<'c, 'a>],
        tile: Tile<'c, 'a>,
    ) {
        let product = &self.matmul.product;
        let (Some(m), None, false) = (product.m, self.partial, product.is_transposed) else {
            return;
        };
        let shift = if self.k < MIN_DEPTH { self.columns() } else { 0 };
        let stages = [&[product.stage], &self.matmul.epilogue[..]].concat();
        let stages = stages.iter().map(|s| &cg.kernel.stages[*s]);
        let ends = stages.flat_map(|stage| {
            let read = stage.inputs.iter().map(|it| (it.tensor, &it.access, Prefetch::Read));
            let read = read.skip(if stage.parallel == stage.sizes.len() { 0 } else { 2 });
            let written = stage.outputs.iter().map(|it| (it.tensor, &it.access, Prefetch::Write));
            read.chain(written).collect::<Vec<_>>()
        });
        for (tensor, access, to) in ends {
            let bytes = super::super::byte_width(cg.kernel.tensors[tensor].element);
            let Some(buffer) = cg.places[tensor].buffer() else { continue };
            if access.coefs[m] * bytes < FAR_APART || access.coefs[product.n] != 1 {
                continue;
            }
            let line = 64 / bytes;
            for row in 0..tile.rows {
                let at = e.offset(self.element_at(e, access, outer, tile, (row, 0)), shift);
                for column in (0..tile.columns).step_by(line as usize) {
                    e.prefetch(buffer, e.offset(at, column), to);
                }
                // Rows may begin anywhere in a line.
                if access.coefs[m] % line != 0 {
                    e.prefetch(buffer, e.offset(at, tile.columns - 1), to);
                }
            }
        }
    }

    /// Zeros, the initial value in `outs`, or the sums of the previous blocks of `k`.
    fn start(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        outer: &[Value<'c, 'a>],
        tile: Tile<'c, 'a>,
        depth: Depth<'c, 'a>,
    ) -> Result<Vec<Value<'c, 'a>>> {
        let count = (tile.rows * self.vectors_per_row(tile)) as usize;
        let dummy = vec![tile.row; count];
        let initial = |e: Emit<'c, 'a>| -> Result<Vec<Value<'c, 'a>>> {
            let init = &self.output.init;
            if let Some(scalar) = cg.splat_of(init.tensor) {
                return Ok(vec![e.constant(scalar, self.element, self.lanes); count]);
            }
            let stage = &cg.kernel.stages[self.matmul.product.stage];
            let buffer = cg.places[init.tensor]
                .buffer()
                .ok_or_else(|| LowerError::at(stage.op, "expected a filled accumulator"))?;
            if init.access.coefs[self.matmul.product.n] != 1 {
                return Err(LowerError::at(stage.op, "expected a contiguous accumulator"));
            }
            let load = |(at, (_, mask))| {
                let index = self.element_at(e, &init.access, outer, tile, at);
                e.load_lanes(buffer, index, self.lanes, mask)
            };
            Ok(self.vectors(e, tile, &dummy).map(load).collect())
        };
        if self.partial.is_none() {
            return initial(e);
        }
        let first = e.compare(0, depth.from, e.index(0));
        let types = vec![self.lanes.of(self.element); count];
        e.if_else(first, &types, initial, |e| {
            let load = |(at, (_, mask))| {
                let (buffer, index) = self.partial_at(e, self.partial, outer, tile, at)?;
                Some(e.load_lanes(buffer, index, self.lanes, mask))
            };
            Ok(self.vectors(e, tile, &dummy).filter_map(load).collect())
        })
    }

    pub(super) fn vectors_per_row(&self, tile: Tile<'c, 'a>) -> i64 {
        (tile.columns + self.lanes.count() - 1) / self.lanes.count()
    }

    /// `((row, vector), (value, mask))` over the vectors of a tile.
    fn vectors<'s>(
        &'s self,
        e: Emit<'c, 'a>,
        tile: Tile<'c, 'a>,
        values: &'s [Value<'c, 'a>],
    ) -> impl Iterator<Item = ((i64, i64), (Value<'c, 'a>, Option<Value<'c, 'a>>))> + 's
    where
        'c: 's,
        'a: 's,
    {
        let each = self.vectors_per_row(tile);
        let masks: Vec<_> = (0..each).map(|vector| self.mask(e, tile, vector)).collect();
        values.iter().enumerate().map(move |(number, value)| {
            let (row, vector) = (number as i64 / each, number as i64 % each);
            ((row, vector), (*value, masks[vector as usize]))
        })
    }

    /// The columns of a vector of a tile, if there may be fewer than it has lanes.
    fn mask(&self, e: Emit<'c, 'a>, tile: Tile<'c, 'a>, vector: i64) -> Option<Value<'c, 'a>> {
        let first = vector * self.lanes.count();
        match self.width {
            None => e.tail_mask(tile.columns - first, self.lanes),
            Some(width) => {
                let live = e.binary(arith::SUBI, width, tile.column);
                e.first_lanes(e.offset(live, -first), self.lanes)
            }
        }
    }

    /// The index of an access over the output's loops at a vector of the tile.
    fn element_at(
        &self,
        e: Emit<'c, 'a>,
        access: &Access,
        outer: &[Value<'c, 'a>],
        tile: Tile<'c, 'a>,
        (row, vector): (i64, i64),
    ) -> Value<'c, 'a> {
        let mut ivs = outer.to_vec();
        let mut constant = access.offset + vector * self.lanes.count();
        if let Some(m) = self.matmul.product.m {
            ivs[m] = tile.row;
            constant += row * access.coefs[m];
        }
        let at = e.linear(e.index(0), &ivs, &access.coefs[..ivs.len()]);
        e.offset(e.add(at, tile.column), constant)
    }

    fn partial_at(
        &self,
        e: Emit<'c, 'a>,
        partial: Option<Place<'c, 'a>>,
        outer: &[Value<'c, 'a>],
        tile: Tile<'c, 'a>,
        at: (i64, i64),
    ) -> Option<(Buffer<'c, 'a>, Value<'c, 'a>)> {
        match partial? {
            Place::Memory(buffer) => {
                Some((buffer, self.element_at(e, &self.output.access, outer, tile, at)))
            }
            Place::Row(buffer) => {
                let base = e.add(e.scale(tile.row, self.n), tile.column);
                Some((buffer, e.offset(base, at.0 * self.n + at.1 * self.lanes.count())))
            }
            Place::Register => None,
        }
    }

    /// The micro-kernel: one broadcast of `A` per row and one load of `B` per vector, per `k`.
    fn accumulate(
        &self,
        e: Emit<'c, 'a>,
        (a, b): (Source<'c, 'a>, Source<'c, 'a>),
        tile: Tile<'c, 'a>,
        depth: Depth<'c, 'a>,
        starts: &[Value<'c, 'a>],
    ) -> Result<Vec<Value<'c, 'a>>> {
        if self.right.is_in_tiles() {
            return self.accumulate_converted(e, a, tile, depth, starts);
        }
        let product = &self.matmul.product;
        let first = e.add(a.base, e.scale(tile.row, a.across));
        // The last panel of the left operand has as many rows as the tile.
        let (across, along) = match self.left {
            Some(_) => (1, tile.rows),
            None => (a.across, a.along),
        };
        // How far ahead of a factor others are prefetched: in its panel, or in the row that the next tile reads to its end.
        let left_ahead = match self.left {
            Some(_) => Some(LEFT_AHEAD),
            None => (product.is_transposed && a.across == 1).then_some(2 * tile.rows - 1),
        };
        let width = self.lanes.count();
        let few = self.few(tile);
        let each = self.vectors_per_row(tile) - i64::from(few > 0);
        let live = tile.columns - (each - 1) * width;
        // Packed panels are padded with zeros; B itself is not.
        let tail = if self.pack_b || few > 0 { None } else { e.tail_mask(live, self.lanes) };
        let in_lanes = Lanes::Vector(tile.rows);
        let rows_at = |e: Emit<'c, 'a>, k: Value<'c, 'a>| {
            e.load_lanes(a.buffer, e.add(first, e.scale(k, along)), in_lanes, None)
        };
        let column_at = |e: Emit<'c, 'a>, k: Value<'c, 'a>, number: i64| {
            let at = e.add(b.base, e.scale(k, b.along));
            e.splat(e.load(b.buffer, e.offset(at, each * width + number)), in_lanes)
        };
        if each == 0 {
            let how = (in_lanes, column_tail::Products::floats(e));
            let own = column_tail::sums(e, (few, depth.size), how, &rows_at, &column_at);
            return Ok(self.with_few(e, tile, starts, &[], &own));
        }
        let dots = self.dots;
        let steps = if product.extensions(dots, self.lanes).is_some() { 2 } else { 1 };
        let add = |e: Emit<'c, 'a>, k: Value<'c, 'a>, sums: &[Value<'c, 'a>]| {
            let at = e.add(b.base, e.scale(k, b.along));
            let column = |vector: i64, step: i64| {
                let at = e.offset(at, vector * width);
                if self.extensions[1].is_some() {
                    let at = e.offset(e.scale(at, 2), step * width);
                    return e.load_lanes(b.buffer, at, self.lanes, None);
                }
                let mask = if vector + 1 == each { tail } else { None };
                self.half(e, e.load_lanes(b.buffer, at, self.lanes, mask), 1, step)
            };
            if let Some(Ahead { buffer, at, along, width }) = tile.ahead {
                let at = e.add(at, e.scale(k, along));
                for line in (0..width).step_by(LINE as usize) {
                    let fits_l1 = self.is_in_place && in_place::fits_l1(self.k, along);
                    let to = if fits_l1 { Prefetch::Read } else { Prefetch::L2 };
                    e.prefetch(buffer, e.offset(at, line), to);
                }
            }
            if self.prefetches {
                for line in (0..b.along).step_by(LINE as usize) {
                    e.prefetch(b.buffer, e.offset(at, STREAM_AHEAD + line), Prefetch::Read);
                }
            }
            let at = e.add(first, e.scale(k, along));
            let is_extended = self.extensions[0].is_some();
            if let Some(distance) = left_ahead {
                let ahead = e.offset(at, distance);
                let ahead = if is_extended { e.scale(ahead, 2) } else { ahead };
                e.prefetch(a.buffer, ahead, Prefetch::Read);
            }
            let factor = |row: i64, step: i64| {
                let at = e.offset(at, row * across);
                if is_extended {
                    let scalar = e.load(a.buffer, e.offset(e.scale(at, 2), step));
                    return e.splat(scalar, self.lanes);
                }
                self.half(e, e.splat(e.load(a.buffer, at), self.lanes), 0, step)
            };
            let mut next = sums.to_vec();
            for step in 0..steps {
                let columns: Vec<Value> = (0..each).map(|vector| column(vector, step)).collect();
                for row in 0..tile.rows {
                    let broadcast = factor(row, step);
                    for (vector, column) in columns.iter().enumerate() {
                        let sum = &mut next[(row * each) as usize + vector];
                        let operands = [broadcast, *column, *sum];
                        *sum = product.multiply_add(e, dots, operands, self.lanes);
                    }
                }
            }
            if few > 0 {
                let rows = rows_at(e, k);
                for (number, sum) in next.iter_mut().skip((tile.rows * each) as usize).enumerate() {
                    let operands = [rows, column_at(e, k, number as i64), *sum];
                    *sum = e.op(math::FMA, &operands, sum.r#type());
                }
            }
            Ok(next)
        };
        if few > 0 {
            let is_whole = |number: &usize| *number as i64 % (each + 1) < each;
            let whole = (0..starts.len()).filter(is_whole).map(|number| starts[number]);
            let zeros = (0..few).map(|_| e.zero(self.element, in_lanes));
            let all: Vec<_> = whole.chain(zeros).collect();
            let mut sums = e.for_each::<LowerError>((e.index(0), depth.size, 1), &all, add)?;
            let own = sums.split_off((tile.rows * each) as usize);
            return Ok(self.with_few(e, tile, starts, &sums, &own));
        }
        let steps = self.independent_steps(starts.len());
        if steps > 1 {
            let count = starts.len();
            let zero = e.zero(self.element, self.lanes);
            let mut all = starts.to_vec();
            all.resize(count * steps, zero);
            let bounds = (e.index(0), depth.size, steps as i64);
            let sums = e.for_each::<LowerError>(bounds, &all, |e, k, sums| {
                let own = sums.chunks(count).zip(0..);
                let next = own.map(|(own, step)| add(e, e.offset(k, step), own));
                Ok(next.collect::<Result<Vec<_>>>()?.concat())
            })?;
            let sum = |number: usize| {
                let own = sums.iter().skip(number).step_by(count).copied();
                own.reduce(|x, y| e.binary(arith::ADDF, x, y))
            };
            return Ok((0..count).filter_map(sum).collect());
        }
        if !self.multiplies_high_bytes() {
            return e.for_each((e.index(0), depth.size, 1), starts, add);
        }
        e.for_each((e.index(0), depth.size, HIGH_STEPS), starts, |e, from, sums| {
            let to = e.min(e.offset(from, HIGH_STEPS), depth.size);
            let zeros = vec![e.zero(self.element, self.lanes); sums.len()];
            let own = e.for_each::<LowerError>((from, to, 1), &zeros, add)?;
            let by = e.integer(8, 32, self.lanes);
            let narrow = own.into_iter().map(|own| e.binary(arith::SHRSI, own, by));
            Ok(sums.iter().zip(narrow).map(|(sum, own)| e.binary(arith::ADDI, *sum, own)).collect())
        })
    }

    /// The columns of a tile after its last whole vector that are computed with rows in lanes.
    fn few(&self, tile: Tile<'c, 'a>) -> i64 {
        let few = tile.columns % self.lanes.count();
        let applies =
            tile.rows == self.blocks.mr && self.has_few() && few <= column_tail::MAX_COLUMNS;
        if applies { few } else { 0 }
    }

    /// The sums of a tile: those of whole vectors, and of a few columns after them, with rows in lanes, which are added to what
    /// they start from.
    fn with_few(
        &self,
        e: Emit<'c, 'a>,
        tile: Tile<'c, 'a>,
        starts: &[Value<'c, 'a>],
        whole: &[Value<'c, 'a>],
        few: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let rows = tile.rows as usize;
        let each = whole.len() / rows;
        let few = column_tail::by_row(e, few, (tile.rows, e.f32()));
        let of_row = |row: usize| {
            let last = e.binary(arith::ADDF, starts[row * (each + 1) + each], few[row]);
            [&whole[row * each..(row + 1) * each], &[last]].concat()
        };
        (0..rows).flat_map(of_row).collect()
    }

    /// The steps along `k` that have sums of their own, in tiles of so few vectors that each would wait for the one before.
    fn independent_steps(&self, vectors: usize) -> usize {
        const STEPS: i64 = 4;
        let is_divided = matches!(self.depth, Extent::Known(_))
            && [self.k, self.blocks.kc].iter().all(|depth| depth % STEPS == 0);
        let is_float = matches!(self.matmul.product.factors, Factors::Floats);
        if vectors <= 2 && is_divided && is_float { STEPS as usize } else { 1 }
    }

    /// Whether signed bytes of the right operand become the high bytes of 16-bit integers where they are multiplied, which
    /// takes fewer instructions than extending their signs.
    fn multiplies_high_bytes(&self) -> bool {
        let extensions = self.matmul.product.extensions(self.dots, self.lanes);
        extensions.is_some_and(|[_, right]| right == Extension::Sign)
            && self.extensions[1].is_none()
    }

    /// Elements of the left (0) or right (1) operand as they are multiplied in a step: their even or odd bytes, if they are
    /// extended.
    fn half(
        &self,
        e: Emit<'c, 'a>,
        elements: Value<'c, 'a>,
        side: usize,
        step: i64,
    ) -> Value<'c, 'a> {
        match self.matmul.product.extensions(self.dots, self.lanes) {
            None => elements,
            Some(_) if side == 1 && self.multiplies_high_bytes() => {
                dots::high_halves(e, elements, self.lanes)[step as usize]
            }
            Some(extensions) => {
                dots::halves(e, elements, self.lanes, extensions[side])[step as usize]
            }
        }
    }

    /// Stores a finished tile, through the epilogue if there is one.
    fn finish(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        outer: &[Value<'c, 'a>],
        tile: Tile<'c, 'a>,
        sums: &[Value<'c, 'a>],
    ) -> Result<()> {
        if self.matmul.product.is_transposed {
            let mask = e.tail_mask(tile.rows, self.lanes);
            return self.finish_transposed(cg, e, outer, tile, sums, mask);
        }
        let pass = Pass::after_product(&self.matmul.epilogue, outer.len(), self.n);
        let width = self.lanes.count();
        let row_of = |row: Value<'c, 'a>| {
            let mut rows = outer.to_vec();
            if let Some(m) = self.matmul.product.m {
                rows[m] = row;
            }
            rows
        };
        let Some(scratch) = self.tile else {
            for ((row, vector), (value, mask)) in self.vectors(e, tile, sums) {
                let rows = row_of(e.offset(tile.row, row));
                let column = e.offset(tile.column, vector * width);
                emit_result(cg, e, &pass, (&self.output, value), &rows, column, mask)?;
            }
            return Ok(());
        };
        for ((row, vector), (value, _)) in self.vectors(e, tile, sums) {
            let index = e.index(row * self.columns() + vector * width);
            e.store(value, scratch, index, self.lanes, None);
        }
        let each = self.vectors_per_row(tile);
        let masks: Vec<_> = (0..each).map(|vector| self.mask(e, tile, vector)).collect();
        let run = |cg: &mut Codegen<'c, 'a>, e: Emit<'c, 'a>, row: Value<'c, 'a>| -> Result<()> {
            let rows = row_of(e.add(tile.row, row));
            for vector in 0..each {
                let mask = masks[vector as usize];
                let at = e.offset(e.scale(row, self.columns()), vector * width);
                let value = e.load_lanes(scratch, at, self.lanes, None);
                let column = e.offset(tile.column, vector * width);
                emit_result(cg, e, &pass, (&self.output, value), &rows, column, mask)?;
            }
            Ok(())
        };
        e.loop_over(tile.rows, |e, row| run(cg, e, row))
    }

    /// Stores a finished tile of a transposed product: its columns are rows of the result. A mask has the rows that exist, if
    /// not all do.
    fn finish_transposed(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        outer: &[Value<'c, 'a>],
        tile: Tile<'c, 'a>,
        sums: &[Value<'c, 'a>],
        mask: Option<Value<'c, 'a>>,
    ) -> Result<()> {
        let Some(scratch) = self.tile else { return Ok(()) };
        let (width, each) = (self.lanes.count(), self.vectors_per_row(tile) as usize);
        for vector in 0..each {
            let mut square: Vec<Value> = sums.iter().skip(vector).step_by(each).copied().collect();
            square.resize(width as usize, e.zero(self.element, self.lanes));
            transpose::square(e, &mut square);
            for (column, value) in square.into_iter().enumerate() {
                let at = e.index((vector as i64 * width + column as i64) * width);
                e.store(value, scratch, at, self.lanes, None);
            }
        }
        let pass = Pass::after_product(&self.matmul.epilogue, outer.len(), self.m);
        e.loop_over(tile.columns, |e, column| {
            let mut rows = outer.to_vec();
            rows[self.matmul.product.n] = e.add(tile.column, column);
            let value = e.load_lanes(scratch, e.scale(column, width), self.lanes, None);
            emit_result(cg, e, &pass, (&self.output, value), &rows, tile.row, mask)
        })
    }
}
