//! The loops of the algorithm: around images of known sizes, and of sizes that are known when the kernel runs.
use super::transform::{Tiles, flipped};
use crate::kernel::emit::{Buffer, Emit, Lanes, Prefetch};
use crate::lowering::linalg_to_vector::split::{self, Extent, Units};
use irc_mlir::ops::{arith, math, vector};
use irc_mlir::{Value, ValueLike};
use std::cell::RefCell;

/// The number of chunks in a vector.
pub const CHUNKS: i64 = 4;

/// The number of elements of the filters from one that is read to one that is prefetched: models' filters come from memory.
const AHEAD: i64 = 1024;

/// How tiles and filters are divided.
#[derive(Debug, Clone, Copy)]
pub struct Blocks {
    /// Elements of a vector.
    pub lanes: i64,
    /// Rows and columns of the result of a tile.
    pub tile: i64,
    /// The numbers of channels and filters.
    pub channels: i64,
    pub filters: i64,
    /// Vectors in a block of tiles. The last block may have one.
    pub vectors: i64,
    /// Filters in a panel.
    pub panel: i64,
}

impl Blocks {
    /// For tiles of `tile` rows and columns; `is_small` if they fill one vector at most.
    pub fn of(lanes: i64, tile: i64, [channels, filters]: [i64; 2], is_small: bool) -> Self {
        let vectors = if is_small { 1 } else { 2 };
        // The sums of a panel fill half of 32 registers, or three quarters of 16.
        let sums = if lanes >= 16 { 16 } else { 12 };
        Self { lanes, tile, channels, filters, vectors, panel: sums / vectors }
    }

    /// The transformed filters.
    pub fn packing(&self, argument: usize) -> irc_packing::Winograd {
        let Self { filters, channels, panel, tile, .. } = *self;
        irc_packing::Winograd { argument, filters, channels, panel, tile, small_panel: None }
    }

    /// Elements of a transformed tile.
    pub fn points(&self) -> i64 {
        (self.tile + 2) * (self.tile + 2)
    }

    /// Columns of the result of a chunk.
    pub fn columns(&self) -> i64 {
        self.lanes / CHUNKS * self.tile
    }

    /// The number of panels of filters.
    pub fn panels(&self) -> i64 {
        (self.filters + self.panel - 1) / self.panel
    }

    /// The elements of the memory of a part: transformed tiles of a block, `[point, channel, tile]`; sums of a panel of filters,
    /// `[point, filter, tile]`; rows of four chunks of the result.
    pub fn memory(&self) -> [i64; 3] {
        let of_points = |rows: i64| self.points() * self.point(rows);
        [of_points(self.channels), of_points(self.panel), CHUNKS * self.tile * self.lanes]
    }

    /// Elements from one point to the next, each of so many rows: a line more than these have, so that the same row of all points
    /// is not in the same few lines of L1.
    fn point(&self, rows: i64) -> i64 {
        rows * self.row() + self.lanes
    }

    /// Elements of a row of the transformed tiles.
    fn row(&self) -> i64 {
        self.vectors * self.lanes
    }
}

/// The tiles of an image.
#[derive(Clone, Copy)]
pub struct Image<'c, 'a> {
    /// Rows and columns of the result.
    pub height: Extent<'c, 'a>,
    pub width: Extent<'c, 'a>,
    /// Chunks in a row of tiles, and in all.
    across: Extent<'c, 'a>,
    chunks: Extent<'c, 'a>,
}

impl<'c: 'a, 'a> Image<'c, 'a> {
    /// Those of a result of this size.
    pub fn of(e: Emit<'c, 'a>, blocks: &Blocks, [height, width]: [Extent<'c, 'a>; 2]) -> Self {
        let across = width.groups(e, blocks.columns());
        let chunks = Extent::product(e, &[height.groups(e, blocks.tile), across]);
        Self { height, width, across, chunks }
    }

    /// The number of blocks of tiles.
    fn blocks(&self, e: Emit<'c, 'a>, blocks: &Blocks) -> Extent<'c, 'a> {
        self.chunks.groups(e, blocks.vectors * CHUNKS)
    }

    /// The number of vectors of tiles.
    pub fn vectors_of_tiles(&self, e: Emit<'c, 'a>) -> Extent<'c, 'a> {
        self.chunks.groups(e, CHUNKS)
    }

    /// Units of work: panels of filters of blocks of tiles.
    pub fn units(&self, e: Emit<'c, 'a>, blocks: &Blocks) -> Extent<'c, 'a> {
        self.blocks(e, blocks).times(e, blocks.panels())
    }

    /// Whether the last block may have one vector only.
    fn may_be_short(&self, blocks: &Blocks) -> bool {
        let is_short = |chunks| chunks % (blocks.vectors * CHUNKS);
        let chunks = self.chunks.known().map(is_short);
        blocks.vectors > 1 && chunks.is_none_or(|left| (1..=CHUNKS).contains(&left))
    }

    /// A chunk by number; numbers after the last are the last.
    fn chunk(&self, e: Emit<'c, 'a>, blocks: &Blocks, number: Value<'c, 'a>) -> Chunk<'c, 'a> {
        let last = match self.chunks.known() {
            Some(chunks) => e.index(chunks - 1),
            None => e.offset(self.chunks.value(e), -1),
        };
        let number = e.min(number, last);
        let across = self.across.value(e);
        let row = e.scale(e.binary(arith::DIVUI, number, across), blocks.tile);
        let column = e.scale(e.binary(arith::REMUI, number, across), blocks.columns());
        Chunk { row, column }
    }
}

/// A chunk of tiles: where its first tile starts in the result.
pub struct Chunk<'c, 'a> {
    pub row: Value<'c, 'a>,
    pub column: Value<'c, 'a>,
}

/// The memory of a part.
pub struct Memory<'c, 'a> {
    /// The transformed filters, and the number of elements before them.
    pub filters: Buffer<'c, 'a>,
    pub filters_from: i64,
    /// See [`Blocks::memory`].
    pub parts: [Buffer<'c, 'a>; 3],
}

/// A line of the result.
pub struct Line<'c, 'a> {
    pub value: Value<'c, 'a>,
    /// Where it is stored: image, filter, and position in the image.
    pub image: Value<'c, 'a>,
    pub filter: Value<'c, 'a>,
    pub position: Value<'c, 'a>,
    /// The lanes that exist, if not all do.
    pub mask: Option<Value<'c, 'a>>,
}

/// Where the operand comes from, and where the result goes.
pub trait Operand<'c, 'a> {
    type Error;
    /// What the elements of four chunks have in common in all channels.
    type Chunks;

    /// Prepares to read four chunks of an image.
    fn chunks(
        &self,
        e: Emit<'c, 'a>,
        image: Value<'c, 'a>,
        chunks: &[Chunk<'c, 'a>],
    ) -> Self::Chunks;

    /// A vector of a row of a chunk, from the column after as many as `across`.
    fn read(
        &self,
        e: Emit<'c, 'a>,
        chunks: &Self::Chunks,
        channel: Value<'c, 'a>,
        at: (usize, i64),
        across: i64,
    ) -> Value<'c, 'a>;

    /// Stores a line of the result, through the epilogue if there is one.
    fn store(&mut self, e: Emit<'c, 'a>, line: Line<'c, 'a>) -> Result<(), Self::Error>;
}

/// Emits the convolution of some images at the end of the block of `e`, or some units of it.
///
/// # Errors
/// Those of the operand.
pub fn emit<'c: 'a, 'a, O: Operand<'c, 'a>>(
    e: Emit<'c, 'a>,
    (blocks, image, memory): (&Blocks, &Image<'c, 'a>, &Memory<'c, 'a>),
    operand: &mut O,
    images: Extent<'c, 'a>,
    units: Option<Units<'c, 'a>>,
) -> Result<(), O::Error> {
    let lanes = Lanes::Vector(blocks.lanes);
    let tiles = Tiles { size: blocks.tile, lanes };
    let emitter = Emitter { blocks, image, memory, lanes, tiles };
    let of_image = image.units(e, blocks);
    let count = image.blocks(e, blocks);
    split::loop_over(e, (images, of_image), units, |e, number, units| {
        split::loop_over(e, (count, blocks.panels()), units, |e, block, units| {
            let block = emitter.block(e, number, block);
            emitter.transform_tiles(e, operand, &block)?;
            emitter.multiply(e, operand, &block, units)
        })
    })
}

/// A block of tiles.
struct Block<'c, 'a> {
    image: Value<'c, 'a>,
    /// The number of its first chunk.
    first: Value<'c, 'a>,
    /// The number of its vectors.
    vectors: Extent<'c, 'a>,
    /// Whether it has one vector instead of two, if that is not known.
    is_short: Option<Value<'c, 'a>>,
}

/// The loops being written.
struct Emitter<'p, 'c, 'a> {
    blocks: &'p Blocks,
    image: &'p Image<'c, 'a>,
    memory: &'p Memory<'c, 'a>,
    lanes: Lanes,
    tiles: Tiles,
}

impl<'c: 'a, 'a> Emitter<'_, 'c, 'a> {
    fn block(&self, e: Emit<'c, 'a>, image: Value<'c, 'a>, number: Value<'c, 'a>) -> Block<'c, 'a> {
        let first = e.scale(number, self.blocks.vectors * CHUNKS);
        if !self.image.may_be_short(self.blocks) {
            let vectors = Extent::Known(self.blocks.vectors);
            return Block { image, first, vectors, is_short: None };
        }
        const SLE: i64 = 3;
        let left = e.binary(arith::SUBI, self.image.chunks.value(e), first);
        let is_short = e.compare(SLE, left, e.index(CHUNKS));
        let (one, all) = (e.index(1), e.index(self.blocks.vectors));
        let vectors = Extent::Passed(e.op(arith::SELECT, &[is_short, one, all], one.r#type()));
        Block { image, first, vectors, is_short: Some(is_short) }
    }

    /// Transforms the tiles of a block in all channels.
    fn transform_tiles<O: Operand<'c, 'a>>(
        &self,
        e: Emit<'c, 'a>,
        operand: &O,
        block: &Block<'c, 'a>,
    ) -> Result<(), O::Error> {
        let (blocks, points) = (self.blocks, self.memory.parts[0]);
        split::loop_over(e, (block.vectors, 1), None, |e, vector, _| {
            let number = e.add(block.first, e.scale(vector, CHUNKS));
            let chunk = |at| self.image.chunk(e, blocks, e.offset(number, at));
            let chunks =
                operand.chunks(e, block.image, &(0..CHUNKS).map(chunk).collect::<Vec<_>>());
            e.loop_over(blocks.channels, |e, c| {
                let reads = self.tiles.reads();
                let rows = (0..reads as i64).map(|down| {
                    let read = |chunk, across| operand.read(e, &chunks, c, (chunk, down), across);
                    self.tiles.to_points(e, &self.tiles.read(e, read))
                });
                let rows: Vec<_> = rows.collect();
                let to = e.linear(e.index(0), &[c, vector], &[blocks.row(), blocks.lanes]);
                for (across, column) in flipped(&rows).into_iter().enumerate() {
                    let elements = self.tiles.to_points(e, &column);
                    for (down, point) in elements.into_iter().enumerate() {
                        let number = (reads * down + across) as i64;
                        let at = e.offset(to, number * blocks.point(blocks.channels));
                        e.store(point, points, at, self.lanes, None);
                    }
                }
                Ok(())
            })
        })
    }

    /// Multiplies the tiles of a block with each panel of filters, and writes the results.
    fn multiply<O: Operand<'c, 'a>>(
        &self,
        e: Emit<'c, 'a>,
        operand: &mut O,
        block: &Block<'c, 'a>,
        units: Option<Units<'c, 'a>>,
    ) -> Result<(), O::Error> {
        let blocks = self.blocks;
        split::loop_over(e, (blocks.panels(), 1), units, |e, panel, _| {
            e.loop_over(blocks.points(), |e, point| {
                let sum =
                    |vectors| move |e| self.sum::<O>(e, panel, point, vectors).map(|()| vec![]);
                match block.is_short {
                    None => sum(blocks.vectors)(e).map(|_| ()),
                    Some(is_short) => {
                        e.if_else(is_short, &[], sum(1), sum(blocks.vectors)).map(|_| ())
                    }
                }
            })?;
            let first = e.scale(panel, blocks.panel);
            let rest = e.binary(arith::SUBI, e.index(blocks.filters), first);
            let count = e.min(rest, e.index(blocks.panel));
            e.for_each((e.index(0), count, 1), &[], |e, filter, _| {
                split::loop_over(e, (block.vectors, 1), None, |e, vector, _| {
                    self.results_of(e, filter, vector);
                    let number = e.add(block.first, e.scale(vector, CHUNKS));
                    self.finish(e, operand, (block.image, e.add(first, filter)), number)
                })?;
                Ok(vec![])
            })?;
            Ok(())
        })
    }

    /// The sums over all channels of one point, for so many vectors: panel of filters times tiles.
    fn sum<O: Operand<'c, 'a>>(
        &self,
        e: Emit<'c, 'a>,
        panel: Value<'c, 'a>,
        point: Value<'c, 'a>,
        vectors: i64,
    ) -> Result<(), O::Error> {
        let Blocks { panel: filters, lanes, channels, .. } = *self.blocks;
        let [points, sums_of_panel, _] = self.memory.parts;
        let row = self.blocks.row();
        let zero = e.zero(points.element, self.lanes);
        let starts = vec![zero; (filters * vectors) as usize];
        let of_filters = e.linear(
            e.index(self.memory.filters_from),
            &[panel, point],
            &[self.blocks.points() * channels * filters, channels * filters],
        );
        let of_tiles = e.scale(point, self.blocks.point(channels));
        let bounds = (e.index(0), e.index(channels), 1);
        let sums = e.for_each::<O::Error>(bounds, &starts, |e, channel, sums| {
            let at = e.add(of_tiles, e.scale(channel, row));
            let tile =
                |vector| e.load_lanes(points, e.offset(at, vector * lanes), self.lanes, None);
            let tiles: Vec<Value> = (0..vectors).map(tile).collect();
            let at = e.add(of_filters, e.scale(channel, filters));
            e.prefetch(self.memory.filters, e.offset(at, AHEAD), Prefetch::Read);
            let mut next = vec![];
            for filter in 0..filters {
                let factor = e.load(self.memory.filters, e.offset(at, filter));
                let factor = e.splat(factor, self.lanes);
                for tile in &tiles {
                    let sum = sums[next.len()];
                    next.push(e.op(math::FMA, &[factor, *tile, sum], sum.r#type()));
                }
            }
            Ok(next)
        })?;
        let to = e.scale(point, self.blocks.point(filters));
        for (place, sum) in (0..).zip(sums) {
            let at = e.offset(to, place / vectors * row + place % vectors * lanes);
            e.store(sum, sums_of_panel, at, self.lanes, None);
        }
        Ok(())
    }

    /// Transforms the sums of a filter to the elements of its tiles.
    fn results_of(&self, e: Emit<'c, 'a>, filter: Value<'c, 'a>, vector: Value<'c, 'a>) {
        let Blocks { panel, lanes, tile, .. } = *self.blocks;
        let [_, sums, result] = self.memory.parts;
        let row = self.blocks.row();
        let from = e.linear(e.index(0), &[filter, vector], &[row, lanes]);
        let reads = self.tiles.reads();
        let columns = (0..reads).map(|across| {
            let sum = |down: usize| {
                let point = (reads * down + across) as i64;
                let at = e.offset(from, point * self.blocks.point(panel));
                e.load_lanes(sums, at, self.lanes, None)
            };
            self.tiles.to_result(e, &(0..reads).map(sum).collect::<Vec<_>>())
        });
        let columns: Vec<_> = columns.collect();
        for (down, line) in flipped(&columns).into_iter().enumerate() {
            let chunks = self.tiles.write(e, &self.tiles.to_result(e, &line));
            for (chunk, value) in chunks.into_iter().enumerate() {
                let at = e.index((chunk as i64 * tile + down as i64) * lanes);
                e.store(value, result, at, self.lanes, None);
            }
        }
    }

    /// Stores four chunks of the result.
    fn finish<O: Operand<'c, 'a>>(
        &self,
        e: Emit<'c, 'a>,
        operand: &mut O,
        (image, filter): (Value<'c, 'a>, Value<'c, 'a>),
        first: Value<'c, 'a>,
    ) -> Result<(), O::Error> {
        let Blocks { tile, lanes, .. } = *self.blocks;
        let columns = self.blocks.columns();
        let Image { height, width, chunks, .. } = *self.image;
        e.loop_over(CHUNKS, |e, number| {
            let exists = e.compare(2, e.add(first, number), chunks.value(e));
            e.if_else(
                exists,
                &[],
                |e| {
                    let chunk = self.image.chunk(e, self.blocks, e.add(first, number));
                    let rest = e.binary(arith::SUBI, height.value(e), chunk.row);
                    let lines = e.min(rest, e.index(tile));
                    let live = e.binary(arith::SUBI, width.value(e), chunk.column);
                    let live = e.min(live, e.index(columns));
                    let mask = e.op(vector::CREATE_MASK, &[live], self.lanes.of(e.int(1)));
                    let store = |e: Emit<'c, 'a>, operand: &mut O, mask| {
                        e.for_each((e.index(0), lines, 1), &[], |e, line, _| {
                            let at = e.linear(e.index(0), &[number, line], &[tile, 1]);
                            let at = e.scale(at, lanes);
                            let value = e.load_lanes(self.memory.parts[2], at, self.lanes, None);
                            let down = e.add(chunk.row, line);
                            let down = e.binary(arith::MULI, down, width.value(e));
                            let position = e.add(chunk.column, down);
                            let line = Line { value, image, filter, position, mask };
                            operand.store(e, line).map(|()| vec![])
                        })
                    };
                    if columns != lanes {
                        return store(e, operand, Some(mask));
                    }
                    if width.known().is_some_and(|width| width % lanes == 0) {
                        return store(e, operand, None);
                    }
                    // Masked stores take long on some processors.
                    let is_whole = e.compare(0, live, e.index(lanes));
                    let operand = RefCell::new(operand);
                    e.if_else(
                        is_whole,
                        &[],
                        |e| store(e, &mut operand.borrow_mut(), None),
                        |e| store(e, &mut operand.borrow_mut(), Some(mask)),
                    )
                },
                |_| Ok(vec![]),
            )?;
            Ok(())
        })
    }
}
